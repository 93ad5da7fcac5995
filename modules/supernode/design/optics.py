"""Which cables, transceivers and fibre a fabric takes, and how many of each.

For each cable the cheapest that fits both cages and reaches: copper, then active optical cables, then transceivers
with fibre. Whatever of a run no cable does gets one sort of transceiver at each end, the cheapest that reaches the
longest of them: a site keeps spares of few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product as pairs

import numpy as np

from supernode import catalog
from supernode.catalog import Product
from supernode.design.runs import Flags, Numbers, Plug, Run
from supernode.errors import Problem
from supernode.units import format_rate

NOTHING = -1
_MOST = 63  # more ports than any plug has


@dataclass(frozen=True)
class Option:
    """What joins two cages.

    Attributes:
        cable: copper or an active optical cable, or the fibre; None where it is not known what fits.
        length_m: as it is sold.
        a, b: the transceivers at the ends; None where the cable has its own plugs.
        legs: how many links share one fibre.
    """

    cable: Product | None
    length_m: float
    a: Product | None = None
    b: Product | None = None
    legs: int = 1

    def plug(self, side: str) -> Product | None:
        """Return what sits in the cage of a side, "a" or "b"."""
        return (self.a if side == "a" else self.b) or self.cable


@dataclass(frozen=True, eq=False)
class Fit:
    """What a run takes.

    Attributes:
        options: what `chosen` counts.
        chosen: of each link; NOTHING where nothing is known, or nothing reaches.
        assembly: of each link the number of the physical cable that carries it, from 0; links of one cable share it.
        unknown: why nothing is known of some or all links; empty where that is not so.
    """

    run: Run
    options: tuple[Option, ...]
    chosen: Numbers
    assembly: Numbers
    unknown: str = ""

    @cached_property
    def cables(self) -> int:
        """How many physical cables there are; a link of which nothing is known counts as one."""
        return int(self.assembly.max(initial=-1)) + 1

    def parts(self) -> Iterator[tuple[Product, float, int]]:
        """Yield what is bought: product, length in metres (0 for a transceiver) and how many."""
        first = _firsts(self.assembly)
        for number, option in enumerate(self.options):
            if option.cable is not None:
                yield option.cable, option.length_m, int(np.count_nonzero(self.chosen[first] == number))
        for side in ("a", "b"):
            yield from self._modules(side)

    def plugs(self, side: str) -> tuple[Numbers, Numbers]:
        """Return the option of each occupied cage of a side, and its rack."""
        cage, rack = (self.run.a_cage, self.run.a_rack) if side == "a" else (self.run.b_cage, self.run.b_rack)
        first = _firsts(cage)
        return self.chosen[first], rack[first]

    def _modules(self, side: str) -> Iterator[tuple[Product, float, int]]:
        counts = np.bincount(self.plugs(side)[0] + 1, minlength=len(self.options) + 1)[1:]
        modules = [option.a if side == "a" else option.b for option in self.options]
        for module in dict.fromkeys(modules):
            if module is not None and not module.built_in:
                yield module, 0.0, sum(int(n) for n, one in zip(counts, modules, strict=True) if one is module)


@dataclass(frozen=True, eq=False)
class _Shape:
    """How the links of a run share cages.

    Attributes:
        trunk: of each link, the side whose cage the cable would start from: 0 both (straight), 1 a, 2 b, NOTHING none.
        group: of each link, the number of its would-be cable; not all numbers are taken.
        pair: of each link, the number of the two cages that it joins.
    """

    trunk: Numbers
    group: Numbers
    pair: Numbers


def fit(run: Run, known: Sequence[Product] | None = None) -> Fit:
    """Choose for every link of a run."""
    listed = [p for p in (catalog.optics() if known is None else known) if not p.links or run.link in p.links]
    own = np.arange(len(run))
    cables = [p for p in listed if p.sort in ("dac", "acc", "aoc") and p.rate == run.rate and _ends(p, run)]
    optical = list(_optical(run, listed))
    if not run.a.cage or not run.b.cage or not (cables or optical):
        return Fit(run, (), np.full(len(run), NOTHING), own, _why(run))
    shape = _shape(run)
    options, chosen = _with_cables(run, shape, cables)
    above = int(shape.group.max()) + 1
    assembly = np.where(chosen != NOTHING, shape.group, above + own)
    rest = chosen == NOTHING
    best = _best(run, rest, optical)
    if best is not None:
        least = best.cable.shortest_m if best.cable else 0.0
        fibres, picked = np.unique(np.maximum(run.length_m[rest], least), return_inverse=True)
        reached = fibres[picked] <= best.length_m
        chosen[rest] = np.where(reached, picked + len(options), NOTHING)
        options += [Option(best.cable, float(length), best.a, best.b, best.legs) for length in fibres]
        assembly[rest] = above + _fibres(run, rest, best)
    lost = np.any((chosen == NOTHING) & (run.length_m <= furthest(run)[1]))
    return Fit(run, tuple(options), chosen, _in_order(assembly), _crowded(run) if lost else "")


def _in_order(assembly: Numbers) -> Numbers:
    """Return the numbers of physical cables from 0, in the order in which their first links come."""
    first = _firsts(assembly)
    number = np.full(int(assembly.max(initial=-1)) + 1, NOTHING)
    number[assembly[np.sort(first)]] = np.arange(len(first))
    return np.asarray(number[assembly], np.int64)


def fit_all(every: Iterable[Run]) -> tuple[Fit, ...]:
    """Choose for every run."""
    return tuple(fit(run) for run in every)


def too_long(run: Run) -> Iterator[Problem]:
    """Yield the longest of the cables that nothing sold for their ends reaches, with how many more there are."""
    name, reach = furthest(run)
    bad = np.flatnonzero(run.length_m > reach) if name else np.array([], np.int64)
    if len(bad):
        worst = int(bad[np.argmax(run.length_m[bad])])
        more = f", and {len(bad) - 1} more are too long" if len(bad) > 1 else ""
        what = (
            f"cable {run.name(worst)} is {run.length_m[worst]:g} m long{more}; between a {run.a.kind} and a "
            f"{run.b.kind} nothing carries {format_rate(run.rate)} further than {reach:g} m ({name})"
        )
        yield Problem(run.path, what, "stand the racks nearer to each other, or take other kinds")


def furthest(run: Run) -> tuple[str, float]:
    """Return what reaches furthest between the cages of a run, and how far; an empty name where nothing fits."""
    listed = [p for p in catalog.optics() if not p.links or run.link in p.links]
    found = [(p.name, p.reach_m) for p in listed if p.far and p.rate == run.rate and _ends(p, run)]
    found += [(f"{o.a.name} and {o.b.name}", o.length_m) for o in _optical(run, listed) if o.a and o.b]
    return max(found, key=lambda row: row[1], default=("", 0.0))


def _why(run: Run) -> str:
    silent = [plug.kind for plug in (run.a, run.b) if not plug.cage]
    if silent:
        return f"no source says what cages a {' or a '.join(dict.fromkeys(silent))} has"
    return f"no product is known for {format_rate(run.rate)} between {run.a.cage} and {run.b.cage}"


def _crowded(run: Run) -> str:
    most = [int(np.bincount(cage).max()) for cage in (run.a_cage, run.b_cage)]
    ends = f"{most[0]} ports of a {run.a.kind}'s cage and {most[1]} of a {run.b.kind}'s"
    return f"no product is known for {format_rate(run.rate)} between {ends}"


def _takes(plug: Plug, cage: str, rate: float) -> bool:
    return plug.cage == cage and rate <= plug.capacity


def _ends(p: Product, run: Run) -> bool:
    """Tell whether a cable's plugs go into the cages of both ends, either way round."""
    trunk, leg = p.rate * p.ports, p.rate * p.ports / p.legs
    ways = ((run.a, run.b), (run.b, run.a))
    return any(_takes(one, p.cage, trunk) and _takes(other, p.far, leg) for one, other in ways)


def _shape(run: Run) -> _Shape:
    pair, of_a, of_b = _numbered(run.a_cage * (int(run.b_cage.max()) + 1) + run.b_cage), run.a_cage, run.b_cage
    in_pair, in_a, in_b = (np.bincount(key)[key] for key in (pair, of_a, of_b))
    only_a, only_b = in_pair == in_a, in_pair == in_b
    trunk = np.select([only_a & only_b, _all_of(of_a, only_b), _all_of(of_b, only_a)], [0, 1, 2], NOTHING)
    pairs_end = int(pair.max()) + 1
    a_end = pairs_end + int(of_a.max()) + 1
    group = np.select([trunk == 1, trunk == 2], [pairs_end + of_a, a_end + of_b], pair)
    return _Shape(trunk, group, pair)


def _numbered(key: Numbers) -> Numbers:
    """Return the number of each value among the distinct ones."""
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _firsts(key: Numbers) -> Numbers:
    """Return where each value that there is stands first."""
    found = np.full(int(key.max(initial=-1)) + 1, NOTHING)
    found[key[::-1]] = np.arange(len(key))[::-1]
    return np.asarray(found[found != NOTHING], np.int64)


def _all_of(group: Numbers, flag: Flags) -> Flags:
    """Tell of each member whether the flag holds for all of its group."""
    return np.asarray((np.bincount(group, flag) == np.bincount(group))[group], np.bool_)


def _with_cables(run: Run, shape: _Shape, cables: Sequence[Product]) -> tuple[list[Option], Numbers]:
    """Choose a cable with plugs for each group that one can serve."""
    group, options = shape.group, list[Option]()
    links, sold = np.bincount(group), np.unique(run.length_m)
    length, widest, trunk = (np.zeros(len(links), np.int64) for _ in range(3))
    np.maximum.at(length, group, np.searchsorted(sold, run.length_m))
    np.maximum.at(widest, group, np.bincount(shape.pair)[shape.pair])
    legs = np.bincount(group[_firsts(shape.pair)], minlength=len(links))
    trunk[group] = shape.trunk + 1
    columns = (trunk, np.minimum(links, _MOST), np.minimum(legs, _MOST), np.minimum(widest, _MOST), length)
    base = (4, _MOST + 1, _MOST + 1, _MOST + 1, len(sold))
    rows, which = np.unique(np.ravel_multi_index(columns, base), return_inverse=True)
    picks = np.full(len(rows), NOTHING)
    for number, row in enumerate(zip(*np.unravel_index(rows, base), strict=True)):
        start, of_links, of_legs, of_widest, place = (int(figure) for figure in row)
        option = _cable(run, cables, (start - 1, of_links, of_legs, of_widest, float(sold[place])))
        if option is not None:
            picks[number] = options.index(option) if option in options else len(options)
            options += [option] if option not in options else []
    return options, picks[which.reshape(-1)][group]


def _cable(run: Run, cables: Sequence[Product], row: tuple[float, ...]) -> Option | None:
    trunk, links, legs, widest, length = row
    ways = {0: ((run.a, run.b), (run.b, run.a)), 1: ((run.a, run.b),), 2: ((run.b, run.a),)}.get(int(trunk), ())
    for p, (near, far) in pairs(cables, ways):
        fits = _takes(near, p.cage, p.rate * p.ports) and _takes(far, p.far, p.rate * p.ports / p.legs)
        if fits and links <= p.ports and legs <= p.legs and widest <= p.ports // p.legs:
            enough = [one for one in p.lengths_m if one >= length]
            if enough:
                return Option(p, enough[0])
    return None


def _optical(run: Run, listed: Sequence[Product]) -> Iterator[Option]:
    """Yield the transceivers that understand each other in the cages of both ends, with their fibre and their reach."""
    modules = [p for p in listed if p.sort == "transceiver"]
    for a, b in pairs(modules, modules):
        if not (_takes(run.a, a.cage, a.rate * a.ports) and _takes(run.b, b.cage, b.rate * b.ports)):
            continue
        if a.optic != b.optic or any(p.rate / run.rate not in p.splits for p in (a, b)):
            continue
        divided = a.rate > run.rate
        for fibre in (p for p in listed if p.sort == "fibre" and p.mode == a.mode):
            if fibre.legs in ((1, int(a.rate / run.rate)) if divided else (1,)):
                yield Option(fibre, min(a.reach_m, b.reach_m, fibre.reach_m), a, b, fibre.legs)


def _best(run: Run, rest: Flags, optical: Sequence[Option]) -> Option | None:
    """Return the first that has the ports and reaches the longest, else the one that reaches furthest; None if none."""
    if not np.any(rest):
        return None
    most = [int(np.bincount(cage[rest]).max()) for cage in (run.a_cage, run.b_cage)]
    able = [option for option in optical if _serves(option, most)]
    longest = float(run.length_m[rest].max())
    return next((o for o in able if o.length_m >= longest), max(able, key=lambda o: o.length_m, default=None))


def _serves(option: Option, most: Sequence[int]) -> bool:
    """Tell whether the transceivers have ports for the links of the fullest cages; a splitter divides at one end."""
    modules = [module for module in (option.a, option.b) if module is not None]
    wide = [links > module.ports for links, module in zip(most, modules, strict=True)]
    room = all(links <= module.ports * option.legs for links, module in zip(most, modules, strict=True))
    return room and (option.legs > 1) == any(wide) and not all(wide)


def _fibres(run: Run, rest: Flags, best: Option) -> Numbers:
    """Return for each link the number of its fibre: neighbours in the divided cage share one."""
    if best.legs == 1 or best.a is None:
        return np.arange(int(np.count_nonzero(rest)))
    a, b = run.a_cage[rest], run.b_cage[rest]
    cage = a if np.bincount(a).max() > best.a.ports else b
    order = np.argsort(cage, kind="stable")
    starts = np.searchsorted(cage[order], cage[order])
    inside = np.empty(len(cage), np.int64)
    inside[order] = np.arange(len(cage)) - starts
    return _numbered(cage * _MOST + inside // best.legs)
