"""What all pictures are drawn with: palette, boxes, text that fits, cables and where they end.

A picture is SVG, dark on white, made to be read at 1,200 px; what a colour says, a word, a place or a dash says too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from supernode.design.rows import Link

WIDTH = 1200.0
MARGIN = 24.0
INK, FAINT, EDGE, PAPER, SHADE = "#1a1a1a", "#555555", "#444444", "#ffffff", "#f2f2f2"
WRONG = "#d00000"
# Five are Okabe and Ito's; the test measures that any two are told apart without red or without green cones too.
RAILS = ("#0072b2", "#e69f00", "#009e73", "#6e4a00", "#56b4e9", "#000000", "#9b9b40", "#332288")
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
SMALL, BODY, TITLE = 11.0, 12.0, 18.0
# What a letter of a wide sans serif takes of its size on average, capitals and digits counted in.
_EM, _EM_BOLD = 0.62, 0.70

Point = tuple[float, float]
Anchors = dict[tuple[tuple[str, str], str], Point]


@dataclass(frozen=True)
class Box:
    """A device's card, or any rectangle with a name."""

    name: str
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Where its centre line stands."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """Where its lower edge lies."""
        return self.y + self.height


def rail_colour(number: int) -> str:
    """Return the colour of a rail or a dimension; the ninth has the first one's, and another dash."""
    return RAILS[number % len(RAILS)]


def rail_dash(number: int) -> str:
    """Return the dash of a rail: neighbours differ in grey print too."""
    return ("", "7 2", "2 2", "9 2 2 2")[(number + number // len(RAILS)) % 4]


def width_of(words: str, size: float, *, bold: bool = False) -> float:
    """Return what a text takes, rather too much than too little."""
    return len(words) * size * (_EM_BOLD if bold else _EM)


def fitted(words: str, room: float, size: float, *, bold: bool = False) -> str:
    """Return the text, cut with an ellipsis where it is wider than its room."""
    if width_of(words, size, bold=bold) <= room:
        return words
    letters = int(room / (size * (_EM_BOLD if bold else _EM))) - 1
    return words[:letters] + "…" if letters > 0 else ""


def text(
    x: float,
    y: float,
    words: str,
    size: float = BODY,
    *,
    anchor: str = "start",
    bold: bool = False,
    turned: bool = False,
    colour: str = INK,
) -> str:
    """Return a text on a base line; a turned one is read from below, along x."""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}{weight}{turn}>{escape(words)}</text>\n"


def rectangle(box: Box, *, fill: str = PAPER, stroke: str = EDGE, width: float = 1.2, round_: float = 0) -> str:
    """Return a rectangle."""
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{round_:g}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{width:g}"/>\n'
    )


def hexagon(box: Box, *, fill: str = PAPER, width: float = 1.6) -> str:
    """Return a box whose sides are pointed: the mark of a core."""
    nib = min(10.0, box.width / 4)
    left, right, middle = box.x, box.x + box.width, box.y + box.height / 2
    corners = [(left, middle), (left + nib, box.y), (right - nib, box.y), (right, middle)]
    corners += [(right - nib, box.bottom), (left + nib, box.bottom)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polygon points="{points}" fill="{fill}" stroke="{EDGE}" stroke-width="{width:g}"/>\n'


def stroke(path: str, colour: str, width: float, *, dash: str = "", said: str = "", kind: str = "cable") -> str:
    """Return a line with what is said of it where a reader points at it."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    title = f"<title>{escape(said)}</title>" if said else ""
    return f'<path class="{kind}" d="{path}" stroke="{colour}" stroke-width="{width:g}"{dashed}>{title}</path>\n'


def document(height: float, name: str, body: Iterable[str], *, width: float = WIDTH) -> Iterator[str]:
    """Yield a whole picture, line by line, with its name for those who do not see it."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">\n'
    yield f"<title>{escape(name)}</title>\n"
    yield "<style>path { fill: none }</style>\n"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>\n'
    yield from body
    yield "</svg>\n"


def heading(title: str, said: str) -> list[str]:
    """Return a picture's title and, below, its counts."""
    return [
        text(MARGIN, 32, fitted(title, WIDTH - 2 * MARGIN, TITLE, bold=True), TITLE, bold=True),
        text(MARGIN, 52, fitted(said, WIDTH - 2 * MARGIN, BODY), BODY, colour=FAINT),
    ]


def curve(start: Point, end: Point) -> str:
    """Return a cable's path: it leaves and arrives upright."""
    (x1, y1), (x2, y2) = start, end
    middle = (y1 + y2) / 2
    return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"


def on_curve(at: float, start: Point, end: Point) -> Point:
    """Return the point of a cable's path at a share of its way."""
    (x1, y1), (x2, y2) = start, end
    middle, rest = (y1 + y2) / 2, 1 - at
    shares = (rest**3, 3 * rest * rest * at, 3 * rest * at * at, at**3)

    def mixed(*values: float) -> float:
        return sum(share * value for share, value in zip(shares, values, strict=True))

    return mixed(x1, x1, x2, x2), mixed(y1, middle, middle, y2)


def free_place(start: Point, end: Point, taken: Sequence[Point], room: Point) -> Point:
    """Return a point on a cable where no other label of that room lies; the last tried when all are taken."""
    x, y = start
    for step in range(9):
        x, y = on_curve(0.2 + 0.075 * step, start, end)
        if all(abs(x - other_x) > room[0] or abs(y - other_y) > room[1] for other_x, other_y in taken):
            break
    return x, y


def anchors(boxes: Mapping[str, Box], links: Iterable[Link], hosts: set[str]) -> Anchors:
    """Give every end of every cable its point on a card's edge, in the order of what is at its other end."""
    edges: dict[tuple[str, str], list[tuple[float, tuple[str, str], str]]] = {}
    for link in links:
        a, b = (link.a_device, link.a_port), (link.b_device, link.b_port)
        a_order = float(link.rail or 0) if link.a_device in hosts else boxes[link.b_device].x
        edges.setdefault((link.a_device, "top"), []).append((a_order, a, link.cable))
        edges.setdefault((link.b_device, "bottom"), []).append((boxes[link.a_device].x, b, link.cable))
    found: Anchors = {}
    for (device, edge), rows in edges.items():
        box = boxes[device]
        y = box.y if edge == "top" else box.bottom
        for i, (_, end, cable) in enumerate(sorted(rows)):
            found[(end, cable)] = (box.x + box.width * (i + 0.5) / len(rows), y)
    return found


def ends(link: Link, found: Anchors) -> tuple[Point, Point]:
    """Return both points of a cable."""
    return found[((link.a_device, link.a_port), link.cable)], found[((link.b_device, link.b_port), link.cable)]
