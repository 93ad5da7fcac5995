"""The cabling plan in the order in which a crew walks, and a label for each plug."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from supernode.design.model import Design
from supernode.design.rows import Host, Link, Switch


@dataclass(frozen=True)
class Plug:
    """One end of a cable, and the other.

    Attributes:
        place, far_place: rack and lowest unit of the device, `r01u05`; a rented host's is its name.
    """

    link: Link
    rack: str
    unit: int
    place: str
    device: str
    port: str
    far_place: str
    far_device: str
    far_port: str


def plugs(design: Design) -> Iterator[Plug]:
    """Yield both ends of every cable, rack by rack.

    The way leads along the first row, back along the second and so on; in a rack from the top down; at a device by the
    number of the cable.
    """
    devices: list[Host | Switch] = sorted([*design.hosts, *design.switches], key=_order(design))
    slots = {device.name: device.slot for device in devices}
    for device in devices:
        for link in design.links_of(device.name):
            ends = ((link.a_device, link.a_port), (link.b_device, link.b_port))
            (here, port), (far, far_port) = ends if link.a_device == device.name else ends[::-1]
            yield Plug(link, device.rack, device.unit, device.slot, here, port, slots[far], far, far_port)


def plan(design: Design) -> Iterator[str]:
    """Yield walk.csv: a row for each plug; `rail` is empty between switches."""
    yield "step,rack,unit,place,device,port,cable,far_place,far_device,far_port,rail,rate_mbit_s,length_m\n"
    for step, plug in enumerate(plugs(design), 1):
        link = plug.link
        here = f"{plug.rack},{plug.unit},{plug.place},{plug.device},{plug.port},{link.cable}"
        far = f"{plug.far_place},{plug.far_device},{plug.far_port}"
        yield f"{step},{here},{far},{'' if link.rail is None else link.rail},{link.rate:g},{link.length:g}\n"


_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title><style>
@page {{ size: A4; margin: 10mm }}
body {{ font: 8pt/1.25 sans-serif; margin: 0 }}
h2 {{ font-size: 10pt; margin: 3mm 0 1mm; break-after: avoid }}
.sheet {{ display: grid; grid-template-columns: repeat(4, 1fr); gap: 1mm }}
.label {{ border: .2mm dashed #888; padding: 1mm 1.5mm; break-inside: avoid; white-space: nowrap; overflow: hidden }}
.label b {{ font-size: 10pt }}
</style><body>
"""


def labels(design: Design) -> Iterator[str]:
    """Yield labels.html: a label for each plug in the order of walk.csv, with both ends, 4 in a row on A4."""
    yield _HEAD.format(title=f"{escape(design.name)}: labels of both ends of each cable")
    rack = None
    for plug in plugs(design):
        if plug.rack != rack:
            yield ("</div>\n" if rack is not None else "") + f'<h2>{escape(plug.rack)}</h2>\n<div class="sheet">\n'
            rack = plug.rack
        yield f'<div class="label"><b>{plug.link.cable}</b> {plug.link.length:g} m<br>'
        yield f"{escape(plug.place)} {escape(plug.device)} <b>{escape(plug.port)}</b><br>"
        yield f"to {escape(plug.far_place)} {escape(plug.far_device)} {escape(plug.far_port)}</div>\n"
    yield ("</div>\n" if rack is not None else "") + "</body></html>\n"


def _order(design: Design) -> Callable[[Host | Switch], tuple[tuple[int, int], int, str]]:
    """Return the sort key of devices: where the way comes by."""
    seen: Counter[int] = Counter()
    places: dict[str, tuple[int, int]] = {}
    rows = sorted({rack.row for rack in design.environment.racks})
    for rack in design.environment.racks:
        seen[rack.row] += 1
        position = seen[rack.row] if rack.position is None else rack.position
        row = rows.index(rack.row)
        places[rack.name] = (row, -position if row % 2 else position)
    beyond = (len(rows), 0)
    return lambda device: (places.get(device.rack, beyond), -device.unit, device.name)
