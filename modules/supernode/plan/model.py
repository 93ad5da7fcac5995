"""The types of a plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from supernode.plan.cost import Cost

StepKind = Literal["create", "update", "reinstall", "replace", "refuse", "fence", "delete"]


@dataclass(frozen=True)
class Step:
    """One thing that a run would do.

    Attributes:
        device: designed name of a host or switch.
        stack: the Pulumi stack that holds it; empty when it is leaving the design.
        phases: what the provider goes through, for machines.
        reason: one sentence.
    """

    kind: StepKind
    device: str
    stack: str
    phases: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class FileDiff:
    """A file that changes on a device; `diff` is unified, and empty where the old text was not kept."""

    device: str
    path: str
    change: Literal["new", "changed", "gone"]
    diff: str = ""


@dataclass(frozen=True)
class Move:
    """One cable to pull or to plug; ends are (device, port)."""

    action: Literal["pull", "plug"]
    cable: str
    a: tuple[str, str]
    b: tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What a run would change.

    Attributes:
        hash: SHA-256, in hex, over all that follows and the design's digest.
        steps: hosts by pool and ordinal, then switches, then what leaves the design.
        reinstalls: slots whose disks are written.
        recabling: in the order in which to do it: all pulls of a port come before a plug into it.
        costs: what the rented pools would cost, by the catalogue's prices: an estimate, and no part of the hash.
    """

    hash: str
    environment: str
    design: str
    steps: tuple[Step, ...] = ()
    file_diffs: tuple[FileDiff, ...] = ()
    reinstalls: tuple[str, ...] = ()
    recabling: tuple[Move, ...] = ()
    costs: tuple[Cost, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.steps or self.file_diffs or self.recabling)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON document."""
        document = dataclasses.asdict(dataclasses.replace(self, costs=()))
        return {**document, "costs": [cost.to_json() for cost in self.costs]}
