"""Each example's artefacts against those that were read and kept: nothing that leaves the design changes unseen.

`SUPERNODE_GOLDEN=write pytest tests/golden` writes them anew; read the diff before committing it.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from supernode import design, spec
from supernode.design import artefacts as registry
from supernode.design import expectations, export, summary

HERE = Path(__file__).parent
INVENTORIES = HERE.parents[1] / "inventories"
CASES = {path.parent.name: path.parent for path in sorted((INVENTORIES / "examples").glob("*/environment.yml"))}
EXPORTED = ("lab", "lab-ib", "superpod-h100-1su-ib")  # one of each transport, and one of real size
CASES |= {name: INVENTORIES / name for name in ("lab", "lab-ib")}
MILLIONS = {name: CASES.pop(name) for name in ("rail-only-1m", "three-tier-1m")}
MOST_LINKS = 2048  # above, a digest of each table and a few of its rows are kept


def digest(content):
    return hashlib.sha256(content.encode()).hexdigest()


def built(case):
    """The design of a case, without what a lab run binds to its slots."""
    folder = CASES[case]
    return design.build(
        spec.read({name: (folder / f"{name}.yml").read_text() for name in ("environment", "allocation")})
    )


def artefacts(found):
    """Every artefact by name, whole where there are few."""
    yield from small(found) if len(found.columns.links) <= MOST_LINKS else large(found)
    figures = {key: value for key, value in summary.build(found).items() if key != "digest"}
    yield "summary.json", json.dumps(figures, indent=1) + "\n"


def large(found):
    """A digest of each table, and every so many-th of its rows."""
    tables = {"cabling.csv": export.cabling_csv(found), "bmc.csv": export.bmc_csv(found)}
    tables["switches.csv"] = export.switches_csv(found)
    if not found.environment.fabric.infiniband:
        tables["addresses.csv"] = export.addresses_csv(found)
    sums = []
    for name, lines in tables.items():
        rows = list(lines)
        sums.append(f"{digest(''.join(rows))}  {name}")
        yield f"sample-{name}", rows[0] + "".join(rows[1 :: max(1, len(rows) // 61)])
    yield "SHA256SUMS", "\n".join(sums) + "\n"


def counts(found):
    """Devices and links by tier."""
    switches = np.bincount(found.columns.switches["tier"], minlength=3).tolist()
    links = np.bincount(found.columns.links["tier"], minlength=3).tolist()
    return {
        "hosts": len(found.hosts),
        "switches": dict(zip(("leaf", "spine", "core"), switches, strict=True)),
        "links": dict(zip(("host_leaf", "leaf_spine", "spine_core"), links, strict=True)),
    }


# k x k / 2 ports for each of eight rails of radix 512, and k x k x k / 4 ports of radix 160.
MILLION = {
    "rail-only-1m": {
        "hosts": 512 * 512 // 2,
        "switches": {"leaf": 8 * 512, "spine": 8 * 256, "core": 0},
        "links": {"host_leaf": 1_048_576, "leaf_spine": 1_048_576, "spine_core": 0},
    },
    "three-tier-1m": {
        "hosts": 160**3 // 4 // 8,
        "switches": {"leaf": 160 * 80, "spine": 160 * 80, "core": 80 * 80},
        "links": {"host_leaf": 1_024_000, "leaf_spine": 1_024_000, "spine_core": 1_024_000},
    },
}


@pytest.mark.parametrize("case", MILLIONS)
def test_a_million(case):
    found = design.build(spec.read({"environment": (MILLIONS[case] / "environment.yml").read_text()}))
    assert counts(found) == MILLION[case]
    assert found.oversubscription() == 1
    links, up = found.columns.links, found.columns.links["uplink"]
    assert np.bincount(links["cable"]).max() == 1
    lower = links["a"][up].astype(np.int64) * 1024 + links["a_port"][up] + 512 * (links["tier"][up] == 1)
    upper = links["b"].astype(np.int64) * 1024 + links["b_port"]
    assert np.bincount(np.concatenate([lower, upper])).max() == 1  # a leaf's uplink ports are counted from 512 on


def small(found):
    """The sheets and the files of some devices whole, of all others a digest."""
    yield from ((row.name, "".join(row.lines(found))) for row in registry.of(found, registry.SHEETS))
    if found.name in EXPORTED:
        exports = {row.name: "".join(row.lines(found)) for row in registry.of(found, registry.EXPORTS)}
        yield "EXPORTS", "".join(f"{digest(text)}  {name}\n" for name, text in exports.items())
    files = {h.name: found.files(h.name) for h in found.hosts} | {
        s.name: found.switch_files(s.name) for s in found.switches
    }
    sums = [f"{digest(f.content)}  {device}{f.path}" for device in files for f in files[device]]
    yield "SHA256SUMS", "\n".join(sums) + "\n"
    shown = {found.hosts[0].name, found.switches[0].name, found.switches[-1].name}
    for device in shown:
        for file in files[device]:
            yield f"files/{device}{file.path}", file.content
    wanted = expectations.build(found).to_json()
    sample = {
        kind: {name: wanted[kind][name] for name in wanted[kind] if name in shown} for kind in ("hosts", "switches")
    }
    yield "expectations.json", json.dumps(sample, indent=1) + "\n"


def differences(case, found):
    """Names of artefacts that are otherwise than kept."""
    kept, seen = HERE / case / "expected", {}
    for name, content in artefacts(found):
        seen[name] = content
    stored = {path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file()}
    changed = {name for name in seen if name not in stored or (kept / name).read_text() != seen[name]}
    return sorted(changed | (stored - set(seen)))


@pytest.mark.parametrize("case", CASES)
def test_artefacts_are_as_kept(case):
    found = built(case)
    if os.environ.get("SUPERNODE_GOLDEN") == "write":
        for name, content in artefacts(found):
            path = HERE / case / "expected" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    assert differences(case, found) == []


@pytest.mark.parametrize("case", CASES)
def test_the_saved_allocation_is_up_to_date(case):
    assert built(case).allocation_saved


def test_two_exchanged_rails_are_seen(monkeypatch):
    """The mutation: someone exchanges rails 2 and 3 in the design's code."""
    from supernode.design import columns

    right = columns._leaf_index
    exchanged = {2: 3, 3: 2}

    def wrong(switches, su, rail, rails):
        import numpy as np

        return right(switches, su, np.array([exchanged.get(int(r), int(r)) for r in rail]), rails)

    assert differences("lab", built("lab")) == []
    monkeypatch.setattr(columns, "_leaf_index", wrong)
    assert "cabling.csv" in differences("lab", built("lab"))


def test_two_exchanged_addresses_are_seen(monkeypatch):
    from supernode.design import columns

    right = columns.leaf_prefix
    monkeypatch.setattr(columns, "leaf_prefix", lambda env, ports, su, rail: right(env, ports, su, 7 - rail))
    changed = differences("lab", built("lab"))
    assert any(name.endswith("frr.conf") for name in changed)
    assert any(name.endswith("50-rail0.network") for name in changed)
