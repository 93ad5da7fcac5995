"""What the collective library of a host reads, and which RDMA devices the host has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from supernode.verify.facts.raw import NotSeenError, Raw

# Each line: <PCI address>/infiniband/<name>. Status 3: there is no PCI bus to look at.
COMMAND = ("sh", "-c", "cd /sys/bus/pci/devices 2>/dev/null || exit 3; ls -d */infiniband/* 2>/dev/null; exit 0")
# What everybody's environment has goes before /etc/nccl.conf; so does a user's own ~/.nccl.conf, which is the user's.
BEFORE = ("/etc/environment",)
_KEY, _GONE, _NO_BUS = "collectives ", "No such file", 3


@dataclass(frozen=True)
class Read:
    """What was read.

    Attributes:
        files: by path; None is a file that is not there.
        rdma: the name of the RDMA device at each PCI address; None where no bus could be looked at.
    """

    files: Mapping[str, str | None]
    rdma: Mapping[str, str] | None


def files(designed: Iterable[str]) -> dict[str, str]:
    """Return the files to read, by the keys of their answers."""
    return {f"{_KEY}{path}": path for path in (*designed, *BEFORE)}


def parse(raw: Mapping[str, Raw]) -> Read:
    """Read the answers.

    Raises:
        NotSeenError: a file is there and could not be read.
    """
    found = {key.removeprefix(_KEY): _text(row) for key, row in raw.items() if key.startswith(_KEY)}
    return Read(found, _rdma(raw["rdma"]))


def _text(row: Raw) -> str | None:
    if row.rc and _GONE in row.err + row.out:
        return None
    if row.rc:
        raise NotSeenError(row.problem)
    return row.out


def _rdma(row: Raw) -> dict[str, str] | None:
    if row.rc == _NO_BUS:
        return None
    rows = (line.split("/") for line in row.must().split())
    return {parts[0]: parts[2] for parts in rows if len(parts) == 3}
