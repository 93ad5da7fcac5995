"""Reports from a run: nothing is lost on the way, and nothing that a machine printed breaks the page."""

import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from supernode import design as designing
from supernode import spec
from supernode.records import Event, Finding, Run, StageRecord, State, Verdict
from supernode.report import clock, html, junit, picture, problems, text, timeline
from supernode.report import json as run_json
from supernode.units import Seconds

ROOT = Path(__file__).parents[3]
T0 = 1796064000.0
CAUSE = "cables C00017 and C00018 are exchanged at su01-leaf0:swp3 and su01-leaf1:swp3"
NASTY = '<script>alert("x")</script> & \x1b[31m\x00 ]]>'


@pytest.fixture(scope="module")
def design():
    return designing.build(
        spec.read({"environment": (ROOT / "tests" / "lab" / "slim" / "environment.yml").read_text()})
    )


def findings() -> tuple[Finding, ...]:
    both = ("C00017", "C00018")
    return (
        Finding("reach", "gpu-001", Verdict.PASS, "answers by ssh", "answers"),
        Finding("cabling", "C00001", Verdict.PASS),
        Finding(
            "cabling", "C00017", Verdict.FAIL, "a - b", "a hears c", CAUSE, both, ("LLDP: " + NASTY,), "exchange them"
        ),
        Finding("cabling", "C00018", Verdict.FAIL, "c - d", "c hears b", CAUSE, both),
        Finding("mtu", "gpu-003:rail0", Verdict.UNKNOWN, "", "no answer", CAUSE, both),
        Finding("cabling", "C00020", Verdict.FAIL, "e - f", "no link", "cable C00020 is missing", ("C00020",)),
        Finding("rate", "C00030", Verdict.FAIL, "", "3 Mbit/s", "cable C00030 is slow", ("C00030",)),
        Finding("time", "gpu-002", Verdict.ADVICE, "within 100 ms", "90 ms"),
    )


def events() -> tuple[Event, ...]:
    return (
        Event(T0 + 1, "provision", "gpu-001", "deploy", State.STARTED),
        Event(T0 + 31, "provision", "gpu-001", "deploy", State.OK, NASTY),
        Event(T0 + 35, "provision", "gpu-001", "firstboot", State.OK),
        Event(T0 + 2, "provision", "gpu-002", "deploy", State.STARTED),
        Event(T0 + 90, "provision", "gpu-002", "deploy", State.LATE, "no report"),
        Event(T0 + 3, "provision", "gpu-003", "deploy", State.STARTED),
        Event(T0, "provision", None, "engine", State.STARTED),
    )


def stages() -> tuple[StageRecord, ...]:
    return (
        StageRecord("prepare", Seconds(0), T0 - 60, T0, "ok"),
        StageRecord("provision", Seconds(60), T0, T0 + 90, "over budget"),
        StageRecord("verify", Seconds(600), T0 + 90, T0 + 130, "ok"),
    )


@pytest.fixture
def run(design) -> Run:
    return Run(
        "20261130-184501-3f2a", "lab", design.digest, "ab" * 32, T0 - 60, T0 + 131, stages(), events(), findings(), 1
    )


def test_a_run_comes_back_from_its_document(run):
    assert run_json.from_json(json.loads(json.dumps(run_json.to_json(run)))) == run


def test_another_schema_is_refused(run):
    with pytest.raises(ValueError, match="schema 2"):
        run_json.from_json({**run_json.to_json(run), "schema": 2})


def test_findings_of_one_cause_are_one_problem(run):
    found = problems.group(run.findings)
    assert [p.cause for p in found][:3] == [CAUSE, "cable C00020 is missing", "cable C00030 is slow"]
    assert (found[0].head.place, len(found[0].follows)) == ("C00017", 2)
    assert found[-1].verdict is Verdict.ADVICE


def test_cables_have_the_state_that_the_findings_tell(run):
    states = problems.cable_states(run.findings)
    wanted = {"C00001": "ok", "C00017": "swapped", "C00018": "swapped", "C00020": "missing", "C00030": "slow"}
    assert states == wanted


class Page(HTMLParser):
    """Collects what a browser would fetch or run, and whether tags close."""

    VOID = frozenset({"meta", "br", "link", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.foreign: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "link", "img", "iframe") or any(name in ("src", "href") for name, _ in attrs):
            self.foreign.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(run, design):
    page = Page()
    made = html.render(run, design, html.Proof(8, 3))
    page.feed(made)
    assert page.open == []
    assert page.foreign == [], "no script, no fetched resource, and nothing a machine printed became one"
    assert "http" not in made.replace("http-equiv", "")
    for words in (
        CAUSE,
        "exchange them",
        "C00017",
        "02:10",
        "of 11:00",
        "over budget",
        "8 checks are proven",
        "gpu-009",
    ):
        assert words in made, words


def test_every_cable_is_drawn_with_both_ends_and_its_state(run, design):
    drawn = picture.draw(design, run.findings)
    assert drawn.svg.count('<path class="cable') == len(design.links) == 88
    assert drawn.svg.count('class="cable swapped"') == 2
    assert drawn.svg.count('class="cable unchecked"') == 88 - 5
    assert "C00017  gpu-003:rail0 - su01-leaf0:swp3" in drawn.svg
    assert drawn.left_out == 0
    Xml.fromstring(drawn.svg)  # noqa: S314 - our own


def test_the_whole_fabric_is_on_the_page_whatever_stands_beside_it(run):
    whole = designing.build(
        spec.read({"environment": (ROOT / "inventories" / "lab" / "environment.yml").read_text()}, name="lab")
    )
    tree = Xml.fromstring(picture.draw(whole, run.findings).svg)  # noqa: S314 - our own
    width = float(tree.get("viewBox").split()[2])
    right = {
        box.findtext("title").split("\n")[0]: _right(box.find("rect"))
        for box in tree.iter("g")
        if box.find("title") is not None
    }
    assert {"head-001", "su01-leaf7"} <= set(right)
    assert max(right.values()) < width
    assert tree.get("style") == f"--drawn: {width:.0f}px", "the page shrinks it by this, and never cuts it off"
    assert "max-width: var(--drawn)" in html.render(run, whole)


def _right(rect: Xml.Element) -> float:
    return float(rect.get("x")) + float(rect.get("width"))


def test_a_large_fabric_shows_the_hosts_that_are_not_well(run, design, monkeypatch):
    monkeypatch.setattr(picture, "MOST_HOSTS", 4)
    drawn = picture.draw(design, run.findings)
    assert 0 < drawn.left_out < 9
    assert "gpu-003" in drawn.svg


def test_a_page_without_a_design_says_all_but_the_picture(run):
    made = html.render(run, None)
    assert CAUSE in made
    assert "<h2>Fabric" not in made


def test_a_run_that_ended_before_anything_has_a_page(design):
    empty = Run("20261130-184501-0000", "lab", design.digest, "", T0)
    assert "Unfinished" in html.render(empty, design)
    assert "No check ran" in html.render(empty, design)


def test_bars_run_from_start_to_end_of_a_phase(run):
    rows = {(bar.device, bar.phase): bar for bar in timeline.bars(run.events)}
    assert (rows["gpu-001", "deploy"].started, rows["gpu-001", "deploy"].ended) == (T0 + 1, T0 + 31)
    assert rows["gpu-001", "firstboot"].started == T0 + 31, "it began when the phase before it ended"
    assert rows["gpu-002", "deploy"].state is State.LATE
    assert rows["gpu-003", "deploy"].ended is None, "still open: nobody said how it ended"


def test_an_operation_that_encloses_others_ends_the_last_of_them():
    def event(at, phase, state, detail=""):
        return Event(T0 + at, "provision", "gpu-001", phase, state, detail)

    rows = timeline.bars([
        event(0, "update", State.STARTED),
        event(1, "deploy", State.PROGRESS),
        event(5, "deploy", State.PROGRESS),
        event(9, "update", State.FAILED, "no report"),
    ])  # fmt: skip
    assert [(bar.phase, bar.started - T0, bar.ended - T0, bar.state) for bar in rows] == [
        ("update", 0, 1, State.OK),
        ("deploy", 1, 9, State.FAILED),
    ]
    assert rows[1].detail == "no report"


def test_the_tasks_of_a_role_are_one_bar_with_the_worst_state():
    states = [(0, State.PROGRESS), (2, State.OK), (3, State.PROGRESS), (5, State.CHANGED), (6, State.SKIPPED)]
    rows = timeline.bars(Event(T0 + at, "configure", "gpu-001", "rails", state) for at, state in states)
    assert [(bar.started - T0, bar.ended - T0, bar.state) for bar in rows] == [(0, 6, State.CHANGED)]


def test_the_timeline_is_xml(run):
    Xml.fromstring(timeline.draw(run).replace("\x1b", "").replace("\x00", ""))  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("exit_code", "kept", "words", "tone"),
    [
        (0, 2, "Verified", "ok"),
        (1, 8, "3 problems found", "bad"),
        (1, 2, "Fewer machines than asked for", "bad"),
        (3, 0, "Could not run", "bad"),
        (130, 0, "Interrupted", "open"),
        (None, 0, "Unfinished", "open"),
    ],
)
def test_the_verdict_in_words(run, exit_code, kept, words, tone):
    said = clock.verdict(dataclasses.replace(run, exit_code=exit_code, findings=run.findings[:kept]))
    assert (said.words, said.tone) == (words, tone)


def test_the_clock_runs_from_the_first_budgeted_stage_to_the_last(run):
    assert clock.used(run) == 130, "what comes before T0 does not count"
    assert clock.budget(run) == 660
    assert [stage.name for stage in clock.beside(run)] == ["prepare"]


@pytest.mark.parametrize(
    ("seconds", "written"), [(0, "00:00"), (59.6, "01:00"), (2700, "45:00"), (3723, "1:02:03"), (-61, "-01:01")]
)
def test_durations(seconds, written):
    assert clock.span(seconds) == written


def test_junit_counts_and_survives_control_characters(run):
    tree = Xml.fromstring(junit.render(run).split("\n", 1)[1])  # noqa: S314 - our own
    cabling = next(suite for suite in tree if suite.get("name") == "cabling")
    assert (cabling.get("tests"), cabling.get("failures"), cabling.get("errors")) == ("4", "3", "0")
    assert len(tree.findall(".//testcase")) == len(run.findings)
    assert len(tree.findall(".//error")) == 1, "unknown is an error, not a failure"


def test_the_terminal_gets_cause_hint_and_places(run):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(text.render(run))
    told = console.export_text()
    for words in (CAUSE, "hint: exchange them", "cabling C00018", "02:10 of 11:00", "own clock"):
        assert words in told, words
