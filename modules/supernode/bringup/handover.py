"""Handing verified machines to the scheduler: nodes take jobs only after the gate, and say why when they do not.

Right after machines.yml was written, the controller is told over ssh what to think of each node. A node that a person
closed stays closed, and one that the checks could not see stays as it is: a controller that answered nobody a minute
ago must not close the whole cluster now.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supernode.bringup.machines import hosts_concerned
from supernode.clients import slurm, ssh
from supernode.clients.slurm import OURS, Node
from supernode.design import scheduler
from supernode.errors import CouldNotRun
from supernode.plan.share import at_once
from supernode.records import Event, Finding, State, Verdict
from supernode.spec import SlotState
from supernode.verify import cooling

if TYPE_CHECKING:
    from supernode.design import Design, Host
    from supernode.records import DeviceOutput, Outputs
    from supernode.spec import Machines
    from supernode.workspace import EnvironmentFolder

PHASE, CHECK = "scheduler", "scheduler"
REASON_MOST = 160  # characters; sinfo cuts them anyway, and the report has the rest
OnEvent = Callable[[Event], None]
_SHOW = ("sudo", "-n", "scontrol", "--oneliner", "show", "nodes")
_SHELL = ("sudo", "-n", "sh", "-s")


@dataclass(frozen=True)
class Wish:
    """What is to become of a node: it takes jobs, or none for a reason; without either it stays as it is."""

    open: bool = False
    reason: str = ""


def wishes(design: Design, machines: Machines, findings: Iterable[Finding]) -> tuple[dict[str, Wish], str]:
    """Return what every node is to be; and, where findings stand against too many, why none is closed for them.

    Args:
        design: the Design.
        machines: as the run left them.
        findings: of the whole run.
    """
    rows, share = list(findings), design.environment.machines.quarantine_share
    by_heat = [row for row in rows if row.check == cooling.CHECK]
    against, heat = _against(design, (row for row in rows if row not in by_heat)), _against(design, by_heat)
    nodes = [host for host in design.hosts if scheduler.is_node(design, host)]
    serving = [host for host in nodes if _state(machines, host) == SlotState.IN_SERVICE]
    # A unit cools many hosts: one that leaks closes its racks, and an agent that sees no unit at all closes none.
    wet = sum(row.verdict is Verdict.FAIL for row in by_heat)
    sites = (
        _site(share, sum(bool(against.get(host.name)) for host in serving), len(serving), "nodes in service"),
        _site(share, wet, len(design.cooling), "cooling units"),
    )
    first, second = (
        dict.fromkeys(said, "") if site else said for site, said in zip(sites, (against, heat), strict=True)
    )
    why = {name: first.get(name) or second.get(name, "") for name in (*first, *second)}
    return {host.name: _wish(machines, host, why) for host in nodes}, "; ".join(filter(None, sites))


def _site(share: float, failing: int, of: int, what: str) -> str:
    if failing <= at_once(share, of):
        return ""
    said = f"findings stand against {failing} of {of} {what}, more than machines.quarantine_share ({share:g})"
    return f"{said}: it is the site, so none is closed for them"


def _wish(machines: Machines, host: Host, against: Mapping[str, str]) -> Wish:
    record, state = machines.slots.get(host.slot), _state(machines, host)
    if state != SlotState.IN_SERVICE:
        said = record.reason if record is not None else ""
        return Wish(reason=reason(f"{said or _words(state)}"))
    if host.name not in against:
        return Wish(open=True)
    why = against[host.name]
    return Wish(reason=reason(why)) if why else Wish()


def _state(machines: Machines, host: Host) -> SlotState:
    record = machines.slots.get(host.slot)
    return record.state if record is not None else SlotState.NEW


def _words(state: SlotState) -> str:
    named = {SlotState.NEW: "not yet verified", SlotState.SPARE: "a spare"}
    return named.get(state, str(state).replace("_", " "))


def _against(design: Design, findings: Iterable[Finding]) -> dict[str, str]:
    """Return the first failure against each host; an empty text where something was not seen and nothing failed."""
    found: dict[str, str] = {}
    for row in findings:
        if row.verdict in (Verdict.FAIL, Verdict.UNKNOWN):
            said = (row.cause or f"{row.check} at {row.place}: {row.found}") if row.verdict is Verdict.FAIL else ""
            for name in hosts_concerned(design, row):
                found[name] = found.get(name) or said
    return found


def reason(text: str) -> str:
    """Write a reason as Slurm keeps it: one line, ours by its beginning, of a length that is still read."""
    line = OURS + " ".join(text.split())
    return line if len(line) <= REASON_MOST else line[: REASON_MOST - 3].rstrip() + "..."


def change(node: Node, wish: Wish) -> tuple[str, str]:
    """Return what `scontrol update` is told of a node, "" for nothing; and what a person is told."""
    if node.by_hand:
        return "", f"left alone: {node.user or 'somebody'} closed it: {node.reason}"
    if wish.open:
        return ("state=resume", "takes jobs") if node.closed else ("", "takes jobs")
    if not wish.reason:
        return "", "left as it is: not all of it was seen, or it is the site"
    if "DRAIN" in node.states and node.reason == wish.reason:
        return "", wish.reason
    return f"state=drain reason={shlex.quote(wish.reason)}", wish.reason


def settle(
    folder: EnvironmentFolder,
    design: Design,
    outputs: Outputs,
    machines: Machines,
    findings: Iterable[Finding],
    on_event: OnEvent,
) -> list[Finding]:
    """Open and close the nodes; return a finding for each that could not be."""
    head = scheduler.controller(design)
    if head is None:
        return []
    wanted, site = wishes(design, machines, findings)
    if site:
        on_event(_event(head.name, State.SKIPPED, site))
    try:
        said = _tell(folder, design, outputs, head, wanted)
    except (CouldNotRun, ValueError) as error:  # a controller of a form that nobody knows is one that does not answer
        on_event(_event(head.name, State.FAILED, str(error)))
        cause = f"the scheduler's controller on {head.name} could not be told which nodes are verified: {error}"
        return [Finding(CHECK, head.name, Verdict.FAIL, "an answer of the controller", str(error), cause=cause)]
    for name, (state, text) in said.items():
        on_event(_event(name, state, text))
    return [_failed(name, text) for name, (state, text) in said.items() if state is State.FAILED]


def close(
    folder: EnvironmentFolder, design: Design, outputs: Outputs, machines: Machines, slots: Iterable[str]
) -> dict[str, tuple[State, str]]:
    """Close the nodes in slots that were parked a moment ago, each by its record; say of each what became of it.

    Raises:
        CouldNotRun: the controller does not answer.
        ValueError: it answers in a form that nobody knows.
    """
    head = scheduler.controller(design)
    parked = [host for host in design.hosts if host.slot in set(slots) and scheduler.is_node(design, host)]
    if head is None or not parked:
        return {}
    return _tell(folder, design, outputs, head, {host.name: _wish(machines, host, {}) for host in parked})


def _tell(
    folder: EnvironmentFolder, design: Design, outputs: Outputs, head: Host, wanted: Mapping[str, Wish]
) -> dict[str, tuple[State, str]]:
    device = outputs.devices.get(head.name)
    if device is None or device.state != "ready":
        raise CouldNotRun(head.name, "is not ready, and the scheduler's controller runs on it")
    key = folder.ssh_key_file.read_text(encoding="utf-8")
    return asyncio.run(_told(design.environment.access.user, device, key, wanted))


def _event(name: str, state: State, text: str) -> Event:
    return Event(time.time(), "verify", name, PHASE, state, text)


def _failed(name: str, text: str) -> Finding:
    cause = f"{name} could not be handed to the scheduler: {text}"
    return Finding(CHECK, name, Verdict.FAIL, "opened or closed as the run says", text, cause=cause)


async def _told(user: str, device: DeviceOutput, key: str, wanted: Mapping[str, Wish]) -> dict[str, tuple[State, str]]:
    """Look at all nodes, change those that are otherwise than wished, each on its own, in one command."""
    async with ssh.connect(device.address, user, key, device.host_keys) as host:
        nodes = dict(_nodes((await host.run(_SHOW)).stdout))
        changes = {name: change(nodes[name], wish) for name, wish in wanted.items() if name in nodes}
        script = "".join(
            f"said=$(scontrol update nodename={name} {words} 2>&1); printf '%s %s %s\\n' {name} $? \"$said\"\n"
            for name, (words, _) in changes.items()
            if words
        )
        answered = (await host.run(_SHELL, stdin=script.encode())).stdout if script else ""
    answers = {row[0]: row[1:] for line in answered.splitlines() if len(row := line.split(" ", 2)) > 1}
    strange = {name: (State.FAILED, "the controller knows no such node") for name in wanted if name not in nodes}
    return strange | {name: _outcome(words, text, answers.get(name)) for name, (words, text) in changes.items()}


def _nodes(text: str) -> Iterator[tuple[str, Node]]:
    for line in text.splitlines():
        if line.startswith("NodeName="):
            node = slurm.parse(line)
            yield node.name, node


def _outcome(words: str, text: str, answer: list[str] | None) -> tuple[State, str]:
    if not words:
        return (State.SKIPPED if text.startswith("left") else State.OK), text
    if answer is None:
        return State.FAILED, "the controller said nothing of it"
    if answer[0] != "0":
        return State.FAILED, answer[1].strip() if len(answer) > 1 else f"scontrol ended with {answer[0]}"
    return State.CHANGED, text
