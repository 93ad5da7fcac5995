"""Being let in by a controller: with our password, or at first contact with the factory's, which is then replaced.

The new password is recorded before it is sent. Killed at any point, the next run finds one of three doors: nothing
recorded (the factory's opens: begin), recorded and not sent (ours is refused, the factory's opens: send the recorded
one), sent (ours opens). So one recorded password is the only one that is ever sent.
"""

from __future__ import annotations

from supernode.clients import accounts, secrets
from supernode.clients.answer import LOGIN_REFUSED
from supernode.clients.redfish import RedfishError
from supernode.clients.tries import MOST
from supernode.provider.doors import Key
from supernode.provider.job import Job, PhaseFailedError


async def enter(job: Job) -> None:
    """Log in; the client speaks as our account when this returns.

    Raises:
        PhaseFailedError: the controller refuses what may be tried, or does not keep the new password.
        CouldNotRun: it does not answer, or a reference cannot be read or written.
    """
    ours = await _recorded(job)
    if ours is not None and await _opens(job, ours):
        return
    if not job.first_contact:
        raise PhaseFailedError(f"the controller refuses our password ({_reference(job)})")
    factory = job.wanted.bmc["factory"]
    theirs = Key(str(factory["username"]), await secrets.resolve(str(factory["password"]), job.scene.base))
    if not await _opens(job, theirs):
        first = "refuses our password" if ours else f"does not know ours ({_reference(job)} is not there)"
        raise PhaseFailedError(f"the controller {first} and refuses the factory's ({factory['password']})")
    await _replace(job, ours)


async def _recorded(job: Job) -> Key | None:
    """Return our key; None where none was recorded yet and one may be made."""
    try:
        password = await secrets.resolve(_reference(job), job.scene.base)
    except secrets.Missing:
        if job.first_contact:
            return None
        raise
    return Key(str(job.wanted.bmc["username"]), password)


async def _opens(job: Job, key: Key) -> bool:
    tries = job.redfish.tries
    if key.digest in tries.refusals:
        return False
    if not tries.may(key.digest):
        raise PhaseFailedError(
            f"not logged in: {MOST} logins in a row were refused or went unanswered in this run, and one more might "
            "lock the account; see that the controller answers and the password is right, then run again"
        )
    await job.redfish.become(key.username, key.password)
    try:
        await job.redfish.sign_in()
    except RedfishError as error:
        if error.status != 401 and not any(entry.rpartition(".")[2] in LOGIN_REFUSED for entry in error.message_ids):
            raise
        return False
    return True


async def _replace(job: Job, ours: Key | None) -> None:
    job.scene.say("contact", "the controller has its factory password: giving it its own")
    account = await accounts.own(job.redfish)
    if ours is None:
        made = accounts.make_password(await accounts.length(job.redfish))
        await secrets.store(_reference(job), made, job.scene.base)
        ours = Key(str(job.wanted.bmc["username"]), made)
    said = await accounts.set_password(job.redfish, account, ours.username, ours.password)
    if not await _opens(job, ours):
        why = f" ({said})" if said else ""
        rules = f"if it has rules of its own for passwords, write one that keeps them to {_reference(job)}"
        raise PhaseFailedError(f"the controller did not keep its new password{why}; {rules}")


def _reference(job: Job) -> str:
    return str(job.wanted.bmc["password"])
