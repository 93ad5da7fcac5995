"""The slice, end to end: one file to a verified cluster, with faults injected below what observes them.

The tests of this file run in their order on one lab; each leaves it as the next needs it.
"""

from __future__ import annotations

import csv
import json
import ssl
import stat
import urllib.error
import urllib.request
from base64 import b64encode

import driver_steps
import half_rate_steps
import lab_site
import pytest
import scheduler_steps
import secret_search
import secret_watch
import watch_steps

pytestmark = pytest.mark.lab
SYSTEM = "/redfish/v1/Systems/1"

NAME = "labtest"
WITH_EVERY_ROLE = ("head-001", "gpu-001", "gpu-002")  # without mitogen a host costs seconds


@pytest.fixture(scope="module")
def site():
    made = lab_site.make(NAME, 64, like="lab")
    try:
        yield made
    finally:
        lab_site.forget(made)


def failing(run):
    return [f for f in run["findings"] if f["verdict"] == "fail"]


def artefact(site, name):
    """The design is written once: no test of this file changes its documents."""
    if not (site.root / "design").exists():
        site.supernode("design", NAME, "--out", str(site.root / "design"))
    return list(csv.DictReader((site.root / "design" / name).read_text().splitlines()))


def cables(site):
    return {row["cable"]: row for row in artefact(site, "cabling.csv")}


def cable_of(rows, device, port):
    return next(c for c, row in rows.items() if (row["a_device"], row["a_port"]) == (device, port))


def redfish(site, row, path, body=None, password=""):
    """Speak to the BMC of a row of bmc.csv as somebody who is not supernode would."""
    context = ssl.create_default_context(cafile=str(site.folder / "delivery" / "bmc-ca.pem"))
    address = row["bmc_address"].split("/")[0]
    secret = password or (site.folder / "secrets" / "bmc" / row["slot"]).read_text().strip()
    login = b64encode(f"admin:{secret}".encode()).decode()
    request = urllib.request.Request(
        f"https://{address}{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=context, timeout=20) as answer:  # noqa: S310 - https, above
        text = answer.read()
    return json.loads(text) if text else {}


def test_lab_starts_and_machines_are_bound(site):
    site.supernode("lab", "start", NAME, timeout=600)
    site.supernode("allocate", NAME)
    site.supernode("assign", NAME, "--sheet", str(site.folder / "delivery"))
    assert site.json("lab", "status", NAME)
    site.supernode("check", NAME)


def test_a_look_before_the_first_run_finds_factory_passwords_and_nothing_that_it_would_fail_on(site):
    rows = site.json("check", NAME, "--live", timeout=120)["live"]
    assert [row for row in rows if row["verdict"] == "fail"] == []
    controllers = [row for row in rows if row["check"] == "bmc"]
    assert len(controllers) == 10
    assert all(row["found"].startswith("still has its factory password") for row in controllers)
    assert len([row for row in rows if row["check"] == "switch" and row["verdict"] == "pass"]) == 10


def test_swapped_and_slow_cable_are_named(site):
    rows = cables(site)
    one, other = cable_of(rows, "gpu-002", "rail1"), cable_of(rows, "gpu-002", "rail5")
    slow = cable_of(rows, "gpu-006", "rail3")
    site.supernode("lab", "fault", NAME, "swap-cable", one, other)
    site.supernode("lab", "fault", NAME, "slow-link", slow)
    driver_steps.inject(site)
    half_rate_steps.inject(site, rows)

    with secret_watch.Watch() as watch:
        site.supernode("bringup", NAME, "--yes", expect=1, timeout=1500)

    assert secret_search.was_shown(site, watch) == []
    found = failing(lab_site.last_run(site))
    swap = next(f for f in found if set(f["cables"]) == {one, other})
    for cable in (one, other):
        row = rows[cable]
        assert f"{row['b_device']}:{row['b_port']}" in swap["cause"]
    assert "gpu-002" in swap["cause"]
    crawl = next(f for f in found if f["cables"] == [slow])
    assert slow in crawl["cause"]
    lost, half = driver_steps.named(lab_site.last_run(site)["findings"]), half_rate_steps.named(found, rows)
    assert {f["cause"] for f in found} == {swap["cause"], crawl["cause"]} | lost | half
    drained = {"gpu-002": swap["cause"], "gpu-005": min(lost), "gpu-006": crawl["cause"], "gpu-007": min(half)}
    scheduler_steps.drained_with_their_findings(site, drained, besides={"gpu-001"})  # which could not ping gpu-002
    page = max((site.root / "runs" / NAME).glob("*/report.html")).read_text()
    assert all(cable in page for cable in (one, other, slow))
    watch_steps.spoil(site)  # after the bring-up: a wet or frozen unit holds its racks' machines
    findings = site.json("verify", NAME, expect=1)["findings"]
    watch_steps.named(findings)
    assert verdicts(alone(site, expect=1)) == verdicts(findings)  # with faults standing, too


def test_every_controller_has_a_password_of_its_own(site):
    """The factory's opens none of them any more; ours, each another and each readable for its owner alone, all."""
    secrets = {path.name: path for path in (site.folder / "secrets" / "bmc").iterdir()}
    rows = [row for row in artefact(site, "bmc.csv") if row["bmc_address"]]
    assert set(secrets) == {row["slot"] for row in rows}
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets.values()} == {0o600}
    assert len({path.read_text() for path in secrets.values()}) == len(rows) == 10
    for row in rows:
        assert redfish(site, row, SYSTEM)["PowerState"] == "On"
        label = (site.folder / "delivery" / "bmc-factory" / row["slot"]).read_text().strip()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            redfish(site, row, SYSTEM, password=label)


def test_no_secret_is_kept_and_every_token_is_dead(site):
    assert secret_search.is_kept(site) == []
    assert secret_search.still_works(site) == []


def restart(site, host):
    row = next(row for row in artefact(site, "bmc.csv") if row["device"] == host)
    redfish(site, row, f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "ForceRestart"})


def test_mended_lab_ends_clean_and_a_second_run_changes_nothing(site):
    rows = cables(site)
    one, other = cable_of(rows, "gpu-002", "rail1"), cable_of(rows, "gpu-002", "rail5")
    site.supernode("lab", "fault", NAME, "swap-cable", one, other, "--clear")
    site.supernode("lab", "fault", NAME, "slow-link", cable_of(rows, "gpu-006", "rail3"), "--clear")
    watch_steps.mend(site)
    driver_steps.mend(site, lambda host: restart(site, host))
    half_rate_steps.mend(site, rows)

    before = lab_site.last_run(site)["id"]
    run = site.json("lab", "up", NAME, timeout=900)  # what `make lab` runs: a lab that is there is entered again

    assert run["id"] > before
    assert lab_site.last_run(site)["id"] == run["id"]
    assert failing(run) == []
    assert run["exit_code"] == 0
    changed = [
        e for e in run["events"] if e["stage"] in ("provision", "configure") and e["state"] == "changed" and e["host"]
    ]
    assert changed == []
    scheduler_steps.all_take_jobs(site)


def verdicts(findings):
    return {(f["check"], f["place"], f["verdict"]) for f in findings}


def alone(site, expect):
    """The same checks by pytest, without supernode around it."""
    out = site.root / "alone.json"
    rollout = [str(lab_site.SUPERNODE.with_name("pytest")), str(lab_site.CHECKOUT / "tests" / "rollout")]
    done = site.call(*rollout, "--environment", NAME, "--findings", str(out), "-q", timeout=300)
    assert done.returncode == expect, done.stdout[-4000:]
    return json.loads(out.read_text())


def test_verification_alone_says_the_same(site):
    findings = alone(site, expect=0)
    assert verdicts(findings) <= verdicts(lab_site.last_run(site)["findings"])
    assert len(findings) > 100


def test_playbook_alone_with_the_linear_strategy_changes_nothing(site):
    done = site.call(
        str(lab_site.SUPERNODE.with_name("ansible-playbook")),
        "-i",
        f"inventories/{NAME}/supernode.yml",
        "playbooks/site.yml",
        "--limit",
        ",".join(WITH_EVERY_ROLE),
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    recap = [line for line in done.stdout.splitlines() if "changed=" in line]
    assert len(recap) == len(WITH_EVERY_ROLE)
    assert all("changed=0" in line and "failed=0" in line and "unreachable=0" in line for line in recap), recap


def test_power_off_shows_as_drift_and_up_mends_it(site):
    bmc = next(row for row in artefact(site, "bmc.csv") if row["device"] == "gpu-004")
    redfish(site, bmc, f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "ForceOff"})
    rows = site.json("plan", NAME, "--live")["live"]
    drifted = [row for row in rows if row["resource"] == "gpu-004"]
    assert drifted, rows
    assert "power" in json.dumps(drifted)
    shell = f'eval "$({lab_site.SUPERNODE} shell {NAME} --print)"; '
    seen = site.call("sh", "-ec", f"{shell} pulumi refresh -y -s {NAME}", timeout=300)
    assert seen.returncode == 0, seen.stdout[-4000:] + seen.stderr[-2000:]
    assert "power" in seen.stdout
    mended = site.call("sh", "-ec", f"{shell} pulumi up -y -s {NAME}", timeout=600)
    assert mended.returncode == 0, mended.stdout[-4000:] + mended.stderr[-2000:]
    assert redfish(site, bmc, SYSTEM)["PowerState"] == "On"
    driver_steps.still_kept(site.json("verify", NAME)["findings"], "gpu-004")


def test_stop_leaves_nothing(site):
    site.supernode("lab", "stop", NAME, timeout=120)
    left = site.call("sh", "-c", "ip -o link; ip route; mount; ip netns; ps -eo args | grep -v pytest").stdout
    assert "198.18.64." not in left
    assert NAME not in left
