"""`supernode quarantine`, `drain`, `release`: take machines out of service by hand, and give them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from supernode.design import Design
    from supernode.spec import Machines
    from supernode.workspace import EnvironmentFolder

Environment = Annotated[str, typer.Argument(help="a folder under inventories/, or a path")]
Slots = Annotated[list[str], typer.Argument(help="slots or hosts, e.g. r01u01 or gpu-001")]
Reason = Annotated[str, typer.Option(help="why, for whoever reads machines.yml")]
AsJson = Annotated[bool, typer.Option("--json", help="print what changed as JSON")]


def quarantine(environment: Environment, slots: Slots, reason: Reason, as_json: AsJson = False) -> None:
    """Take machines away from the cluster: the next run shuts their switch ports and lets spares take over.

    A quarantined machine is never contacted; `supernode release` gives it back. The scheduler is told at once.

    Example: supernode quarantine lab gpu-003 --reason "burnt smell"
    """
    from supernode.spec import SlotState

    _park(environment, slots, reason, SlotState.QUARANTINED, as_json=as_json)


def drain(environment: Environment, slots: Slots, reason: Reason, as_json: AsJson = False) -> None:
    """Take machines out of service for work on them: they stay connected, and the next run may restart them.

    `supernode release` gives them back; the run after it puts them into service again. The scheduler is told at once.

    Example: supernode drain lab gpu-003 --reason "new firmware"
    """
    from supernode.spec import SlotState

    _park(environment, slots, reason, SlotState.DRAINED, as_json=as_json)


def release(environment: Environment, slots: Slots, as_json: AsJson = False) -> None:
    """Give quarantined or drained machines back: they start anew with the next run.

    A machine whose pool is complete without it comes back as a spare.

    Example: supernode release lab gpu-003
    """
    from supernode.design import parking

    def change(design: Design) -> Machines:
        return parking.release(design, parking.slots_of(design, slots))

    _write(environment, "release", change, as_json=as_json)


def _park(environment: str, names: list[str], reason: str, state: str, *, as_json: bool) -> None:
    from supernode.design import parking
    from supernode.spec import SlotState

    def change(design: Design) -> Machines:
        slots = parking.slots_of(design, names)
        return parking.park(design.machines, dict.fromkeys(slots, reason), SlotState(state))

    def tell(folder: EnvironmentFolder, design: Design, after: Machines) -> None:
        _tell_scheduler(folder, design, after, parking.slots_of(design, names))

    _write(environment, "quarantine" if state == SlotState.QUARANTINED else "drain", change, tell, as_json=as_json)


def _tell_scheduler(folder: EnvironmentFolder, design: Design, after: Machines, slots: Sequence[str]) -> None:
    """Have the scheduler give them no more jobs; one that does not answer is told by the next run."""
    from supernode import workspace
    from supernode.bringup import handover
    from supernode.errors import CouldNotRun

    if design.environment.scheduler is None or not workspace.outputs_file(folder).exists():
        return
    try:
        told = handover.close(folder, design, workspace.read_outputs(folder), after, slots)
    except (CouldNotRun, OSError, ValueError) as error:
        say(f"the scheduler was not told, so it may still give them jobs; the next run tells it: {error}")
        return
    for name, (state, text) in told.items():
        say(f"scheduler: {name}: {state}: {text}")


def _nobody(_folder: EnvironmentFolder, _design: Design, _after: Machines) -> None:
    """Tell nobody: what is given back is opened by the run that verifies it."""


def _write(
    environment: str,
    verb: str,
    change: Callable[[Design], Machines],
    tell: Callable[[EnvironmentFolder, Design, Machines], None] = _nobody,
    *,
    as_json: bool,
) -> None:
    from supernode import spec
    from supernode.bringup import lock

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate), lock.held(folder, verb):
        design = inputs.design(folder)
        before, after = design.machines, change(design)
        changes = [
            f"{slot} {design.slots[slot]}: {before.slots[slot].state} -> {record.state}"
            for slot, record in after.slots.items()
            if record.state != before.slots[slot].state
        ]
        if after != before:
            folder.write("machines", spec.machines_text(after))
        tell(folder, design, after)
    emit({"changes": changes}, as_json=as_json, text=lambda: "\n".join(changes) or "nothing changes")
