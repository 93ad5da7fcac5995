"""The scale-out fabric: every host, switch and cable of a small one, units and bundles of a large one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby

import numpy as np

from supernode.design.model import Design
from supernode.design.pictures import drawing, summary
from supernode.design.pictures.drawing import BODY, FAINT, INK, MARGIN, SMALL, WIDTH, WRONG, Box, Point, text
from supernode.design.rows import Host, Link, Switch
from supernode.units import format_rate

MOST_HOSTS = 64
# The tiers' names stand left of all cards.
_LEFT = 96.0
_TOP = 84.0
_BETWEEN = {"host": 250.0, "leaf": 170.0, "spine": 150.0}
_LABEL = (70.0, 20.0)


def lines(design: Design, wrong: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the picture of a fabric, line by line.

    Args:
        design: what is drawn; above MOST_HOSTS hosts, as units and bundles.
        wrong: cables that are not as designed, by their names, each with a word for what is wrong; they lie over all
            others, thick, dashed, red and with their names.
    """
    marked = dict(wrong or {})
    if len(design.hosts) > MOST_HOSTS:
        return summary.lines(design, marked)
    return _whole(design, marked)


def _whole(design: Design, wrong: Mapping[str, str]) -> Iterator[str]:
    hosts, switches, links = _ordered(design), list(design.switches), list(design.links)
    boxes, under = _placed(hosts, switches)
    places = drawing.anchors(boxes, links, {host.name for host in hosts})
    body = drawing.heading(f"{design.name}: scale-out fabric", counts(design))
    body += _tiers(switches, boxes, len(hosts))
    body += _frames(hosts, boxes, under)
    thin = 0.8 if len(links) > 200 else 1.2
    body += [_cable(link, places, thin) for link in links if link.cable not in wrong]
    body += [_switch(switch, boxes[switch.name]) for switch in switches]
    body += [_host(host, boxes[host.name]) for host in hosts]
    bad = [link for link in links if link.cable in wrong]
    body += [_wrong(link, wrong[link.cable], places) for link in bad]
    body += _labels(bad, wrong, places)
    y = under + 46
    body += legend(design, y, wrong=bool(bad))
    return drawing.document(y + 64, f"{design.name}: scale-out fabric", body)


def counts(design: Design) -> str:
    """Return what the picture's second line says."""
    found, rates = summary.totals(design), design.environment.fabric.rates
    said = [f"{len(design.hosts):,} hosts"]
    said += [f"{count:,} {tier}{'' if count == 1 else 's'}" for tier, count in found.switches if count]
    said[1:] = [word.replace("leafs", "leaves") for word in said[1:]]
    said += [f"{found.rail_links:,} cables of {format_rate(rates.rail)} to hosts"]
    said += [f"{found.uplinks:,} of {format_rate(rates.uplink)} between switches"] if found.uplinks else []
    return ", ".join(said) + f"; {design.environment.fabric.family}, {design.environment.fabric.transport}"


def _ordered(design: Design) -> list[Host]:
    """Return the hosts by unit, rack and place in it; those without a cable last."""
    order = {name: at for at, name in enumerate(design.columns.racks)}
    return sorted(design.hosts, key=lambda host: (host.su == 0, host.su, order[host.rack], host.unit, host.name))


def _group(host: Host) -> tuple[int, str]:
    return host.su, host.rack


def _placed(hosts: list[Host], switches: list[Switch]) -> tuple[dict[str, Box], float]:
    """Return each device's card, tier over tier, and where the hosts' frames end."""
    boxes: dict[str, Box] = {}
    y = _TOP
    for tier in ("core", "spine", "leaf"):
        row = [switch for switch in switches if switch.tier == tier]
        if row:
            height = _height([switch.name for switch in row], _step(len(row)) - 6)
            boxes |= _spread(row, y, height)
            y += height + _BETWEEN["host" if tier == "leaf" else tier if tier == "spine" else "spine"]
    found, bottom = _stand(hosts, y)
    return boxes | found, bottom


def _step(count: int) -> float:
    return (WIDTH - _LEFT - MARGIN) / max(count, 1)


def _height(names: list[str], width: float) -> float:
    """Return a card's height: two lines, or the longest name turned upright."""
    longest = max(drawing.width_of(name, BODY, bold=True) for name in names)
    return 42.0 if longest + 8 <= min(width, 140) else max(longest + 18, 42.0)


def _spread(switches: list[Switch], y: float, height: float) -> dict[str, Box]:
    step = _step(len(switches))
    width = min(step - (6 if step > 24 else 2), 140)
    return {
        switch.name: Box(switch.name, _LEFT + step * (i + 0.5) - width / 2, y, width, height)
        for i, switch in enumerate(switches)
    }


def _stand(hosts: list[Host], y: float) -> tuple[dict[str, Box], float]:
    """Put the hosts in one row, with a gap between racks."""
    groups = [list(rows) for _, rows in groupby(hosts, _group)]
    gap = min(18.0, 300.0 / len(groups)) if groups else 0.0
    pitch = min((WIDTH - _LEFT - MARGIN - gap * len(groups)) / max(len(hosts), 1), 118.0)
    height = _height([host.name for host in hosts], pitch - 3) if hosts else 0.0
    x = _LEFT + (WIDTH - _LEFT - MARGIN - gap * len(groups) - pitch * len(hosts)) / 2
    boxes = {}
    for rows in groups:
        x += gap / 2
        for host in rows:
            boxes[host.name] = Box(host.name, x + pitch * 0.04, y, pitch * 0.92, height)
            x += pitch
        x += gap / 2
    return boxes, y + height + 8


def _tiers(switches: list[Switch], boxes: Mapping[str, Box], hosts: int) -> list[str]:
    """Return the words at the left edge that say what each row is."""
    said = []
    for tier, word in (("core", "cores"), ("spine", "spines"), ("leaf", "leaves")):
        row = [boxes[switch.name] for switch in switches if switch.tier == tier]
        if row:
            said += _beside(word, len(row), row[0].y + row[0].height / 2)
    names = {switch.name for switch in switches}
    host = next((box for name, box in boxes.items() if name not in names), None)
    return said + (_beside("hosts", hosts, host.y + host.height / 2) if host else [])


def _beside(word: str, count: int, y: float) -> list[str]:
    return [text(MARGIN, y, word, 14, bold=True), text(MARGIN, y + 16, f"{count:,}", BODY, colour=FAINT)]


def _frames(hosts: list[Host], boxes: Mapping[str, Box], under: float) -> list[str]:
    """Return the racks around the hosts, their names below, and the units below these where there are several."""
    drawn, units = [], len({host.su for host in hosts})
    for _, rows in groupby(hosts, _group):
        cards = list(rows)
        first, last = boxes[cards[0].name], boxes[cards[-1].name]
        frame = Box(cards[0].rack, first.x - 3, first.y - 8, last.x + last.width - first.x + 6, first.height + 16)
        drawn.append(drawing.rectangle(frame, fill=drawing.SHADE, stroke="#bbbbbb", width=1, round_=3))
        drawn.append(_below(f"rack {cards[0].rack}", cards[0].rack, frame, under + 16))
    for su, rows in groupby(hosts, lambda host: host.su) if units > 1 else ():
        cards = list(rows)
        left, right = boxes[cards[0].name].x, boxes[cards[-1].name].x + boxes[cards[-1].name].width
        drawn.append(drawing.stroke(f"M{left:.1f} {under + 24:.1f}H{right:.1f}", FAINT, 1.5, kind="bracket"))
        word = f"SU {su}" if su else "no port"
        drawn.append(_below(word, word, Box("", left, 0, right - left, 0), under + 38))
    return drawn


def _below(words: str, short: str, frame: Box, y: float) -> str:
    """Return a name below a frame, the shorter one where the frame is narrow; one that does not fit is cut."""
    said = words if drawing.width_of(words, SMALL) <= frame.width else drawing.fitted(short, frame.width + 8, SMALL)
    return text(frame.middle, y, said, SMALL, anchor="middle", colour=INK)


def _switch(switch: Switch, box: Box) -> str:
    rail = switch.rail
    note = switch.tier if rail is None else f"rail {rail}"
    colour = drawing.rail_colour(rail) if rail is not None and switch.tier == "leaf" else ""
    return _card(box, switch.tier, note, colour, f"{switch.name}: {switch.kind}, {switch.slot}, {note}")


def _host(host: Host, box: Box) -> str:
    note = host.slot if host.state == "active" else host.state
    return _card(box, "host", note, "", f"{host.name}: {host.kind}, {host.slot}, {host.state}")


def _card(box: Box, tier: str, note: str, colour: str, said: str) -> str:
    """Return a device: a host is square, a leaf has a band with its rail, a spine is round, a core is pointed."""
    if tier == "core":
        shape = drawing.hexagon(box)
    else:
        shape = drawing.rectangle(box, round_=14 if tier == "spine" else 0, width=1.0 if tier == "host" else 1.8)
    if colour:
        shape += drawing.rectangle(Box("", box.x, box.bottom - 7, box.width, 7), fill=colour, stroke=colour)
    title = f"<title>{escape(said)}</title>"
    return f'<g class="{tier}">{title}\n{shape}{_words(box, note)}</g>\n'


def _words(box: Box, note: str) -> str:
    """Return a card's name and note: in two lines, or upright where the card is narrow."""
    if drawing.width_of(box.name, BODY, bold=True) + 4 <= box.width:
        upper = text(box.middle, box.y + 16, box.name, BODY, anchor="middle", bold=True)
        return upper + text(
            box.middle, box.y + 30, drawing.fitted(note, box.width - 2, SMALL), SMALL, anchor="middle", colour=FAINT
        )
    size = min(BODY, max(box.width - 2.6, 9.0))
    room, foot = box.width > 30, box.bottom - 11
    upright = text(box.middle + (-3 if room else size * 0.36), foot, box.name, size, turned=True, bold=True)
    note = drawing.fitted(note, box.height - 14, SMALL)
    return upright + (text(box.middle + 10, foot, note, SMALL, turned=True, colour=FAINT) if room else "")


def _said(link: Link) -> str:
    ends = f"{link.a_device}:{link.a_port} - {link.b_device}:{link.b_port}"
    return f"{link.cable} {ends}, {format_rate(link.rate)}, {link.length:g} m"


def _cable(link: Link, places: drawing.Anchors, width: float) -> str:
    path = drawing.curve(*drawing.ends(link, places))
    if link.rail is None:
        return drawing.stroke(path, "#777777", width, said=_said(link))
    return drawing.stroke(
        path, drawing.rail_colour(link.rail), width, dash=drawing.rail_dash(link.rail), said=_said(link)
    )


def _wrong(link: Link, word: str, places: drawing.Anchors) -> str:
    path = drawing.curve(*drawing.ends(link, places))
    return drawing.stroke(path, WRONG, 4, dash="11 5", said=f"{_said(link)}: {word}", kind="cable wrong")


def _labels(bad: list[Link], wrong: Mapping[str, str], places: drawing.Anchors) -> list[str]:
    """Return the names of the wrong cables, each on its cable."""
    drawn, taken = [], list[Point]()
    for link in bad:
        words = f"{link.cable} {wrong[link.cable]}".strip()
        width = drawing.width_of(words, BODY, bold=True) + 10
        x, y = drawing.free_place(*drawing.ends(link, places), taken, (max(width, _LABEL[0]), _LABEL[1]))
        x = min(max(x, MARGIN + width / 2), WIDTH - MARGIN - width / 2)
        taken.append((x, y))
        drawn.append(
            drawing.rectangle(Box("", x - width / 2, y - 9, width, 18), stroke=WRONG, width=1.5, round_=4)
            + text(x, y + 4, words, BODY, anchor="middle", bold=True, colour=WRONG)
        )
    return drawn


def legend(design: Design, y: float, *, wrong: bool) -> list[str]:
    """Return what the colours, dashes and shapes stand for."""
    links = design.columns.links
    rails = np.flatnonzero(np.bincount(links["a_port"][~links["uplink"]])).tolist()
    x, drawn = MARGIN, [text(MARGIN, y + 8, "cables", BODY, bold=True)]
    x += 62
    rows = [(f"rail {rail}", drawing.rail_colour(rail), drawing.rail_dash(rail), 2.2) for rail in rails]
    rows += [("between switches", "#777777", "", 2.2)]
    rows += [("wrong", WRONG, "11 5", 4.0)] if wrong else []
    for word, colour, dash, width in rows:
        if x + 42 + drawing.width_of(word, SMALL) > WIDTH - MARGIN:
            x, y = MARGIN + 62, y + 18
        drawn.append(drawing.stroke(f"M{x:.1f} {y + 4:.1f}h32", colour, width, dash=dash, kind="key"))
        drawn.append(text(x + 38, y + 8, word, SMALL))
        x += 52 + drawing.width_of(word, SMALL)
    said = "spines round, leaves with a band of their rail's colour, hosts square in the frame of their rack"
    said = ("cores pointed, " if dict(summary.totals(design).switches)["core"] else "") + said
    return [*drawn, text(MARGIN, y + 30, "shapes", BODY, bold=True), text(MARGIN + 62, y + 30, said, SMALL)]
