"""A host's accelerators: what stands on the bus, what the driver shows, and what it said into the kernel's log."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass

from supernode.verify.facts.raw import MISSING_PROGRAM, NotSeenError, Raw

FIELDS = ("index", "pci.bus_id", "name", "uuid", "driver_version", "persistence_mode")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "gpus": ("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"),
    "xids": ("sudo", "-n", "journalctl", "-k", "-b", "-o", "cat", "--no-pager", "-n", "50", "--grep", "NVRM: Xid"),
}
_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?")
_DISPLAY = "0x03"  # the PCI class of display controllers, 3D ones among them


@dataclass(frozen=True)
class Gpu:
    """One accelerator as its driver shows it; the index is the driver's own, without the lost ones."""

    index: int
    address: str
    name: str
    uuid: str
    driver: str
    persistent: bool


@dataclass(frozen=True)
class Gpus:
    """All of a host's.

    Attributes:
        bus: the addresses of display controllers on the bus.
        driven: what the driver shows; empty where it shows nothing, and then `why` has its words.
        xids: lines of the kernel's log, since it started.
        log: why the kernel's log was not read; "" where it was.
    """

    bus: tuple[str, ...]
    driven: tuple[Gpu, ...]
    why: str = ""
    xids: tuple[str, ...] = ()
    log: str = ""


def parse(raw: Mapping[str, Raw]) -> Gpus:
    """Read the bus, the driver's table and the kernel's log.

    Raises:
        NotSeenError: the bus was not listed, or the driver's table has another form than it was asked for.
    """
    driven, why = table(raw["gpus"])
    xids, log = logged(raw["xids"])
    return Gpus(_bus(raw["bus"]), driven, why, xids, log)


def logged(row: Raw) -> tuple[tuple[str, ...], str]:
    """Read journalctl's lines, or why there are none: like grep it ends with 1 where nothing matches, and says nothing.

    It ends with 1 where it cannot open the journal, too, and says so. A file that a power cut left behind is another
    boot's: it says that it leaves that out and reads on.
    """
    said = [line for line in row.err.splitlines() if line.strip() and not line.endswith("ignoring file.")]
    if row.rc not in (0, 1) or (row.rc == 1 and said):
        return (), row.problem
    return tuple(line for line in row.out.splitlines() if "NVRM: Xid" in line), ""


def _bus(row: Raw) -> tuple[str, ...]:
    devices: Mapping[str, Mapping[str, str]] = row.json()
    return tuple(sorted(a for a, device in devices.items() if device.get("class", "").startswith(_DISPLAY)))


def table(row: Raw) -> tuple[tuple[Gpu, ...], str]:
    """Read nvidia-smi's rows, and what it says besides: of an accelerator that it cannot reach it prints a sentence.

    Raises:
        NotSeenError: a row has another number of fields.
    """
    if row.rc == MISSING_PROGRAM:
        return (), "no nvidia-smi: the driver is not installed"
    found, said = [], []
    for line in row.out.splitlines():
        cells = [cell.strip() for cell in next(csv.reader([line]), [])]
        if cells and cells[0].isdigit():
            found.append(_gpu(cells))
        elif line.strip():
            said.append(line.strip())
    if not found and not said:
        said.append(row.problem if row.rc else "nvidia-smi shows no accelerator")
    return tuple(found), " ".join(said)


def _gpu(cells: list[str]) -> Gpu:
    if len(cells) != len(FIELDS):
        raise NotSeenError(f"nvidia-smi printed {len(cells)} fields, not {len(FIELDS)}: {', '.join(cells)}")
    index, address, name, uuid, driver, persistence = cells
    return Gpu(int(index), normal(address), name, uuid, driver, persistence == "Enabled")


def normal(text: str) -> str:
    """Return the first address in a text as the kernel writes it, "0000:9d:00.0"; "" where there is none.

    nvidia-smi writes eight digits of the domain, in capitals; an XID leaves the function out.
    """
    match = _ADDRESS.search(text)
    if match is None:
        return ""
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus.lower()}:{device.lower()}.{function or 0}"
