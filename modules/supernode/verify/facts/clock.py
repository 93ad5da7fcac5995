"""How far a machine's clock is from its time servers, as chrony estimates it."""

from __future__ import annotations

from dataclasses import dataclass

from supernode.units import Milliseconds
from supernode.verify.facts.raw import MISSING_PROGRAM, NotSeenError, Raw

# A host that has just booted needs its first four samples, 2 s apart: it is given 15 s before it is asked.
COMMAND = ("sh", "-c", "chronyc -n waitsync 15 0 0 1 >/dev/null 2>&1; exec chronyc -n -c tracking")

_FIELDS = 14
_NONE = Milliseconds(0)


@dataclass(frozen=True)
class Clock:
    """chrony's tracking report.

    Attributes:
        running: False when chronyd does not answer: seen, and no clock is being kept.
        synchronised: chrony has chosen a source.
        offset: the system clock minus its estimate of true time.
        bound: root dispersion plus half the root delay: how wrong that estimate can be.
    """

    running: bool
    synchronised: bool = False
    source: str = ""
    stratum: int = 0
    offset: Milliseconds = _NONE
    bound: Milliseconds = _NONE
    why: str = ""


def parse(raw: Raw) -> Clock:
    """Read the comma-separated report of `chronyc -c tracking`.

    Raises:
        NotSeenError: chronyc is not installed, or the report has another shape.
    """
    if raw.rc == MISSING_PROGRAM:
        raise NotSeenError("chronyc is not installed")
    if raw.rc != 0:
        return Clock(running=False, why=raw.problem)
    fields = raw.out.strip().split(",")
    if len(fields) != _FIELDS:
        raise NotSeenError(f"chronyc printed {len(fields)} fields, not {_FIELDS}")
    synchronised = fields[13] != "Not synchronised" and int(fields[2]) > 0
    delay, dispersion = float(fields[10]), float(fields[11])
    bound = Milliseconds(1e3 * (dispersion + delay / 2))
    return Clock(True, synchronised, fields[1], int(fields[2]), Milliseconds(1e3 * float(fields[4])), bound, fields[13])
