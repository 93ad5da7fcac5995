"""Preview, update, refresh, destroy: every stack of an environment, side by side where the order does not matter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pulumi.automation import EngineEvent, Stack

from supernode.bringup.provision import events, pending, state
from supernode.bringup.provision.events import Row
from supernode.bringup.provision.session import Listener, Session, prepare_stack, unlocked
from supernode.design import Design
from supernode.engine import running
from supernode.errors import CouldNotRun, SupernodeError
from supernode.provider import timing
from supernode.records import Event, Outputs, State
from supernode.workspace import EnvironmentFolder

OnEvent = Callable[[Event], None]
Result = TypeVar("Result")

# Each stack has its own engine, language host and provider: some 300 MB.
_SIDE_BY_SIDE = 8


def up(
    folder: EnvironmentFolder,
    design: Design,
    on_event: OnEvent,
    *,
    reinstall: Sequence[str] = (),
    plan_hash: str = "",
    leave: Sequence[str] = (),
    until: float | None = None,
    directory: Path | None = None,
) -> Outputs:
    """Bring every stack of the environment to what the Design says.

    A machine that is late or failed is no error: it comes back with its state. Stacks run side by side; where a slot is
    quarantined, the ports of its switches are shut before anything else is touched.

    Args:
        folder: the environment.
        design: its Design.
        on_event: called from several threads, one call at a time.
        reinstall: slots in service that a person confirmed may be powered off or installed anew.
        plan_hash: the plan that was shown with them.
        leave: designed names of machines that are left as they are, whatever they lack.
        until: when the run's provisioning ends, in seconds since 1970: no machine's deadline goes beyond it, and the
            confirmation ends with it. The budget from now on when not given.
        directory: a project's folder other than supernode's own.

    Raises:
        CouldNotRun: no engine, a locked stack, a wrong passphrase, or a stack that failed; the others ran to their end.
    """
    tell = _one_at_a_time(on_event)
    session = Session.open(folder, _progress(tell), directory)
    names = design.stacks()
    until = until or time.time() + design.environment.budgets.provision_s
    session.settings[timing.UNTIL] = str(int(until))
    try:
        stacks = _each(session, names, lambda name: prepare_stack(session, name, reinstall, plan_hash, until))
        if len(stacks) > 1:  # within a stack the resources' own order says so; from one to another nothing does
            _fence(session, design, stacks, tell)
        left = [f"**::{name}" for name in leave]
        _each(session, names, lambda name: _update(session, stacks[name], parallel(design, name), tell, exclude=left))
    finally:
        # A confirmation is for one run: a later `pulumi up` must not find it, and if we are killed, `until` ends it.
        if reinstall:
            _each(session, names, lambda name: prepare_stack(session, name))
    for name in set(session.existing()) - set(names):
        tell(
            _note(
                f"stack {name} is no longer in the design; `supernode destroy {folder.name} --stack {name}` removes it"
            )
        )
    running.prune(session.command.records)  # all stacks were locked since: no lock of the dead is left to be judged
    exports = _exports(session, names)
    designed = {*design.device_names, *([design.vpn.name] if design.vpn else [])}
    pending.settle(session, exports, designed, lambda line: tell(_note(line)))
    return state.read(session.folder.name, exports)


def fence(folder: EnvironmentFolder, design: Design, on_event: OnEvent, *, directory: Path | None = None) -> Outputs:
    """Shut the switches' ports of quarantined slots, touch nothing else, and return what the stacks then hold.

    Whether a port is shut is what its switch answers (`DeviceOutput.applied`), not that this returned.

    Raises:
        CouldNotRun: as for `up`.
    """
    tell = _one_at_a_time(on_event)
    session = Session.open(folder, _progress(tell), directory)
    there = set(session.existing())
    stacks = _each(session, [n for n in design.stacks() if n in there], lambda name: prepare_stack(session, name))
    _fence(session, design, stacks, tell)
    return _read(session, list(stacks))


def preview(
    folder: EnvironmentFolder,
    design: Design,
    on_event: OnEvent = lambda _event: None,
    *,
    refresh: bool = True,
    directory: Path | None = None,
) -> list[Row]:
    """Ask the engine what it would do, over all stacks; with `refresh`, after a look at every machine and switch.

    The state is not changed by it.

    Raises:
        CouldNotRun: as for `up`.
    """

    def ask(stack: Stack, listener: Listener) -> None:
        stack.preview(parallel=parallel(design, stack.name), refresh=refresh, on_event=listener, color="never")

    return _look(folder, design, on_event, directory, events.to_row, ask)


def refresh(
    folder: EnvironmentFolder,
    design: Design,
    on_event: OnEvent,
    *,
    only: Sequence[str] = (),
    until: float | None = None,
    directory: Path | None = None,
) -> list[Row]:
    """Look at every machine and switch, write what was found into the state, and return how it differed.

    What does not answer keeps what the state says of it, and comes back as a row with the op "warning".

    Args:
        folder: the environment.
        design: its Design.
        on_event: told of the engine.
        only: the names of those to look at, where not all are meant; other stacks' engines are not started.
        until: when the look at a machine ends, in seconds since 1970; its own deadline when not given.
        directory: a project's folder other than supernode's own.
    """
    stacks = {host.name: host.stack for host in design.hosts} | {row.name: row.stack for row in design.switches}

    def ask(stack: Stack, listener: Listener) -> None:
        chosen = [f"**::{name}" for name in only if stacks[name] == stack.name]
        many = parallel(design, stack.name)
        stack.refresh(parallel=many, target=chosen or None, on_event=listener, color="never")

    chosen = {stacks[name] for name in only} if only else None
    return _look(folder, design, on_event, directory, events.to_drift, ask, chosen, until)


def _look(
    folder: EnvironmentFolder,
    design: Design,
    on_event: OnEvent,
    directory: Path | None,
    read: Callable[[EngineEvent, str], Row | None],
    ask: Callable[[Stack, Listener], None],
    chosen: Collection[str] | None = None,
    until: float | None = None,
) -> list[Row]:
    """Ask every stack's engine, or those of the chosen, and keep what it says as rows."""
    tell = _one_at_a_time(on_event)
    session = Session.open(folder, _progress(tell), directory)
    if until is not None:
        session.settings[timing.UNTIL] = str(int(until))

    def look(name: str) -> list[Row]:
        stack, rows = prepare_stack(session, name), []

        def hear(event: EngineEvent) -> None:
            row = read(event, name)
            if row is not None:
                rows.append(row)

        listener = Listener(hear)
        with session.explained(name, listener.errors):
            unlocked(session, name, lambda: ask(stack, listener), lambda line: tell(_note(line)))
        listener.raise_broken()
        return rows

    names = [name for name in design.stacks() if chosen is None or name in chosen]
    return [row for rows in _each(session, names, look).values() for row in rows]


def destroy(
    folder: EnvironmentFolder, on_event: OnEvent, *, stacks: Sequence[str] = (), directory: Path | None = None
) -> list[str]:
    """Destroy the environment's stacks, the last first, and forget them; returns their names.

    Needs no Design: what is in the state is what goes.

    Args:
        folder: the environment; its documents are not read.
        on_event: called for each step.
        stacks: these alone; all of the environment's when empty.
        directory: a project's folder other than supernode's own.

    Raises:
        CouldNotRun: no such stack, or the engine failed; what was destroyed before stays destroyed.
    """
    tell = _one_at_a_time(on_event)
    session = Session.open(folder, _progress(tell), directory)
    there = session.existing()
    unknown = sorted(set(stacks) - set(there))
    if unknown:
        raise CouldNotRun(f"stack {unknown[0]}", "no such stack", f"there are: {', '.join(there) or 'none'}")
    gone = sorted(stacks or there, reverse=True)
    for name in gone:
        _destroy(session, session.select(name), tell)
    return gone


def _destroy(session: Session, stack: Stack, tell: OnEvent) -> None:
    listener = Listener(lambda event: _hear(event, tell))

    def work() -> None:
        stack.destroy(on_event=listener, color="never", continue_on_error=True)

    with session.explained(stack.name, listener.errors):
        unlocked(session, stack.name, work, lambda line: tell(_note(line)))
        session.workspace().remove_stack(stack.name)
    listener.raise_broken()


def forget(folder: EnvironmentFolder, *, directory: Path | None = None) -> list[str]:
    """Drop the state of the environment's stacks without touching a machine: for hardware that is no longer there."""
    session = Session.open(folder, lambda _line: None, directory)
    gone = session.existing()
    for name in gone:
        with session.explained(name):
            unlocked(session, name, partial(session.workspace().remove_stack, name, force=True), lambda _line: None)
    return gone


def outputs(folder: EnvironmentFolder, *, directory: Path | None = None) -> Outputs:
    """Read what the environment's stacks hold, from their state alone."""
    session = Session.open(folder, lambda _line: None, directory)
    return _read(session, session.existing())


def exported(folder: EnvironmentFolder) -> dict[str, dict[str, Any]]:
    """Return each stack of an environment as `pulumi stack export --show-secrets` writes it."""
    session = Session.open(folder, lambda _line: None)
    return _exports(session, session.existing())


def parallel(design: Design, stack: str) -> int:
    """Count what can be worked on at once: every machine and switch of a stack."""
    return max(1, design.stack_sizes()[stack])


def _read(session: Session, names: Iterable[str]) -> Outputs:
    return state.read(session.folder.name, _exports(session, names))


def _exports(session: Session, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    def export(name: str) -> dict[str, Any]:
        with session.explained(name):
            deployment = session.workspace().export_stack(name)
        return {"version": deployment.version, "deployment": deployment.deployment}

    return _each(session, list(names), export)


def _update(
    session: Session,
    stack: Stack,
    width: int,
    tell: OnEvent,
    target: list[str] | None = None,
    exclude: list[str] | None = None,
) -> None:
    listener = Listener(lambda event: _hear(event, tell))

    only: dict[str, Any] = {"target": target} if target else {"exclude": exclude} if exclude else {}

    def work() -> None:
        listener.errors.clear()
        stack.up(parallel=width, on_event=listener, color="never", continue_on_error=True, **only)

    with session.explained(stack.name, listener.errors):
        unlocked(session, stack.name, work, lambda line: tell(_note(line)))
    listener.raise_broken()


def _fence(session: Session, design: Design, stacks: dict[str, Stack], tell: OnEvent) -> None:
    """Shut the ports of quarantined slots in every stack that holds one of their switches.

    On a fabric that is not there yet nothing is open, so nothing is to be shut.
    """
    quarantined = [host.name for host in design.hosts if host.state == "quarantined"]
    switches = {link.b_device for name in quarantined for link in design.links_of(name) if link.kind == "rail"}
    if not switches:
        return
    present = _read(session, list(stacks)).devices
    by_stack: dict[str, list[str]] = {}
    for name in sorted(switches & set(present)):
        by_stack.setdefault(design.switch(name).stack, []).append(f"**::{name}")
    _each(
        session, list(by_stack), lambda name: _update(session, stacks[name], len(by_stack[name]), tell, by_stack[name])
    )


def _hear(event: EngineEvent, tell: OnEvent) -> None:
    ours = events.to_event(event, time.time())
    if ours is not None:
        tell(ours)


def _each(session: Session, names: Sequence[str], work: Callable[[str], Result]) -> dict[str, Result]:
    """Do the work for each stack, side by side; all run to their end before the first error is raised.

    An interrupt is passed to every engine once, and each then ends in order; a second one makes them stop at once.
    What waits for its turn meanwhile never begins.
    """
    futures: dict[str, Future[Result]] = {}
    try:
        with ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
            try:
                for name in names:
                    futures[name] = pool.submit(work, name)
                wait(futures.values())
            except KeyboardInterrupt:
                begun = [future for future in futures.values() if not future.cancel()]
                session.command.interrupt()
                session.progress("stopping: nothing new begins, what has begun is let end; Ctrl-C again cuts it off")
                try:
                    wait(begun)
                except KeyboardInterrupt:
                    session.command.interrupt()
                raise
    finally:
        session.command.stopped = False  # what must still be done, as taking a confirmation back, is
    _raise_first(futures.values())
    return {name: future.result() for name, future in futures.items()}


def _raise_first(futures: Iterable[Future[Any]]) -> None:
    failed = [error for error in (future.exception() for future in futures) if error is not None]
    ours = [error for error in failed if isinstance(error, SupernodeError)]
    if len(ours) > 1 and len(ours) == len(failed):
        raise CouldNotRun("pulumi", "; ".join(str(error) for error in ours))
    if failed:
        raise failed[0]


def _one_at_a_time(on_event: OnEvent) -> OnEvent:
    lock = threading.Lock()

    def tell(event: Event) -> None:
        with lock:
            on_event(event)

    return tell


def _progress(tell: OnEvent) -> Callable[[str], None]:
    return lambda line: tell(Event(time.time(), events.STAGE, None, "engine", State.PROGRESS, line))


def _note(line: str) -> Event:
    return Event(time.time(), events.STAGE, None, "engine", State.PROGRESS, line)
