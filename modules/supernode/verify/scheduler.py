"""Every designed node is known to the scheduler's controller, has registered, and offers what it has. Pure."""

from __future__ import annotations

from supernode.clients.slurm import Node
from supernode.records import Finding, Verdict
from supernode.verify.expected import Wanted
from supernode.verify.facts.device import DeviceFacts, Facts

CHECK = "scheduler"


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge every host that is a node. Whether it takes jobs is the hand-over's business, which comes after."""
    return [_host(name, host.gres, facts.of(name)) for name, host in wanted.hosts.items() if host.gres]


def _host(name: str, gres: str, seen: DeviceFacts) -> Finding:
    want = f"registered with {gres}"
    if seen.node is None:
        why = seen.why if not seen.reached else seen.unseen.get("node") or seen.unseen.get("everything", "not seen")
        return Finding(CHECK, name, Verdict.UNKNOWN, want, "not seen", evidence=(why,))
    node = seen.node
    wrong, hint = _wrong(node, gres)
    if wrong:
        evidence = (f"{'+'.join(sorted(node.states)) or 'no state'}; reason: {node.reason or 'none'}",)
        return Finding(CHECK, name, Verdict.FAIL, want, wrong, evidence=evidence, hint=hint)
    if node.by_hand:
        found = f"closed by {node.user or 'somebody'}: {node.reason}"
        hint = "it is left alone; `scontrol update nodename=... state=resume` on the controller opens it"
        return Finding(CHECK, name, Verdict.ADVICE, want, found, cause=f"{name} is {found}", hint=hint)
    return Finding(CHECK, name, Verdict.PASS, want, want)


def _wrong(node: Node, gres: str) -> tuple[str, str]:
    """Say what is wrong with a node and what to do; two empty texts where nothing is."""
    if not node.known:
        return "the controller knows no such node", "run the playbooks: role slurm_controller"
    if "INVALID_REG" in node.states:
        return f"the controller refuses what the node registers: {node.reason}", "compare `slurmd -C` and `slurmd -G`"
    if not node.registered:
        return "slurmd has not registered", "journalctl -u slurmd -u munge, on the node: a device file may be missing"
    if "NOT_RESPONDING" in node.states:
        return "slurmd does not answer the controller", "systemctl status slurmd, on the node"
    if node.gres != gres:
        return f"it offers {node.gres or 'nothing'}", "run the playbooks: role slurm_controller, then slurm_node"
    return "", ""
