"""The switches of an allocation and the cables between them: each tier grows by blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from supernode.design.draft import FIRST_ADDRESS, Draft, Numbers, Run, first_gap, gaps
from supernode.errors import Problem, Refusal
from supernode.spec import CoreBlock, SwitchBlock, UplinkBlock, clos, sizing

Tier = Literal["leaf", "spine", "core"]
Kind = tuple[Tier, int, int, int | None]  # tier, plane, pod, rail


def refuse_another_family(draft: Draft) -> None:
    """Refuse an allocation whose numbers mean other things than the environment's family makes of them.

    Raises:
        Refusal: it was given for another family.
    """
    alone = sizing.lines(draft.env) > 1
    units: dict[tuple[int, int], int] = {}
    for block in draft.switches:
        if block.tier == "leaf":
            units[block.unit, block.plane] = units.get((block.unit, block.plane), 0) + block.count
    other = any(b.tier != "leaf" and (b.rail is not None) != alone for b in draft.switches)
    if other or any(count != draft.leaves for count in units.values()):
        what = f"allocation.yml was given for another family than {draft.env.fabric.family}, or for other rails"
        hint = "restore it, or start a new environment: such a change leaves no cable where it is"
        raise Refusal([Problem(("fabric", "family"), what, hint)])


def switches(draft: Draft) -> None:
    """Give every unit its leaves, and what stands above them its spines and cores."""
    form, planes = draft.shape(), draft.env.fabric.planes
    units = sorted({b.unit for b in draft.hosts} - {0})
    kept = {(unit, plane) for unit in units for plane in range(1, planes + 1)}
    wanted = dict(_wanted(draft, form))
    draft.switches = list(_stay(draft, form, kept, wanted))
    room = _Places(draft)
    have = {(b.unit, b.plane) for b in draft.switches if b.tier == "leaf"}
    for unit, plane in sorted(kept - have, key=lambda key: (key[1], key[0])):
        room.add(("leaf", plane, 0, None), unit, 0, draft.leaves)
    count: dict[Kind, int] = {}
    for b in draft.switches:
        count[b.tier, b.plane, b.pod, b.rail] = count.get((b.tier, b.plane, b.pod, b.rail), 0) + b.count
    for kind, number in wanted.items():
        missing = number - count.get(kind, 0)
        if missing > 0:
            room.add(kind, 0, count.get(kind, 0) + 1, missing)


def _wanted(draft: Draft, form: clos.Shape) -> Iterator[tuple[Kind, int]]:
    """Yield how many spines and cores of each kind there shall be."""
    rails = range(sizing.lines(draft.env)) if sizing.lines(draft.env) > 1 else (None,)
    pods = range(1, form.pods + 1) if form.tiers == 3 else (0,)
    for plane in range(1, draft.env.fabric.planes + 1):
        for rail in rails:
            yield from ((("spine", plane, pod, rail), form.spines) for pod in pods)
        if form.tiers == 3:
            yield from ((("core", plane, 0, rail), form.all_cores) for rail in rails)


def _stay(
    draft: Draft, form: clos.Shape, leaves: set[tuple[int, int]], wanted: dict[Kind, int]
) -> Iterator[SwitchBlock]:
    for block in draft.switches:
        if block.tier == "leaf":
            if (block.unit, block.plane) in leaves:
                yield block
            continue
        block = _pod_as_now(block, form)
        left = min(block.count, wanted.get((block.tier, block.plane, block.pod, block.rail), 0) - block.first + 1)
        if left > 0:
            yield block if left == block.count else block.model_copy(update={"count": left})


def _pod_as_now(block: SwitchBlock, form: clos.Shape) -> SwitchBlock:
    """Return a spine's block as the number of tiers has it: the spines of two tiers are those of the first pod."""
    if block.tier == "spine" and (form.tiers == 3) != (block.pod > 0) and block.pod <= 1:
        return block.model_copy(update={"pod": 1 - block.pod})
    return block


class _Places:
    """The places and addresses that new switches can have."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.places = Numbers((b.place, b.count) for b in draft.switches)
        self.addresses = Numbers(draft.addresses())

    def add(self, kind: Kind, unit: int, first: int, count: int) -> None:
        tier, plane, pod, rail = kind
        block = SwitchBlock(
            tier=tier,
            unit=unit,
            first=first,
            count=count,
            place=self.places.take(0, count),
            address=self.addresses.take(FIRST_ADDRESS, count),
            stack="",
            plane=plane,
            pod=pod,
            rail=rail,
        )
        self.draft.switches.append(block)


def cabling(draft: Draft) -> list[Problem]:
    """Give every unit its lanes to every spine and every spine its lanes to its cores; return the ports that lack.

    More spines or fewer hosts may take lanes away again.
    """
    form = draft.shape()
    lanes = _lanes(draft, form)
    draft.uplinks = list(_uplinks_that_stay(draft, form, lanes))
    draft.core_links = list(_core_links_that_stay(draft, form))
    plugs = _Uplinks(draft)
    for plane in range(1, draft.env.fabric.planes + 1):
        for unit in sorted(lanes):
            for lane in range(1, lanes[unit] + 1):
                for first, count in plugs.missing(plane, unit, lane, form.spines):
                    plugs.add(plane, form.pod(unit), unit, lane, (first, count))
        for pod in range(1, form.pods + 1) if form.tiers == 3 else ():
            for lane in range(1, form.core_lanes + 1):
                _core_links(draft, form, plane, pod, lane)
    return _fit(draft, form)


def _lanes(draft: Draft, form: clos.Shape) -> dict[int, int]:
    """Return the lanes of each unit: those of a full one where a unit or the rule is said, else as its hosts need."""
    hosts: dict[int, int] = {}
    for block in draft.hosts:
        hosts[block.unit] = hosts.get(block.unit, 0) + block.count
    hosts.pop(0, None)
    env = draft.env
    if not env.fabric.spines:
        return dict.fromkeys(hosts, form.lanes)
    full, each = env.fabric.unit or 0, sizing.per_leaf(env)
    return {unit: sizing.lanes(env, max(full, count) * each, env.fabric.spines) for unit, count in hosts.items()}


def _uplinks_that_stay(draft: Draft, form: clos.Shape, lanes: dict[int, int]) -> Iterator[UplinkBlock]:
    for block in draft.uplinks:
        pod = form.pod(block.unit)
        if pod <= 1 and block.pod <= 1:
            block = block if block.pod == pod else block.model_copy(update={"pod": pod})
        spines = min(block.spines, form.spines - block.spine + 1)
        stands = block.lane <= lanes.get(block.unit, 0) and block.plane <= draft.env.fabric.planes
        if stands and spines > 0 and block.pod == pod:
            yield block if spines == block.spines else block.model_copy(update={"spines": spines})


def _core_links_that_stay(draft: Draft, form: clos.Shape) -> Iterator[CoreBlock]:
    """Yield what stays; with another number of spines in a pod, the groups are others and no cable of theirs stays."""
    for block in draft.core_links:
        cores = min(block.cores, form.cores - block.core + 1)
        stands = block.pod <= form.pods and block.lane <= form.core_lanes and block.plane <= draft.env.fabric.planes
        if form.tiers == 3 and stands and block.spines == form.spines and cores > 0:
            yield block.model_copy(update={"cores": cores})


class _Uplinks:
    """The ports of leaves and spines that uplinks take, by plane and unit and by plane and pod."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.width = draft, clos.meeting(draft.env)
        self.of_unit: dict[tuple[int, int], list[UplinkBlock]] = {}
        self.of_pod: dict[tuple[int, int], list[UplinkBlock]] = {}
        for block in draft.uplinks:
            self._note(block)

    def _note(self, block: UplinkBlock) -> None:
        self.of_unit.setdefault((block.plane, block.unit), []).append(block)
        self.of_pod.setdefault((block.plane, block.pod), []).append(block)

    def missing(self, plane: int, unit: int, lane: int, spines: int) -> list[Run]:
        """Return the runs of spines to which a unit has no cable in a lane."""
        covered = [(b.spine, b.spines) for b in self.of_unit.get((plane, unit), ()) if b.lane == lane]
        return [(first, min(free, spines - first + 1)) for first, free in gaps(covered, 1) if first <= spines]

    def add(self, plane: int, pod: int, unit: int, lane: int, run: Run) -> None:
        """Cable the leaves of a unit to a run of spines, once each."""
        spine, spines = run
        on_leaf = [(b.leaf_port, b.spines) for b in self.of_unit.get((plane, unit), ())]
        beside = [
            b for b in self.of_pod.get((plane, pod), ()) if b.spine < spine + spines and spine < b.spine + b.spines
        ]
        block = UplinkBlock(
            unit=unit,
            lane=lane,
            spine=spine,
            spines=spines,
            leaf_port=first_gap(on_leaf, 0, spines),
            spine_port=first_gap([(b.spine_port, self.width) for b in beside], 0, self.width),
            cable=self.draft.cables(spines * self.draft.leaves),
            plane=plane,
            pod=pod,
        )
        self.draft.uplinks.append(block)
        self._note(block)


def _core_links(draft: Draft, form: clos.Shape, plane: int, pod: int, lane: int) -> None:
    """Cable the spines of a pod to those cores of their groups that they do not reach in a lane."""
    of_plane = [b for b in draft.core_links if b.plane == plane]
    of_pod = [b for b in of_plane if b.pod == pod]
    covered = [(b.core, b.cores) for b in of_pod if b.lane == lane]
    for core, free in list(gaps(covered, 1)):
        cores = min(free, form.cores - core + 1)
        if cores <= 0:
            continue
        beside = [b for b in of_plane if b.core < core + cores and core < b.core + b.cores]
        block = CoreBlock(
            pod=pod,
            lane=lane,
            spines=form.spines,
            core=core,
            cores=cores,
            spine_port=first_gap([(b.spine_port, b.cores) for b in of_pod], 0, cores),
            core_port=first_gap([(b.core_port, 1) for b in beside], 0, 1),
            cable=draft.cables(cores * form.spines * sizing.lines(draft.env)),
            plane=plane,
        )
        of_plane.append(block)
        of_pod.append(block)
        draft.core_links.append(block)


def _fit(draft: Draft, form: clos.Shape) -> list[Problem]:
    env, width = draft.env, clos.meeting(draft.env)
    have, most = sizing.uplink_ports(env, draft.ports), sizing.spine_ports(env)
    on_leaf = max((b.leaf_port + b.spines for b in draft.uplinks), default=0)
    on_spine = max((b.spine_port + width for b in draft.uplinks), default=0)
    up = max((b.spine_port + b.cores for b in draft.core_links), default=0)
    on_core = max((b.core_port + 1 for b in draft.core_links), default=0)
    problems = []
    if on_leaf > have:
        what = f"a {env.fabric.leaf} has {have} uplink ports beside {draft.ports} host ports, {on_leaf} are needed"
        problems.append(Problem(("fabric", "leaf"), what, "allow more oversubscription, or faster uplinks"))
    if max(on_spine, on_core) > most:
        what = f"a {env.fabric.spine} has {most} ports, {max(on_spine, on_core)} are needed on each"
        problems.append(Problem(("fabric", "spine"), what, "more spines take fewer cables each"))
    elif form.tiers == 3 and (on_spine > clos.half(env) or up > most - clos.half(env)):
        what = f"{on_spine} ports of a {env.fabric.spine} lead down and {up} up, it has {clos.half(env)} for each"
        problems.append(Problem(("fabric", "spine"), what, "more spines take fewer cables each"))
    return problems
