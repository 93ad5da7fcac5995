"""Contact: be let in by the controller, and see that this is the machine that machines.yml names."""

from __future__ import annotations

from supernode.provider import admission, bmc, evidence
from supernode.provider.job import Job, PhaseFailedError


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: our password is refused, another machine stands there, or nothing that both sides know can be
            compared.
    """
    if job.contacted:
        return
    job.scene.say("contact", f"logging in to {job.redfish.address}")
    await admission.enter(job)
    found = await bmc.find(job.redfish)
    says = await bmc.identity(found, job.wanted.identity)
    job.seen.serial, job.seen.uuid = says.get("system_serial", ""), says.get("uuid", "")
    job.seen.power = await found.power()
    if wrong := bmc.mismatches(job.wanted.identity, says):
        raise PhaseFailedError("another machine than machines.yml names: " + "; ".join(wrong))
    if not set(job.wanted.identity) & set(says):
        known = ", ".join(sorted(job.wanted.identity)) or "nothing"
        raise PhaseFailedError(
            f"the machine cannot be told: machines.yml knows {known}, the controller reports none of it"
        )
    job.bmc = found
    await evidence.remember_log(job)
