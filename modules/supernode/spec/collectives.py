"""What the collective library on the hosts is told beside what the design knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec import collective_settings
from supernode.spec.parts import Document

if TYPE_CHECKING:
    from supernode.spec.environment import Environment


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{value!r} is no variable's value: write a number, or a text in quotes")
    return str(value)


def _setting(value: Any) -> Any:
    return value if isinstance(value, dict | Setting) else {"value": _text(value)}


class Setting(Document):
    """A variable's value; `because` is the reason without which a variable for debugging is refused."""

    value: Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "integer"]})]
    because: Annotated[str, Field(pattern=r"\S", max_length=200)] | None = None


ShortSetting = Annotated[
    Setting,
    BeforeValidator(_setting),
    WithJsonSchema({
        "anyOf": [
            {"type": ["string", "integer"]},
            {
                "type": "object",
                "properties": {"value": {"type": ["string", "integer"]}, "because": {"type": "string"}},
                "required": ["value"],
                "additionalProperties": False,
            },
        ]
    }),
]  # fmt: skip


class Collectives(Document):
    """The collective library of the hosts with accelerators.

    `version` is the oldest that jobs here bring along: what it does not know is not written. `dscp` is the class that
    the fabric treats as lossless. With `topology_file` the library is told to read the topology file instead of the
    machine (virtual machines hide what hangs below which switch). `settings` are variables that go before what the
    design says.
    """

    library: Literal["nccl", "hccl"]
    version: Annotated[str, Field(pattern=r"^\d+(\.\d+){1,2}$")]
    dscp: Annotated[int, Field(ge=0, le=63)] | None = None
    topology_file: bool = False
    settings: dict[str, ShortSetting] = Field(default_factory=dict)


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what is wrong with the settings, and what no pool of the environment can have."""
    section = env.collectives
    if section is None:
        return
    place: Path = ("collectives",)
    listed = catalog.server_kinds()
    kinds = [catalog.server(pool.kind) for pool in env.pools if pool.kind in listed]
    speaking = {kind.topology.library for kind in kinds if kind.topology is not None}
    if section.library not in speaking and len(kinds) == len(env.pools):
        what = f"no pool has accelerators that speak {section.library}"
        yield Problem((*place, "library"), what, f"here they speak {', '.join(sorted(speaking))}" if speaking else None)
    if section.topology_file and section.library != "nccl":
        yield Problem((*place, "topology_file"), f"{section.library} reads no topology file", "leave it out")
    owned = {name: owner for kind in kinds if kind.topology for name, owner in kind.topology.owners.items()}
    for name, setting in section.settings.items():
        if name in owned:
            what = f"{name} is set by the {owned[name].removesuffix('-owned')} of these machines"
            yield Problem((*place, "settings", name), what, "leave it out")
            continue
        found = collective_settings.fault(section.library, section.version, name, setting.value, setting.because)
        if found is not None:
            yield Problem((*place, "settings", name), *found)
