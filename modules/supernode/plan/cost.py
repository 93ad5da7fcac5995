"""What rented pools would cost, before anything is rented: the catalogue's price times the instances, an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from supernode import catalog
from supernode.design import Design
from supernode.spec import Cloud, Pool

HOURS_OF_A_MONTH = 730  # 365 days of 24 hours over 12, as the providers' calculators have it
_BEYOND = "volumes, traffic and the site's VPN come on top"


@dataclass(frozen=True)
class Cost:
    """One pool's price.

    Attributes:
        hourly: of one instance, on demand in the pool's region; None where no price is known, which is not zero.
        note: what the estimate rests on, or why there is none.
    """

    pool: str
    kind: str
    instances: int
    region: str
    currency: str
    hourly: Decimal | None
    note: str

    @property
    def per_hour(self) -> Decimal | None:
        """What the whole pool costs in an hour."""
        return None if self.hourly is None else self.hourly * self.instances

    @property
    def per_day(self) -> Decimal | None:
        """What it costs in 24 hours."""
        return None if self.per_hour is None else self.per_hour * 24

    @property
    def per_month(self) -> Decimal | None:
        """What it costs in a month of 730 hours."""
        return None if self.per_hour is None else self.per_hour * HOURS_OF_A_MONTH

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document; amounts are numbers, null where the price is unknown."""
        amounts = {"per_hour": self.per_hour, "per_day": self.per_day, "per_month": self.per_month}
        return {
            "pool": self.pool,
            "kind": self.kind,
            "instances": self.instances,
            "region": self.region,
            "estimate": True,
            "currency": self.currency,
            **{key: None if amount is None else float(round(amount, 2)) for key, amount in amounts.items()},
            "note": self.note,
        }


def estimate(design: Design) -> tuple[Cost, ...]:
    """Return what each rented pool would cost while all its instances run."""
    cloud = design.environment.cloud
    if cloud is None:
        return ()
    return tuple(_of(cloud, pool) for pool in design.environment.pools if pool.cloud)


def _of(cloud: Cloud, pool: Pool) -> Cost:
    price = catalog.price(pool.kind)
    hourly = price.per_hour.get(cloud.region) if price else None
    if price is None or hourly is None:
        note = f"no price of {pool.kind} in {cloud.region} is known here: ask {cloud.provider} before you begin"
        return Cost(pool.name, pool.kind, pool.count, cloud.region, price.currency if price else "", None, note)
    note = f"on demand, by {price.source}, {price.date.isoformat()}; {_BEYOND}"
    if had := cloud.capacity.block or cloud.capacity.reservation:
        note = f"{note}; {had} has a price of its own, paid whether instances run or not"
    return Cost(pool.name, pool.kind, pool.count, cloud.region, price.currency, hourly, note)


def lines(costs: tuple[Cost, ...]) -> list[str]:
    """Return one line for each pool, for a person."""
    return [_line(cost) for cost in costs]


def _line(cost: Cost) -> str:
    what = f"pool {cost.pool}: {cost.instances} x {cost.kind} in {cost.region}"
    if cost.per_hour is None or cost.per_day is None or cost.per_month is None:
        return f"{what}: cost unknown; {cost.note}"
    amounts = f"{cost.per_hour:,.2f} an hour, {cost.per_day:,.2f} a day, {cost.per_month:,.2f} a month"
    return f"{what}: an estimate of {cost.currency} {amounts} ({cost.note})"
