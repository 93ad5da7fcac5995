"""A large fabric as boxes: units of hosts, their leaves, spines and cores, and the bundles between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from supernode.design.model import Design
from supernode.design.pictures import drawing
from supernode.design.pictures.drawing import BODY, FAINT, MARGIN, SMALL, WIDTH, WRONG, Box, text
from supernode.design.rows import Link

TIERS = ("leaf", "spine", "core")
MOST_COLUMNS = 8
_LISTED = 12
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Totals:
    """What a fabric has.

    Attributes:
        switches: tier and count, from the top down; 0 where there is none.
        rail_links: cables between hosts and leaves.
        uplinks: cables between switches.
    """

    switches: tuple[tuple[str, int], ...]
    rail_links: int
    uplinks: int


@dataclass(frozen=True)
class Block:
    """Units, or groups of switches above them, that are alike.

    Attributes:
        first, last: their numbers.
        hosts, leaves, down, up: of one of them: hosts, leaves, cables to hosts and cables to the tier above.
    """

    first: int
    last: int
    hosts: int
    leaves: int
    down: int
    up: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


def totals(design: Design) -> Totals:
    """Count a fabric's switches by tier, and its cables."""
    counts = np.bincount(design.columns.switch_tiers, minlength=len(TIERS))
    up = int(np.count_nonzero(design.columns.links["uplink"]))
    switches = tuple((tier, int(counts[at])) for at, tier in reversed(list(enumerate(TIERS))))
    return Totals(switches, len(design.columns.links) - up, up)


def blocks(design: Design) -> list[Block]:
    """Return the units in their order, those that are alike and follow each other as one block."""
    columns, tiers = design.columns, design.columns.switch_tiers
    links, leaves = columns.links, columns.switches["su"].astype(np.int64)
    units = int(max(columns.hosts["su"].max(initial=0), leaves.max(initial=0))) + 1
    host_su = columns.hosts["su"].astype(np.int64)
    down = links[~links["uplink"]]
    up = links["a"][links["uplink"]]
    up = up[tiers[up] == 0]
    table = np.stack(
        [
            np.bincount(host_su, minlength=units),
            np.bincount(leaves[tiers == 0], minlength=units),
            np.bincount(host_su[down["a"]], minlength=units),
            np.bincount(leaves[up], minlength=units),
        ]
    ).T[1:]
    rows = [(at + 1, tuple(int(value) for value in row)) for at, row in enumerate(table) if row[0]]
    found = []
    for row, alike in groupby(rows, lambda pair: pair[1]):
        numbers = [number for number, _ in alike]
        found.append(Block(numbers[0], numbers[-1], *row))
    return found


def drawn_blocks(found: list[Block]) -> list[Block]:
    """Return at most MOST_COLUMNS columns: single units where they fit, else blocks of units that are alike."""
    units = sum(block.count for block in found)
    if units <= MOST_COLUMNS:
        return [
            Block(number, number, block.hosts, block.leaves, block.down, block.up)
            for block in found
            for number in range(block.first, block.last + 1)
        ]
    split: list[Block] = []
    for block in found:
        one = (block.hosts, block.leaves, block.down, block.up)
        if block.count > 2:
            split += [Block(block.first, block.first, *one), Block(block.first + 1, block.last, *one)]
        else:
            split.append(block)
    return (split if len(split) <= MOST_COLUMNS else found)[:MOST_COLUMNS]


def lines(design: Design, wrong: Mapping[str, str]) -> Iterator[str]:
    """Yield the picture of a fabric in units; the wrong cables are listed below and their unit's bundle is marked."""
    from supernode.design.pictures import fabric

    found = blocks(design)
    shown = drawn_blocks(found)
    bad = [(link, wrong[link.cable]) for link in design.links if link.cable in wrong] if wrong else []
    places = {_unit_and_rail(design, link) for link, _ in bad}
    body = drawing.heading(f"{design.name}: scale-out fabric, summarised", fabric.counts(design))
    upper, top = _upper(design)
    body += upper
    for at, block in enumerate(shown):
        marked = {rail for unit, rail in places if block.first <= unit <= block.last}
        body += _unit(design, block, _column(at, len(shown)), top, marked)
    y = top + (480 if any(block.count > 1 for block in shown) else 436)
    left = sum(block.count for block in found) - sum(block.count for block in shown)
    if left:
        body.append(text(MARGIN, y, f"{left:,} more units, which are not all alike, are not drawn", BODY))
        y += 22
    body += _listed(bad, y)
    y += 22 * min(len(bad), _LISTED + 1)
    body += fabric.legend(design, y, wrong=bool(bad))
    return drawing.document(y + 64, f"{design.name}: scale-out fabric", body)


def _column(at: int, count: int) -> Box:
    step = (WIDTH - 2 * MARGIN) / max(count, 1)
    width = min(step - 16, 260)
    return Box("", MARGIN + step * (at + 0.5) - width / 2, 0, width, 0)


def _upper(design: Design) -> tuple[list[str], float]:
    """Return the tiers above the leaves, each as one long box, and where the leaves begin."""
    drawn, y = [], 76.0
    counted = dict(totals(design).switches)
    between = int(np.count_nonzero(design.columns.links["uplink"] & (_lower_tier(design) == 1)))
    for tier in ("core", "spine"):
        if not counted[tier]:
            continue
        box = Box(tier, MARGIN, y, WIDTH - 2 * MARGIN, 46)
        shape = drawing.hexagon(box) if tier == "core" else drawing.rectangle(box, round_=16, width=1.8)
        word = f"{counted[tier]:,} {tier}{'' if counted[tier] == 1 else 's'}"
        drawn += [shape, text(box.middle, y + 28, word, 15, anchor="middle", bold=True)]
        y += 46
        if tier == "core":
            drawn += _bundle(box.middle, y, y + 70, between, "#777777", "", 6)
            y += 70
    return drawn, y


def _lower_tier(design: Design) -> Numbers:
    """Return the tier of each cable's lower end; of a host's cable it means nothing."""
    links, tiers = design.columns.links, design.columns.switch_tiers
    return tiers[np.where(links["uplink"], links["a"], 0)] if len(tiers) else np.zeros(len(links), np.int64)


def _bundle(x: float, y1: float, y2: float, count: int, colour: str, dash: str, width: float) -> list[str]:
    words = f"{count:,} cables"
    room = drawing.width_of(words, BODY) + 10
    middle = (y1 + y2) / 2
    return [
        drawing.stroke(f"M{x:.1f} {y1:.1f}V{y2:.1f}", colour, width, dash=dash, kind="bundle"),
        drawing.rectangle(Box("", x - room / 2, middle - 10, room, 20), stroke="#bbbbbb", width=1, round_=4),
        text(x, middle + 4, words, BODY, anchor="middle"),
    ]


def _unit(design: Design, block: Block, column: Box, top: float, marked: set[int | None]) -> list[str]:
    """Return one column: the bundle up, the leaves with their rails, a bundle for each rail, the hosts."""
    above = (WRONG, "11 5") if None in marked else ("#777777", "")
    drawn = _bundle(column.middle, top, top + 110, block.up, *above, 6) if block.up else []
    leaves = Box("", column.x, top + 110, column.width, 74)
    drawn += _leaves(design, block, leaves)
    hosts = Box("", column.x, top + 330, column.width, 80)
    drawn += _rails(_of_unit(design, block), leaves, hosts, marked)
    drawn.append(_label(f"{block.down:,} cables", column.middle, (leaves.bottom + hosts.y) / 2))
    drawn.append(drawing.rectangle(hosts, fill=drawing.SHADE))
    name = f"SU {block.first}" if block.count == 1 else f"SU {block.first:,} to {block.last:,}"
    gpus = _gpus(design, block)
    rows = [(name, True), (f"{block.hosts:,} hosts", False), (f"{gpus:,} GPUs" if gpus else "", False)]
    for at, (words, bold) in enumerate(rows):
        words = drawing.fitted(words, column.width - 6, BODY, bold=bold)
        drawn.append(text(hosts.middle, hosts.y + 22 + 20 * at, words, BODY, anchor="middle", bold=bold))
    if block.count > 1:
        drawn.append(text(hosts.middle, hosts.bottom + 26, f"x {block.count:,}", 20, anchor="middle", bold=True))
        drawn.append(text(hosts.middle, hosts.bottom + 44, "numbers are of one", SMALL, anchor="middle", colour=FAINT))
    return drawn


def _label(words: str, x: float, y: float) -> str:
    room = drawing.width_of(words, BODY) + 10
    plate = drawing.rectangle(Box("", x - room / 2, y - 10, room, 20), stroke="#bbbbbb", width=1, round_=4)
    return plate + text(x, y + 4, words, BODY, anchor="middle")


def _gpus(design: Design, block: Block) -> int:
    host = next((int(at) for at in np.flatnonzero(design.columns.hosts["su"] == block.first)), None)
    return 0 if host is None else block.hosts * design.server_kind(design.hosts[host]).gpus


def _of_unit(design: Design, block: Block) -> list[int | None]:
    """Return the rails of the leaves of a block's first unit; None for a leaf of all rails."""
    switches = design.columns.switches
    mine = np.flatnonzero((switches["su"] == block.first) & (design.columns.switch_tiers == 0))
    return [design.switches[int(at)].rail for at in mine]


def _leaves(design: Design, block: Block, box: Box) -> list[str]:
    """Return a unit's leaves: one chip a rail, with its number."""
    rails = _of_unit(design, block)
    drawn = [drawing.rectangle(box, width=1.8)]
    words = drawing.fitted(
        f"{block.leaves:,} {'leaf' if block.leaves == 1 else 'leaves'}", box.width - 6, BODY, bold=True
    )
    drawn.append(text(box.middle, box.y + 20, words, BODY, anchor="middle", bold=True))
    each: dict[int | None, int] = {rail: rails.count(rail) for rail in rails}
    step = (box.width - 8) / max(len(each), 1)
    for at, rail in enumerate(each):
        chip = Box("", box.x + 4 + step * at, box.y + 48, step - 2, 18)
        colour = "#777777" if rail is None else drawing.rail_colour(rail)
        drawn.append(drawing.rectangle(Box("", chip.x, box.bottom - 8, chip.width, 8), fill=colour, stroke=colour))
        if rail is not None:
            drawn.append(text(chip.x + chip.width / 2, box.bottom - 13, str(rail), SMALL, anchor="middle"))
    if None not in each:
        note = drawing.fitted("rails", box.width, SMALL)
        drawn.append(text(box.middle, box.y + 36, note, SMALL, anchor="middle", colour=FAINT))
    return drawn


def _rails(rails: list[int | None], leaves: Box, hosts: Box, marked: set[int | None]) -> list[str]:
    """Return a bundle for each rail; one with a wrong cable in it is drawn as that."""
    each = list(dict.fromkeys(rails))
    step = (leaves.width - 8) / max(len(each), 1)
    drawn = []
    for at, rail in enumerate(each):
        x = leaves.x + 4 + step * (at + 0.5) - 1
        path, wrong = f"M{x:.1f} {leaves.bottom:.1f}V{hosts.y:.1f}", rail is not None and rail in marked
        colour, dash = ("#777777", "") if rail is None else (drawing.rail_colour(rail), drawing.rail_dash(rail))
        colour, dash = (WRONG, "11 5") if wrong else (colour, dash)
        drawn.append(
            drawing.stroke(path, colour, 6 if wrong else 3, dash=dash, kind="bundle wrong" if wrong else "bundle")
        )
    return drawn


def _unit_and_rail(design: Design, link: Link) -> tuple[int, int | None]:
    """Return whose bundle a cable is in: its unit's, on its rail; None where it leads up from a leaf."""
    if design.is_host(link.a_device):
        return design.host(link.a_device).su, link.rail
    return design.switch(link.a_device).su, None


def _listed(bad: list[tuple[Link, str]], y: float) -> list[str]:
    drawn = []
    for link, word in bad[:_LISTED]:
        words = f"{link.cable} {word}: {link.a_device}:{link.a_port} - {link.b_device}:{link.b_port}"
        words = drawing.fitted(words, WIDTH - 2 * MARGIN, BODY, bold=True)
        drawn.append(text(MARGIN, y, words, BODY, bold=True, colour=WRONG))
        y += 22
    if len(bad) > _LISTED:
        drawn.append(text(MARGIN, y, f"and {len(bad) - _LISTED:,} more", BODY, bold=True, colour=WRONG))
    return drawn
