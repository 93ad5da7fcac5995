"""The agent: what it believes, for how long, and that no unit's fault is another's; readers are fakes."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from supernode.clients.cdu import Detector, Reading
from supernode.clients.patience import Unreachable
from supernode.errors import CouldNotRun
from supernode.telemetry import metrics, poll, serve, settings
from supernode.telemetry.seen import Seen

ROW = {
    "unit": "cdu1",
    "kind": "lab-cdu-modbus",
    "address": "198.18.2.201",
    "port": 502,
    "interval_s": 2,
    "racks": ["r01"],
}
DOCUMENT = {
    "listen": {"address": "127.0.0.1", "port": 0},
    "units": [ROW, {**ROW, "unit": "cdu2", "racks": ["r02", "r03"]}],
}
FLOW = "secondary_flow_cubic_meters_per_second"


def reading(mark, unit="cdu1", state="ok", **values):
    found = values or {FLOW: 0.001, "pump2_speed_ratio": 0.5}
    return Reading(unit, found, (), {}, (Detector("tray", "ok"), Detector("manifold", state)), mark)


def page(seen, now, document=DOCUMENT):
    units = settings.parse(document).units
    rows = {unit.name: seen if unit.name == "cdu1" else Seen(2, 0) for unit in units}
    agent = serve.Agent(settings.parse(document))
    agent.collect = lambda: metrics.families(units, rows, now)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(agent)
    return generate_latest(registry).decode()


def told(*marks, period=2.0):
    """A unit that answered with these marks, one a period, from time 0 on."""
    seen = Seen(period, 0.0)
    for n, mark in enumerate(marks):
        seen.answered(reading(mark), n * period, 1000 + n * period)
    return seen


def test_one_answer_proves_nothing_and_a_second_with_another_mark_does():
    seen = told("7")
    assert (seen.state(0.5), list(seen.values(0.5)), seen.success_at) == ("starting", [], None)
    seen = told("7", "8")
    assert (seen.state(2), seen.success_at) == ("fresh", 1002)
    assert dict(seen.values(2))[FLOW] == 0.001


def test_a_unit_that_answers_and_shows_the_past_is_frozen_and_its_values_go():
    seen = told("7", "8", *["8"] * 6)
    assert seen.success_at == 1002, "an answer with the same mark is no success"
    assert seen.state(14) == "frozen"
    assert list(seen.values(14)) == []
    assert seen.errors["frozen"] >= 2
    assert told(*["7"] * 5).state(8) == "frozen", "also one that was so when the agent started"


def test_a_unit_that_falls_silent_keeps_its_values_for_three_periods():
    seen = told("7", "8")
    assert seen.state(6) == "fresh"
    assert seen.state(6.1) == "frozen", "it answered within three periods"
    assert seen.state(9) == "silent"
    assert list(seen.values(9)) == []


def test_a_counter_that_starts_again_is_a_new_measurement():
    assert told("4294967295", "1").state(2) == "fresh"


def test_the_page_names_units_and_leaves_out_what_is_not_known():
    text = page(told("7", "8"), 2)
    for line in (
        'supernode_cooling_flow_cubic_meters_per_second{cdu="cdu1",loop="secondary"} 0.001',
        'supernode_cooling_pump_speed_ratio{cdu="cdu1",pump="2"} 0.5',
        'supernode_cooling_leak_detector_state{cdu="cdu1",detector="manifold",state="ok"} 1.0',
        'supernode_cooling_leak_detector_state{cdu="cdu1",detector="manifold",state="critical"} 0.0',
        'supernode_cooling_unit_state{cdu="cdu1",state="fresh"} 1.0',
        'supernode_cooling_unit_state{cdu="cdu2",state="starting"} 1.0',
        'supernode_cooling_serves{cdu="cdu2",served_rack="r03"} 1.0',
        'supernode_cooling_last_success_timestamp_seconds{cdu="cdu1"} 1002.0',
        'supernode_cooling_device_mark_info{cdu="cdu1",mark="8"} 1.0',
        'supernode_cooling_polls_total{cdu="cdu1"} 2.0',
    ):
        assert line in text.splitlines()
    assert "temperature" not in text, "a value that the unit did not tell is absent, not 0"
    assert 'last_success_timestamp_seconds{cdu="cdu2"}' not in text


def test_old_values_and_detectors_leave_the_page_and_the_unit_stays():
    text = page(told("7", "8"), 20)
    assert "flow" not in text
    assert "leak_detector_state{" not in text
    assert 'unit_state{cdu="cdu1",state="silent"} 1.0' in text
    assert 'unit_info{cdu="cdu1"' in text


def scripted(*steps):
    """A reader that goes through steps, an exception or a reading each, and then waits for ever."""
    left, opened = list(steps), []

    class Reader:
        async def read(self):
            if not left:
                await asyncio.Event().wait()
            step = left.pop(0)
            if isinstance(step, Exception):
                raise step
            if callable(step):
                return await step()
            return step

    @asynccontextmanager
    async def connect(_access):
        opened.append(1)
        yield Reader()

    return connect, opened


async def watched(connect, seconds, interval_s=0.02):
    unit = settings.parse({**DOCUMENT, "units": [{**ROW, "interval_s": interval_s}]}).units[0]
    seen = Seen(interval_s, 0.0)
    task = asyncio.create_task(poll.watch(unit, seen, connect))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return seen


def test_one_connection_serves_on_and_a_failure_makes_a_new_one():
    answers = [reading(str(n)) for n in range(4)]
    connect, opened = scripted(*answers[:2], Unreachable("cdu1", "no answer"), *answers[2:])
    seen = asyncio.run(watched(connect, 0.6))
    assert len(opened) == 2
    assert seen.polls == 5
    assert dict(seen.errors) == {"unreachable": 1}
    assert seen.reading.mark == "3"


def test_a_period_that_was_missed_is_counted_and_not_made_up():
    async def slow():
        await asyncio.sleep(0.25)
        return reading("2")

    connect, _ = scripted(reading("1"), slow, reading("3"))
    seen = asyncio.run(watched(connect, 0.6, interval_s=0.1))
    assert seen.overruns == 2
    assert seen.polls == 3


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "timeout"),
        (Unreachable("x", "no answer"), "unreachable"),
        (CouldNotRun("x", "does not answer Modbus TCP"), "unreachable"),
        (CouldNotRun("x", "input 1 to 2: answers exception 2"), "refused"),
        (KeyError("Members"), "protocol"),
    ],
)
def test_every_failure_has_one_of_a_few_reasons(error, reason):
    assert poll.why(error) == reason


def test_a_kind_that_the_agent_does_not_know_ends_it_at_once(tmp_path):
    place = tmp_path / "cooling.json"
    units = [{**ROW, "kind": "of-nobody"}]
    place.write_text(json.dumps({**DOCUMENT, "units": units}))
    with pytest.raises(CouldNotRun, match="no configuration of this agent"):
        settings.read(place)
