"""One domain of a scale-up layer: every card and link up to MOST_CARDS, above that blocks of cards and bundles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from supernode.design.pictures import blocks, drawing
from supernode.design.pictures.drawing import FAINT, INK, MARGIN, PAPER, SMALL, WIDTH, WRONG, Box, Point, text
from supernode.design.pictures.places import HEIGHT, Hint, places
from supernode.families import Graph
from supernode.families.nearest import described

if TYPE_CHECKING:
    from supernode.design.model import Design

MOST_CARDS = 64
_TOP = 78.0
_CARD = 11.0


def lines(graph: Graph, hint: Hint, title: str, wrong: Mapping[int, str] | None = None) -> Iterator[str]:
    """Yield the picture of a domain, line by line.

    Args:
        graph: the domain's cards, switches and links.
        hint: how it is laid out, e.g. `Hint.of(parameters)`.
        title: what it is, e.g. "rack64: torus 4x4x4".
        wrong: links that are not as designed, by their row in the graph, each with a word for what is wrong.
    """
    marked = dict(wrong or {})
    body = drawing.heading(title, counts(graph))
    drawn = _whole(graph, hint, marked) if graph.vertices <= 2 * MOST_CARDS and graph.cards <= MOST_CARDS else None
    body += drawn if drawn is not None else blocks.drawn(graph, hint, _TOP, marked)
    y = _TOP + HEIGHT + 26
    body += _legend(graph, y, wrong=bool(marked))
    return drawing.document(y + 40, title, body)


def of_design(design: Design) -> Iterator[str]:
    """Yield the picture of a design's domains, which are all alike; nothing where it has none."""
    layer = design.scale_up
    if layer is not None:
        title = f"{design.name}: {described(layer.parameters)}" + (f", {layer.domains} of it" * (layer.domains > 1))
        yield from lines(layer.graph, Hint.of(layer.parameters), title)


def counts(graph: Graph) -> str:
    """Return what the picture's second line says."""
    ports = graph.degrees[: graph.cards]
    least, most = int(ports.min()), int(ports.max())
    said = [f"{graph.cards:,} cards", *(f"{count:,} switches of tier {at + 1}" for at, count in enumerate(graph.tiers))]
    ports_said = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return ", ".join([*said, f"{len(graph.links):,} links", f"{ports_said} ports a card"])


def _whole(graph: Graph, hint: Hint, wrong: Mapping[int, str]) -> list[str]:
    at = [(x, y + _TOP) for x, y in places(graph, hint)]
    ends = list(zip(graph.links["a"].tolist(), graph.links["b"].tolist(), strict=True))
    groups = graph.links["group"].tolist()
    thin = 0.6 if len(ends) > 600 else 1.0 if len(ends) > 200 else 1.6
    bows = [_bow(graph, hint, a, b) + 9 * twin for (a, b), twin in zip(ends, _twins(ends), strict=True)]
    ways = [_way(at[a], at[b], bow) for (a, b), bow in zip(ends, bows, strict=True)]
    drawn = []
    for row, (a, b) in enumerate(ends):
        if row in wrong:
            continue
        said = f"{_name(graph, a)} - {_name(graph, b)}, {graph.groups[groups[row]].name}"
        dash, colour = drawing.rail_dash(groups[row]), drawing.rail_colour(groups[row])
        drawn.append(drawing.stroke(ways[row], colour, thin, dash=dash, said=said, kind="link"))
    for row, word in wrong.items():
        a, b = ends[row]
        said = f"{_name(graph, a)} - {_name(graph, b)}: {word}"
        drawn.append(drawing.stroke(ways[row], WRONG, 4, dash="11 5", said=said, kind="link wrong"))
    drawn += [_vertex(graph, vertex, place) for vertex, place in enumerate(at)]
    return drawn + [_label(graph, at, ends[row], word) for row, word in wrong.items()]


def _twins(ends: list[tuple[int, int]]) -> list[int]:
    """Return, for each link, how many before it join the same two: those would lie on each other."""
    seen: dict[tuple[int, int], int] = {}
    found = []
    for a, b in ends:
        key = (min(a, b), max(a, b))
        found.append(seen.get(key, 0))
        seen[key] = found[-1] + 1
    return found


def _name(graph: Graph, vertex: int) -> str:
    return f"card {vertex}" if vertex < graph.cards else f"switch {vertex - graph.cards}"


def _bow(graph: Graph, hint: Hint, a: int, b: int) -> float:
    """Return how far a link swings out: on a grid one that passes over others does, so that it is seen beside them."""
    if not hint.shape or len(hint.shape) == 1 or max(a, b) >= graph.cards:
        return 0.0
    apart = [abs(one - other) for one, other in zip(hint.place(a), hint.place(b), strict=True)]
    return 0.0 if sum(apart) <= 1 else 8.0 + 6.0 * max(apart) if sum(map(bool, apart)) == 1 else 14.0


def _way(start: Point, end: Point, bow: float) -> str:
    """Return a straight path, or one that swings out, to the upper left."""
    (x1, y1), (x2, y2) = sorted((start, end))
    if not bow:
        return f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
    long = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
    across, up = (y2 - y1) / long, -(x2 - x1) / long
    if across > 0 or (across == 0 and up > 0):
        across, up = -across, -up
    x, y = (x1 + x2) / 2 + 2 * bow * across, (y1 + y2) / 2 + 2 * bow * up
    return f"M{x1:.1f} {y1:.1f}Q{x:.1f} {y:.1f} {x2:.1f} {y2:.1f}"


def _vertex(graph: Graph, vertex: int, place: Point) -> str:
    """Return a card as a circle and a switch as a box, with its number."""
    x, y = place
    if vertex >= graph.cards:
        number = f"s{vertex - graph.cards}"
        wide = max(drawing.width_of(number, SMALL, bold=True) + 6, 24)
        box = drawing.rectangle(Box("", x - wide / 2, y - 11, wide, 22), fill="#dde3ea", round_=5, width=1.6)
        return f'<g class="switch">{box}{text(x, y + 4, number, SMALL, anchor="middle", bold=True)}</g>\n'
    radius, size = (_CARD, SMALL) if graph.direct else (8.2, 9.0)
    ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{PAPER}" stroke="{INK}" stroke-width="1.3"/>\n'
    return f'<g class="card">{ring}{text(x, y + size * 0.36, str(vertex), size, anchor="middle")}</g>\n'


def _label(graph: Graph, at: list[Point], ends: tuple[int, int], word: str) -> str:
    (x1, y1), (x2, y2) = at[ends[0]], at[ends[1]]
    words = f"{_name(graph, ends[0])} - {_name(graph, ends[1])} {word}"
    wide = drawing.width_of(words, SMALL, bold=True) + 10
    x = min(max((x1 + x2) / 2, MARGIN + wide / 2), WIDTH - MARGIN - wide / 2)
    plate = drawing.rectangle(Box("", x - wide / 2, (y1 + y2) / 2 - 32, wide, 18), stroke=WRONG, width=1.5, round_=4)
    return plate + text(x, (y1 + y2) / 2 - 19, words, SMALL, anchor="middle", bold=True, colour=WRONG)


def _legend(graph: Graph, y: float, *, wrong: bool) -> list[str]:
    counted = np.bincount(graph.links["group"], minlength=len(graph.groups)).tolist()
    rows = [
        (f"{group.name}: {counted[at]:,} links", drawing.rail_colour(at), drawing.rail_dash(at), 2.4)
        for at, group in enumerate(graph.groups)
    ]
    rows += [("wrong", WRONG, "11 5", 4.0)] if wrong else []
    x, drawn = MARGIN, []
    for word, colour, dash, width in rows:
        if x + 42 + drawing.width_of(word, SMALL) > WIDTH - MARGIN:
            x, y = MARGIN, y + 17
        drawn.append(drawing.stroke(f"M{x:.1f} {y + 4:.1f}h34", colour, width, dash=dash, kind="key"))
        drawn.append(text(x + 40, y + 8, word, SMALL))
        x += 58 + drawing.width_of(word, SMALL)
    shapes = "cards round, switches square" if graph.tiers else "cards round"
    return [*drawn, text(MARGIN, y + 26, shapes, SMALL, colour=FAINT)]
