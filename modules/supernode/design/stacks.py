"""Cutting the engine's state into stacks of a limited size, so that what is there never moves to another.

Stack `<env>` holds the spines and cores, the service pools and, where all fit, the first unit with its leaves; each
further unit is `<env>-su<N>`. What does not fit its stack goes on in `<env>-su<N>-2`, or `<env>-fabric2` for what is
above the leaves and the services. The limit counts machines and switches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from supernode.errors import Problem
from supernode.spec import Environment, HostBlock, SwitchBlock, sizing

Block = TypeVar("Block", HostBlock, SwitchBlock)


def assign(env: Environment, hosts: list[HostBlock], switches: list[SwitchBlock]) -> list[Problem]:
    """Give every block without a stack one, in place, splitting it where one is full; return what exceeds it."""
    cut = _Cut(env, hosts, switches)
    switches[:] = [part for block in switches for part in cut.place(block, block.unit)]
    hosts[:] = [part for block in hosts for part in cut.place(block, block.unit)]
    return [
        Problem(
            ("stacks", "limit"),
            f"stack {stack} holds {count} machines and switches, stacks.limit is {env.stacks.limit}",
            "raise the limit again: what is in a stack stays there",
        )
        for stack, count in cut.held.items()
        if count > env.stacks.limit
    ]


class _Cut:
    """What each stack holds so far, and which stacks each group has; group 0 is all that is of no unit."""

    def __init__(self, env: Environment, hosts: Sequence[HostBlock], switches: Sequence[SwitchBlock]) -> None:
        self.name, self.limit, self.rails = env.name, env.stacks.limit, sizing.rails(env)
        self.held: Counter[str] = Counter()
        self.of_group: dict[int, list[str]] = {}
        rows = [(b.stack, b.count, b.unit) for b in switches] + [(b.stack, b.count, b.unit) for b in hosts]
        for stack, count, unit in rows:
            if stack:
                self.held[stack] += count
                self._join(unit, stack)
        if 0 not in self.of_group:  # nothing was saved: may the first unit live with the spines?
            together = sum(count for _, count, unit in rows if unit in {0, 1})
            self._join(0, env.name)
            if together <= self.limit:
                self._join(1, env.name)

    def _join(self, group: int, stack: str) -> None:
        stacks = self.of_group.setdefault(group, [])
        if stack not in stacks:
            stacks.append(stack)

    def _names(self, group: int) -> Iterator[str]:
        number = 1
        while True:
            if group == 0:
                yield self.name if number == 1 else f"{self.name}-fabric{number}"
            else:
                yield f"{self.name}-su{group}" if number == 1 else f"{self.name}-su{group}-{number}"
            number += 1

    def _room(self, group: int) -> tuple[str, int]:
        for stack in self.of_group.get(group, ()):
            if self.held[stack] < self.limit:
                return stack, self.limit - self.held[stack]
        fresh = next(
            name for name in self._names(group) if name not in self.of_group.get(group, ()) and not self.held[name]
        )
        self._join(group, fresh)
        return fresh, self.limit

    def place(self, block: Block, group: int) -> Iterator[Block]:
        """Yield the block with a stack, in as many parts as it takes."""
        if block.stack:
            yield block
            return
        done = 0
        while done < block.count:
            stack, room = self._room(group)
            count = min(room, block.count - done)
            self.held[stack] += count
            yield block.model_copy(update={**shifted(block, done, self.rails), "count": count, "stack": stack})
            done += count


def shifted(block: HostBlock | SwitchBlock, by: int, rails: int) -> dict[str, int | tuple[int, ...]]:
    """Return the numbers of the part of a block that begins `by` later."""
    moved: dict[str, int | tuple[int, ...]] = {"first": block.first + by, "address": block.address + by}
    if isinstance(block, HostBlock):
        if not block.unit:
            return moved  # a service pool: no port, no cable
        planes = tuple(cable + by * rails for cable in block.planes)
        return moved | {"port": block.port + by, "cable": block.cable + by * rails, "planes": planes}
    return moved | {"place": block.place + by}
