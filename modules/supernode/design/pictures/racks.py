"""Rack elevations: what stands in which units, what is free, and the power drawn against the rack's limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby

import numpy as np

from supernode import catalog
from supernode.design.model import Design
from supernode.design.pictures import drawing
from supernode.design.pictures.drawing import FAINT, INK, MARGIN, SHADE, SMALL, WIDTH, WRONG, Box, text
from supernode.design.rows import Host, Switch
from supernode.spec.environment import Rack

MOST_RACKS = 24
_ACROSS = 6
_UNIT = 14.0
_HEAD, _RULER = 56.0, 22.0


@dataclass(frozen=True)
class Stand:
    """A rack with what is in it, and how many there are of its like.

    Attributes:
        devices: indexes of hosts, then those of switches beyond them, as they lie in the columns.
    """

    rack: Rack
    devices: tuple[int, ...]
    count: int


def lines(design: Design) -> Iterator[str]:
    """Yield the elevations of all racks in their rows; of more than MOST_RACKS one of each kind, with its count."""
    stands, count = _stands(design), len(design.environment.racks)
    whole = count <= MOST_RACKS
    rows = list(_rows(stands[:MOST_RACKS], whole))
    racks = f"{count:,} rack{'' if count == 1 else 's'}"
    said = f"{racks}, {len(design.hosts):,} hosts, {len(design.switches):,} switches"
    kinds = f"{len(stands)} kinds of rack, one of each is drawn"
    kinds += f", the first {MOST_RACKS}" if len(stands) > MOST_RACKS else ""
    said += "" if whole else f"; {kinds}"
    title = f"{design.name}: racks"
    body = drawing.heading(title, said + "; units count from below; watts are the most that the devices draw")
    y = 76.0
    for row in rows:
        height = max(stand.rack.units for stand in row) * _UNIT
        for at, stand in enumerate(row):
            body += _rack(design, stand, at, y, height)
        y += _HEAD + height + 30
    return drawing.document(y, title, body)


def _stands(design: Design) -> list[Stand]:
    """Return the racks of the environment, in its order; where they are many, one of each kind.

    Racks are of a kind that are as high and as strong, with devices of the same pool or tier in the same units.
    """
    columns, racks = design.columns, design.environment.racks
    tables = (columns.hosts, columns.switches)
    held, unit = (np.concatenate([table[name].astype(np.int64) for table in tables]) for name in ("rack", "unit"))
    kind = np.concatenate([columns.hosts["pool"].astype(np.int64), -1 - design.columns.switch_tiers])
    order = np.lexsort((unit, held))
    order = order[unit[order] > 0]
    starts = np.searchsorted(held[order], np.arange(len(columns.racks) + 1)).tolist()
    at = {name: index for index, name in enumerate(columns.racks)}
    code = (kind * 256 + unit)[order]
    found: dict[object, tuple[Rack, slice, int]] = {}
    for rack in racks:
        mine = slice(starts[at[rack.name]], starts[at[rack.name] + 1])
        alike = rack.units, rack.power_w, code[mine].tobytes()
        key = rack.name if len(racks) <= MOST_RACKS else alike
        first = found.get(key, (rack, mine, 0))
        found[key] = first[0], first[1], first[2] + 1
    return [Stand(rack, tuple(order[mine].tolist()), count) for rack, mine, count in found.values()]


def _rows(stands: list[Stand], whole: bool) -> Iterator[list[Stand]]:
    """Yield the racks that are drawn side by side: those of one row of the room, a few at a time."""
    ordered = sorted(stands, key=lambda stand: stand.rack.row) if whole else stands
    for _, of_row in groupby(ordered, lambda stand: stand.rack.row if whole else 0):
        row = list(of_row)
        for start in range(0, len(row), _ACROSS):
            yield row[start : start + _ACROSS]


def _rack(design: Design, stand: Stand, at: int, y: float, height: float) -> list[str]:
    """Return one rack: its name and power above, its units from below, each device at its own."""
    step = (WIDTH - 2 * MARGIN) / _ACROSS
    x, width = MARGIN + at * step + _RULER, step - _RULER - 10
    devices = [_device(design, index) for index in stand.devices]
    floor, top = y + _HEAD + height, y + _HEAD + height - stand.rack.units * _UNIT
    words = f"rack {stand.rack.name}" + (f"  x {stand.count:,}" if stand.count > 1 else "")
    drawn = [f'<g class="rack"><title>{escape(stand.rack.name)}</title>\n']
    drawn.append(text(x, top - 36, drawing.fitted(words, width, 14, bold=True), 14, bold=True))
    drawn.append(text(x, top - 21, f"row {stand.rack.row}{_cooled(design, stand)}", SMALL, colour=FAINT))
    drawn.append(_power(stand, devices, x, top - 7, width))
    drawn.append(drawing.rectangle(Box("", x, top, width, stand.rack.units * _UNIT), fill=SHADE, width=2))
    for unit in range(1, stand.rack.units + 1):
        edge = floor - unit * _UNIT
        drawn.append(f'<path d="M{x:.1f} {edge:.1f}h{width:.1f}" stroke="#d4d4d4" stroke-width="0.7"/>\n')
        if unit == 1 or unit % 4 == 0:
            drawn.append(text(x - 4, edge + 11, str(unit), 10, anchor="end", colour=FAINT))
    drawn += [_placed(device, x + 3, floor, width - 6) for device in devices]
    return [*drawn, "</g>\n"]


def _cooled(design: Design, stand: Stand) -> str:
    unit = design.cooling_of(stand.rack.name)
    return f", cooled by {unit.name}" if unit else ""


def _power(stand: Stand, devices: list[Host | Switch], x: float, y: float, width: float) -> str:
    """Return what the devices draw at most against the limit; red and in words where it is more."""
    drawn = [_kind(device).power_w for device in devices]
    known, limit = sum(watts for watts in drawn if watts is not None), stand.rack.power_w
    said = f"{known / 1000:.1f}" + (" kW" if limit is None else f" of {limit / 1000:g} kW")
    said = "watts not known" if drawn and not known else said + (" + unknown" if None in drawn else "")
    over = limit is not None and known > limit
    said += " OVER" if over else ""
    return text(x, y, drawing.fitted(said, width, SMALL, bold=over), SMALL, bold=over, colour=WRONG if over else INK)


def _device(design: Design, index: int) -> Host | Switch:
    hosts = len(design.columns.hosts)
    return design.hosts[index] if index < hosts else design.switches[index - hosts]


def _kind(device: Host | Switch) -> catalog.ServerKind | catalog.SwitchKind:
    return catalog.server(device.kind) if isinstance(device, Host) else catalog.switch(device.kind)


def _placed(device: Host | Switch, x: float, floor: float, width: float) -> str:
    """Return a device at its units: a host white with a square corner, a switch grey with round ones, both named."""
    kind = _kind(device)
    box = Box(device.name, x, floor - (device.unit - 1 + kind.height_u) * _UNIT, width, kind.height_u * _UNIT)
    switch = isinstance(device, Switch)
    shape = drawing.rectangle(box, fill="#dde3ea" if switch else "#ffffff", round_=5 if switch else 0)
    title = f"<title>{escape(f'{device.name}: {device.kind}, {device.slot}')}</title>"
    return f'<g class="device">{title}\n{shape}{_named(device, box)}</g>\n'


def _named(device: Host | Switch, box: Box) -> str:
    note = device.kind if isinstance(device, Switch) or device.state == "active" else f"{device.kind}, {device.state}"
    size = SMALL if drawing.width_of(device.name, SMALL, bold=True) <= box.width - 8 else 9.0
    name = drawing.fitted(device.name, box.width - 8, size, bold=True)
    middle = box.y + box.height / 2
    if box.height >= 2 * _UNIT:
        upper = text(box.middle, middle - 2, name, size, anchor="middle", bold=True)
        return upper + text(
            box.middle, middle + 11, drawing.fitted(note, box.width - 6, 10), 10, anchor="middle", colour=FAINT
        )
    taken = drawing.width_of(name, size, bold=True) + 12
    beside = drawing.fitted(note, box.width - taken - 4, 10)
    return text(box.x + 4, middle + 4, name, size, bold=True) + (
        text(box.x + box.width - 4, middle + 4, beside, 10, anchor="end", colour=FAINT) if len(beside) > 2 else ""
    )
