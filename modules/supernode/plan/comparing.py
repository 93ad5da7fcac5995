"""The Design against what the last run left: pure, so that the hash that was shown is the hash that is run."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from supernode.design import Design, Host
from supernode.errors import Problem, Refusal
from supernode.plan import cost, renting
from supernode.plan.machine import Decision, decide
from supernode.plan.model import FileDiff, Move, Plan, Step
from supernode.plan.recording import SCHEMA, digest, files, machine, rented
from supernode.plan.share import at_once
from supernode.records import DeviceOutput, Outputs
from supernode.spec import SlotState

Last = Mapping[str, Any]


def compare(
    design: Design, last: Last | None, outputs: Outputs | None, reinstall: tuple[str, ...] = (), image: str = ""
) -> Plan:
    """Return what a run would change.

    Args:
        design: what is wanted.
        last: `snapshot` of the design that the last run applied; None before the first.
        outputs: what the engine last said of each device; None before the first run.
        reinstall: slots in service that may be installed anew.
        image: digest of the golden image that machines should run; empty where it is not known, and then not compared.

    Raises:
        Refusal: more machines in service would change in one run than `machines.change_at_once` allows, or a slot to
            install anew that is no machine's.
    """
    _refuse_unknown(design, reinstall)
    last = last if last and last.get("schema") == SCHEMA else {}
    decisions = {
        host.name: _decide(design, host, last, outputs, host.slot in reinstall, image) for host in design.hosts
    }
    _refuse_too_many(design, decisions, reinstall)
    diffs = tuple(_file_diffs(design, last))
    steps = tuple(_steps(design, last, outputs, decisions, diffs))
    plan = Plan(
        hash="",
        environment=design.name,
        design=design.digest,
        steps=steps,
        file_diffs=diffs,
        reinstalls=tuple(host.slot for host in design.hosts if _writes_disk(host.name, decisions)),
        recabling=tuple(_recabling(design, last)),
    )
    document = json.dumps(plan.to_json(), sort_keys=True)
    return dataclasses.replace(plan, hash=hashlib.sha256(document.encode()).hexdigest(), costs=cost.estimate(design))


def _refuse_unknown(design: Design, reinstall: tuple[str, ...]) -> None:
    slots = {host.slot: host.name for host in design.hosts}
    by_name = {name: slot for slot, name in slots.items()}
    problems = []
    for given in reinstall:
        if given not in slots:
            near = by_name.get(given) or next(iter(difflib.get_close_matches(given, slots, n=1)), None)
            what = f"--reinstall {given}: no machine has a slot of that name"
            problems.append(Problem((), what, f"did you mean {near}?" if near else None, "machines"))
    if problems:
        raise Refusal(problems)


def _writes_disk(name: str, decisions: Mapping[str, Decision]) -> bool:
    return decisions[name].action == "update" and decisions[name].reinstalls


def _decide(design: Design, host: Host, last: Last, outputs: Outputs | None, confirmed: bool, image: str) -> Decision:
    output = outputs.devices.get(host.name) if outputs else None
    applied = last.get("hosts", {}).get(host.name)
    if host.cloud:
        record = design.machines.slots.get(host.slot)
        kept = record is None or record.state == SlotState.IN_SERVICE
        return renting.decide(rented(design, host), applied["machine"] if applied else None, output, kept)
    new = machine(design, host) | ({"image": image} if image else {})
    if output is None:
        return decide({}, new, confirmed)
    # Without a record of the last design, what the engine saw is all there is to compare with.
    return decide(_seen(dict(applied["machine"]) if applied else dict(new), output), new, confirmed)


def _seen(old: dict[str, Any], output: DeviceOutput) -> dict[str, Any]:
    """Put what the engine saw over what was asked for."""
    seen = {"status": output.state, "phase": output.phase, "reason": output.reason, "image": output.image}
    return old | seen | ({"power": output.power} if output.power else {})


def _refuse_too_many(design: Design, decisions: Mapping[str, Decision], reinstall: tuple[str, ...]) -> None:
    """Hold the confirmed changes of machines in service against the share of them that one run may change."""
    serving = {slot for slot, record in design.machines.slots.items() if record.state == SlotState.IN_SERVICE}
    changing = [
        host.slot
        for host in design.hosts
        if host.slot in serving
        and host.slot in reinstall
        and decisions[host.name].action in {"update", "create", "replace"}
    ]
    most = at_once(design.environment.machines.change_at_once, len(serving))
    if len(changing) > most:
        what = f"{len(changing)} of {len(serving)} machines in service would change in one run, at most {most} may"
        hint = f"name fewer slots: {', '.join(changing[:most])} first, the others in runs of their own"
        raise Refusal([Problem(("machines", "change_at_once"), what, hint)])


def _steps(
    design: Design, last: Last, outputs: Outputs | None, decisions: Mapping[str, Decision], diffs: tuple[FileDiff, ...]
) -> Iterator[Step]:
    before = last.get("hosts", {})
    for host in design.hosts:
        decision = decisions[host.name]
        was = before.get(host.name, {}).get("machine", {}).get("state")
        if host.slot not in design.machines.slots and not host.cloud:
            hint = f"no machine is bound to slot {host.slot}: `supernode assign {design.name}` binds what was delivered"
            yield Step("refuse", host.name, host.stack, (), hint)
        elif host.state == "quarantined" and was not in (None, "quarantined"):
            yield Step(
                "fence", host.name, host.stack, (), "quarantined: its switch ports are shut, it is not contacted"
            )
        elif decision.action != "none":
            kind = "reinstall" if _writes_disk(host.name, decisions) else decision.action
            yield Step(kind, host.name, host.stack, decision.phases, decision.reason)
    yield from _switch_steps(design, outputs, diffs)
    yield from _leaving(design, last, outputs)


def _switch_steps(design: Design, outputs: Outputs | None, diffs: tuple[FileDiff, ...]) -> Iterator[Step]:
    changed: dict[str, list[str]] = {}
    for diff in diffs:
        changed.setdefault(diff.device, []).append(diff.path)
    for switch in design.configured_switches:
        output = outputs.devices.get(switch.name) if outputs else None
        if output is None:
            yield Step("create", switch.name, switch.stack, (), "a new switch: its whole configuration")
        elif switch.name in changed:
            yield Step("update", switch.name, switch.stack, (), f"files: {', '.join(changed[switch.name])}")
        elif output.state != "ready":
            yield Step("update", switch.name, switch.stack, (), f"{output.state} at the last attempt: {output.reason}")
    for gateway in design.gateways:
        output = outputs.devices.get(gateway.name) if outputs else None
        if output is None:
            yield Step("create", gateway.name, design.stacks()[0], (), "a new gateway: tunnel, routes and firewall")
        elif gateway.name in changed:
            files = ", ".join(changed[gateway.name])
            yield Step("update", gateway.name, design.stacks()[0], (), f"files: {files}")


_STAYS = "the machine stays as it is"


def _leaving(design: Design, last: Last, outputs: Outputs | None) -> Iterator[Step]:
    here = design.device_names
    known = {**(outputs.devices if outputs else {}), **last.get("hosts", {}), **last.get("switches", {})}
    for name in sorted(set(known) - here):
        gone = known[name]
        kept = "its instance ends" if isinstance(gone, Mapping) and "zone" in gone.get("machine", {}) else _STAYS
        yield Step("delete", name, "", (), f"it has left the design; {kept}")


def _file_diffs(design: Design, last: Last) -> Iterator[FileDiff]:
    old_files: Mapping[str, Mapping[str, str]] = last.get("files", {})
    for device, new in files(design, full=True).items():
        old = old_files.get(device, {})
        for path in sorted({*old, *new}):
            found = _file_diff(device, path, old.get(path), new.get(path))
            if found:
                yield found


def _file_diff(device: str, path: str, old: str | None, new: str | None) -> FileDiff | None:
    if old == new or (old is not None and new is not None and old == digest(new)):
        return None
    change: Any = "new" if old is None else "gone" if new is None else "changed"
    if old is not None and old.startswith("sha256:"):
        return FileDiff(device, path, change)
    before, after = (old or "").splitlines(keepends=True), (new or "").splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, f"{device}{path} (last run)", f"{device}{path}", n=2)
    return FileDiff(device, path, change, "".join(lines))


def _recabling(design: Design, last: Last) -> Iterator[Move]:
    """Yield the cables whose ends changed, pulls first, then plugs; a cable of a new device is no move but new work."""
    old: Mapping[str, list[str]] = last.get("links", {})
    if not old:
        return
    new = {link.cable: [link.a_device, link.a_port, link.b_device, link.b_port] for link in design.links}
    for cable in sorted(old):
        if new.get(cable) != old[cable]:
            yield _move("pull", cable, old[cable])
    for cable in sorted(new):
        if new[cable] != old.get(cable):
            yield _move("plug", cable, new[cable])


def _move(action: Any, cable: str, ends: list[str]) -> Move:
    return Move(action, cable, (ends[0], ends[1]), (ends[2], ends[3]))
