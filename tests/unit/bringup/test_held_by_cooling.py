"""Machines that the cooling of their rack held, and those switched on against it: named, and nobody parked."""

from dataclasses import replace

from straggling import lab, outputs

from supernode.bringup import stragglers
from supernode.bringup.provision import state
from supernode.records import Outputs, Verdict

SENSORS = "leak detector cdu1:tray is critical: wet"


def cooled(design, verdict, *names):
    """What an `up` leaves where these machines' interlock said so."""
    found = outputs(design)
    told = {"unit": "cdu1", "verdict": verdict, "sensors": SENSORS, "override": "by hand"}
    devices = dict(found.devices)
    for name in names:
        how = {"state": "failed", "phase": "boot", "reason": f"interlock: {SENSORS}; not switched on"}
        devices[name] = replace(devices[name], cooling=told, **(how if verdict == "held" else {}))
    return replace(found, devices=devices)


def place(design, found, name):
    return next(row for row in stragglers.findings(design, found) if row.place == name)


def test_who_was_held_is_named_with_its_sensor_and_not_quarantined():
    design = lab()
    found = cooled(design, "held", *(f"gpu-{n:03d}" for n in range(1, 7)))
    assert stragglers.to_quarantine(design, found) == ([], "")  # and nobody says that it is the site
    row = place(design, found, "gpu-003")
    assert row.verdict is Verdict.FAIL
    assert SENSORS in row.cause
    assert "cooling.interlock.override" in row.hint


def test_a_machine_that_failed_by_itself_beside_them_is_quarantined():
    design = lab()
    held = cooled(design, "held", "gpu-001")
    dead = outputs(design, dead=["gpu-002"]).devices["gpu-002"]
    found = replace(held, devices={**held.devices, "gpu-002": dead})
    hosts, site = stragglers.to_quarantine(design, found)
    assert ([host.name for host in hosts], site) == (["gpu-002"], "")


def test_an_override_is_advice_in_every_report():
    design = lab()
    found = cooled(design, "overridden", "gpu-004")
    row = place(design, Outputs.from_json(found.to_json()), "gpu-004")
    assert row.verdict is Verdict.ADVICE
    assert row.cause.endswith(f"against its interlock: {SENSORS}; overridden: by hand")
    assert place(design, found, "gpu-005").verdict is Verdict.PASS


def test_the_engines_state_tells_it():
    told = {"unit": "cdu1", "verdict": "clear", "sensors": "", "override": ""}
    row = {"type": "supernode:index:Machine", "urn": "a::gpu-001", "outputs": {"status": "ready", "cooling": told}}
    export = {"version": 3, "deployment": {"resources": [row]}}
    assert state.read("lab", {"lab": export}).devices["gpu-001"].cooling == told
