"""Each example's artefacts against those that were read and kept: nothing that leaves the design changes unseen.

`SUPERNODE_GOLDEN=write pytest tests/golden` writes them anew; read the diff before committing it.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.design import expectations, export

HERE = Path(__file__).parent
INVENTORIES = HERE.parents[1] / "inventories"
CASES = {path.parent.name: path.parent for path in sorted((INVENTORIES / "examples").glob("*/environment.yml"))}
CASES |= {name: INVENTORIES / name for name in ("lab", "lab-ib")}


def digest(content):
    return hashlib.sha256(content.encode()).hexdigest()


def built(case):
    """The design of a case, without what a lab run binds to its slots."""
    folder = CASES[case]
    return design.build(
        spec.read({name: (folder / f"{name}.yml").read_text() for name in ("environment", "allocation")})
    )


def artefacts(found):
    """Every artefact by name: the sheets and the files of some devices whole, of all others a digest."""
    yield "cabling.csv", "".join(export.cabling_csv(found))
    yield "bmc.csv", "".join(export.bmc_csv(found))
    yield "switches.csv", "".join(export.switches_csv(found))
    yield "cooling.csv", "".join(export.cooling_csv(found))
    yield "site.json", "".join(export.site_json(found))
    yield from ((name, "".join(lines)) for name, lines in export.fabric_artefacts(found).items())
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
