"""A rack sheet: CSV as a site keeps it, its headings matched to what we call things; every problem with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from supernode.bringup.survey.places import rack_name
from supernode.design import assigning
from supernode.errors import Problem, Refusal, WrongInput

# What each column is called on common sheets, as `_plain` writes headings; our own name is always among them.
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "rack": ("rack", "cabinet", "rackname", "rackid", "cab"),
    "unit": ("unit", "u", "ru", "uposition", "rackunit", "position", "startu", "bottomu", "elevation", "uloc"),
    "name": ("name", "hostname", "host", "devicename", "node", "servername"),
    "kind": ("kind", "model", "devicetype", "type", "sku", "product"),
    "serial": ("serial", "serialnumber", "sn", "systemserial", "servicetag", "systemsn"),
    "board_serial": ("boardserial", "baseboardserial", "boardsn"),
    "chassis_serial": ("chassisserial", "chassissn"),
    "uuid": ("uuid", "systemuuid", "smbiosuuid"),
    "bmc": ("bmc", "bmcip", "bmcaddress", "ipmi", "ipmiip", "oob", "oobip", "idrac", "idracip", "ilo", "iloip"),
    "bmc_mac": ("bmcmac", "bmcmacaddress", "ipmimac", "oobmac", "idracmac"),
    "management_mac": ("managementmac", "mgmtmac", "mac", "macaddress", "hostmac", "pxemac"),
}
_IDENTITY = {"serial": "system_serial"}
_IDENTITIES = ("serial", "board_serial", "chassis_serial", "uuid", "bmc_mac", "management_mac")


@dataclass(frozen=True)
class Row:
    """One machine of a sheet.

    Attributes:
        identity: by the names of machines.yml.
        bmc: its address, or "".
    """

    line: int
    rack: str
    unit: int
    name: str
    kind: str
    identity: Mapping[str, str]
    bmc: str

    @property
    def slot(self) -> str:
        """The slot's name."""
        return f"{self.rack}u{self.unit:02d}"


def parse_map(text: str) -> dict[str, str]:
    """Read `rack=Rack,serial="Serial Number"`: our name of a column to the sheet's heading.

    Raises:
        WrongInput: a column that we do not know, or no pair.
    """
    found = {}
    for part in next(csv.reader([text], skipinitialspace=True, quotechar="'"), []):
        ours, equals, theirs = part.partition("=")
        ours = ours.strip()
        if not equals or ours not in HEADINGS:
            what = f"{part.strip()!r} maps no column"
            raise WrongInput("--map", what, f"write ours=theirs, ours one of {', '.join(HEADINGS)}")
        found[ours] = theirs.strip().strip('"')
    return found


def read(name: str, text: str, wanted: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Read a sheet.

    Args:
        name: for problems.
        text: the file.
        wanted: our name of a column to the sheet's heading; the other columns are found by what they are called.

    Raises:
        Refusal: columns that are missing, cells that cannot be, two machines in one place or with one identity; all.
    """
    # A sheet out of a spreadsheet begins with a byte order mark, and may separate by semicolons.
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter=";" if head.count(";") > head.count(",") else ",")
    headings = [cell.strip() for cell in next(reader, [])]
    columns, problems = _columns(name, headings, wanted or {})
    if problems:
        raise Refusal(problems)
    rows = []
    for cells in reader:
        if any(cell.strip() for cell in cells):
            at = reader.line_num
            found = {ours: cells[i].strip() if i < len(cells) else "" for ours, i in columns.items()}
            problems += [Problem((at,), what, hint, name) for what, hint in _wrong(found)]
            rows.append(_row(at, found))
    problems += _twice(name, rows)
    if not rows:
        problems.append(Problem((1,), "the sheet lists no machine", None, name))
    if problems:
        raise Refusal(sorted(problems, key=lambda p: (int(p.path[0]), p.what)))
    return tuple(rows)


def _plain(heading: str) -> str:
    return re.sub(r"[^a-z0-9]", "", heading.lower())


def _columns(name: str, headings: list[str], wanted: Mapping[str, str]) -> tuple[dict[str, int], list[Problem]]:
    problems, found = [], {}
    shown = f"headings: {', '.join(headings)}"
    for ours, theirs in wanted.items():
        if theirs in headings:
            found[ours] = headings.index(theirs)
        else:
            problems.append(Problem((1,), f"there is no column {theirs!r} (for {ours})", shown, name))
    for ours, names in HEADINGS.items():
        matches = [i for i, h in enumerate(headings) if _plain(h) in names and i not in found.values()]
        if ours not in wanted and matches:
            found[ours] = min(matches, key=lambda i: names.index(_plain(headings[i])))
    lacking = [ours for ours in ("rack", "unit") if ours not in found and ours not in wanted]
    hint = f"name it, e.g. --map {','.join(f'{o}=HEADING' for o in lacking)}; {shown}"
    problems += [Problem((1,), f"no column says the {ours}", hint, name) for ours in lacking]
    if not {*_IDENTITIES, "bmc"} & found.keys() and not problems:
        problems.append(Problem((1,), "no column tells one machine from another (serial, UUID, MAC, BMC)", shown, name))
    return found, problems


def unit_of(text: str) -> int:
    """Read a rack unit: `5`, `U5`, `05`, or the lower one of `5-12`; 0 where it is none."""
    match = re.fullmatch(r"[uU]?\s*(\d{1,2})(?:\s*[-–]\s*[uU]?(\d{1,2}))?", text.strip())
    return min(int(n) for n in match.groups() if n) if match else 0


def _row(line: int, cells: Mapping[str, str]) -> Row:
    identity = {_IDENTITY.get(key, key): cells[key] for key in _IDENTITIES if cells.get(key)}
    place = rack_name(cells["rack"]), unit_of(cells["unit"])
    return Row(line, *place, cells.get("name", ""), cells.get("kind", ""), identity, cells.get("bmc", ""))


def _wrong(cells: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    if not rack_name(cells["rack"]):
        yield f"rack {cells['rack']!r} is no name of a rack", None
    if not unit_of(cells["unit"]):
        yield f"unit {cells['unit']!r} is no rack unit", "a number from 1 to 99; of a range the lower one counts"
    if cells.get("bmc"):
        try:
            IPv4Address(cells["bmc"].partition(":")[0])
        except AddressValueError:
            yield f"bmc {cells['bmc']!r} is no IPv4 address", None
    for key in _IDENTITIES:
        yield from assigning.value_problems(_IDENTITY.get(key, key), cells.get(key, ""))
    if not any(cells.get(key) for key in (*_IDENTITIES, "bmc")):
        yield "nothing tells this machine from another", "give a serial number, a UUID, a MAC or the BMC's address"


def _twice(name: str, rows: list[Row]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        claims = [("place", row.slot)] if row.rack and row.unit else []
        claims += [(key, value) for key, value in row.identity.items()]
        claims += [("bmc", row.bmc)] if row.bmc else []
        claims += [("name", row.name)] if row.name else []
        for key, value in claims:
            space = "mac" if key.endswith("_mac") else key
            first = seen.setdefault((space, assigning.plain_value(key, value)), row.line)
            if first != row.line:
                yield Problem((row.line,), f"{key} {value} is there twice, first on line {first}", None, name)
