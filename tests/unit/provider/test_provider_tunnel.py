"""Both gateways of a tunnel over real SSH: keys made there, files placed on both, handshake awaited, given back."""

import asyncio

import pytest
from nos import STUBS, Nos, possible
from rack import Log
from ssh_server import line, new_key, serving

from supernode.provider.resource import InitFailedError, Scene
from supernode.provider.settings import Settings
from supernode.provider.tunnel import TunnelResource

pytestmark = pytest.mark.skipif(not possible(), reason="no user namespaces")
URN = "urn:pulumi:lab::supernode::supernode:index:Tunnel::branch"
CONF, RULES, KEY = "/etc/wireguard/wg0.conf", "/etc/nftables.conf", "/etc/wireguard/wg0.key"
# `genkey` gives another key each time, `pubkey` follows from it; a handshake is there when the interface runs.
WG = """
case "$*" in
  genkey) echo "private-$(head -c 8 /dev/urandom | od -An -tx1 | tr -d ' ')" ;;
  pubkey) sed s/private/public/ ;;
  *latest-handshakes) if [ -e /run/up ] && [ ! -e /run/blocked ]; then at=$(date +%s); fi; echo "peer ${at:-0}" ;;
  *endpoints) echo "peer 203.0.113.10:51820" ;;
esac
"""
SYSTEMCTL = """
echo "systemctl $*" >>/run/log
case "$*" in
  "restart wg-quick@wg0") : >/run/up ;;
  "is-active --quiet "*) true ;;
esac
"""
IP = 'echo "ip $*" >>/run/log\n[ "$*" = "link delete wg0" ] && rm -f /run/up\ntrue\n'
NFT = 'if [ "$1" = -c ] && grep -q garbage "$3"; then echo "syntax error" >&2; exit 1; fi\n'


class Gateway(Nos):
    def __init__(self, root):
        super().__init__(root)
        more = {"wg": WG, "wg-quick": "true\n", "systemctl": SYSTEMCTL, "ip": IP, "nft": NFT}
        for name, text in {**STUBS, **more}.items():
            (root / "stubs" / name).write_text(f"#!/bin/sh\n{text}")
            (root / "stubs" / name).chmod(0o755)


class Bench:
    def __init__(self, folder):
        self.folder, self.log = folder, Log()
        self.near, self.far = Gateway(folder / "near"), Gateway(folder / "far")
        text, self.user = new_key()
        (folder / "id").write_text(text)
        (folder / "id").chmod(0o600)
        self.keys = {}
        for name in ("near", "far"):
            _, self.keys[name] = new_key()
            (folder / f"{name}.pub").write_text(line(self.keys[name]) + " gateway\n")
        self.resource = TunnelResource(reach_s=3, handshake_s=1)
        self.scene = Scene(URN, folder, Settings(), self.log)
        self.ports = {}

    def inputs(self, rules="drop\n", **changes):
        def gateway(name, peer):
            conf = f"[Peer]\nPublicKey = @{peer}@\n"
            files = [(RULES, rules, "0644"), (CONF, conf, "0600")]
            return {
                "name": name,
                "address": f"127.0.0.1:{self.ports[name]}",
                "hostKey": f"{name}.pub",
                "initiates": name == "near",
                "files": [{"path": path, "content": content, "mode": mode} for path, content, mode in files],
            }

        wanted = {"name": "branch", "sshKey": "file:id", "gateways": [gateway("near", "far"), gateway("far", "near")]}
        filled, failures = self.resource.check({**wanted, **changes})
        assert failures == []
        return filled

    def create(self, **changes):
        return dict(asyncio.run(self.resource.create(self.scene, self.inputs(**changes))))

    def update(self, old, **changes):
        return dict(asyncio.run(self.resource.update(self.scene, old, self.inputs(**changes))))

    def read(self, old):
        return dict(asyncio.run(self.resource.read(self.scene, "branch", old, self.inputs())).outputs)

    def diff(self, old, **changes):
        return dict(self.resource.diff(self.scene, old, self.inputs(**changes)).changes)


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    with (
        serving(made.keys["near"], made.user, made.near.answer) as near,
        serving(made.keys["far"], made.user, made.far.answer) as far,
    ):
        made.ports = {"near": near.port, "far": far.port}
        yield made


def test_each_gateway_makes_its_key_and_gets_the_others_public_one(bench):
    out = bench.create()
    assert (out["status"], out["reason"]) == ("ready", "")
    near, far = bench.near.read(KEY).strip(), bench.far.read(KEY).strip()
    assert near != far
    assert bench.near.mode(KEY) == bench.far.mode(KEY) == 0o600
    assert bench.near.read(CONF) == f"[Peer]\nPublicKey = {far.replace('private', 'public')}\n"
    assert bench.far.read(CONF) == f"[Peer]\nPublicKey = {near.replace('private', 'public')}\n"
    assert bench.near.mode(CONF) == 0o600
    assert near not in str(out)
    assert far not in str(out)
    assert out["hostKeys"]["far"] == line(bench.keys["far"])
    assert bench.diff(out) == {}


def test_again_restarts_nothing_and_keeps_the_keys(bench):
    out = bench.create()
    bench.near.forget()
    bench.far.forget()
    again = bench.create()  # as after a kill: no state, all of it there
    assert again["publicKeys"] == out["publicKeys"]
    assert [entry for entry in (*bench.near.log(), *bench.far.log()) if "restart" in entry] == []


def test_rules_that_do_not_parse_change_neither_gateway(bench):
    out = bench.create()
    with pytest.raises(InitFailedError, match="refused before anything was changed") as failed:
        bench.update(out, rules="garbage\n")
    assert failed.value.outputs["phase"] == "check"
    assert bench.near.read(RULES) == bench.far.read(RULES) == "drop\n"
    assert bench.diff(dict(failed.value.outputs))


def test_a_change_by_hand_is_drift_and_is_put_right(bench):
    out = bench.create()
    bench.far.write(RULES, "accept\n")
    seen = bench.read(out)
    assert bench.diff(seen) == {"gateways[1].files[0].content": "update"}
    assert bench.update(seen)["status"] == "ready"
    assert bench.far.read(RULES) == "drop\n"


def test_a_gateway_with_another_key_is_drift_of_its_peer(bench):
    out = bench.create()
    (bench.far.root / KEY.lstrip("/")).unlink()
    seen = bench.read(out)
    assert bench.diff(seen) == {"gateways[0].files[1].content": "update"}


def test_no_handshake_fails_the_stack_and_tells_what_both_saw(bench):
    bench.near.write("/run/blocked", "")
    with pytest.raises(InitFailedError, match="near called and heard nothing") as failed:
        bench.create()
    assert failed.value.outputs["phase"] == "handshake"
    assert any(row.startswith("far: ") for row in failed.value.outputs["evidence"])


def test_another_host_key_is_not_talked_to(bench):
    _, other = new_key()
    (bench.folder / "far.pub").write_text(line(other))
    with pytest.raises(InitFailedError, match="contact"):
        bench.create()
    assert bench.far.read(KEY) is None


def test_delete_gives_both_back_without_their_keys(bench):
    bench.near.write(RULES, "factory\n")
    out = bench.create()
    asyncio.run(bench.resource.delete(bench.scene, out))
    assert bench.near.read(RULES) == "factory\n"
    for gateway in (bench.near, bench.far):
        assert gateway.read(CONF) is None
        assert gateway.read(KEY) is None
        assert gateway.read("/run/up") is None
        assert "sysctl --quiet --write net.ipv4.ip_forward=0" in gateway.log()
