"""A large domain as blocks of cards, tiers of switches, and the bundles between them, each with its links."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from supernode.design.pictures import drawing
from supernode.design.pictures.drawing import BODY, FAINT, MARGIN, SHADE, WIDTH, WRONG, Box, text
from supernode.design.pictures.places import HEIGHT, Hint, ring
from supernode.families import Graph

MOST_BLOCKS = 12
_LABELLED = 24
Numbers = npt.NDArray[np.int64]


def block_size(graph: Graph, hint: Hint) -> int:
    """Return the cards of a block: a layer of the last dimension or a group, or so many as give MOST_BLOCKS blocks."""
    natural = prod(hint.shape[:-1]) if len(hint.shape) > 1 else hint.group
    natural = natural if natural > 1 and graph.cards % natural == 0 else 1
    blocks = graph.cards // natural
    while blocks > MOST_BLOCKS:
        # Whole layers are put together, so that all blocks are alike where their number allows it.
        factor = next((f for f in range(2, blocks + 1) if blocks % f == 0), blocks)
        if blocks // factor < 2:
            return natural * -(-blocks // MOST_BLOCKS)
        natural, blocks = natural * factor, blocks // factor
    return natural


def bundles(graph: Graph, size: int) -> tuple[Numbers, dict[tuple[int, int, int], int]]:
    """Return each vertex's block, tiers of switches last, and the links of each pair of blocks by group."""
    count = -(-graph.cards // size)
    block = np.concatenate(
        [np.arange(graph.cards) // size, *(np.full(tier, count + at) for at, tier in enumerate(graph.tiers))]
    ).astype(np.int64)
    a, b = block[graph.links["a"]], block[graph.links["b"]]
    key = np.stack([np.minimum(a, b), np.maximum(a, b), graph.links["group"].astype(np.int64)])
    pairs, numbers = np.unique(key, axis=1, return_counts=True)
    return block, {(int(x), int(y), int(g)): int(n) for (x, y, g), n in zip(pairs.T, numbers, strict=True)}


def drawn(graph: Graph, hint: Hint, top: float, wrong: Mapping[int, str]) -> list[str]:
    """Return the blocks on a ring, or in a row below their switches, with the bundles between them."""
    size = block_size(graph, hint)
    block, found = bundles(graph, size)
    boxes = _boxes(graph, size, top)
    between = {key: count for key, count in found.items() if key[0] != key[1]}
    marked = {tuple(sorted((int(block[graph.links[row]["a"]]), int(block[graph.links[row]["b"]])))) for row in wrong}
    parts, labels, seen = list[str](), list[str](), dict[tuple[int, int], int]()
    for (a, b, group), count in between.items():
        turn = seen.get((a, b), 0)
        seen[(a, b)] = turn + 1
        parts.append(_bundle(boxes[a], boxes[b], group, turn, bad=(a, b) in marked))
        labels += [_count(boxes[a], boxes[b], turn, count)] if len(between) <= _LABELLED else []
    cards = -(-graph.cards // size)
    parts += labels
    for at, box in enumerate(boxes):
        parts += _box(graph, at, box, size, cards, sum(n for key, n in found.items() if key[:2] == (at, at)))
    parts += _marks(boxes, marked)
    if len(between) > _LABELLED:
        counts = sorted(between.values())
        many = f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
        parts.append(text(MARGIN, top + HEIGHT + 6, f"links in a bundle between two blocks: {many}", BODY))
    return parts


def _boxes(graph: Graph, size: int, top: float) -> list[Box]:
    """Return the place of each block and, above, of each tier."""
    count = -(-graph.cards // size)
    if not graph.tiers:
        wide, high = 148.0, 62.0
        points = ring(count, 0, 0, 1)
        return [
            Box("", WIDTH / 2 + 440 * x - wide / 2, top + HEIGHT / 2 + 285 * y - high / 2, wide, high)
            for x, y in points
        ]
    step = (WIDTH - 2 * MARGIN) / count
    wide = min(step - 8, 200)
    low = [Box("", MARGIN + step * (at + 0.5) - wide / 2, top + HEIGHT - 90, wide, 84) for at in range(count)]
    rise = (HEIGHT - 160) / len(graph.tiers)
    tiers = len(graph.tiers)
    return low + [Box("", MARGIN, top + HEIGHT - 100 - rise * (at + 1), WIDTH - 2 * MARGIN, 54) for at in range(tiers)]


def _ends(a: Box, b: Box, turn: int) -> tuple[float, float, float, float]:
    """Return where a bundle runs: between the middles, or upright from a block to the tier above it."""
    x1, y1, x2, y2 = a.middle, a.y + a.height / 2, b.middle, b.y + b.height / 2
    if b.width > 300:
        x2 = x1 if a.width <= 300 and b.x <= x1 <= b.x + b.width else min(max(x1, b.x + 20), b.x + b.width - 20)
    return x1 + 10 * turn, y1 + 10 * turn, x2 + 10 * turn, y2 + 10 * turn


def _bundle(a: Box, b: Box, group: int, turn: int, *, bad: bool) -> str:
    x1, y1, x2, y2 = _ends(a, b, turn)
    way = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
    if bad:
        return drawing.stroke(way, WRONG, 6, dash="11 5", kind="bundle wrong")
    return drawing.stroke(way, drawing.rail_colour(group), 3, dash=drawing.rail_dash(group), kind="bundle")


def _count(a: Box, b: Box, turn: int, count: int) -> str:
    x1, y1, x2, y2 = _ends(a, b, turn)
    words = f"{count:,}"
    # A third of the way: at the half all bundles of a ring would meet.
    share = 0.5 if b.width > 300 else 0.34
    x, y, wide = x1 + (x2 - x1) * share, y1 + (y2 - y1) * share, drawing.width_of(words, BODY) + 8
    plate = drawing.rectangle(Box("", x - wide / 2, y - 9, wide, 18), stroke="#bbbbbb", width=1, round_=4)
    return plate + text(x, y + 4, words, BODY, anchor="middle")


def _box(graph: Graph, at: int, box: Box, size: int, cards: int, inside: int) -> list[str]:
    tier = at - cards
    if tier >= 0:
        rows = [f"{graph.tiers[tier]:,} switches of tier {tier + 1}", f"{inside:,} links inside" if inside else ""]
    else:
        last = min((at + 1) * size, graph.cards) - 1
        rows = [f"block {at}", f"cards {at * size:,}-{last:,}", f"{inside:,} links inside" if inside else ""]
    shape = drawing.rectangle(box, fill="#dde3ea" if tier >= 0 else SHADE, round_=8 if tier >= 0 else 0, width=1.6)
    found = [shape]
    for line, words in enumerate(row for row in rows if row):
        said = drawing.fitted(words, box.width - 4, 11 if line else BODY, bold=not line)
        found.append(
            text(
                box.middle,
                box.y + 19 + 17 * line,
                said,
                11 if line else BODY,
                anchor="middle",
                bold=not line,
                colour=FAINT if line else "#1a1a1a",
            )
        )
    return found


def _marks(boxes: list[Box], marked: set[tuple[int, ...]]) -> list[str]:
    """Frame the blocks that hold a wrong link of their own: no bundle shows it."""
    return [
        drawing.rectangle(boxes[pair[0]], fill="none", stroke=WRONG, width=4)
        for pair in sorted(marked)
        if len(set(pair)) == 1
    ]
