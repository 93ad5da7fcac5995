"""What each rack draws, and so the heat that it gives off: to a liquid, to the air, or to either where no source says.

All figures are the most that makers publish. A plug of an optical cable or a transceiver counts beside its device,
whose own figure may hold some of it already: the sum is never too small by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from supernode import catalog
from supernode.catalog import ServerKind, SwitchKind
from supernode.design.runs import switch_kinds
from supernode.errors import Problem

if TYPE_CHECKING:
    from supernode.design.model import Design
    from supernode.design.optics import Fit
    from supernode.design.runs import Numbers

Watts = npt.NDArray[np.float64]
HEADER = "rack,servers_w,switches_w,optics_w,total_w,limit_w,liquid_w,air_w,unsplit_w,unknown\n"


@dataclass(frozen=True)
class RackPower:
    """A rack that holds something.

    Attributes:
        limit_w: what the site feeds it; None where the environment does not say.
        liquid_w, air_w: where the heat goes; what the catalogue does not split is in neither.
        unknown: kinds and products whose draw no source says, so that the rack draws more than the total.
    """

    rack: str
    servers_w: float
    switches_w: float
    optics_w: float
    limit_w: int | None
    liquid_w: float
    air_w: float
    unknown: tuple[str, ...]

    @property
    def total_w(self) -> float:
        """What is known of its draw."""
        return self.servers_w + self.switches_w + self.optics_w

    @property
    def unsplit_w(self) -> float:
        """What of its heat may go either way."""
        return self.total_w - self.liquid_w - self.air_w

    @property
    def over(self) -> bool:
        """Whether it draws more than it is fed, as far as is known."""
        return self.limit_w is not None and self.total_w > self.limit_w


class _Sums:
    """Watts by rack, and what is not known of each."""

    def __init__(self, racks: int) -> None:
        self.servers, self.switches, self.optics, self.liquid, self.air = (np.zeros(racks) for _ in range(5))
        self.unknown: dict[int, set[str]] = {}

    def device(self, kind: ServerKind | SwitchKind, racks: Numbers) -> None:
        """Add devices of one kind that stand in racks."""
        counts = np.bincount(racks, minlength=len(self.air)).astype(np.float64)
        (self.servers if isinstance(kind, ServerKind) else self.switches)[:] += counts * (kind.power_w or 0)
        if kind.power_w is None:
            self.miss(kind.name, racks)
        elif kind.liquid_share is not None:
            self.liquid += counts * kind.power_w * kind.liquid_share
            self.air += counts * kind.power_w * (1 - kind.liquid_share)

    def fit(self, fit: Fit) -> None:
        """Add what sits in the cages of both sides of a run; its heat goes to the air."""
        for side in ("a", "b"):
            chosen, racks = fit.plugs(side)
            for number, option in enumerate(fit.options):
                mine, plug = racks[chosen == number], option.plug(side)
                if plug is None or not len(mine):
                    continue
                if plug.power_w is None:
                    self.miss(plug.name, mine)
                watts = np.bincount(mine, minlength=len(self.air)) * (plug.power_w or 0)
                self.optics += watts
                self.air += watts

    def miss(self, name: str, racks: Numbers) -> None:
        """Note that the draw of something in these racks is not known."""
        for rack in np.unique(racks).tolist():
            self.unknown.setdefault(rack, set()).add(name)


def racks(design: Design, fits: Iterable[Fit] = ()) -> tuple[RackPower, ...]:
    """Return every rack of the site that holds something, in the order of the environment.

    Args:
        design: rented hosts stand in none of its racks.
        fits: what is plugged into the cages; without them optics count as nothing.
    """
    env, columns = design.environment, design.columns
    sums = _Sums(len(columns.racks))
    for index, pool in enumerate(env.pools):
        mine = (columns.hosts["pool"] == index) & (columns.hosts["unit"] > 0)
        sums.device(catalog.server(pool.kind), columns.hosts["rack"][mine].astype(np.int64))
    for tier, kind in enumerate(switch_kinds(design)):
        mine = design.columns.switch_tiers == tier
        if np.any(mine):
            sums.device(catalog.switch(kind), columns.switches["rack"][mine].astype(np.int64))
    for fit in fits:
        sums.fit(fit)
    used = np.union1d(columns.hosts["rack"][columns.hosts["unit"] > 0], columns.switches["rack"])
    return tuple(_row(design, sums, int(rack)) for rack in used)


def _row(design: Design, sums: _Sums, rack: int) -> RackPower:
    return RackPower(
        rack=design.environment.racks[rack].name,
        servers_w=float(sums.servers[rack]),
        switches_w=float(sums.switches[rack]),
        optics_w=float(sums.optics[rack]),
        limit_w=design.environment.racks[rack].power_w,
        liquid_w=float(sums.liquid[rack]),
        air_w=float(sums.air[rack]),
        unknown=tuple(sorted(sums.unknown.get(rack, ()))),
    )


def over_full(design: Design) -> Iterator[Problem]:
    """Yield the racks whose devices alone draw more than the site feeds them."""
    names = [rack.name for rack in design.environment.racks]
    for row in racks(design):
        if row.over:
            what = f"rack {row.rack} is fed {row.limit_w} W, what stands in it draws {row.total_w:g} W"
            path = ("racks", names.index(row.rack), "power_w")
            yield Problem(path, what, "feed it more, or name more racks for its pool or the fabric")


def power_csv(rows: Iterable[RackPower]) -> Iterator[str]:
    """Yield power.csv line by line."""
    yield HEADER
    for row in rows:
        watts = (row.servers_w, row.switches_w, row.optics_w, row.total_w)
        heat = (row.liquid_w, row.air_w, row.unsplit_w)
        limit = "" if row.limit_w is None else str(row.limit_w)
        yield f"{row.rack},{_line(watts)},{limit},{_line(heat)},{' '.join(row.unknown)}\n"


def _line(figures: Iterable[float]) -> str:
    return ",".join(f"{round(figure)}" for figure in figures)
