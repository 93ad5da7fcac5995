"""Looking: GETs at controllers, reading commands on hosts and switches; `clients` refuses anything else by itself.

Each of them is kept, so that whoever doubts it can read what was asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from supernode.bringup.survey import controllers, devices
from supernode.bringup.survey import tree as trees
from supernode.bringup.survey.observed import ControllerSeen, DeviceSeen, HostSeen, SwitchSeen, Tree
from supernode.clients import redfish, secrets, ssh
from supernode.clients.answer import MISSHAPEN, misshapen
from supernode.clients.exchange import Exchange
from supernode.errors import CouldNotRun, SupernodeError
from supernode.verify.facts.raw import Raw

AT_ONCE = 16
LEAST_RESOURCES, MOST_RESOURCES = 600, 6000  # of one BMC: what a survey needs, and a whole tree
LEAST_BYTES, WHOLE_BYTES = 64 << 20, 256 << 20  # of one BMC
CONTROLLER_S, WHOLE_S, DEVICE_S = 300.0, 3600.0, 180.0  # for one of them
_ABSENT = {400, 404, 405, 410, 501}
PATIENCE = redfish.Patience(answer_s=20.0, tries=3, longest_s=5.0)
COMMAND_S = 20.0
Device = TypeVar("Device", bound=DeviceSeen)
Get = Callable[[str], Awaitable[Mapping[str, Any]]]
Say = Callable[[str, str], None]
"""Told what is looked at, and what came of it ("" when it begins)."""


@dataclass(frozen=True)
class BmcAccess:
    """How a controller is read; `password` is a reference, `pin` a certificate's fingerprint or ""."""

    address: str
    username: str
    password: str
    pin: str = ""
    ca: str | None = None


@dataclass(frozen=True)
class DeviceAccess:
    """How a host or switch is logged in to; `key` is the private key's reference."""

    address: str
    user: str
    key: str
    host_keys: tuple[str, ...]


@dataclass
class Looker:
    """Looks, and keeps what it asked.

    Attributes:
        base: where references to files start.
        told: (address, exchange) of every request and command, in their order for each address.
        secrets: what was resolved while it looked.
    """

    base: Path
    say: Say = lambda _place, _what: None
    told: list[tuple[str, Exchange]] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set, repr=False)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), repr=False)

    async def controller(self, access: BmcAccess, *, whole: bool = False) -> tuple[ControllerSeen, Tree]:
        """Read one BMC: all that its resources refer to, or only what a survey needs of it."""
        walked = Walked()
        async with self._gate:
            self.say(access.address, "")
            limit = WHOLE_S if whole else CONTROLLER_S
            try:
                async with asyncio.timeout(limit):
                    shown = await self._tree(access, walked, whole=whole)
                seen = controllers.read(access.address, shown, walked.found, time.time(), walked.unread)
            except SupernodeError as error:
                seen = ControllerSeen(access.address, why=_said(error))
            except TimeoutError:
                seen = ControllerSeen(access.address, why=f"not read within {limit:g} s")
            except MISSHAPEN as error:
                seen = ControllerSeen(access.address, why=misshapen(error))
        self.say(access.address, seen.why or f"{len(walked.found)} resources")
        return seen, {} if seen.why else walked.found

    async def _tree(self, access: BmcAccess, walked: Walked, *, whole: bool) -> str:
        """Walk a controller's tree; return the fingerprint of the certificate that it showed."""
        shown = await redfish.fingerprint(access.address)
        if access.pin and shown != access.pin:
            raise CouldNotRun(access.address, f"shows another certificate than the pinned one: {shown}")
        password = await self._secret(access.password)
        login = (access.address, access.username, password, access.ca, PATIENCE)
        async with redfish.connect(*login, pin=access.pin, look=True) as client:
            client.most = WHOLE_BYTES if whole else LEAST_BYTES
            client.exchanges = deque()  # all of them, not the last few
            try:
                await walked.walk(client.get, whole=whole)
            finally:
                self.told += [(access.address, row) for row in client.exchanges]
        return shown

    async def host(self, access: DeviceAccess) -> HostSeen:
        """Ask one host."""

        async def ask(session: ssh.Ssh) -> HostSeen:
            raw = await _speeds(session, await _run(session, devices.host_commands()))
            return devices.host(access.address, session.host_key, raw)

        return await self._device(access, HostSeen, ask)

    async def switch(self, access: DeviceAccess) -> SwitchSeen:
        """Ask one switch."""

        async def ask(session: ssh.Ssh) -> SwitchSeen:
            raw = await _speeds(session, await _run(session, devices.SWITCH))
            return devices.switch(access.address, session.host_key, raw)

        return await self._device(access, SwitchSeen, ask)

    async def again(self, access: DeviceAccess, seen: Device) -> Device:
        """Ask a device once more whom it hears, and how its ports are; what else was seen stays."""

        async def ask(session: ssh.Ssh) -> Device:
            raw = await _run(session, devices.NEIGHBOURS)
            return devices.again(seen, raw)

        found = await self._device(access, type(seen), ask)
        return seen if found.why else found

    async def _device(
        self, access: DeviceAccess, kind: type[Device], ask: Callable[[ssh.Ssh], Awaitable[Device]]
    ) -> Device:
        async with self._gate:
            self.say(access.address, "")
            try:
                key = await self._secret(access.key)
                async with asyncio.timeout(DEVICE_S):
                    seen = await self._logged_in(access, key, ask)
            except SupernodeError as error:
                seen = kind(access.address, why=_said(error))
            except TimeoutError:
                seen = kind(access.address, why=f"not asked within {DEVICE_S:g} s")
            except MISSHAPEN as error:
                seen = kind(access.address, why=f"it prints what its commands do not ({type(error).__name__}: {error})")
        lacking = ", ".join(seen.unseen)
        self.say(access.address, seen.why or (f"not seen: {lacking}" if lacking else "asked"))
        return seen

    async def _logged_in(self, access: DeviceAccess, key: str, ask: Callable[[ssh.Ssh], Awaitable[Device]]) -> Device:
        address, _, port = access.address.partition(":")
        at = int(port or 22)
        async with ssh.connect(address, access.user, key, access.host_keys, port=at, look=True) as session:
            try:
                return await ask(session)
            finally:
                self.told += [(access.address, row) for row in session.exchanges]

    async def _secret(self, reference: str) -> str:
        found = await secrets.resolve(reference, self.base)
        self.secrets.add(found)
        return found

    def counts(self) -> dict[str, int]:
        """Return how often each method was used."""
        return dict(sorted(Counter(row.method for _, row in self.told).items()))

    def log(self) -> str:
        """Write every request and command on a line of its own."""
        rows = (
            f"{address} {row.method} {row.path} -> {row.status} in {row.seconds:.2f} s" for address, row in self.told
        )
        return "".join(f"{row}\n" for row in rows)


@dataclass
class Walked:
    """A Redfish tree while it is read.

    Attributes:
        found: path to document.
        unread: path to what was answered, of resources that are there and could not be had.
    """

    found: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    async def walk(self, get: Get, *, whole: bool) -> None:
        """Read from the root on, a layer at a time.

        The first resource that needs a login is read alone: a refused password counts against the account once, not
        once for each of a layer.

        Raises:
            CouldNotRun: no answer, or the login is refused.
        """
        limit = MOST_RESOURCES if whole else LEAST_RESOURCES
        layer, asked = [trees.ROOT], {trees.ROOT}
        while layer:
            rest = list(layer)
            while rest and len(self.found) <= 1:
                await self._read(get, rest.pop(0))
            await asyncio.gather(*(self._read(get, path) for path in rest))
            reached = [(path, self.found[path]) for path in layer if path in self.found]
            onward = (to for path, document in reached for to in trees.onward(path, document, whole=whole))
            layer = [to for to in dict.fromkeys(onward) if to not in asked][: max(0, limit - len(asked))]
            asked.update(layer)

    async def _read(self, get: Get, path: str) -> None:
        """Fetch one resource; one that the BMC names and does not have is left out, as a survey has to live with."""
        try:
            self.found[path] = await get(path + "/" if path == trees.ROOT else path)
        except redfish.RedfishError as error:
            if error.status == 401 or path == trees.ROOT:
                raise
            if error.status not in _ABSENT:
                self.unread[path] = error.what


async def _run(session: ssh.Ssh, commands: Mapping[str, Sequence[str]]) -> dict[str, Raw]:
    """Run commands one after the other on one connection; one that does not end in time is a fact not seen."""
    found = {}
    for name, command in commands.items():
        try:
            result = await session.run(command, limit_s=COMMAND_S, check=False)
            found[name] = Raw(result.status, result.stdout, result.stderr)
        except (ssh.NoAnswer, ssh.TooMuch) as error:
            found[name] = Raw(124, "", error.what)
    return found


async def _speeds(session: ssh.Ssh, raw: dict[str, Raw]) -> dict[str, Raw]:
    names = devices.port_names(raw["addresses"])
    return {**raw, **await _run(session, devices.speed_commands(names))} if names else raw


def _said(error: SupernodeError) -> str:
    return error.what if isinstance(error, CouldNotRun) else str(error)
