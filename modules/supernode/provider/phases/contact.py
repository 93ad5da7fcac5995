"""Contact: be let in by the controller, and see that this is the machine that machines.yml names."""

from __future__ import annotations

from supernode.provider import admission, evidence, guard, identity
from supernode.provider.job import Job, PhaseFailedError, RefusedError
from supernode.provider.phases import cooled


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
    found = await identity.find(job.redfish, job.wanted.identity)
    says = await identity.read(found, job.wanted.identity)
    job.seen.serial, job.seen.uuid = says.get("system_serial", ""), says.get("uuid", "")
    job.seen.power = await found.power()
    if wrong := identity.mismatches(job.wanted.identity, says):
        agree = identity.agreements(job.wanted.identity, says)
        job.stranger = not agree  # a controller that mixes up two machines is not believed
        hint = "" if agree else f"; if it was exchanged: supernode assign … {job.wanted.slot} --replace"
        raise PhaseFailedError("another machine than machines.yml names: " + "; ".join(wrong) + agree + hint)
    if not set(job.wanted.identity) & set(says):
        known = ", ".join(sorted(job.wanted.identity)) or "nothing"
        raise PhaseFailedError(
            f"the machine cannot be told: machines.yml knows {known}, the controller reports none of it"
        )
    found.say = lambda line: job.scene.say("bmc", line)
    found.resettable = lambda: _resettable(job)
    found.permit_on = lambda: cooled.permit(job)
    job.bmc = found
    await evidence.remember_log(job)


async def _resettable(job: Job) -> bool:
    """Tell whether the controller may be reset: as a restart of its machine, not while that is in service."""
    try:
        await guard.permit(job, "resetting the controller of")
    except RefusedError:
        return False
    return True
