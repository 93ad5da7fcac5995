"""What the cooling agent and Prometheus say on their own pages, recorded from both, and what the gates make of it."""

import http.server
import json
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from world import cooling_page

from supernode.design.observers import (
    CoolingExpectation,
    CoolingUnitExpectation,
    TargetExpectation,
    WatchExpectation,
)
from supernode.records import Verdict
from supernode.units import Milliseconds
from supernode.verify import cooling, watch
from supernode.verify.expected import Wanted
from supernode.verify.facts import fetch_on_host, scraped
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.raw import NotSeenError, Raw
from supernode.verify.marks import Mark

SAMPLES = Path(__file__).parent / "samples"
FLOW, HEAT = "secondary_flow_cubic_meters_per_second", "heat_removed_watts"
SIGNALS = {
    "secondary_supply_temperature_celsius": (2, 60),
    "secondary_return_temperature_celsius": (2, 80),
    FLOW: (0, 0.1),
    "pump1_speed_ratio": (0, 1),
    HEAT: (0, 5e6),
}
UNIT = CoolingUnitExpectation(("r01",), 5.0, SIGNALS, 0.0005)
COOLING = CoolingExpectation("head-001", "http://127.0.0.1:19861/metrics", {"cdu1": UNIT, "cdu2": UNIT})
WATCH = WatchExpectation(
    "head-001",
    "http://127.0.0.1:19090",
    tuple(
        TargetExpectation(job, address, host)
        for job, address, host in (
            ("prometheus", "127.0.0.1:19090", "head-001"),
            ("alertmanager", "127.0.0.1:19093", "head-001"),
            ("node", "127.0.0.1:19100", "head-001"),
            ("node", "127.0.0.2:19100", "gpu-001"),
            ("cooling", "127.0.0.1:19861", "head-001"),
        )
    ),
    ("TargetDown", "TargetsMissing", "CoolantLeak", "CoolingUnitFrozen"),
    "127.0.0.1:19093",
)


def sample(name):
    return Raw(0, (SAMPLES / f"{name}.txt").read_text())


def judged(wanted_cooling=None, wanted_watch=None, **facts):
    wanted = Wanted({}, {}, Milliseconds(100), Mark(0.9, "contract"), cooling=wanted_cooling, watch=wanted_watch)
    seen = Facts({"head-001": DeviceFacts("head-001", reached=True, **facts)})
    gate = cooling.gate if wanted_cooling else watch.gate
    return {row.place: row for row in gate(wanted, seen)}


def of_units(page):
    return judged(wanted_cooling=COOLING, cooling=page)


def test_units_that_are_well_pass():
    rows = of_units(scraped.metrics(sample("supernode-cooling-0.1.0-good")))
    assert {place: row.verdict for place, row in rows.items()} == {"cdu1": Verdict.PASS, "cdu2": Verdict.PASS}
    assert rows["cdu2"].found.startswith("fresh, 2 detectors dry, 120.0 l/min, 80.0 kW")


def test_a_leak_and_a_frozen_unit_are_named():
    rows = of_units(scraped.metrics(sample("supernode-cooling-0.1.0-leak-frozen")))
    assert {row.verdict for row in rows.values()} == {Verdict.FAIL}
    assert rows["cdu2"].found == "leak detected by manifold (critical)"
    assert re.fullmatch(r"is frozen: it answers, and its values stay those of \d+", rows["cdu1"].found)


def bent(change):
    """The good page with some samples changed, or taken away where the change says None."""
    page = scraped.metrics(sample("supernode-cooling-0.1.0-good"))
    return replace(page, samples=tuple(row for each in page.samples if (row := change(each)) is not None))


def with_value(name, value, **labels):
    def change(row):
        mine = row.name == f"supernode_cooling_{name}" and {"cdu": "cdu1", **labels}.items() <= row.labels.items()
        return row if not mine else None if value is None else replace(row, value=value)

    return bent(change)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (with_value("flow_cubic_meters_per_second", None, loop="secondary"), f"does not show {FLOW}"),
        (
            with_value("flow_cubic_meters_per_second", 0.0003, loop="secondary"),
            "secondary flow is 18.0 l/min, at least 30.0",
        ),
        (
            with_value("supply_temperature_celsius", 99, loop="secondary"),
            "supply_temperature_celsius is 99, which can be 2",
        ),
        (with_value("return_temperature_celsius", 20, loop="secondary"), "no warmer than the supply"),
        (with_value("heat_removed_watts", 65000), "it says 65.0 kW of heat, its flow and temperatures say 40."),
        (with_value("leak_detector_state", None), "shows no leak detector"),
        (with_value("last_success_timestamp_seconds", 1.0), "not measured anew for more than 20 s"),
        (with_value("unit_info", None), "the agent does not know it"),
    ],
)
def test_each_thing_that_can_be_wrong_with_a_unit(page, said):
    rows = of_units(page)
    assert (rows["cdu1"].verdict, rows["cdu2"].verdict) == (Verdict.FAIL, Verdict.PASS)
    assert said in rows["cdu1"].found


@pytest.mark.parametrize("state", ["unavailable", "disabled", "unknown"])
def test_a_detector_that_does_not_see_is_no_dry_one(state):
    only = CoolingExpectation("head-001", "", {"cdu1": replace(UNIT, signals={})})
    rows = judged(wanted_cooling=only, cooling=cooling_page(state))
    assert rows["cdu1"].verdict is Verdict.FAIL
    assert f"leak detector sees nothing: tray ({state})" in rows["cdu1"].found


def test_a_unit_that_was_not_read_twice_is_unknown_and_so_is_one_of_an_agent_that_is_not_there():
    only = CoolingExpectation("head-001", "", {"cdu1": UNIT})
    page = cooling_page(state="starting")
    starting = scraped.Sample("supernode_cooling_unit_state", {"cdu": "cdu1", "state": "starting"}, 1.0)
    rows = judged(wanted_cooling=only, cooling=replace(page, samples=(*page.samples, starting)))
    assert rows["cdu1"].verdict is Verdict.UNKNOWN
    refused = Raw(0, json.dumps({"at": 1.0, "pages": {}, "errors": {COOLING.url: "Connection refused"}}))
    with pytest.raises(NotSeenError, match="Connection refused"):
        scraped.metrics(refused)
    assert judged(wanted_cooling=only, unseen={"cooling": "Connection refused"})["cdu1"].verdict is Verdict.UNKNOWN


def test_prometheus_with_every_target_up():
    rows = judged(wanted_watch=WATCH, watch=scraped.watched(sample("prometheus-2.42-good")))
    assert {place: row.verdict for place, row in rows.items()} == dict.fromkeys(
        ("head-001", "gpu-001", "alerts"), Verdict.PASS
    )


def test_a_target_that_is_down_is_named_and_what_fires_is_told():
    rows = judged(wanted_watch=WATCH, watch=scraped.watched(sample("prometheus-2.42-down")))
    assert (rows["gpu-001"].verdict, rows["head-001"].verdict) == (Verdict.FAIL, Verdict.PASS)
    assert rows["gpu-001"].found.startswith("its node at 127.0.0.2:19100 is down: ")
    assert "connection refused" in rows["gpu-001"].found
    assert "CoolantLeak: cdu2: leak detector manifold says critical" in rows["alerts"].found


def test_a_target_that_waits_for_its_first_look_hides_none_that_is_down():
    seen = scraped.watched(sample("prometheus-2.42-good"))

    def rows(**health):
        targets = tuple(replace(t, health=health.get(t.job, "up"), why="refused") for t in seen.targets)
        return judged(wanted_watch=WATCH, watch=replace(seen, targets=targets))

    waits = rows(alertmanager="unknown")["head-001"]
    assert (waits.verdict, waits.found) == (Verdict.UNKNOWN, "its alertmanager was not scraped yet")
    both = rows(alertmanager="unknown", prometheus="down")["head-001"]
    assert both.verdict is Verdict.FAIL
    assert both.found.startswith("its prometheus at 127.0.0.1:19090 is down: refused; its alertmanager was not")


def test_what_prometheus_lacks_is_named():
    seen = scraped.watched(sample("prometheus-2.42-good"))
    few = replace(seen, targets=(), alerts={"CoolantLeak": "bad expression"}, alertmanagers=())
    rows = judged(wanted_watch=WATCH, watch=few)
    assert rows["gpu-001"].found == "Prometheus does not know its node at 127.0.0.2:19100"
    said = rows["alerts"].found
    for part in ("no rule raises TargetDown", "CoolantLeak cannot be evaluated: bad expression", "alerts go to nobody"):
        assert part in said
    stranger = scraped.Scraping("node", "198.18.0.99:9100", "old", "up", "")
    rows = judged(wanted_watch=WATCH, watch=replace(seen, targets=(*seen.targets, stranger)))
    assert "scrapes what is not designed: node at 198.18.0.99:9100" in rows["alerts"].found


def test_an_answer_that_is_no_success_is_not_seen():
    pages = {path: '{"status": "error", "error": "not ready"}' for path in scraped._PATHS}
    with pytest.raises(NotSeenError, match="not ready"):
        scraped.watched(Raw(0, json.dumps({"at": 1.0, "pages": pages, "errors": {}})))


def test_pages_are_fetched_until_nothing_is_pending():
    """The script as a host runs it, against a server whose first answers are not settled."""
    answers = iter(["waiting", "waiting"])

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(next(answers, "settled").encode())

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/x"
        script = Path(fetch_on_host.__file__).read_text()
        done = subprocess.run([sys.executable, "-c", script, "10", "waiting", url], capture_output=True, text=True)
        server.shutdown()
    assert json.loads(done.stdout)["pages"] == {url: "settled"}


@pytest.mark.parametrize(
    ("page", "waits"),
    [
        ('{"data":{"activeTargets":[]}}', True),  # as in the seconds after its start, before it has read their files
        ('{"data":{"activeAlertmanagers":[],"droppedAlertmanagers":[]}}', True),
        ('{"data":{"activeTargets":[{"labels":{},"health":"down"}]}}', True),
        ('{"data":{"activeTargets":[{"labels":{},"health":"up"}]}}', False),
        ('{"data":{"activeAlertmanagers":[{"url":"http://127.0.0.1:19093/api/v2/alerts"}]}}', False),
    ],
)
def test_a_prometheus_that_has_just_started_is_given_a_moment(page, waits):
    pending = scraped.watch_command(WATCH)[4]
    assert bool(re.search(pending, page)) is waits
