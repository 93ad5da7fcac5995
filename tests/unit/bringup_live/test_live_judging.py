"""What is said of what was seen: for each check one that is good and one that is not."""

import dataclasses

import pytest
import yaml

from supernode import design, packaged, spec
from supernode.bringup.live import judging
from supernode.bringup.live.seen import BmcSeen, Drive, HereSeen, Login, NameSeen, Port, SwitchSeen, TimeSeen, UnitSeen

LAB = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
SERIAL = {"system_serial": "SN-1", "uuid": "6c1b1f0e-0000-4000-8000-000000000001"}
GOOD = BmcSeen(
    "gpu-001",
    "r01u01",
    "198.18.2.11",
    Login.IN,
    identity={**SERIAL, "bmc_mac": "02:00:00:00:00:01"},
    clock="2026-11-30T20:00:00+00:00",
    clock_ahead_s=0.4,
    drives=(Drive("Disk0", "fast", "S1", 8 * 10**9, "OK"),),
)


def lab(text=LAB, **slots):
    slots = {"r01u01": {"identity": SERIAL}, **slots}
    machines = yaml.safe_dump({"schema": 1, "slots": {name: row for name, row in slots.items() if row}})
    return design.build(spec.read({"environment": text, "machines": machines}))


def verdicts(seen, computed=None):
    return {row.check: row.verdict for row in judging.of_bmc(computed or lab(), seen)}


def changed(**changes):
    return dataclasses.replace(GOOD, **changes)


def test_a_good_controller_passes_everything():
    assert verdicts(GOOD) == {"bmc": "pass", "identity": "pass", "clock": "pass", "disk": "pass"}


@pytest.mark.parametrize(
    ("login", "words"),
    [
        (Login.UNREACHABLE, "no answer in 3 tries"),
        (Login.UNTRUSTED, "does not verify"),
        (Login.BROKEN, "names no Systems"),
        (Login.NOT_TRIED, "cannot be read"),
        (Login.REFUSED, "refuses the password"),
        (Login.MUST_CHANGE, "wants our password changed"),
    ],
)
def test_a_controller_that_is_not_reached_fails_and_nothing_more_is_said_of_it(login, words):
    (row,) = judging.of_bmc(lab(), BmcSeen("gpu-001", "r01u01", "198.18.2.11", login, words))
    assert (row.check, row.verdict, row.place) == ("bmc", "fail", "gpu-001")
    assert words in row.found
    assert row.hint
    assert row.evidence == ("198.18.2.11", "r01u01")


def test_a_controller_at_the_other_site_may_wait_for_the_tunnel():
    text = (packaged.root() / "inventories" / "lab-hybrid" / "environment.yml").read_text()
    hybrid = design.build(spec.read({"environment": text}))
    silent = BmcSeen("edge-001", "b01u01", "198.19.3.13", Login.UNREACHABLE, "no answer in 3 tries")
    (row,) = judging.of_bmc(hybrid, silent)
    assert (row.verdict, row.found) == ("unknown", "no answer in 3 tries")
    assert "tunnel" in row.hint
    (row,) = judging.of_bmc(hybrid, dataclasses.replace(silent, host="gpu-001"))
    assert row.verdict == "fail"


def test_a_factory_password_is_said_and_is_no_failure():
    found = verdicts(changed(login=Login.FACTORY))
    assert found == {"bmc": "advice", "identity": "pass", "clock": "pass", "disk": "pass"}


def test_a_factory_password_that_closes_everything_else_leaves_the_rest_unseen():
    (row,) = judging.of_bmc(lab(), changed(login=Login.FACTORY_CLOSED))
    assert (row.verdict, row.found.startswith("still has its factory password")) == ("advice", True)


@pytest.mark.parametrize(
    ("slot", "identity", "words"),
    [
        ({"identity": {"system_serial": "SN-2"}}, SERIAL, "machines.yml has 'SN-2', the machine says 'SN-1'"),
        (None, SERIAL, "none; system_serial SN-1"),
        ({"identity": SERIAL}, {"chassis_serial": "C"}, "tells chassis_serial C"),
    ],
)
def test_another_machine_or_none_that_can_be_told_fails(slot, identity, words):
    row = judging.of_bmc(lab(r01u01=slot), changed(identity=identity))[1]
    assert (row.check, row.verdict) == ("identity", "fail")
    assert words in row.found


@pytest.mark.parametrize(
    ("clock", "ahead", "verdict"),
    [
        ("1970-01-01T00:03:11+00:00", -1.79e9, "fail"),
        ("2026-11-30T21:00:00+00:00", 3600.0, "advice"),
        ("2026-11-30T20:00:04+00:00", -299.0, "pass"),
        ("soon", None, "unknown"),
        ("", None, "unknown"),
    ],
)
def test_clocks(clock, ahead, verdict):
    row = judging.of_bmc(lab(), changed(clock=clock, clock_ahead_s=ahead))[2]
    assert (row.check, row.verdict) == ("clock", verdict)
    assert "1970" not in clock or "1970" in row.found


@pytest.mark.parametrize(
    ("drives", "verdict"),
    [
        (None, "unknown"),
        ((), "fail"),
        ((Drive("Disk0", bytes=4 * 10**9),), "fail"),
        ((Drive("Disk0", bytes=8 * 10**9, health="Critical"),), "fail"),
        ((Drive("Disk0", bytes=4 * 10**9), Drive("Disk1", bytes=7_900_000_000)), "pass"),
        ((Drive("Disk0"),), "pass"),
    ],
)
def test_drives(drives, verdict):
    row = judging.of_bmc(lab(), changed(drives=drives))[3]
    assert (row.check, row.verdict) == ("disk", verdict)


def test_switches():
    good = judging.of_switch(SwitchSeen("spine01", "198.18.0.28", "switch"))
    bad = judging.of_switch(SwitchSeen("spine01", "198.18.0.28", error="presents another host key", hint="who is it?"))
    assert (good.verdict, bad.verdict, bad.hint) == ("pass", "fail", "who is it?")


def test_cooling_units():
    text = (
        LAB
        + """cooling:
  units: [{name: cdu1, kind: lab-cdu-modbus, address: 198.18.2.201, racks: [r01, r02]}]
  interlock: {override: {r02: "meter away"}}
"""
    )
    env = lab(text).environment
    assert judging.of_unit(env, UnitSeen("cdu1", ("r01", "r02"))).verdict == "pass"
    wet = "leak detector cdu1:tray is critical: wet"
    found = judging.of_unit(env, UnitSeen("cdu1", ("r01", "r02"), (wet,)))
    assert found.verdict == "fail"
    assert found.cause == f"{wet}: no machine of r01 would be switched on"
    assert judging.of_unit(env, UnitSeen("cdu1", ("r02",), (wet,))).verdict == "advice"


def test_time_servers():
    good = TimeSeen("198.18.0.1", 3, ahead_s=0.01)
    rows = [
        judging.of_time(row).verdict
        for row in (
            good,
            TimeSeen("198.18.0.1", error="no answer"),
            dataclasses.replace(good, unsynchronised=True),
            dataclasses.replace(good, ahead_s=-7.0),
        )
    ]
    assert rows == ["pass", "fail", "fail", "advice"]


def test_names():
    environment = lab().environment
    rows = (
        NameSeen("ntp.site", "10.0.0.1", ("10.0.0.9",)),
        NameSeen("ntp.site", "10.0.0.2"),
        NameSeen("ntp.site", "10.0.0.3", error="no answer"),
        NameSeen("clock.site", ""),
    )
    assert [row.verdict for row in judging.of_names(environment, rows)] == ["pass", "fail", "fail", "fail"]
    assert [row.verdict for row in judging.of_names(environment, ())] == ["pass"]


PACKAGES = {"chrony": "4.3", "lldpd": "1.0.16", "ethtool": "6.1", "iputils-ping": "20221126"}
HERE = HereSeen(Port.FREE, image=True, packages=PACKAGES, free_bytes={"/": 100 << 30})


def of_here(**changes):
    found = {}
    for row in judging.of_here(lab(), dataclasses.replace(HERE, **changes)):
        found.setdefault(row.check, set()).add(row.verdict.value)
    return found


def test_a_good_machine_of_the_operator():
    assert of_here() == {"serve": {"pass"}, "mirror": {"pass"}, "room": {"pass"}}
    assert of_here(port=Port.OURS, served=True) == of_here()


@pytest.mark.parametrize(
    ("changes", "check", "verdict"),
    [
        ({"port": Port.ELSEWHERE}, "serve", {"fail"}),
        ({"port": Port.OTHER, "said": "Address already in use"}, "serve", {"fail"}),
        ({"port": Port.OURS, "code": False, "served": True}, "serve", {"advice"}),
        ({"port": Port.OURS, "served": False}, "mirror", {"pass", "fail"}),
        ({"packages": {**PACKAGES, "lldpd": None} | {"lldpd": ""}}, "mirror", {"pass"}),
        ({"packages": {name: v for name, v in PACKAGES.items() if name != "lldpd"}}, "mirror", {"pass", "fail"}),
        ({"packages": None}, "mirror", {"advice"}),
        ({"free_bytes": {"/": 1 << 30}}, "room", {"fail"}),
        ({"free_bytes": {"/": 3 << 30}, "image": False}, "room", {"fail"}),
        ({"free_bytes": {"/": 3 << 30}}, "room", {"pass"}),
    ],
)
def test_a_machine_of_the_operator_that_lacks_something(changes, check, verdict):
    assert of_here(**changes)[check] == verdict


def test_a_pinned_version_that_the_mirror_has_not_fails():
    text = LAB.replace("packages: [chrony,", "packages: [chrony=4.4,")
    rows = [r for r in judging.of_here(lab(text), HERE) if r.check == "mirror" and r.verdict == "fail"]
    assert [(row.place, row.found) for row in rows] == [("chrony=4.4", "chrony=4.3")]


def test_names_that_two_environments_of_one_domain_share():
    here, twin = lab(), lab(LAB.replace("name: lab\n", "name: two\n", 1))
    other = lab(LAB.replace("domain: lab.internal", "domain: other.internal"))
    assert [row.verdict for row in judging.twins(here, {"other": other})] == ["pass"]
    (row,) = judging.twins(here, {"two": twin})
    assert (row.verdict, row.place) == ("advice", "two")
    assert "19 names, such as gpu-001.lab.internal" in row.found


def test_a_quarantined_slot_is_not_contacted_and_that_is_said():
    computed = lab(r01u09={"state": "quarantined"})
    from supernode.bringup.live.seen import Seen

    rows = judging.judge(computed, Seen((GOOD,), (), (), (), HERE))
    assert [(r.place, r.verdict) for r in rows if "not contacted" in r.found] == [("gpu-002", "advice")]
