"""What a cable has to carry, on whose word, and how that binds. Pure.

A contract floor of the specification wins, even when it is looser. Else the mark is computed from the declared
hardware, and what falls below it is advice until known-good hosts have reached it: the last clean run says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from supernode.records import Finding, Verdict
from supernode.units import MbitPerS, format_rate, parse_rate

if TYPE_CHECKING:
    from supernode.design.expectations import Expectations
    from supernode.verify.expected import Cable

LEAST_COHORT = 4  # fewer cables have no median to be held against
SURELY_WRONG = 0.6  # of the declared rate: half of it, or a lane less, is no matter of calibration
BESIDE = 0.95  # of the cohort's median: what stays below it is worth a look, whatever the mark


@dataclass(frozen=True)
class Mark:
    """The share of its declared rate that a cable must carry each way.

    Attributes:
        source: where it comes from, for a person.
        binding: what falls below fails; else it is advice, down to SURELY_WRONG.
    """

    share: float
    source: str
    binding: bool = True

    def below(self, carried: float, declared: float) -> Verdict:
        """Return what a cable gets that stays below; both in one unit."""
        return Verdict.FAIL if self.binding or carried < SURELY_WRONG * declared else Verdict.ADVICE


@dataclass(frozen=True)
class Good:
    """What the cables of one cohort carried: the median's share of the declared rate, and how many they were."""

    share: float
    cables: int


@dataclass(frozen=True)
class Baseline:
    """What known-good hosts reached in a clean run, by cohort."""

    run: str
    cohorts: Mapping[str, Good]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `from_json` reads back."""
        rows = {name: {"share": good.share, "cables": good.cables} for name, good in self.cohorts.items()}
        return {"run": self.run, "cohorts": rows}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Baseline:
        """Read what `to_json` wrote."""
        rows = document["cohorts"].items()
        return cls(str(document["run"]), {name: Good(float(r["share"]), int(r["cables"])) for name, r in rows})


def mark(expectations: Expectations, baseline: Baseline | None) -> Mark:
    """Return the mark of an environment's cables."""
    share, source = expectations.rate_floor, expectations.rate_source
    if expectations.rate_contract:
        return Mark(share, source)
    reached = [good for good in baseline.cohorts.values() if good.share >= share] if baseline else []
    if baseline is None or len(reached) < len(baseline.cohorts) or not reached:
        return Mark(share, f"{source}; not calibrated on known-good hosts, so it is advice", binding=False)
    cables = sum(good.cables for good in reached)
    return Mark(share, f"{source}; calibrated on {cables} cables by run {baseline.run}")


def cohort(cable: Cable) -> str:
    """Return whom a cable is compared with: those of its kind and declared rate."""
    return f"{cable.kind} {format_rate(cable.rate)}"


def baseline(cables: Mapping[str, Cable], findings: Iterable[Finding], run: str) -> Baseline | None:
    """Return what the cables of a clean run carried; None where too few of every cohort were measured."""
    shares: dict[str, list[float]] = {}
    for row in findings:
        if row.check == "rate" and row.verdict is Verdict.PASS and row.place in cables:
            cable = cables[row.place]
            shares.setdefault(cohort(cable), []).append(parse_rate(row.found) / cable.rate)
    kept = {
        name: Good(statistics.median(rows), len(rows)) for name, rows in shares.items() if len(rows) >= LEAST_COHORT
    }
    return Baseline(run, kept) if kept else None


def medians(carried: Mapping[str, float], cables: Mapping[str, Cable]) -> dict[str, MbitPerS]:
    """Return the median of what the cables of each cohort carried, for cohorts that are large enough."""
    rows: dict[str, list[float]] = {}
    for name, rate in carried.items():
        rows.setdefault(cohort(cables[name]), []).append(rate)
    return {name: MbitPerS(statistics.median(row)) for name, row in rows.items() if len(row) >= LEAST_COHORT}
