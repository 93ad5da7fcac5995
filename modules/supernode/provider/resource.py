"""What a resource type is to the provider: plain JSON in, plain JSON out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from supernode import workspace
from supernode.provider.check import Failure
from supernode.provider.progress import EngineLog
from supernode.provider.settings import Settings
from supernode.workspace import EnvironmentFolder

Properties = Mapping[str, Any]
CHANGE_KINDS = ("add", "update", "delete", "add-replace", "update-replace", "delete-replace")


class Decision(Protocol):
    """What a change means, as `plan.machine` says it (docs/contracts.md, section 7)."""

    @property
    def action(self) -> str:
        """One of none, create, update, replace, refuse."""

    @property
    def phases(self) -> tuple[str, ...]:
        """What is to be done, in order."""

    @property
    def reason(self) -> str:
        """Why, in one sentence."""

    @property
    def detailed(self) -> Mapping[str, str]:
        """Input path to one of CHANGE_KINDS."""


Decide = Callable[[Properties, Properties, bool], Decision]


class InitFailedError(Exception):
    """A strict resource exists but did not become what was asked: the engine keeps it and fails the stack.

    Attributes:
        outputs: what to keep in the state.
        reason: why.
    """

    def __init__(self, resource_id: str, outputs: Properties, reason: str) -> None:
        super().__init__(reason)
        self.resource_id, self.outputs, self.reason = resource_id, outputs, reason


@dataclass(frozen=True)
class Difference:
    """What a diff says.

    Attributes:
        changes: property path to one of CHANGE_KINDS; empty means no change.
    """

    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def replaces(self) -> list[str]:
        """The properties that force a replacement."""
        return [path for path, kind in self.changes.items() if kind.endswith("-replace")]


@dataclass(frozen=True)
class Scene:
    """Where a call happens.

    Attributes:
        urn: the resource's.
        base: the folder that references are relative to.
        settings: the provider's configuration.
        limit_s: what the engine allows the call, None when it sets no limit.
    """

    urn: str
    base: Path
    settings: Settings
    log: EngineLog
    limit_s: float | None = None

    @property
    def state(self) -> Path:
        """The environment's .supernode/<env>."""
        place = self.base.resolve()
        return EnvironmentFolder(place.name, place, workspace.root()).state

    def say(self, phase: str, detail: str) -> None:
        """Show progress."""
        self.log.info(self.urn, f"{phase}: {detail}")

    def warn(self, text: str) -> None:
        """Leave a warning."""
        self.log.warn(self.urn, text)


@dataclass(frozen=True)
class Found:
    """What a read found: None for the id means that there is no such thing any more."""

    resource_id: str | None
    outputs: Properties = field(default_factory=dict)
    inputs: Properties = field(default_factory=dict)


class Resource(Protocol):
    """One resource type."""

    @property
    def computed(self) -> tuple[str, ...]:
        """Outputs that are unknown until the resource was made or changed."""

    def check(self, inputs: Properties) -> tuple[dict[str, Any], list[Failure]]:
        """Return the inputs with defaults, and everything wrong with them."""

    def diff(self, scene: Scene, old: Properties, new: Properties) -> Difference:
        """Compare outputs with new inputs; touches nothing."""

    def resource_id(self, inputs: Properties) -> str:
        """Return the id of what these inputs describe."""

    async def create(self, scene: Scene, inputs: Properties) -> Properties:
        """Make or adopt it; return the outputs."""

    async def read(self, scene: Scene, resource_id: str, old: Properties, inputs: Properties) -> Found:
        """Look at what is there."""

    async def update(self, scene: Scene, old: Properties, new: Properties) -> Properties:
        """Change it in place; return the outputs."""

    async def delete(self, scene: Scene, old: Properties) -> None:
        """Let go of it."""
