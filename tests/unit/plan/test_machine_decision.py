"""What a change means for a machine."""

import pytest

from supernode.plan.machine import PHASES, decide

NEW = {
    "name": "gpu-001",
    "slot": "r01u01",
    "address": "198.18.0.11",
    "bmc": {
        "address": "198.18.2.11",
        "username": "admin",
        "password": "file:p",
        "ca": "ca.pem",
        "media": "virtual-media",
    },
    "identity": {"system_serial": "S1", "bmc_mac": "02:00:00:00:00:01"},
    "state": "active",
    "inService": False,
    "media": {"url": "https://198.18.31.253:8443/boot/gpu-001/aa.iso", "digest": "aa", "ca": "serve.pem"},
    "image": "i1",
    "enrolment": "https://198.18.31.253:8443/enrolled/gpu-001",
    "bios": {"SriovEnable": "Enabled"},
    "firmware": {"BMC": "1.4.0"},
    "power": "On",
    "deadlineS": 600,
    "sshUser": "supernode",
    "sshKey": "file:key",
    "strict": False,
}
READY = {**NEW, "status": "ready", "phase": "", "reason": "", "installedImage": "i1"}
INSTALL = ("boot", "deploy", "eject", "login")


def change(document, path, value):
    head, _, tail = path.partition(".")
    return {**document, head: {**document[head], tail: value} if tail else value}


def test_nothing_is_done_where_nothing_differs():
    assert decide(READY, NEW, False).action == "none"
    assert decide(READY, NEW, False).detailed == {}


@pytest.mark.parametrize("in_service", [True, False])
def test_a_host_key_that_machines_yml_recorded_changes_nothing(in_service):
    new = {**NEW, "inService": in_service, "hostKey": "ssh-ed25519 AAAA"}
    for old in (READY, {**READY, "hostKey": ""}, {**READY, "hostKey": "ssh-ed25519 BBBB"}):
        assert (decide(old, new, False).action, decide(old, new, False).detailed) == ("none", {})


def test_a_new_machine_goes_through_all_phases_but_power():
    decision = decide({}, NEW, False)
    assert (decision.action, decision.phases) == ("create", tuple(p for p in PHASES if p != "power"))
    assert set(decision.detailed) == set(NEW)


def test_one_in_service_that_the_engine_has_lost_is_adopted():
    decision = decide({}, {**NEW, "inService": True}, False)
    assert (decision.action, decision.phases) == ("create", ("contact", "login"))


@pytest.mark.parametrize(
    ("path", "value", "phases"),
    [
        ("image", "i2", INSTALL),
        ("identity.system_serial", "S2", ("bios", "firmware", *INSTALL)),
        ("address", "198.18.0.99", INSTALL),
        ("name", "gpu-099", INSTALL),
        ("bios.SriovEnable", "Disabled", ("bios", "login")),
        ("bios.WorkloadProfile", "HPC", ("bios", "login")),
        ("firmware.BMC", "1.5.0", ("firmware", "login")),
        ("power", "Off", ("power",)),
        ("bmc.username", "root", ()),
        ("sshUser", "ops", ("login",)),
    ],
)
def test_a_wish_that_changed(path, value, phases):
    decision = decide(READY, change(NEW, path, value), False)
    assert (decision.action, decision.phases) == ("update", ("contact", *phases))
    assert list(decision.detailed) == [path]


@pytest.mark.parametrize(
    ("path", "seen", "phases"),
    [
        ("power", "Off", ("power", "login")),
        ("bios.SriovEnable", "Disabled", ("bios", "login")),
        ("image", "i0", INSTALL),
        ("firmware.BMC", "1.3.0", ("firmware", "login")),
    ],
)
def test_drift_on_the_machine(path, seen, phases):
    decision = decide(change(READY, path, seen), NEW, False)
    assert (decision.action, decision.phases, decision.detailed) == ("update", ("contact", *phases), {path: "update"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("media.digest", "bb"),
        ("enrolment", "https://elsewhere"),
        ("inService", True),
        ("state", "spare"),
        ("deadlineS", 900),
        ("strict", True),
        ("identity.uuid", "u"),
        ("sshKey", "file:other"),
    ],
)
def test_what_only_the_next_installation_or_the_guard_reads_is_no_change(path, value):
    decision = decide(READY, change(NEW, path, value), False)
    assert (decision.action, decision.detailed) == ("none", {})


@pytest.mark.parametrize(
    ("path", "value"), [("image", "i2"), ("bios.SriovEnable", "Disabled"), ("firmware.BMC", "2"), ("power", "Off")]
)
@pytest.mark.parametrize("in_service", [{"inService": True}, {}])
def test_a_machine_in_service_is_not_stopped_unless_confirmed(path, value, in_service):
    serving = {**{k: v for k, v in NEW.items() if k != "inService"}, **in_service}  # unknown counts as in service
    wanted = change(serving, path, value)
    refused = decide(READY, wanted, False)
    assert (refused.action, refused.phases, list(refused.detailed)) == ("refuse", (), [path])
    assert "r01u01 is in service" in refused.reason
    assert not refused.reinstalls
    assert decide(READY, wanted, True).action == "update"


def test_a_machine_in_service_that_was_found_off_is_switched_on():
    decision = decide({**READY, "power": "Off"}, {**NEW, "inService": True}, False)
    assert (decision.action, decision.phases) == ("update", ("contact", "power", "login"))


def test_a_power_that_was_not_seen_is_not_off():
    assert decide({**READY, "power": ""}, NEW, False).action == "none"


@pytest.mark.parametrize(
    ("phase", "image", "phases"),
    [
        ("contact", "", ("contact", "bios", "firmware", *INSTALL)),
        ("bios", "", ("contact", "bios", "firmware", *INSTALL)),
        ("deploy", "", ("contact", "deploy", "eject", "login")),
        ("login", "", ("contact", "login")),
        ("login", "i1", ("contact", "login")),
        ("bios", "i1", ("contact", "bios", "firmware", "login")),
        ("eject", "i1", ("contact", "eject", "login")),
        ("power", "i1", ("contact", "power", "bios", "firmware", "login")),
        ("login", "i0", ("contact", *INSTALL)),
    ],
)
@pytest.mark.parametrize("status", ["late", "failed"])
def test_an_unfinished_machine_goes_on_where_it_stopped(status, phase, image, phases):
    old = {**READY, "status": status, "phase": phase, "image": image, "reason": "why"}
    decision = decide(old, NEW, False)
    assert (decision.action, decision.phases) == ("update", phases)
    assert decision.detailed["status"] == "update"
    assert "why" in decision.reason


def test_a_quarantined_machine_is_left_alone_whatever_differs():
    for old in ({}, READY, {**READY, "status": "failed", "power": "Off"}):
        decision = decide(old, {**NEW, "state": "quarantined", "image": "i9"}, True)
        assert (decision.action, decision.phases, decision.detailed) == ("none", (), {})


def test_back_from_quarantine_it_is_looked_at_and_kept_where_it_is_right():
    decision = decide({**READY, "state": "quarantined"}, NEW, False)
    assert (decision.action, decision.phases) == ("update", ("contact", "bios", "firmware", "login"))


def test_another_slot_is_another_resource():
    decision = decide(READY, {**NEW, "slot": "r01u09"}, False)
    assert (decision.action, decision.detailed) == ("replace", {"slot": "update-replace"})


def test_what_a_plan_cannot_know_is_not_compared():
    partial = {k: v for k, v in NEW.items() if k not in {"image", "media", "enrolment", "sshKey"}}
    assert decide(READY, partial, False).action == "none"


SERVING = {**NEW, "inService": True}
# What the provider keeps when it never came as far as asking: a wrong password, say.
NEVER_ASKED = {
    **SERVING,
    **{"bios": {}, "firmware": {}, "image": "", "biosApplied": {}, "firmwareFound": {}, "installedImage": ""},
    **{"status": "failed", "phase": "contact", "reason": "POST Sessions answers 401"},
}


@pytest.mark.parametrize("confirmed", [False, True])
def test_in_service_one_failed_contact_leaves_a_look_and_no_restart(confirmed):
    decision = decide(NEVER_ASKED, SERVING, confirmed)
    assert (decision.action, decision.phases) == ("update", ("contact", "power", "login"))
    assert "401" in decision.reason


@pytest.mark.parametrize("phase", ["contact", "power", "bios", "firmware", "boot", "deploy", "eject", "login"])
def test_in_service_what_is_left_of_any_attempt_stops_nothing(phase):
    decision = decide({**NEVER_ASKED, "phase": phase}, SERVING, False)
    assert decision.action == "update"
    assert set(decision.phases) <= {"contact", "power", "login"}


@pytest.mark.parametrize("confirmed", [False, True])
def test_in_service_an_image_that_was_never_seen_is_asked_for(confirmed):
    decision = decide({**READY, "image": "", "installedImage": ""}, SERVING, confirmed)
    assert (decision.action, decision.phases, decision.detailed) == ("update", ("contact", "login"), {"image": "add"})
    assert decide({}, SERVING, confirmed).phases == ("contact", "login")


@pytest.mark.parametrize(
    ("path", "seen"), [("image", "i0"), ("bios.SriovEnable", "Disabled"), ("firmware.BMC", "1.3.0")]
)
def test_in_service_drift_that_was_seen_still_asks_for_confirmation_after_a_failed_contact(path, seen):
    old = change({**READY, "status": "failed", "phase": "contact"}, path, seen)
    assert decide(old, SERVING, False).action == "refuse"
    assert decide(old, SERVING, True).action == "update"


def test_in_service_back_from_quarantine_is_a_look():
    old = {**NEVER_ASKED, "state": "quarantined", "phase": "quarantined"}
    decision = decide(old, SERVING, False)
    assert (decision.action, decision.phases) == ("update", ("contact", "power", "login"))
    assert decide({**READY, "state": "quarantined"}, SERVING, False).phases == ("contact", "power", "login")


def test_a_confirmed_installation_that_broke_off_goes_on_when_confirmed_again():
    old = {**READY, "status": "late", "phase": "deploy", "image": "", "installedImage": ""}
    assert decide(old, SERVING, True).phases == ("contact", "deploy", "eject", "login")
    assert decide(old, SERVING, False).phases == ("contact", "login")


def test_a_machine_in_service_that_is_to_be_off_is_not_switched_off_by_what_is_left():
    old = {**READY, "power": "Off", "status": "failed", "phase": "contact"}
    assert decide(old, {**SERVING, "power": "Off"}, False).phases == ("contact", "login")
