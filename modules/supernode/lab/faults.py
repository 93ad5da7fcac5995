"""Faults of the whole datacentre by name, what each is done to, and those that stand, on disk for the next start."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supernode import workspace
from supernode.errors import WrongInput
from supernode.lab.bmc import faults as bmc_faults
from supernode.lab.places import roots_alone


@dataclass(frozen=True)
class FaultKind:
    """A fault that can be injected.

    Attributes:
        about: one line for `supernode lab fault`.
        targets: what it is done to, one word for each.
        arguments: their defaults; an argument has its default's type.
        lasting: stands until it is cleared, also over a start; others happen once.
        choices: what an argument that is a word may be.
        source: where something real was seen to behave so; empty for what needs no witness.
    """

    name: str
    about: str
    targets: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = True
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""


CABLE_FAULTS = frozenset(("swap-cable", "missing-cable", "slow-link", "half-width"))
KINDS: Mapping[str, FaultKind] = {
    kind.name: kind
    for kind in (
        *(
            FaultKind(k.name, k.about, ("SERVER",), k.arguments, choices=k.choices, source=k.source)
            for k in bmc_faults.KINDS.values()
        ),
        FaultKind(
            "host-hung", "the system stops between two instructions, until power is cut", ("SERVER",), lasting=False
        ),
        FaultKind(
            "exchange-machine",
            "another machine is put into the slot, its disk empty; the delivery's sheets say which (bmc: as it comes "
            "from the factory, or with the accounts and certificate of the old one restored)",
            ("SERVER",),
            {"bmc": "factory"},
            lasting=False,
        ),
        FaultKind("swap-cable", "two cables have their far ends exchanged", ("CABLE", "CABLE")),
        FaultKind("missing-cable", "a cable is pulled", ("CABLE",)),
        FaultKind("slow-link", "a cable runs at a share of its rate", ("CABLE",), {"factor": 0.25}),
        FaultKind("tunnel-down", "the provider between the sites drops the tunnel's packets, and nothing else", ()),
        FaultKind("wan-mtu", "the way between the sites carries smaller packets than declared", (), {"mtu": 1300}),
        FaultKind("half-width", "an InfiniBand cable runs on two of its four lanes", ("CABLE",)),
        FaultKind(
            "leak",
            "a leak detector of a cooling unit gets wet (state: warning, critical)",
            ("UNIT|RACK[:DETECTOR]",),
            {"state": "critical"},
            choices={"state": ("warning", "critical")},
        ),
        FaultKind(
            "freeze-cdu", "a cooling unit answers on and on with the same values, its sequence too", ("UNIT|RACK",)
        ),
        FaultKind("cdu-silent", "a cooling unit's address drops every packet", ("UNIT|RACK",)),
        FaultKind("low-flow", "the pumps reach a share of the wanted flow", ("UNIT|RACK",), {"share": 0.1}),
        FaultKind(
            "gpu-lost",
            "an accelerator leaves the bus; a kernel that runs logs XID 79 (cleared: it is back)",
            ("SERVER", "INDEX"),
            source="peers' reports: 7 of 8 GPUs, with or without an XID (aicr#1858, gpu-operator#2511)",
        ),
        FaultKind(
            "kernel-message",
            "a driver writes a line into the kernel log",
            ("SERVER",),
            {"text": "NVRM: Xid (PCI:0000:19:00): 79, pid=0, GPU has fallen off the bus.", "level": 3},
            lasting=False,
        ),
    )
}

WAN_FAULTS = ("tunnel-down", "wan-mtu")


@dataclass(frozen=True)
class Fault:
    """One fault as injected."""

    name: str
    targets: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `from_json` reads back."""
        return {"name": self.name, "targets": list(self.targets), "arguments": dict(self.arguments)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Fault:
        """Read a fault and check it against its kind.

        Raises:
            WrongInput: no such fault, another number of targets, or an argument it does not take.
        """
        return checked(document["name"], document["targets"], document.get("arguments") or {})

    def same_place(self, other: Fault) -> bool:
        """Tell whether both are of one kind and one place: a second one replaces the first."""
        return self.name == other.name and sorted(self.targets) == sorted(other.targets)


def checked(name: str, targets: Sequence[str], arguments: Mapping[str, Any]) -> Fault:
    """Make a fault, with its kind's defaults for what is not given.

    Raises:
        WrongInput: no such fault, another number of targets, or an argument it does not take.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise WrongInput(name, "is no fault", f"known: {', '.join(KINDS)}")
    if len(targets) != len(kind.targets):
        what = f"takes {' '.join(kind.targets)}, not {' '.join(targets) or 'nothing'}"
        raise WrongInput(name, what, f"supernode lab fault ENV {name} {' '.join(kind.targets)}")
    given = {}
    for key, value in arguments.items():
        if key not in kind.arguments:
            raise WrongInput(name, f"takes no argument {key!r}", f"its arguments: {_list(kind.arguments)}")
        given[key] = _typed(name, key, value, kind.arguments[key])
        if key in kind.choices and given[key] not in kind.choices[key]:
            raise WrongInput(name, f"cannot take {key}={value!r}", f"{key} is one of {', '.join(kind.choices[key])}")
    return Fault(name, tuple(targets), {**kind.arguments, **given})


def _typed(name: str, key: str, value: Any, default: Any) -> Any:
    try:
        return (
            type(default)(value)
            if not isinstance(value, str) or isinstance(default, str)
            else type(default)(json.loads(value))
        )
    except (TypeError, ValueError) as error:
        raise WrongInput(name, f"cannot take {key}={value!r}", f"it is like {default!r}") from error


def _list(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in arguments.items()) or "none"


@dataclass(frozen=True)
class Standing:
    """The faults that stand, in a file: there before the lab starts and after it crashed; `stop` forgets them."""

    path: Path

    def read(self) -> tuple[Fault, ...]:
        """Return the faults in the order of their injection."""
        with roots_alone(self.path.parent.name):
            if not self.path.is_file():
                return ()
            return tuple(Fault.from_json(row) for row in json.loads(self.path.read_text(encoding="utf-8")))

    def add(self, fault: Fault) -> None:
        """Keep a fault, in the place of one of the same kind and place."""
        self._write((*(other for other in self.read() if not other.same_place(fault)), fault))

    def remove(self, fault: Fault) -> bool:
        """Forget a fault; tells whether it stood."""
        left = tuple(other for other in self.read() if not other.same_place(fault))
        found = len(left) < len(self.read())
        self._write(left)
        return found

    def clear(self) -> None:
        """Forget all."""
        self.path.unlink(missing_ok=True)

    def _write(self, faults: Sequence[Fault]) -> None:
        with roots_alone(self.path.parent.name):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            workspace.write_atomically(self.path, json.dumps([fault.to_json() for fault in faults], indent=1))
