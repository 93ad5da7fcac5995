"""How much this machine can carry, measured; and whether a lab's rates fit into it.

A rate that the machine cannot give would show as a slow link that no cable has. What is measured is the sum of what
arrives when many TCP flows run through a forwarding namespace and out of shaped ports, as rails' traffic does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from supernode import workspace
from supernode.errors import CouldNotRun
from supernode.lab.artefacts import Artefacts, Cable
from supernode.units import MbitPerS, format_rate

SHARE = 0.4  # of what was measured: the rest is for what the lab's systems do besides
SECONDS, ROUNDS = 0.7, 3
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Need:
    """What a lab asks of the machine when every port that can receive does so at its rate.

    Attributes:
        total: the sum over all rails.
        flows: how many there are.
    """

    total: MbitPerS
    flows: int


def need(cables: Iterable[Cable]) -> Need:
    """Sum up the rails, each receiving at its rate."""
    rails = [cable.rate for cable in cables if cable.kind == "rail"]
    return Need(MbitPerS(sum(rails)), len(rails))


def check(artefacts: Artefacts, capacity: MbitPerS) -> None:
    """Refuse a lab whose flows at once need more than the share.

    Raises:
        CouldNotRun: with the rate that fits.
    """
    wanted = need(artefacts.wires)
    allowed = MbitPerS(capacity * SHARE)
    if wanted.total <= allowed:
        return
    fits = MbitPerS(allowed / max(wanted.flows, 1))
    raise CouldNotRun(
        artefacts.site.name,
        f"its {wanted.flows} rails at once need {format_rate(wanted.total)}, "
        f"more than {SHARE:.0%} of the {format_rate(MbitPerS(round(capacity)))} that this machine carries",
        f"set fabric.rates.rail to {format_rate(_round_down(fits))} or less, and uplinks in proportion",
    )


def check_machine(artefacts: Artefacts, cache: Path) -> None:
    """Hold a lab against this machine; before it is refused, the machine is measured again, for it may have been busy.

    Raises:
        CouldNotRun: with the rate that fits.
    """
    if need(artefacts.wires).total > measured(cache) * SHARE:
        measured(cache, again=True)
    check(artefacts, measured(cache))


def measured(cache: Path, again: bool = False) -> MbitPerS:
    """Return the machine's capacity, kept in a file until the next boot: the best of all measurements.

    Args:
        cache: the file.
        again: measure also when the file has a figure.
    """
    boot = _BOOT.read_text(encoding="ascii").strip()
    known = _known(cache, boot)
    if known and not again:
        return known
    rate = max(known, *(measure() for _ in range(ROUNDS)))  # other work on the machine only makes it slower
    workspace.write_atomically(cache, json.dumps({"boot": boot, "mbit_s": rate}))
    return MbitPerS(rate)


def _known(cache: Path, boot: str) -> MbitPerS:
    """Return the figure of this boot, 0 when there is none."""
    if not cache.is_file():
        return MbitPerS(0)
    found = json.loads(cache.read_text(encoding="utf-8"))
    return MbitPerS(found["mbit_s"] if found["boot"] == boot else 0)


def measure() -> MbitPerS:
    """Pump for a second, in namespaces of their own that end with it.

    Raises:
        CouldNotRun: the kernel cannot make what the pump needs.
    """
    command = [
        "unshare",
        "--mount",
        "--net",
        "--kill-child",
        "--fork",
        sys.executable,
        "-m",
        "supernode.lab.pump",
        str(SECONDS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise CouldNotRun(
            "capacity", f"cannot be measured: {' '.join(done.stderr.split()[-30:])}", "supernode lab doctor"
        )
    return MbitPerS(float(done.stdout))


def _round_down(rate: MbitPerS) -> MbitPerS:
    """Keep two digits, so that a person can write it."""
    scale = 10.0 ** (len(str(int(rate))) - 2) if rate >= 1 else 0.01
    return MbitPerS(max(0.01, int(rate / scale) * scale))
