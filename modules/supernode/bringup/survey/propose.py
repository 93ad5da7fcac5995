"""From what was seen to the documents that would describe it, each value with where it comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from supernode import catalog
from supernode.bringup.survey import fabric, networks, pairing
from supernode.bringup.survey.draft import DEFAULT, DOCUMENT, NOBODY, OBSERVED, Draft, Source
from supernode.bringup.survey.observed import HostSeen, Observations
from supernode.bringup.survey.pairing import Machine
from supernode.bringup.survey.voting import vote
from supernode.records import Finding, Verdict

RACK_UNITS = 48
LOGIN = ("admin", "file:secrets/bmc/{slot}")
_POLICY = "a policy: nothing shows it"


@dataclass(frozen=True)
class Proposal:
    """A proposed environment.yml.

    Attributes:
        machines: what was paired, for machines.yml and the comparison.
    """

    name: str
    draft: Draft
    machines: tuple[Machine, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where each value comes from."""
        return tuple(self.draft.sources)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The paths that somebody has to fill in."""
        return tuple(row.path for row in self.draft.sources if row.origin == NOBODY)

    def text(self) -> str:
        """Write environment.yml."""
        head = ("# yaml-language-server: $schema=../environment.schema.json", "# Proposed by `supernode survey`.")
        return self.draft.text(head)


def propose(
    seen: Observations, document: Mapping[str, Any] | None = None, name: str = "site", login: tuple[str, str] = LOGIN
) -> Proposal:
    """Propose an environment.

    Args:
        seen: what was observed.
        document: the environment's own environment.yml, read; for what cannot be observed.
        name: of the environment.
        login: account and password reference with which controllers were read, where no document says them.
    """
    draft, found = Draft(document or {}), pairing.machines(seen)
    draft.see(("schema",), 1, "")
    draft.keep(("name",), "no device knows what its environment is called", name)
    networks.propose(draft, seen)
    _access(draft, login)
    _racks_and_pools(draft, found)
    fabric.propose(draft, seen, found)
    _software(draft, [host for host in seen.hosts if not host.why])
    _machines(draft, tuple(m for m in found if not m.kind or catalog.server(m.kind).nics))
    for part in ("machines", "stacks", "budgets", "verify"):
        draft.keep_rest((part,), _POLICY)
    draft.findings[:0] = pairing.doubts(seen, found)
    kinds = {kind: catalog.server(kind) for kind in catalog.server_kinds()}
    for place, has, wanted in fabric.gpus_differ(found, kinds):
        cause = f"{place} has {has} GPUs, its kind has {wanted}"
        draft.findings.append(Finding("gpus", place, Verdict.FAIL, str(wanted), str(has), cause=cause))
    return Proposal(str(draft.values["name"]), draft, found)


def _access(draft: Draft, login: tuple[str, str]) -> None:
    """Take over how things are reached: with it they were."""
    draft.keep(("bmc", "username"), "with it the controllers were read", login[0])
    draft.keep(("bmc", "password"), "with it the controllers were read", login[1])
    draft.keep_rest(("bmc",), "with it the controllers were read")
    draft.keep_rest(("access",), "with it the devices were logged in to")


def _racks_and_pools(draft: Draft, machines: tuple[Machine, ...]) -> None:
    pools = _pools(draft, machines)
    standing: dict[str, int] = {}
    for machine in machines:
        if machine.controller is not None and machine.slot:
            place = machine.controller.placement
            height = catalog.server(machine.kind).height_u if machine.kind else 1
            standing[place.rack] = max(standing.get(place.rack, 0), place.unit + height - 1)
    written = {str(row.get("name")): row for row in draft.known(("racks",)) or ()}
    named = [*written, *sorted(name for name in standing if name not in written)]
    draft.values["racks"] = [_rack(draft, name, written.get(name), standing.get(name)) for name in named]
    draft.values["pools"] = pools


def _rack(draft: Draft, name: str, written: Mapping[str, Any] | None, top: int | None) -> dict[str, Any]:
    if top is not None:
        draft.note(("racks", name), name, OBSERVED, "where chassis say that they stand")
    else:
        draft.note(
            ("racks", name), name, DOCUMENT, "no chassis stands there; a switch does not say in which rack it does"
        )
    if written is not None:
        draft.note(("racks", name, "units"), written.get("units"), DOCUMENT, "no device knows how high its rack is")
        return dict(written)
    units = max(RACK_UNITS, top or 0)
    draft.note(("racks", name, "units"), units, DEFAULT, "no device knows how high its rack is")
    return {"name": name, "units": units}


def _pools(draft: Draft, machines: tuple[Machine, ...]) -> list[dict[str, Any]]:
    written = {str(row.get("name")): row for row in draft.known(("pools",)) or ()}
    grouped: dict[str, list[Machine]] = {}
    for machine in machines:
        if name := _pool_of(machine, machines, list(written)):
            grouped.setdefault(name, []).append(machine)
    order = [n for n in written if n in grouped] + sorted(n for n in grouped if n not in written)
    for name in written:
        if name not in grouped:
            draft.note(("pools", name), None, OBSERVED, "no machine of it was seen: left out")
    return [_pool(draft, name, grouped[name], written.get(name)) for name in order]


def _pool_of(machine: Machine, machines: tuple[Machine, ...], written: list[str]) -> str:
    """Return the pool of a machine: that of its name, else of most machines in its rack, else of most of its kind."""
    if machine.pool:
        return machine.pool
    if machine.controller is None:
        return ""
    rack = machine.controller.placement.rack
    named = [m for m in machines if m.pool and m.kind == machine.kind]
    beside = [m for m in named if m.controller is not None and m.controller.placement.rack == rack]
    found = vote((m.place, m.pool) for m in beside or named)
    return found.value if found is not None else next(iter(written), "gpu") if machine.kind else ""


def _pool(draft: Draft, name: str, machines: list[Machine], written: Mapping[str, Any] | None) -> dict[str, Any]:
    numbers = [machine.ordinal for machine in machines if machine.ordinal]
    total = max([len(machines), *numbers])
    how = f"{len(machines)} machines" + (f", the highest number is {max(numbers)}" if numbers else "")
    row: dict[str, Any] = {"name": name}
    draft.note(("pools", name), name, OBSERVED, "by the names of hosts" if numbers else "one pool for each kind")
    kinds = vote((machine.place, machine.kind) for machine in machines if machine.kind)
    if kinds is not None:
        row["kind"] = kinds.value
        draft.note(("pools", name, "kind"), kinds.value, OBSERVED, f"{kinds.how}: vendor, model, GPUs, PCI addresses")
        draft.differ(f"kind in pool {name}", kinds, "pools have one kind: name them apart")
    else:
        draft.note(("pools", name, "kind"), None, NOBODY, "no machine of it is of a known kind")
    spares = _spares(draft, name, total, written)
    row |= {"count": total - spares, **({"spares": spares} if spares else {})}
    draft.note(("pools", name, "count"), total - spares, OBSERVED, how)
    row["racks"] = _racks_of(draft, name, machines, written)
    for key, value in (written or {}).items():
        if key not in row:
            row[key] = value
            draft.note(("pools", name, key), value, DOCUMENT, _POLICY)
    return row


def _spares(draft: Draft, name: str, total: int, written: Mapping[str, Any] | None) -> int:
    """Take the spares from the document: a spare is made like the rest, and nothing on it says that it is one."""
    spares = min(int((written or {}).get("spares", 0)), total - 1)
    origin = DOCUMENT if written else DEFAULT
    draft.note(("pools", name, "spares"), spares, origin, "nothing on a spare says that it is one")
    if written is not None and (asked := int(written.get("count", 0)) + int(written.get("spares", 0))) != total:
        cause = f"pool {name} is asked to have {asked} machines with its spares, {total} are there"
        draft.findings.append(Finding("count", name, Verdict.FAIL, str(asked), str(total), cause=cause))
    return spares


def _racks_of(draft: Draft, name: str, machines: list[Machine], written: Mapping[str, Any] | None) -> list[str]:
    """Return the pool's racks in the order of its hosts' numbers: the n-th stands in the n-th place."""
    placed = [(m.ordinal or 1 << 30, m.slot, m.controller.placement.rack) for m in machines if m.controller and m.slot]
    racks = list(dict.fromkeys(rack for _, _, rack in sorted(placed)))
    if racks:
        draft.note(("pools", name, "racks"), racks, OBSERVED, "where its chassis say that they stand")
    empty = [rack for rack in (written or {}).get("racks", ()) if rack not in racks]
    if empty:
        draft.note(("pools", name, "racks"), empty, DOCUMENT, "no chassis of the pool stands there")
    elif not racks:
        draft.note(("pools", name, "racks"), None, NOBODY, "no chassis says where it stands")
    return [*racks, *empty]


def _software(draft: Draft, hosts: list[HostSeen]) -> None:
    suites = vote((h.hostname, h.suite) for h in hosts if h.suite)
    draft.elect(("software", "suite"), suites, "no host says what it runs")
    kernels = vote((h.hostname, h.kernels[0]) for h in hosts if len(h.kernels) == 1)
    draft.elect(("software", "kernel"), kernels, "no host has one kernel package that was asked for")
    packages = vote((h.hostname, h.packages) for h in hosts if h.packages is not None)
    listed = list(draft.known(("software", "packages")) or ())
    if packages is None or not packages.sure:
        draft.keep(("software", "packages"), "no host keeps the history of what was installed", [])
        return
    same = sorted(name.partition("=")[0] for name in listed) == list(packages.value)
    draft.see(
        ("software", "packages"), listed if same else list(packages.value), _installed(packages.how, listed, same)
    )
    draft.differ("list of packages", packages)


def _installed(how: str, listed: list[str], same: bool) -> str:
    more = "; in the document's order, and pinned as there" if same and listed else ""
    return f"installed by name after the image was made, on {how}{more}"


def _machines(draft: Draft, machines: tuple[Machine, ...]) -> None:
    """Propose the BIOS attributes that most have other than by default, and firmware other than the kind's baseline.

    Those of the machines on the fabric: a service pool's have what its kind says.
    """
    bios: dict[str, Any] = {}
    for name in dict.fromkeys(n for m in machines if m.controller for n in m.controller.bios):
        found = vote((m.place, m.controller.bios[name]) for m in machines if m.controller and name in m.controller.bios)
        if found is None:
            continue
        draft.differ(f"BIOS attribute {name}", found)
        if found.sure and found.value not in _defaults(machines, name):
            bios[name] = found.value
    if any(machine.controller and machine.controller.bios for machine in machines):
        draft.see(("machines", "bios"), _as_written(bios, draft), "attributes that are not at their default")
    else:
        draft.keep(("machines", "bios"), "no controller shows BIOS attributes", None)
    firmware = dict(_firmware(draft, machines))
    if firmware:
        draft.see(("machines", "firmware"), firmware, "versions other than the baseline of the kind")


def _as_written(found: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Put attributes in the order of the environment's document, new ones behind."""
    order = list(draft.known(("machines", "bios")) or ())
    return {
        name: found[name] for name in (*(n for n in order if n in found), *sorted(n for n in found if n not in order))
    }


def _defaults(machines: Iterable[Machine], name: str) -> list[Any]:
    """Return what the machines' own registries, else the catalogue, say an attribute is by default."""
    own = [m.controller.bios_defaults[name] for m in machines if m.controller and name in m.controller.bios_defaults]
    kinds = {machine.kind for machine in machines if machine.kind}
    return own or [catalog.server(kind).bios[name].default for kind in kinds if name in catalog.server(kind).bios]


def _firmware(draft: Draft, machines: tuple[Machine, ...]) -> Iterator[tuple[str, str]]:
    names = dict.fromkeys(n for m in machines if m.controller for n in m.controller.firmware)
    for name in names:
        rows = [
            (m.place, m.controller.firmware[name]) for m in machines if m.controller and name in m.controller.firmware
        ]
        found = vote(rows)
        if found is None:
            continue
        draft.differ(f"version of the {name} firmware", found)
        baselines = {catalog.server(m.kind).firmware.get(name) for m in machines if m.kind} - {None}
        if baselines and found.sure and found.value not in baselines:
            yield name, found.value
