"""An allocation while it grows, and the lowest numbers that are free in it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from supernode.design import siting
from supernode.spec import CoreBlock, Environment, HostBlock, Places, SwitchBlock, UplinkBlock, clos, sizing

FIRST_ADDRESS = 11  # the first ten of a network are left to the site: gateways, time, the server of images
Run = tuple[int, int]  # first, count


def gaps(used: Iterable[Run], start: int) -> Iterator[Run]:
    """Yield the free runs from `start` on; the last one never ends (a count of 2**32)."""
    at = start
    for first, count in sorted(used):
        if first > at:
            yield at, first - at
        at = max(at, first + count)
    yield at, 1 << 32


def first_gap(used: Iterable[Run], start: int, count: int) -> int:
    """Return the first of the lowest `count` free numbers in a row."""
    return next(first for first, free in gaps(used, start) if free >= count)


class Numbers:
    """The numbers that are taken, as runs that do not touch: few, however many blocks took them."""

    def __init__(self, used: Iterable[Run] = ()) -> None:
        self._runs: list[Run] = []
        for first, count in sorted(used):
            self._append(self._runs, first, count)

    @staticmethod
    def _append(runs: list[Run], first: int, count: int) -> None:
        if runs and first <= sum(runs[-1]):
            first, count = runs[-1][0], max(sum(runs[-1]), first + count) - runs.pop()[0]
        runs.append((first, count))

    def free(self, start: int) -> Iterator[Run]:
        """Yield the free runs from `start` on."""
        return gaps(self._runs, start)

    def take(self, start: int, count: int) -> int:
        """Take the lowest `count` free numbers in a row and return the first."""
        first = first_gap(self._runs, start, count)
        insort(self._runs, (first, count))
        at = max(0, bisect_right(self._runs, (first, count)) - 2)
        near: list[Run] = []
        for run in self._runs[at : at + 3]:
            self._append(near, *run)
        self._runs[at : at + 3] = near
        return first


@dataclass
class Draft:
    """An allocation while it grows.

    A new block has an empty stack until `stacks.assign` cuts the stacks at the end.
    """

    env: Environment
    ports: int
    racks: dict[str, tuple[Places, ...]] = field(default_factory=dict)
    hosts: list[HostBlock] = field(default_factory=list)
    switches: list[SwitchBlock] = field(default_factory=list)
    uplinks: list[UplinkBlock] = field(default_factory=list)
    core_links: list[CoreBlock] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rails = sizing.rails(self.env)
        self._rented = {pool.name for pool in self.env.pools if pool.cloud}
        self._cable = self._above_all()

    @property
    def hosts_per_unit(self) -> int:
        """How many hosts the leaves of a unit have ports for."""
        return max(1, self.ports // sizing.per_leaf(self.env))

    @property
    def leaves(self) -> int:
        """The leaves of a unit in one plane."""
        return sizing.leaves(self.env)

    def shape(self) -> clos.Shape:
        """Return what the units that there are ask for above them."""
        return clos.shape(self.env, self.ports, max((b.unit for b in self.hosts), default=1))

    def cables(self, count: int) -> int:
        """Take so many cable numbers and return the first.

        They lie above every one that is, or that was when this began: a label that is being pulled must not come back
        on another cable on the same day.
        """
        first = self._cable
        self._cable += count
        return first

    def _above_all(self) -> int:
        ends = [1]
        ends += [first + b.count * self.rails for b in self.hosts if b.unit for first in (b.cable, *b.planes)]
        ends += [b.cable + b.spines * self.leaves for b in self.uplinks]
        ends += [b.cable + b.cores * b.spines * sizing.lines(self.env) for b in self.core_links]
        return max(ends)

    def addresses(self) -> list[Run]:
        """Return the offsets taken in the management network, and those that the site keeps in it or among the BMCs."""
        taken = [(b.address, b.count) for b in self.bought()] + [(b.address, b.count) for b in self.switches]
        kept = {
            offset for _, _, network, _ in siting.networks(self.env) for offset in siting.reserved(self.env, network)
        }
        return taken + [(offset, 1) for offset in kept]

    def bought(self) -> list[HostBlock]:
        """Return the blocks that stand in racks."""
        return [block for block in self.hosts if block.pool not in self._rented]

    def rented(self) -> list[HostBlock]:
        """Return the blocks that stand in the cloud: their offsets are those of its subnet."""
        return [block for block in self.hosts if block.pool in self._rented]
