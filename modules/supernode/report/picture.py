"""The fabric as inline SVG: spines, leaves, hosts by rack, and every cable in the colour of its state.

Only classes and positions are written here; colours come from the page's style, so that light and dark both work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from supernode.design import Design
from supernode.design.pictures import drawing
from supernode.design.pictures.drawing import Anchors, Box, Point
from supernode.design.rows import Host, Link, Switch
from supernode.records import Finding
from supernode.report.problems import cable_states, standing
from supernode.units import format_rate

MOST_HOSTS = 48
_RAIL_STEP, _CARD_PAD, _GAP, _RACK_GAP = 13, 12, 10, 26
_SPINE_Y, _LEAF_Y, _HOST_Y = 34, 190, 452
_SWITCH_H, _HOST_H, _SWITCH_W = 44, 66, 128
_MARGIN = 20
_LABELLED = 24
_LABEL_W, _LABEL_H = 54, 18


@dataclass(frozen=True)
class Picture:
    """The drawing, and how many hosts it leaves out."""

    svg: str
    left_out: int
    counts: Mapping[str, int]


def draw(design: Design, findings: Iterable[Finding]) -> Picture:
    """Draw the fabric; of more than MOST_HOSTS hosts only those with a cable or a finding that is not well."""
    rows = list(findings)
    states = _all_states(design, rows)
    verdicts = standings(design, rows)
    hosts, left_out = _chosen(design, states, verdicts)
    boxes = _place(design, hosts)
    names = {host.name for host in hosts}
    links = [link for link in design.links if link.a_device in boxes and link.b_device in boxes]
    anchors = drawing.anchors(boxes, links, names)
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN
    height = _HOST_Y + _HOST_H + 34
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" style="--drawn: {width:.0f}px"'
    parts = [f'<svg class="fabric" {size} role="img">']
    parts += _racks(hosts, boxes)
    parts += [
        _cable(link, states[link.cable], anchors) for link in sorted(links, key=lambda row: _drawn_late(states, row))
    ]
    parts += [_switch(switch, boxes[switch.name], verdicts) for switch in design.switches if switch.name in boxes]
    parts += [_host(host, boxes[host.name], verdicts) for host in hosts]
    parts += [_port(end, point, states[cable]) for (end, cable), point in anchors.items() if end[0] in names]
    parts += _labels(links, states, anchors)
    parts.append("</svg>")
    counts: dict[str, int] = {}
    for state in states.values():
        counts[state] = counts.get(state, 0) + 1
    return Picture("\n".join(parts), left_out, counts)


def standings(design: Design, findings: Iterable[Finding]) -> dict[str, str]:
    """Return how each device stands (see `problems.standing`); one whose cable is not well is touched."""
    rows = list(findings)
    found, states = standing(rows), cable_states(rows)
    for link in design.links:
        if states.get(link.cable, "ok") != "ok":
            for device in (link.a_device, link.b_device):
                if found.get(device, "pass") == "pass":
                    found[device] = "touched"
    return found


def _all_states(design: Design, findings: list[Finding]) -> dict[str, str]:
    told = cable_states(findings)
    return {link.cable: "shut" if link.shut else told.get(link.cable, "unchecked") for link in design.links}


def _chosen(design: Design, states: Mapping[str, str], verdicts: Mapping[str, str]) -> tuple[list[Host], int]:
    hosts = list(design.hosts)
    if len(hosts) <= MOST_HOSTS:
        return hosts, 0
    bad = {link.a_device for link in design.links if states[link.cable] not in ("ok", "unchecked", "shut")}
    bad |= {name for name, verdict in verdicts.items() if verdict != "pass"}
    shown = [host for host in hosts if host.name in bad][:MOST_HOSTS] or hosts[:8]
    return shown, len(hosts) - len(shown)


def _place(design: Design, hosts: list[Host]) -> dict[str, Box]:
    """Put hosts in a row by rack, and switches above them, spread over the same width."""
    boxes: dict[str, Box] = {}
    x, rack = float(_MARGIN), hosts[0].rack if hosts else ""
    rails = max((sum(1 for _ in design.links_of(host.name)) for host in hosts), default=1)
    width = max(rails * _RAIL_STEP + _CARD_PAD, 100)
    for host in sorted(hosts, key=lambda row: (row.rack, row.unit)):
        if host.rack != rack:
            x, rack = x + _RACK_GAP, host.rack
        boxes[host.name] = Box(host.name, x, _HOST_Y, width, _HOST_H)
        x += width + _GAP
    units = {host.su for host in hosts}
    leaves = [switch for switch in design.switches if switch.tier == "leaf" and switch.su in units]
    spines = [switch for switch in design.switches if switch.tier == "spine"]
    total = max(x - _GAP - _MARGIN, len(leaves) * (_SWITCH_W + _GAP), len(spines) * (_SWITCH_W + _GAP))
    boxes.update(_spread(leaves, total, _LEAF_Y))
    boxes.update(_spread(spines, total, _SPINE_Y))
    return boxes


def _spread(switches: list[Switch], total: float, y: float) -> dict[str, Box]:
    step = total / max(len(switches), 1)
    return {
        switch.name: Box(switch.name, _MARGIN + step * (i + 0.5) - _SWITCH_W / 2, y, _SWITCH_W, _SWITCH_H)
        for i, switch in enumerate(switches)
    }


def _drawn_late(states: Mapping[str, str], link: Link) -> int:
    """Draw the well ones first, so that nothing hides a bad one."""
    return 0 if states[link.cable] in ("ok", "unchecked", "shut") else 1


def _racks(hosts: list[Host], boxes: Mapping[str, Box]) -> list[str]:
    by_rack: dict[str, list[Box]] = {}
    for host in hosts:
        by_rack.setdefault(host.rack, []).append(boxes[host.name])
    parts = []
    for rack, cards in by_rack.items():
        left, right = min(c.x for c in cards) - 7, max(c.x + c.width for c in cards) + 7
        parts.append(
            f'<rect class="rack" x="{left:.1f}" y="{_HOST_Y - 12}" width="{right - left:.1f}" '
            f'height="{_HOST_H + 38}" rx="10"/>'
            f'<text class="rackname" x="{left + 10:.1f}" y="{_HOST_Y + _HOST_H + 18}">rack {escape(rack)}</text>'
        )
    return parts


def _cable(link: Link, state: str, anchors: Anchors) -> str:
    title = f"{link.cable}  {link.a_device}:{link.a_port} - {link.b_device}:{link.b_port}\n"
    title += f"{state}, {format_rate(link.rate)}, {link.length:g} m"
    path = drawing.curve(*drawing.ends(link, anchors))
    return f'<path class="cable {state}" d="{path}"><title>{escape(title)}</title></path>'


def _switch(switch: Switch, box: Box, verdicts: Mapping[str, str]) -> str:
    verdict = verdicts.get(switch.name, "unchecked")
    speaks = "InfiniBand" if switch.asn is None else f"AS {switch.asn}"
    title = f"{switch.name}\n{switch.kind}, {switch.slot}, {speaks}, {switch.management.ip}"
    rail = f"rail {switch.rail}" if switch.rail is not None else "spine"
    return _card(box, switch.name, f"{switch.slot} · {rail}", title, verdict, switch.tier)


def _host(host: Host, box: Box, verdicts: Mapping[str, str]) -> str:
    title = f"{host.name}\n{host.kind}, {host.slot}, {host.state}, {host.management.ip}"
    # Both words of a quarantined slot are wider than its card; the title has the slot.
    note = {"active": host.slot, "quarantined": host.state}.get(host.state, f"{host.slot} · {host.state}")
    return _card(box, host.name, note, title, verdicts.get(host.name, "unchecked"), f"host {host.state}")


def _card(box: Box, name: str, note: str, title: str, state: str, kind: str) -> str:
    y = box.y + box.height - 25
    return (
        f'<g class="card {kind} {state}"><title>{escape(title)}</title>'
        f'<rect x="{box.x:.1f}" y="{box.y}" width="{box.width:.1f}" height="{box.height}" rx="7"/>'
        f'<circle class="lamp" cx="{box.x + 13:.1f}" cy="{y - 3:.1f}" r="4"/>'
        f'<text class="name" x="{box.x + 23:.1f}" y="{y + 1:.1f}">{escape(name)}</text>'
        f'<text class="note" x="{box.x + 23:.1f}" y="{y + 15:.1f}">{escape(note)}</text></g>'
    )


def _port(end: tuple[str, str], point: Point, state: str) -> str:
    x, y = point
    title = escape(f"{end[0]}:{end[1]} {state}")
    place = f'x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" rx="2"'
    return f'<rect class="port {state}" {place}><title>{title}</title></rect>'


def _labels(links: list[Link], states: Mapping[str, str], anchors: Anchors) -> list[str]:
    """Name the bad cables beside their host's end; too many names would hide the picture."""
    bad = [link for link in links if states[link.cable] in ("missing", "swapped", "slow", "fault")]
    parts: list[str] = []
    taken: list[Point] = []
    for link in bad if len(bad) <= _LABELLED else []:
        x, y = drawing.free_place(*drawing.ends(link, anchors), taken, (_LABEL_W, _LABEL_H))
        taken.append((x, y))
        parts.append(
            f'<g class="label {states[link.cable]}">'
            f'<rect x="{x - 26:.1f}" y="{y - 9:.1f}" width="52" height="17" rx="8"/>'
            f'<text x="{x:.1f}" y="{y + 3.5:.1f}">{escape(link.cable)}</text></g>'
        )
    return parts
