"""What tests ask of a picture: its tree, its words and where they lie."""

from xml.etree import ElementTree as Xml

SVG = "{http://www.w3.org/2000/svg}"
# DejaVu Sans, measured: no letter of a name is wider on average; bold is a tenth wider.
_EM = 0.60


def tree(lines):
    """The picture as a tree; text that is not well-formed is an error."""
    return Xml.fromstring("".join(lines))  # noqa: S314 - our own


def words(root):
    """Every text of a picture."""
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def places(root):
    """Every text with the rectangle that it takes: (text, left, top, right, bottom)."""
    for element in root.iter(f"{SVG}text"):
        x, y, size = (float(element.get(key)) for key in ("x", "y", "font-size"))
        said = element.text or ""
        wide = len(said) * size * (_EM * 1.1 if element.get("font-weight") else _EM)
        start = {"start": 0, "middle": -wide / 2, "end": -wide}[element.get("text-anchor")]
        if "transform" in element.attrib:
            yield said, x - size * 0.75, y - start - wide, x + size * 0.2, y - start
        else:
            yield said, x + start, y - size * 0.75, x + start + wide, y + size * 0.2


def canvas(root):
    """The picture's width and height."""
    return float(root.get("width")), float(root.get("height"))


def outside(root):
    """The texts that reach over the picture's edge."""
    width, height = canvas(root)
    return [row for row in places(root) if row[1] < 0 or row[2] < 0 or row[3] > width or row[4] > height]


def overlapping(root):
    """The pairs of texts of which one lies on the other by more than a hair."""
    rows = [row for row in places(root) if row[0]]
    return [
        (a[0], b[0])
        for i, a in enumerate(rows)
        for b in rows[i + 1 :]
        if min(a[3], b[3]) - max(a[1], b[1]) > 2 and min(a[4], b[4]) - max(a[2], b[2]) > 2
    ]


def paths(root, kind):
    """The lines of a kind."""
    return [element for element in root.iter(f"{SVG}path") if element.get("class") == kind]
