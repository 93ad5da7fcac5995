"""What a subnet manager's tables do to traffic: read from its dumps and proved, per virtual lane, free of deadlock.

A channel is a switch's outgoing port on one lane. A packet that holds one channel and waits for the next makes the
second depend on the first; where these dependencies close a circle, packets in it may wait for each other for ever
(Dally and Seitz 1987).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
NOWHERE = -1
LONGEST = 64  # an InfiniBand packet that passed so many switches goes in a circle
AT_ONCE = 1 << 20
_LEVELS = 16
_NODE = r"\{ (CA|SW)\S* Ports:(\w+) .*?NodeGUID:(\w+) .*?\{(.*?)\} LID:(\w+) PN:(\w+) \}"
_LINK = re.compile(f"{_NODE} {_NODE}")
_SWITCH = re.compile(r"(?:Unicast lids .* guid|Switch) 0x(\w+)[ ,]")


@dataclass(frozen=True)
class Tables:
    """A routed subnet.

    Attributes:
        switches, ends: their names.
        lids: of each end.
        near: of each end the (switch, port) it is plugged in at; two columns.
        far: [switch, port] -> the switch there and its port; NOWHERE where an end is or nothing.
        out: [switch, LID] -> the port.
        lanes: [switch, port in, port out, service level] -> the lane; None where all run on lane 0.
    """

    switches: tuple[str, ...]
    ends: tuple[str, ...]
    lids: Numbers
    near: Numbers
    far: Numbers
    out: Numbers
    lanes: npt.NDArray[np.int8] | None = None


@dataclass(frozen=True)
class Proof:
    """What is proved of a subnet's tables.

    Attributes:
        unreached: pairs of ends between which nothing arrives; the first few of them.
        most_switches: passed on the longest path.
        mean_switches: over all pairs of two ends.
        lanes: those that a link between switches uses.
        loop: a circle of channels (switch, port, lane), each waiting for the next; empty where there is none.
        spread: the least and the most ends that a used link between switches leads to.
    """

    unreached: tuple[tuple[str, str], ...]
    most_switches: int
    mean_switches: float
    lanes: tuple[int, ...]
    loop: tuple[tuple[str, int, int], ...]
    spread: tuple[int, int]


def read(subnet: Iterable[str], forwarding: Iterable[str], lanes: Iterable[str] | None = None) -> Tables:
    """Read what opensm 3.3 writes with `-D 0x43`: opensm-subnet.lst, opensm-lfts.dump and opensm-sl2vl.dump.

    Raises:
        ValueError: a subnet without a link.
    """
    links = [match.groups() for match in map(_LINK.match, subnet) if match]
    if not links:
        raise ValueError("no link in the list of the subnet")
    guids = {link[2]: link[3] for link in links if link[0] == "SW"}
    index = {guid: at for at, guid in enumerate(guids)}
    ports = max(int(link[1], 16) for link in links if link[0] == "SW") + 1
    far = np.full((len(guids), ports, 2), NOWHERE, dtype=np.int64)
    ends = []
    for kind, _, guid, name, lid, port, far_kind, _, far_guid, _, _, far_port in links:
        if kind == "SW" and far_kind == "SW":
            far[index[guid], int(port, 16)] = index[far_guid], int(far_port, 16)
        elif kind == "CA":
            ends.append((name, int(lid, 16), index[far_guid], int(far_port, 16)))
    table = np.array([end[1:] for end in ends], dtype=np.int64).reshape(-1, 3)
    return Tables(
        tuple(guids.values()),
        tuple(end[0] for end in ends),
        table[:, 0],
        table[:, 1:],
        far,
        _forwarding(forwarding, index, int(table[:, 0].max(initial=0))),
        None if lanes is None else _lanes(lanes, index, ports),
    )


def _forwarding(lines: Iterable[str], index: dict[str, int], highest: int) -> Numbers:
    out = np.full((len(index), highest + 1), NOWHERE, dtype=np.int64)
    row = NOWHERE
    for line in lines:
        if header := _SWITCH.match(line):
            row = index.get(header[1], NOWHERE)
        elif line.startswith("0x") and row != NOWHERE:
            lid, port = line.split(maxsplit=2)[:2]
            if int(lid, 16) <= highest:
                out[row, int(lid, 16)] = int(port)
    return out


def _lanes(lines: Iterable[str], index: dict[str, int], ports: int) -> npt.NDArray[np.int8]:
    found = np.zeros((len(index), ports, ports, _LEVELS), dtype=np.int8)
    row = NOWHERE
    for line in lines:
        if header := _SWITCH.match(line):
            row = index.get(header[1], NOWHERE)
        elif ":" in line and not line.startswith("#") and row != NOWHERE:
            way, levels = line.split(":")
            came, goes = map(int, way.split())
            found[row, came, goes] = [int(level) for level in levels.split()]
    return found


def prove(tables: Tables, levels: Numbers | None = None) -> Proof:
    """Walk all pairs of ends by the tables and return what is true of them.

    Args:
        tables: as read from the manager's dumps.
        levels: [from, to] -> the service level that the manager gives out for a path; all 0 where it is None.
    """
    step = max(1, AT_ONCE // max(1, len(tables.ends)))
    depends, used = np.zeros(0, np.int64), np.zeros(0, np.int64)
    loads = np.zeros(tables.far.shape[0] * tables.far.shape[1], dtype=np.int64)
    most = total = 0
    lost: list[tuple[int, int]] = []
    for first in range(0, len(tables.ends), step):
        target = np.arange(first, min(first + step, len(tables.ends)))
        walked = _Walk(tables, target, levels)
        depends = np.unique(np.concatenate([depends, *walked]))
        used = np.union1d(used, walked.used)
        loads += np.bincount(walked.ways // len(tables.ends), minlength=len(loads))
        most, total = max(most, walked.most), total + walked.total
        lost += walked.lost[: 10 - len(lost)]
    pairs = len(tables.ends) * (len(tables.ends) - 1)
    busy = loads[loads > 0]
    return Proof(
        tuple((tables.ends[a], tables.ends[b]) for a, b in lost),
        most,
        total / pairs if pairs else 0.0,
        tuple(int(lane) for lane in np.unique(used % _LEVELS)),
        tuple(_named(tables, channel) for channel in circle(depends >> 32, depends & 0xFFFFFFFF)),
        (int(busy.min()), int(busy.max())) if len(busy) else (0, 0),
    )


class _Walk:
    """All paths to some ends, one switch further at a time; iterating yields the dependencies of each step."""

    def __init__(self, tables: Tables, targets: Numbers, levels: Numbers | None) -> None:
        self.tables = tables
        source, target = np.meshgrid(np.arange(len(tables.ends)), targets, indexing="ij")
        apart = source != target
        self.source, self.target = source[apart], target[apart]
        self.level = np.zeros(len(self.source), np.int64) if levels is None else levels[self.source, self.target]
        self.used = np.zeros(0, np.int64)
        self.ways = np.zeros(0, np.int64)
        self.most = self.total = 0
        self.lost: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[Numbers]:
        tables, (source, target, level) = self.tables, (self.source, self.target, self.level)
        at, came = tables.near[source, 0], tables.near[source, 1]
        held = np.full(len(at), NOWHERE, dtype=np.int64)
        for passed in range(1, LONGEST + 1):
            goes = tables.out[at, tables.lids[target]]
            arrived = (at == tables.near[target, 0]) & (goes == tables.near[target, 1])
            on = (goes > 0) & (tables.far[at, goes, 0] != NOWHERE) & ~arrived
            self._end(arrived, on, passed, source, target)
            keep = np.flatnonzero(on)
            at, came, goes, held, source, target, level = (
                column[keep] for column in (at, came, goes, held, source, target, level)
            )
            if not len(at):
                return
            lane = np.zeros(len(at), np.int64) if tables.lanes is None else tables.lanes[at, came, goes, level]
            channel = (at * tables.far.shape[1] + goes) * _LEVELS + lane
            self.used = np.union1d(self.used, channel)
            yield np.unique((held[held != NOWHERE] << 32) | channel[held != NOWHERE])
            # Each target is counted once a port, however many sources share the way.
            self.ways = np.union1d(self.ways, (at * tables.far.shape[1] + goes) * len(tables.ends) + target)
            held = channel
            at, came = tables.far[at, goes, 0], tables.far[at, goes, 1]
        self.lost += [(int(a), int(b)) for a, b in zip(source[:10], target[:10], strict=True)]

    def _end(
        self, arrived: npt.NDArray[np.bool_], on: npt.NDArray[np.bool_], passed: int, source: Numbers, target: Numbers
    ) -> None:
        count = int(np.count_nonzero(arrived))
        self.most, self.total = (passed if count else self.most), self.total + count * passed
        dead = np.flatnonzero(~arrived & ~on)[:10]
        self.lost += [(int(source[row]), int(target[row])) for row in dead]


def _named(tables: Tables, channel: int) -> tuple[str, int, int]:
    port, lane = divmod(channel, _LEVELS)
    switch, number = divmod(port, tables.far.shape[1])
    return tables.switches[switch], number, lane


def circle(before: Numbers, after: Numbers) -> tuple[int, ...]:
    """Return one circle of a directed graph, in its order; empty where it has none."""
    while len(before):
        inner = np.isin(before, after) & np.isin(after, before)
        if inner.all():
            break
        before, after = before[inner], after[inner]
    if not len(before):
        return ()
    following = dict(zip(before.tolist(), after.tolist(), strict=True))
    walked: dict[int, int] = {}
    at = int(before[0])
    while at not in walked:
        walked[at] = len(walked)
        at = following[at]
    return tuple(list(walked)[walked[at] :])
