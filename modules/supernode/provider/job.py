"""One machine being worked on: what is wanted, what was seen, and the means to look and act."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from supernode.clients import redfish, secrets
from supernode.clients.enrolment import Enrolment
from supernode.clients.redfish import Patience, Redfish, Untrusted
from supernode.errors import CouldNotRun
from supernode.provider.bmc import Bmc
from supernode.provider.check import identity_values
from supernode.provider.doors import Doors
from supernode.provider.interlock import Interlock
from supernode.provider.resource import Scene
from supernode.provider.timing import Deadline, within_the_run


class PhaseFailedError(Exception):
    """A phase came to a definite bad end; the message says why, with both values where two differ."""


class CannotCarryError(PhaseFailedError):
    """The controller cannot bring the deploy medium to the machine in this way; another way may do."""


class HeldError(PhaseFailedError):
    """The cooling of the machine's rack is not known to be in order, so that it was not switched on."""


class RefusedError(Exception):
    """The machine is in service and nobody confirmed what is about to be done to it."""


def told(error: Exception) -> str:
    """Return what an error says; of a certificate that is not trusted, what to do about it, too."""
    return f"{error}; {error.hint}" if isinstance(error, Untrusted) and error.hint else str(error)


@dataclass(frozen=True)
class Wanted:
    """A Machine's inputs, typed; see docs/contracts.md, section 7."""

    name: str
    slot: str
    address: str
    bmc: Mapping[str, Any]
    identity: Mapping[str, str]
    state: str
    in_service: bool
    media: Mapping[str, Any]
    image: str
    enrolment: str
    bios: Mapping[str, Any]
    firmware: Mapping[str, str]
    power: str
    deadline_s: float
    ssh_user: str
    ssh_key: str
    strict: bool
    interlock: Interlock | None

    @classmethod
    def of(cls, inputs: Mapping[str, Any]) -> Wanted:
        """Read inputs that passed the check."""
        return cls(
            name=str(inputs["name"]),
            slot=str(inputs["slot"]),
            address=str(inputs.get("address", "")),
            bmc=inputs["bmc"],
            identity=identity_values(inputs.get("identity") or {}),
            state=str(inputs.get("state", "active")),
            # Unknown counts as in service.
            in_service=inputs.get("inService", True) is not False,
            media=inputs.get("media") or {},
            image=str(inputs.get("image", "")),
            enrolment=str(inputs.get("enrolment", "")),
            bios=inputs.get("bios") or {},
            firmware=inputs.get("firmware") or {},
            power=str(inputs.get("power", "On")),
            deadline_s=float(inputs.get("deadlineS", 2700)),
            ssh_user=str(inputs.get("sshUser", "")),
            ssh_key=str(inputs.get("sshKey", "")),
            strict=bool(inputs.get("strict", False)),
            interlock=Interlock.of(inputs.get("interlock")),
        )


@dataclass
class Seen:
    """What was read from the machine; None and empty mean not known, never "not there"."""

    serial: str = ""
    uuid: str = ""
    power: str = ""
    bios: dict[str, Any] | None = None
    firmware: dict[str, str] | None = None
    image: str = ""
    host_keys: tuple[str, ...] = ()
    log_ids: set[str] = field(default_factory=set)
    cooling: dict[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """The means: passed to every phase.

    Attributes:
        doors: what this process knows of controllers and cooling units.
        first_contact: a controller that still has the factory's password may be given ours.
        before: the enrolment record as it stood before the machine was booted for deployment.
        booted: the deploy ISO was booted in this job, by `carrier`.
        stranger: another machine stands in the slot, and nothing that the controller says speaks against that.
        unfit: carriers that cannot be used, each with the reason.
        traces: what the machine's start logs held before it was booted.
        pinned: the host keys that this machine is known by; nothing that is reported later takes their place, except
            what a machine reports that was booted in this job.
    """

    wanted: Wanted
    scene: Scene
    deadline: Deadline
    redfish: Redfish
    doors: Doors = field(default_factory=Doors)
    first_contact: bool = False
    seen: Seen = field(default_factory=Seen)
    phase_deadline: Deadline = field(default_factory=lambda: Deadline(0))
    before: Enrolment | None = None
    booted: bool = False
    stranger: bool = False
    carrier: str = ""
    unfit: dict[str, str] = field(default_factory=dict)
    traces: tuple[str, ...] | None = None
    pinned: tuple[str, ...] = ()
    _bmc: Bmc | None = None

    @property
    def bmc(self) -> Bmc:
        """The server, once the contact phase found it."""
        if self._bmc is None:
            raise RuntimeError("no contact yet")
        return self._bmc

    @bmc.setter
    def bmc(self, found: Bmc) -> None:
        self._bmc = found

    @property
    def contacted(self) -> bool:
        """Whether the controller was logged in to and the machine is the right one."""
        return self._bmc is not None

    async def media_tls(self) -> ssl.SSLContext:
        """Return a context that trusts the boot server alone."""
        return await asyncio.to_thread(context_of, await self.media_ca())

    async def media_ca(self) -> str:
        """Return the PEM of the boot server's CA."""
        text = await read_ca(str(self.wanted.media.get("ca") or ""), self.scene.base)
        if text is None:
            raise CouldNotRun("media.ca", "is missing", "the boot server is only talked to under its own CA")
        return text

    async def ssh_key(self) -> str:
        """Return the private key's text."""
        return await secrets.resolve(self.wanted.ssh_key, self.scene.base)


@lru_cache(maxsize=64)
def context_of(ca: str | None) -> ssl.SSLContext:
    """Return a TLS context; loading a trust store takes milliseconds, and hundreds of machines share one."""
    return redfish.tls(ca)


async def read_ca(value: str, base: Path) -> str | None:
    """Return PEM text for what an input gives: the text itself or a path; None when it gives nothing."""
    if not value:
        return None
    if value.lstrip().startswith("-----BEGIN"):
        return value
    try:
        return await asyncio.to_thread((base / value).read_text, "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CouldNotRun(value, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


@asynccontextmanager
async def begin(
    wanted: Wanted, scene: Scene, doors: Doors, patience: Patience | None = None, *, changes: bool = False
) -> AsyncIterator[Job]:
    """Open a job: prepares one session with the controller, closed at the end; who is let in, contact finds out.

    One job at a time works on a controller: the second waits for the first.

    Args:
        wanted: the machine.
        scene: where the call happens.
        doors: the process's.
        patience: how long to try the controller.
        changes: the job may change something; without it the controller's password stays what it is.

    Raises:
        CouldNotRun: a CA that cannot be read, or nothing that says whom to trust.
    """
    seconds = min(within_the_run(wanted.deadline_s), scene.limit_s or wanted.deadline_s)
    ca = await read_ca(str(wanted.bmc.get("ca") or ""), scene.base)
    context = await asyncio.to_thread(context_of, ca) if ca else None
    address, username, pin = (str(wanted.bmc.get(key) or "") for key in ("address", "username", "pin"))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(doors.hold(address))
        tries = await asyncio.to_thread(doors.tries, address, lambda: scene.state)
        opened = redfish.connect(address, username, "", context, patience, pin=pin, tries=tries)
        client = await stack.enter_async_context(opened)
        yield Job(wanted, scene, Deadline(seconds), client, doors, changes and bool(wanted.bmc.get("factory")))
