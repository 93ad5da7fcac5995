"""From observations to everything that a survey says: the documents, where they come from, and what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from supernode import design as designing
from supernode import spec
from supernode.bringup.survey import compare, fabric, records
from supernode.bringup.survey.draft import OBSERVED
from supernode.bringup.survey.observed import Observations
from supernode.bringup.survey.propose import LOGIN, Proposal, propose
from supernode.design import Design, allocating
from supernode.errors import Problem, Refusal
from supernode.records import Finding, Verdict
from supernode.spec import Allocation, Environment, Inputs, Machines, sizing
from supernode.spec.yamltext import parse, spell


@dataclass(frozen=True)
class Conclusion:
    """What a survey comes to.

    Attributes:
        design: of the proposal; None where it cannot be computed yet.
        allocation: the environment's own, where the machines bear its numbers and not those of a fresh one.
        notes: what of the machines could not be observed.
    """

    proposal: Proposal
    machines: Machines
    findings: tuple[Finding, ...]
    design: Design | None = None
    allocation: Allocation | None = None
    notes: tuple[str, ...] = ()

    def documents(self) -> dict[str, str]:
        """Return the documents to write, by name."""
        found = {"environment": self.proposal.text(), "machines": spec.machines_text(self.machines)}
        return found | ({"allocation": spec.allocation_text(self.allocation)} if self.allocation else {})


def conclude(
    seen: Observations, texts: Mapping[str, str] | None = None, name: str = "site", login: tuple[str, str] = LOGIN
) -> Conclusion:
    """Propose the documents, compute their design and compare it with what was seen.

    Args:
        seen: what was observed.
        texts: the environment's own documents, for what cannot be observed.
        name: of the environment, where it has no document.
        login: account and password reference of the controllers, where it has no document.

    Raises:
        Refusal: the environment's own documents are wrong.
    """
    document = _document(texts or {})
    proposal = propose(seen, document, name, login)
    environment, problems = _environment(proposal)
    if environment is not None and _settled(proposal, environment, seen):
        environment, problems = _environment(proposal)
    found = [*proposal.draft.findings, *problems]
    known, saved = _known(texts or {})
    if environment is None:
        return Conclusion(proposal, unplaced(proposal), tuple(found))
    return _compared(proposal, environment, seen, found, known, saved)


def _document(texts: Mapping[str, str]) -> Mapping[str, Any]:
    found = parse(texts["environment"], "environment")[0] if "environment" in texts else None
    return found if isinstance(found, dict) else {}


def _known(texts: Mapping[str, str]) -> tuple[Machines, Allocation | None]:
    """Return the environment's own machines and allocation."""
    inputs = spec.read(texts) if "environment" in texts else None
    return (inputs.machines, inputs.allocation) if inputs is not None else (Machines(), None)


def _environment(proposal: Proposal) -> tuple[Environment | None, list[Finding]]:
    """Read the proposed document as any other is read; what is wrong with it becomes findings."""
    try:
        return spec.read({"environment": proposal.text()}).environment, []
    except Refusal as refusal:
        rows = [(spell(p.path), p.what, p.hint or "") for p in refusal.problems]
        return None, [
            Finding("proposal", path or "environment", Verdict.UNKNOWN, found=what, cause=f"{path}: {what}", hint=hint)
            for path, what, hint in rows
        ]


def _settled(proposal: Proposal, environment: Environment, seen: Observations) -> bool:
    """Correct what arithmetic shows to be otherwise than the policies say; True when something was corrected."""
    draft, changed = proposal.draft, False
    stride = fabric.stride(seen)
    if stride and sizing.stride(max(1, sizing.host_ports(environment))) != stride:
        draft.see(("fabric", "unit"), stride // 2, f"the prefix of a leaf holds {stride} addresses")
        changed = True
    lanes = fabric.lanes(seen)
    ports = stride // 2 if changed else sizing.host_ports(environment)
    hosts = environment.fabric.unit or min(sizing.fabric_hosts(environment), ports)
    spines = environment.fabric.spines
    if lanes and spines and sizing.lanes(environment, hosts, spines) != lanes:
        up = spines * lanes * environment.fabric.rates.uplink
        ratio = round(hosts * environment.fabric.rates.rail / up, 4)
        draft.see(("fabric", "oversubscription"), ratio, f"{lanes} cables between each leaf and each spine")
        changed = True
    if changed:
        twice = {row.path for row in draft.sources if row.origin == OBSERVED}
        draft.sources[:] = [row for row in draft.sources if row.origin == OBSERVED or row.path not in twice]
    return changed


def unplaced(proposal: Proposal) -> Machines:
    """Return the machines of a proposal that has no design yet: each in the slot that its chassis says."""
    slots = {m.slot: records.loose(m) for m in proposal.machines if m.slot}
    return Machines.model_validate({"schema": 1, "slots": slots})


def _compared(
    proposal: Proposal,
    environment: Environment,
    seen: Observations,
    found: list[Finding],
    known: Machines,
    saved: Allocation | None,
) -> Conclusion:
    """Take the numbers that fit what was seen better: freshly given ones, or those that the environment gave before."""
    tried: list[Conclusion] = []
    refused: list[Finding] = []
    for allocation in (None,) if saved is None else (None, saved):
        try:
            fitted = allocating.extend(environment, allocation) if allocation is not None else None
            tried.append(_with(proposal, environment, fitted, seen, known))
        except Refusal as refusal:
            refused += [_refused(problem) for problem in refusal.problems]
    if not tried:
        return Conclusion(proposal, unplaced(proposal), (*found, *refused))
    best = min(tried, key=lambda one: len(one.findings))
    design = best.design
    told = {row.place for row in best.findings}
    before = (f for f in found if not (f.check == "reach" and design is not None and _named(design, f.place) in told))
    return replace(best, findings=(*before, *best.findings))


def _refused(problem: Problem) -> Finding:
    return Finding("proposal", spell(problem.path), Verdict.FAIL, found=problem.what, cause=problem.what)


def _named(design: Design, address: str) -> str:
    names = {str(found): name for name, found in design.management_addresses.items()}
    return names.get(address.partition(":")[0], "")


def _with(
    proposal: Proposal, environment: Environment, allocation: Allocation | None, seen: Observations, known: Machines
) -> Conclusion:
    bare = designing.build(Inputs(environment, allocation, Machines()))
    switches = {switch.hostname: switch for switch in seen.switches if switch.hostname}
    machines, notes = records.machines_of(bare, proposal.machines, switches, known)
    design = designing.build(Inputs(environment, allocation, machines))
    findings = compare.compare(design, seen, proposal.machines)
    return Conclusion(proposal, machines, tuple(findings), design, allocation, notes)
