"""A switch's files over real SSH: placed all or none, checked first, read back, drift seen, given back."""

import asyncio

import pytest
from nos import Nos, possible
from rack import Log
from ssh_server import line, new_key, serving

from supernode.provider.resource import InitFailedError, Scene
from supernode.provider.settings import Settings
from supernode.provider.switch_config import SwitchConfigResource
from supernode.provider.switch_plan import digest

pytestmark = pytest.mark.skipif(not possible(), reason="no user namespaces")
URN = "urn:pulumi:lab::supernode::supernode:index:SwitchConfig::su01-leaf0"
CONF, DAEMONS, LLDP = "/etc/frr/frr.conf", "/etc/frr/daemons", "/etc/lldpd.d/supernode.conf"


class Bench:
    def __init__(self, folder):
        self.folder, self.log = folder, Log()
        self.nos = Nos(folder / "root")
        text, self.user = new_key()
        _, self.host = new_key()
        (folder / "id").write_text(text)
        (folder / "id").chmod(0o600)
        self.resource = SwitchConfigResource(reach_s=3)
        self.scene = Scene(URN, folder, Settings(), self.log)
        self.port = 0

    def inputs(self, conf="router bgp 65001\n", daemons="zebra=yes\nbgpd=yes\n", lldp="configure x\n", **changes):
        files = [
            {"path": CONF, "content": conf, "mode": "0640"},
            {"path": DAEMONS, "content": daemons, "mode": "0640"},
            {"path": LLDP, "content": lldp, "mode": "0644"},
        ]
        wanted = {
            "name": "su01-leaf0",
            "slot": "r03u40",
            "address": f"127.0.0.1:{self.port}",
            "hostKey": line(self.host),
            "sshUser": "admin",
            "sshKey": "file:id",
            "files": files,
            **changes,
        }
        filled, failures = self.resource.check(wanted)
        assert failures == []
        return filled

    def create(self, **changes):
        return dict(asyncio.run(self.resource.create(self.scene, self.inputs(**changes))))

    def update(self, old, **changes):
        return dict(asyncio.run(self.resource.update(self.scene, old, self.inputs(**changes))))

    def read(self, old, **changes):
        return asyncio.run(self.resource.read(self.scene, "r03u40", old, self.inputs(**changes)))

    def delete(self, old):
        asyncio.run(self.resource.delete(self.scene, old))

    def diff(self, old, **changes):
        return dict(self.resource.diff(self.scene, old, self.inputs(**changes)).changes)


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    with serving(made.host, made.user, made.nos.answer) as server:
        made.port = server.port
        yield made


def test_files_are_placed_and_in_force(bench):
    out = bench.create()
    assert (out["status"], out["reason"]) == ("ready", "")
    assert bench.nos.read(CONF) == "router bgp 65001\n"
    assert bench.nos.mode(CONF) == 0o640
    assert bench.nos.read(LLDP) == "configure x\n"
    assert bench.nos.read("/run/running") == "router bgp 65001\n"
    assert "systemctl restart frr" in bench.nos.log()
    assert "systemctl restart lldpd" in bench.nos.log()
    assert out["applied"][CONF] == digest("router bgp 65001\n")
    assert bench.diff(out) == {}
    assert bench.nos.read("/var/lib/supernode/pending") is None


def test_a_second_apply_touches_nothing_else(bench):
    out = bench.create()
    bench.nos.forget()
    bench.update(out, lldp="configure y\n")
    restarts = [entry for entry in bench.nos.log() if "restart" in entry]
    assert restarts == ["systemctl restart lldpd"]


def test_a_configuration_that_does_not_parse_changes_nothing(bench):
    out = bench.create()
    bench.nos.forget()
    bad = bench.update(out, conf="garbage\n", lldp="configure y\n")
    assert (bad["status"], bad["phase"]) == ("failed", "check")
    assert "Unknown command: garbage" in bad["reason"] + "".join(bad["evidence"])
    assert bench.nos.read(CONF) == "router bgp 65001\n"
    assert bench.nos.read(LLDP) == "configure x\n"
    assert bench.nos.log() == []
    assert bench.diff(bad, conf="garbage\n", lldp="configure y\n")
    assert any("failed in phase check" in w for w in bench.log.warnings)


def test_a_configuration_that_will_not_start_is_taken_back(bench):
    out = bench.create()
    bad = bench.update(out, conf="poison\n", daemons="zebra=yes\nbgpd=yes\nbfdd=yes\n")
    assert (bad["status"], bad["phase"]) == ("failed", "reload")
    assert "former files are in force again" in bad["reason"]
    assert bench.nos.read(CONF) == "router bgp 65001\n"
    assert bench.nos.read("/run/running") == "router bgp 65001\n"
    good = bench.update(bad)
    assert good["status"] == "ready"


def test_a_daemon_that_does_not_run_is_told(bench):
    bench.nos.write("/stubs/systemctl", "#!/bin/sh\nexit 0\n", 0o755)
    out = bench.create(daemons="zebra=yes\nbgpd=yes\n")
    assert (out["status"], out["phase"]) == ("failed", "verify")
    assert "FRR does not run zebra, bgpd" in out["reason"]


def test_a_changed_file_shows_as_drift_and_is_mended(bench):
    out = bench.create()
    bench.nos.write(LLDP, "by hand\n")
    found = bench.read(out)
    assert bench.diff(found.outputs) == {"files[2].content": "update"}
    assert found.inputs["files"][2]["content"] == "by hand\n"
    assert bench.update(found.outputs)["status"] == "ready"
    assert bench.nos.read(LLDP) == "configure x\n"


def test_a_missing_file_shows_as_drift(bench):
    out = bench.create()
    (bench.nos.root / LLDP.lstrip("/")).unlink()
    found = bench.read(out)
    assert bench.diff(found.outputs) == {"files[2]": "add"}


def test_a_changed_running_configuration_shows_as_drift_and_is_mended(bench):
    out = bench.create()
    bench.nos.write("/run/running", "router bgp 65001\n neighbor 10.9.9.9\n")
    found = bench.read(out)
    assert found.outputs["drift"]
    assert bench.diff(found.outputs) == {"files": "update"}
    bench.nos.forget()
    mended = bench.update(found.outputs)
    assert (mended["status"], mended["drift"]) == ("ready", [])
    assert bench.nos.read("/run/running") == "router bgp 65001\n"


def test_an_apply_that_was_cut_off_is_completed(bench):
    """The files stand as wanted, but the restart that belongs to them never ran."""
    out = bench.create()
    (bench.nos.root / "var/lib/supernode").mkdir(exist_ok=True)
    bench.nos.write("/var/lib/supernode/pending", f"{LLDP}\n")
    bench.nos.forget()
    bench.update(out)
    assert "systemctl restart lldpd" in bench.nos.log()
    assert bench.nos.read("/var/lib/supernode/pending") is None


def test_delete_gives_back_the_factory_s_files(bench):
    out = bench.create()
    out = bench.update(out, conf="router bgp 65002\n")
    bench.nos.forget()
    bench.delete(out)
    assert bench.nos.read(CONF) == "! factory\n"
    assert bench.nos.read(DAEMONS) == "bgpd=no\n"
    assert bench.nos.read(LLDP) is None
    assert bench.nos.read("/run/running") == "! factory\n"
    assert bench.nos.read("/var/lib/supernode/original/etc/frr/frr.conf") is None


def test_a_file_that_is_no_longer_listed_is_given_back(bench):
    out = bench.create()
    files = bench.inputs()["files"][:2]
    bench.update(out, files=files)
    assert bench.nos.read(LLDP) is None


def test_another_host_key_is_not_talked_to(bench):
    _, other = new_key()
    out = bench.create(hostKey=line(other))
    assert (out["status"], out["phase"]) == ("failed", "contact")
    assert "another host key" in out["reason"]
    assert bench.nos.read(CONF) == "! factory\n"


def test_a_switch_that_does_not_answer_is_late_and_strict_fails(bench):
    out = bench.create(address="127.0.0.1:1")
    assert (out["status"], out["phase"]) == ("late", "contact")
    with pytest.raises(InitFailedError):
        bench.create(address="127.0.0.1:1", strict=True)
    kept = bench.create()
    found = asyncio.run(bench.resource.read(bench.scene, "r03u40", {**kept, "address": "127.0.0.1:1"}, {}))
    assert found.outputs["applied"] == kept["applied"]
