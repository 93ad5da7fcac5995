"""Login: the host answers under its own key and runs the wanted image."""

from __future__ import annotations

from supernode.clients import enrolment, ssh
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.timing import Deadline, LateError, until

IMAGE_FILE = "/etc/supernode/image"
TRY_S = 5.0
# A system that is still booting refuses every user but root (pam_nologin), which looks as if it refused the key.
REFUSED_S = 20.0


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: another key or image, or the login is refused.
        LateError: no answer by the deadline.
    """
    job.scene.say("login", f"to {job.wanted.address}")
    keys = job.seen.host_keys or await known_keys(job)
    if not keys:
        raise PhaseFailedError(
            "no host key of this machine is known: it never reported one, and machines.yml has none "
            f"(`supernode assign … {job.wanted.slot} --host-key` records one that was read at its console)"
        )
    trouble, refused = "", Deadline(REFUSED_S)

    async def look() -> str | None:
        nonlocal trouble, refused
        try:
            return await image(job, keys)
        except ssh.NoAnswer as error:
            trouble, refused = str(error), Deadline(REFUSED_S)
            return None
        except ssh.LoginRefused as error:
            trouble = str(error)
            if refused.left <= 0:
                raise
            return None

    try:
        found = await until(look, job.phase_deadline, "no login", first_s=0.25, longest_s=3.0)
    except LateError as error:
        raise LateError(f"no login ({trouble})", job.phase_deadline.seconds) from error
    except ssh.HostKeyMismatch as error:
        raise PhaseFailedError(mismatch(error, keys)) from error
    except ssh.LoginRefused as error:
        raise PhaseFailedError(str(error)) from error
    job.seen.image, job.seen.host_keys = found, keys
    if found != job.wanted.image:
        raise PhaseFailedError(f"the host runs image {found or 'of no name'}, wanted {job.wanted.image}")


def mismatch(error: ssh.HostKeyMismatch, keys: tuple[str, ...]) -> str:
    """Say in one line which host key was expected, which was shown, and what to do about it."""
    pinned = " or ".join(ssh.fingerprint(key) for key in keys)
    return (
        f"host key mismatch: pinned {pinned}, {error.where} shows {ssh.fingerprint(error.presented)}; "
        "if the machine was exchanged: supernode assign … --replace"
    )


async def known_keys(job: Job) -> tuple[str, ...]:
    """Return the keys that the machine is known by; where there are none, those that it reported, if it ever did.

    A report cannot replace a pinned key: only this job's own installation makes the machine another one.
    """
    if job.pinned and not job.booted:
        return job.pinned
    record = await enrolment.fetch(job.wanted.enrolment, await job.media_tls())
    return record.host_keys if record is not None else ()


async def image(job: Job, keys: tuple[str, ...]) -> str:
    """Log in and return the digest that the host names.

    Raises:
        ssh.HostKeyMismatch, ssh.LoginRefused, ssh.NoAnswer: as they say.
    """
    limit = max(1.0, min(TRY_S, job.phase_deadline.left))
    key = await job.ssh_key()
    host, _, port = job.wanted.address.partition(":")
    async with ssh.connect(host, job.wanted.ssh_user, key, keys, port=int(port or 22), limit_s=limit) as host_session:
        result = await host_session.run(["cat", IMAGE_FILE], limit_s=limit, check=False)
    return result.stdout.strip().removeprefix("sha256:") if result.status == 0 else ""
