"""The machine between power and system, without a BMC's Redfish around it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bmc_bench import Works, eventually, machine

from supernode.errors import CouldNotRun
from supernode.lab.chassis import Identity, MediaInfo, PostHung, Power, Progress, manufactured_mac
from supernode.lab.console import Console
from supernode.lab.machine import Ending, Machine


class Board:
    def __init__(self) -> None:
        self.posts = 0
        self.hung = False

    def alive(self) -> bool:
        return True

    async def post(self) -> MediaInfo | None:
        self.posts += 1
        if self.hung:
            raise PostHung(0x99)
        return None

    def record(self, message: str, severity: str = "OK") -> None:
        pass


def ready(works: Works) -> tuple[Machine, Board]:
    made, board = machine("r01u01", works), Board()
    made.connect(board)
    works.disk = True
    return made, board


async def until(made: Machine, progress: Progress) -> None:
    await eventually(lambda: made.boot_progress() is progress)


def test_each_way_through_post_asks_the_bmc_once() -> None:
    async def scenario() -> None:
        works = Works()
        made, board = ready(works)
        await made.power_on()
        await until(made, Progress.RUNNING)
        assert board.posts == 1
        works.endings.put_nowait(Ending.REBOOT)
        await eventually(lambda: works.runs >= 2)
        assert board.posts == 2
        assert {code.boot for code in made.post_codes()} == {1, 2}
        works.endings.put_nowait(Ending.POWEROFF)
        await eventually(lambda: made.power_state() is Power.OFF)
        assert made.boot_progress() is Progress.NONE

    asyncio.run(scenario())


def test_a_hang_ends_with_the_power() -> None:
    async def scenario() -> None:
        works = Works()
        made, board = ready(works)
        board.hung = True
        await made.power_on()
        await eventually(lambda: made.post_codes() and made.post_codes()[-1].code == 0x99)
        assert made.power_state() is Power.ON
        await made.power_off(hard=False)  # no system: the button acts at once
        assert made.power_state() is Power.OFF
        board.hung = False
        await made.power_on()
        await until(made, Progress.RUNNING)
        await made.power_off(hard=True)

    asyncio.run(scenario())


@pytest.mark.parametrize("failure", [CouldNotRun("x", "the container ended with status 1"), RuntimeError("a defect")])
def test_a_system_that_cannot_run_leaves_the_machine_on_with_a_reason(failure: Exception) -> None:
    async def scenario() -> None:
        works = Works()
        made, _ = ready(works)

        async def broken(running: object) -> Ending:
            raise failure

        works.run = broken  # type: ignore[method-assign, assignment]
        await made.power_on()
        await eventually(lambda: any(line.startswith("stopped: ") for line in made.console_tail(5)))
        assert made.power_state() is Power.ON
        await made.power_off(hard=True)
        assert made.power_state() is Power.OFF

    asyncio.run(scenario())


def test_a_power_cut_ends_what_runs() -> None:
    async def scenario() -> None:
        works = Works()
        made, _ = ready(works)
        ended = asyncio.Event()

        async def run(running: object) -> Ending:
            try:
                return await Works.run(works, running)  # type: ignore[arg-type]
            finally:
                ended.set()

        works.run = run  # type: ignore[method-assign, assignment]
        await made.power_on()
        await until(made, Progress.RUNNING)
        await made.power_off(hard=True)
        assert ended.is_set()

    asyncio.run(scenario())


def test_the_console_outlives_the_daemon(tmp_path: Path) -> None:
    first = Console(tmp_path / "console.log")
    for number in range(5):
        first.write(f"line {number}")
    again = Console(tmp_path / "console.log")
    assert again.tail(2) == ["line 3", "line 4"]
    assert again.tail(0) == []


def test_labels_are_the_machines_own_and_lasting() -> None:
    one, again = Identity.manufactured("lab", "r01u01"), Identity.manufactured("lab", "r01u01")
    assert one == again
    others = [
        Identity.manufactured("lab", "r01u02"),
        Identity.manufactured("lab2", "r01u01"),
        Identity.manufactured("lab", "r01u01", 2),
    ]
    labels = [value for each in (one, *others) for value in vars(each).values()]
    assert len(labels) == len(set(labels))
    assert int(manufactured_mac("lab", "r01u01", "rail0")[:2], 16) & 3 == 2  # locally administered, one receiver
