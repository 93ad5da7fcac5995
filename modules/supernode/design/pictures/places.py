"""Where the cards and switches of a domain are drawn: on a grid, on circles of a circle, on one circle, or in rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, cos, pi, prod, sin
from typing import Any

from supernode.design.pictures.drawing import MARGIN, WIDTH, Point
from supernode.families import Graph

HEIGHT = 640.0


@dataclass(frozen=True)
class Hint:
    """How a domain is laid out.

    Attributes:
        shape: sizes of the dimensions, the first counting fastest, of cards on a grid; empty elsewhere.
        group: cards of one group, whose numbers follow each other; 0 where there are none.
    """

    shape: tuple[int, ...] = ()
    group: int = 0

    @classmethod
    def of(cls, parameters: Any) -> Hint:
        """Return the layout for a family's parameters: a `shape` is laid out as a grid, `a` cards as a group."""
        shape, group = getattr(parameters, "shape", ()), getattr(parameters, "a", 0)
        return cls(tuple(shape), int(group))

    def place(self, card: int) -> tuple[int, ...]:
        """Return a card's coordinates on its grid; a grid's copies, as a group behind bridges is one, follow."""
        found, rest = [], card
        for length in self.shape:
            found.append(rest % length)
            rest //= length
        return (*found, rest)


def places(graph: Graph, hint: Hint) -> list[Point]:
    """Return the point of each vertex, within WIDTH and HEIGHT."""
    if graph.tiers:
        return _rows(graph)
    if len(hint.shape) > 1 and prod(hint.shape) == graph.cards:
        return _grid(graph.cards, hint)
    if hint.group > 1 and graph.cards % hint.group == 0 and graph.cards > hint.group:
        return _groups(graph.cards, hint.group)
    return ring(graph.cards, WIDTH / 2, HEIGHT / 2, HEIGHT / 2 - 20)


def ring(count: int, x: float, y: float, radius: float) -> list[Point]:
    """Return points on a circle, the first at its top, clockwise."""
    turns = [2 * pi * at / max(count, 1) for at in range(count)]
    return [(x + radius * sin(turn), y - radius * cos(turn)) for turn in turns]


def _grid(cards: int, hint: Hint) -> list[Point]:
    """Lay the first dimension right, the second down, the third along a cell's diagonal, and further ones again."""
    folded = [1, 1, 1]
    for axis, length in enumerate(hint.shape):
        folded[axis % 3] *= length
    right, down, deep = folded
    cell_x, cell_y = (WIDTH - 150) / right, (HEIGHT - 60) / down
    step_x, step_y = (cell_x * 0.5 / deep, cell_y * 0.8 / deep) if deep > 1 else (0.0, 0.0)
    found = []
    for card in range(cards):
        at, stride = [0, 0, 0], [1, 1, 1]
        for axis, place in enumerate(hint.place(card)[:-1]):
            at[axis % 3] += place * stride[axis % 3]
            stride[axis % 3] *= hint.shape[axis]
        x, y, z = at
        middle = (cell_x - step_x * (deep - 1)) / 2, (cell_y - step_y * (deep - 1)) / 2
        found.append((75 + x * cell_x + middle[0] + z * step_x, 40 + y * cell_y + middle[1] + (deep - 1 - z) * step_y))
    return found


def _groups(cards: int, size: int) -> list[Point]:
    count = cards // size
    outer = HEIGHT / 2 - 20
    inner = min(outer * sin(pi / count) / (1 + sin(pi / count)) * 0.84, outer * 0.45)
    centres = ring(count, WIDTH / 2, HEIGHT / 2, outer - inner)
    return [point for x, y in centres for point in ring(size, x, y, inner)]


def _rows(graph: Graph) -> list[Point]:
    """Put cards in the lowest row and each tier of switches in one above; a long row is broken into two."""
    found = []
    levels = [graph.cards, *graph.tiers]
    for level, count in enumerate(levels):
        y = HEIGHT - 60 - level * (HEIGHT - 110) / max(len(levels) - 1, 1)
        lanes = ceil(count / 34) if level else 1
        for at in range(count):
            step = (WIDTH - 2 * MARGIN) / count
            found.append((MARGIN + step * (at + 0.5), y + 28 * (at % lanes)))
    return found
