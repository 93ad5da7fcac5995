"""Binding delivered machines to slots: sheets in, the next machines.yml or every problem out. Nothing here guesses."""

from __future__ import annotations

import csv
import dataclasses
import difflib
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from supernode.design import exchanging
from supernode.design.exchanging import Dependant
from supernode.design.model import Design
from supernode.errors import Problem, Refusal
from supernode.spec import PINS, Identity, Machines, SlotRecord, SlotState

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "machines.csv": (
        "slot",
        "kind",
        "system_serial",
        "board_serial",
        "chassis_serial",
        "uuid",
        "bmc_mac",
        "management_mac",
    ),
    "switches.csv": ("slot", "kind", "system_serial", "management_mac", "ssh_host_key"),
}
# What firmware says when nobody filled the field in (SMBIOS tables of common boards).
_PLACEHOLDER = re.compile(
    r"to be filled.*|default( string)?|(system|base ?board|chassis) serial number|not specified|not applicable|n/?a"
    r"|none|null|unknown|serial|invalid|empty|o\.?e\.?m\.?|0+|x+|f+|123456789\d*|\.+|-+",
    re.IGNORECASE,
)
_NO_UUID = {"03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009"}
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
# Columns that a sheet may leave out.
OPTIONAL: Mapping[str, tuple[str, ...]] = {"machines.csv": ("bmc_fingerprint",), "switches.csv": ()}
_KEPT = {SlotState.IN_SERVICE, SlotState.DRAINED}


@dataclass(frozen=True)
class Delivered:
    """One row of a sheet.

    Attributes:
        document: the sheet's name; "" for the command line.
        line: of the sheet, from 1.
        kind: what the sheet says it is; "" where it says nothing.
    """

    slot: str
    kind: str
    identity: Mapping[str, str]
    document: str = ""
    line: int = 0


@dataclass(frozen=True)
class Binding:
    """What binding did: the next machines.yml, one line for each slot that it changes, and what hung on who was there.

    Attributes:
        dependants: for each slot in which another machine stands now.
    """

    machines: Machines
    changes: tuple[str, ...]
    dependants: Mapping[str, tuple[Dependant, ...]] = field(default_factory=dict)


def read_sheet(name: str, text: str) -> list[Delivered]:
    """Read a sheet of a delivery.

    Args:
        name: "machines.csv" or "switches.csv".
        text: the file, with a header line; the order of columns does not matter.

    Raises:
        Refusal: columns are missing or unknown, or a row has another number of cells.
    """
    reader = csv.DictReader(io.StringIO(text))
    found, wanted = set(reader.fieldnames or ()), set(COLUMNS[name])
    problems = [
        Problem((1,), f"column {c} is missing", f"columns: {','.join(COLUMNS[name])}", name)
        for c in sorted(wanted - found)
    ]
    problems += [
        Problem((1,), f"unknown column {c}", f"columns: {','.join(COLUMNS[name])}", name)
        for c in sorted(found - wanted - set(OPTIONAL[name]))
    ]
    if problems:
        raise Refusal(problems)
    rows = []
    for row in reader:
        if None in row or None in row.values():
            problems.append(Problem((reader.line_num,), f"{len(found)} cells are wanted", None, name))
            continue
        cells = {key: value.strip() for key, value in row.items()}
        rows.append(Delivered(cells.pop("slot"), cells.pop("kind"), cells, name, reader.line_num))
    if problems:
        raise Refusal(problems)
    return rows


def completed(typed: Delivered, rows: Iterable[Delivered]) -> Delivered:
    """Return a slot's row of a delivery, which has to agree with what a person read on the machine.

    Raises:
        Refusal: no row for the slot, or one of another machine.
    """
    row = next((row for row in rows if row.slot == typed.slot), None)
    if row is None:
        raise Refusal([_problem(typed, f"no sheet has a row for slot {typed.slot}", "is it the new delivery's?")])
    differing = [
        f"{key} {row.identity.get(key) or 'nothing'} in the sheet, {value} given"
        for key, value in typed.identity.items()
        if plain_value(key, row.identity.get(key, "")) not in ("", plain_value(key, value))
    ]
    if differing:
        what = f"slot {row.slot} is another machine's there: {'; '.join(differing)}"
        raise Refusal([_problem(row, what, "is it the new delivery's?")])
    return dataclasses.replace(row, identity={**row.identity, **typed.identity})


def bind(design: Design, delivered: Iterable[Delivered], *, replace: bool = False) -> Binding:
    """Bind machines to slots.

    What is bound already stays as it is, its state too; what is new about a bound machine is added; another machine in
    a bound slot starts anew. Doing it twice does nothing the second time.

    Args:
        design: knows the slots, and which of them are spares.
        delivered: the rows.
        replace: another machine may take a slot whose machine is in service or drained.

    Raises:
        Refusal: unknown slots, kinds other than designed, placeholders, malformed values, identities claimed twice.
    """
    rows = list(delivered)
    problems = [problem for row in rows for problem in _row_problems(design, row)]
    slots, changes = dict(design.machines.slots), []
    hanging: dict[str, tuple[Dependant, ...]] = {}
    for row in rows:
        if row.slot not in design.slots:
            continue
        old = slots.get(row.slot)
        identity = Identity(**{key: plain_value(key, value) for key, value in row.identity.items()})
        record, change = _bound(design, row.slot, old, identity)
        if change.startswith("replaces") and old is not None and old.state in _KEPT and not replace:
            what = f"slot {row.slot} is {old.state} with another machine ({_spell(old.identity)})"
            problems.append(_problem(row, what, "if that machine was really taken out, say so with --replace"))
        if row.document and change.startswith("the same machine"):
            option = "--bmc-fingerprint F" if "bmc_fingerprint" in change else "--host-key K"
            hint = f"correct the sheet, or `supernode assign {design.name} {row.slot} {option}`"
            what = "certificate" if "bmc_fingerprint" in change else "host key"
            problems.append(_problem(row, f"slot {row.slot} has another {what} pinned ({change})", hint))
        if change.startswith("replaces") and old is not None:
            hanging[row.slot] = exchanging.dependants(design, row.slot, old, record)
        slots[row.slot] = record
        changes += [f"{row.slot} {design.slots[row.slot]}: {change}"] if change else []
    problems += _shared(rows, slots)
    if problems:
        raise Refusal(problems)
    return Binding(design.machines.model_copy(update={"slots": slots}), tuple(changes), hanging)


def _problem(row: Delivered, what: str, hint: str | None = None) -> Problem:
    return Problem((row.line,) if row.document else (), what, hint, row.document or "machines")


def _row_problems(design: Design, row: Delivered) -> list[Problem]:
    device = design.slots.get(row.slot)
    if device is None:
        near = difflib.get_close_matches(row.slot, design.slots, n=1)
        return [_problem(row, f"there is no slot {row.slot!r}", f"did you mean {near[0]}?" if near else None)]
    is_host = design.is_host(device)
    kind = design.host(device).kind if is_host else design.switch(device).kind
    problems = []
    if row.kind and row.kind != kind:
        problems.append(_problem(row, f"slot {row.slot} ({device}) is designed for a {kind}, not a {row.kind}"))
    if row.document and (row.document == "machines.csv") != is_host:
        problems.append(_problem(row, f"slot {row.slot} ({device}) does not belong in {row.document}"))
    if not any(row.identity.values()):
        problems.append(
            _problem(row, f"nothing tells the machine in {row.slot}", "give a serial number, a UUID or a MAC address")
        )
    return problems + [
        _problem(row, what, hint) for key, value in row.identity.items() for what, hint in value_problems(key, value)
    ]


def value_problems(key: str, value: str) -> list[tuple[str, str | None]]:
    """Return what is wrong with one identity: malformed, or what stands where nobody filled it in."""
    plain = plain_value(key, value)
    if not plain:
        return []
    empty = "leave it empty where the machine has none"
    if key.endswith("_mac"):
        if not _MAC.fullmatch(plain):
            return [(f"{key} {value!r} is no MAC address", "six pairs of hexadecimal digits")]
        group = int(plain[:2], 16) & 1
        return [(f"{key} {value} belongs to no single machine", empty)] if group or plain == "00:00:00:00:00:00" else []
    if key == "bmc_fingerprint":
        good = re.fullmatch(r"[0-9a-f]{64}", plain)
        hint = "SHA-256, 64 hexadecimal digits: `supernode survey ADDRESS` prints it"
        return [] if good else [(f"bmc_fingerprint {value[:80]!r} is no fingerprint of a certificate", hint)]
    if key == "uuid":
        if not _UUID.fullmatch(plain):
            return [(f"uuid {value!r} is no UUID", None)]
        return [(f"uuid {value} is a placeholder", empty)] if plain in _NO_UUID or len(set(plain) - {"-"}) == 1 else []
    if key == "ssh_host_key":
        good = re.fullmatch(r"(ssh-ed25519|ecdsa-sha2-nistp\d+|ssh-rsa) [A-Za-z0-9+/]+=*", plain)
        return (
            []
            if good
            else [(f"ssh_host_key {value[:24]!r} is no public key", "as authorized_keys writes it, without a comment")]
        )
    return [(f"{key} {value!r} is a placeholder", empty)] if _PLACEHOLDER.fullmatch(plain) else []


def plain_value(key: str, value: str) -> str:
    """Write an identity in one way only."""
    if key.endswith("_mac"):
        digits = re.sub(r"[-:.]", "", value.strip().lower())
        return (
            ":".join(digits[i : i + 2] for i in range(0, 12, 2))
            if re.fullmatch(r"[0-9a-f]{12}", digits)
            else value.strip().lower()
        )
    if key == "ssh_host_key":
        return " ".join(value.split()[:2])
    if key == "bmc_fingerprint":  # openssl writes pairs with colons between them
        return value.strip().lower().replace(":", "")
    return value.strip().lower() if key == "uuid" else value.strip()


def _bound(design: Design, slot: str, old: SlotRecord | None, identity: Identity) -> tuple[SlotRecord, str]:
    """Return the slot's next record, and what changed in a few words; "" for nothing."""
    known = old.identity.known() if old else {}
    given = identity.known()
    merged = Identity(**(known | given))
    if old is not None and all(known.get(key, value) == value for key, value in given.items() if key not in PINS):
        added = sorted(set(given) - set(known))
        if pinned := [key for key in given if key in known and known[key] != given[key]]:
            told = ", ".join(f"{key} {known[key]} by {given[key]}" for key in pinned)
            return old.model_copy(update={"identity": merged}), f"the same machine: {told}"
        if not known:
            return old.model_copy(update={"identity": merged}), f"bound to {_spell(merged)}"
        return (
            (old.model_copy(update={"identity": merged}), f"now known by {', '.join(added)} too")
            if added
            else (old, "")
        )
    if old is None:
        state = SlotState.SPARE if _is_spare(design, slot) else SlotState.NEW
        return SlotRecord(state=state, identity=identity), f"bound to {_spell(identity)}"
    return _exchanged(design, slot, old, identity), f"replaces {_spell(old.identity)} by {_spell(identity)}"


def _exchanged(design: Design, slot: str, old: SlotRecord, identity: Identity) -> SlotRecord:
    """Return the record of another machine in a known slot: nothing of the old one's identity is taken over.

    A quarantined slot stays shut: whether it comes back as active or as a spare is what a release decides.
    """
    if old.state is SlotState.QUARANTINED:
        return SlotRecord(state=old.state, reason=f"another machine since: {old.reason}", identity=identity)
    active = not design.is_host(design.slots[slot]) or design.host(design.slots[slot]).state != "spare"
    state = SlotState.NEW if active else SlotState.SPARE
    return SlotRecord(state=state, replaces=old.replaces, identity=identity)


def _is_spare(design: Design, slot: str) -> bool:
    name = design.slots[slot]
    return design.is_host(name) and design.planned_spare(name)


def _spell(identity: Identity) -> str:
    known = identity.known()
    key = next((k for k in ("system_serial", "uuid", "bmc_mac", "management_mac") if k in known), next(iter(known), ""))
    return f"{key} {known[key]}" if key else "nothing known"


def _shared(rows: list[Delivered], slots: Mapping[str, SlotRecord]) -> list[Problem]:
    """Return what two slots would both claim, at the row that came later."""
    by_slot = {row.slot: row for row in rows}
    claims: dict[tuple[str, str], str] = {}
    problems = []
    for slot in sorted(slots, key=lambda s: (s in by_slot, by_slot[s].line if s in by_slot else 0)):
        for key, value in slots[slot].identity.known().items():
            claim = ("mac" if key.endswith("_mac") else key, value)
            other = claims.setdefault(claim, slot)
            if other != slot and slot in by_slot:
                what = f"{key} {value} is claimed by slots {other} and {slot}"
                problems.append(_problem(by_slot[slot], what, "a machine stands in one slot"))
    seen: dict[str, int] = {}
    for row in rows:
        if row.slot in seen:
            problems.append(_problem(row, f"slot {row.slot} is there twice, first on line {seen[row.slot]}"))
        seen.setdefault(row.slot, row.line)
    return problems
