"""What Slurm's own controller says after a bring-up of a lab with a scheduler; asked on its machine, by scontrol."""

from __future__ import annotations

import time

from supernode.clients import slurm

SHOW = "sudo -n scontrol --oneliner show nodes"


def nodes(site, controller="head-001"):
    """Return the nodes by name, as the controller shows them."""
    said = site.supernode("ssh", site.name, controller, "--", SHOW, timeout=60)
    rows = [slurm.parse(line) for line in said.splitlines() if line.startswith("NodeName=")]
    return {row.name: row for row in rows}


def settled(site, tries=20):
    """Return the nodes once no resumed one is waiting to be heard: the controller pings it within seconds."""
    for _ in range(tries):
        found = nodes(site)
        if not any("NOT_RESPONDING" in row.states and not row.closed for row in found.values()):
            break
        time.sleep(1)
    return found


def drained_with_their_findings(site, causes, besides=frozenset()):
    """Hosts with findings take no jobs, and say why; all others in service do.

    `causes`: the beginning of the cause by host; `besides`: hosts of which not all was seen.
    """
    found = settled(site)
    assert found
    for name, cause in causes.items():
        assert found[name].closed, found[name]
        assert found[name].reason.startswith(f"supernode: {cause}"[:60]), (found[name].reason, cause)
    spares = {name for name, row in found.items() if row.reason == "supernode: a spare"}
    others = {name: row for name, row in found.items() if name not in {*causes, *spares, *besides}}
    assert others
    assert {row.states for row in others.values()} == {frozenset(("IDLE",))}, others


def all_take_jobs(site):
    """After a clean run every host but the spares is idle; and a job sees the accelerators that it asked for."""
    drained_with_their_findings(site, {})
    asked = "cd /tmp && timeout 60 srun --nodes=1 --gres=gpu:3 printenv CUDA_VISIBLE_DEVICES"
    assert site.supernode("ssh", site.name, "head-001", "--", asked, timeout=90).split() == ["0,1,2"]
