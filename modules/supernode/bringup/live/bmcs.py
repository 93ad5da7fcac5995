"""Look at management controllers: GETs alone, at most two passwords, and one deadline however slow one answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from supernode.bringup.live.seen import BmcSeen, Drive, Login
from supernode.clients import redfish, secrets
from supernode.clients.answer import CHANGE_REQUIRED, MISSHAPEN, RedfishError, misshapen
from supernode.clients.redfish import Patience, Redfish, Untrusted
from supernode.design import Host
from supernode.errors import CouldNotRun
from supernode.provider import identity as machines
from supernode.spec import Environment

PATIENCE = Patience(answer_s=5.0, tries=3, first_s=0.3, longest_s=2.0)
LIMIT_S = 25.0
_MOST_DRIVES = 64


@dataclass(frozen=True)
class Account:
    """A user and the reference to its password; `{slot}` stands for the slot."""

    username: str
    password: str

    async def resolve(self, slot: str, base: Path) -> str:
        """Return the password for a slot."""
        return await secrets.resolve(self.password.replace("{slot}", slot), base)


@dataclass(frozen=True)
class Accounts:
    """Whom to log in as: first our own, then, where one is named, the one that the factory left."""

    own: Account
    factory: Account | None

    @classmethod
    def of(cls, environment: Environment) -> Accounts:
        """Read them from environment.yml."""
        bmc, factory = environment.bmc, environment.bmc.factory
        left = Account(factory.username, factory.password) if factory else None
        return cls(Account(bmc.username, bmc.password), left)


async def look(
    host: Host, accounts: Accounts, ca: str | None, base: Path, patience: Patience = PATIENCE, limit_s: float = LIMIT_S
) -> BmcSeen:
    """Look at one controller; nothing that goes wrong is raised.

    Args:
        host: whose controller.
        accounts: whom to log in as.
        ca: PEM text of the site's CA; None where only the pinned certificate counts.
        base: the folder that references start from.
        patience: with one request.
        limit_s: for all of it.
    """
    seen = BmcSeen(host.name, host.slot, str(host.bmc), Login.BROKEN)
    try:
        async with asyncio.timeout(limit_s):
            return await _look(seen, host, accounts, ca, base, patience)
    except TimeoutError:
        return replace(seen, login=Login.UNREACHABLE, said=f"not looked through in {limit_s:g} s")
    except Untrusted as error:
        return replace(seen, login=Login.UNTRUSTED, said=error.what, hint=error.hint or "")
    except redfish.Unreachable as error:
        return replace(seen, login=Login.UNREACHABLE, said=error.what)
    except CouldNotRun as error:
        return replace(seen, said=error.what, hint=error.hint or "")
    except MISSHAPEN as error:
        return replace(seen, said=misshapen(error))


async def _look(
    seen: BmcSeen, host: Host, accounts: Accounts, ca: str | None, base: Path, patience: Patience
) -> BmcSeen:
    passwords = await _passwords(accounts, host.slot, base)
    if isinstance(passwords, str):
        return replace(seen, login=Login.NOT_TRIED, said=passwords)
    pin = host.identity.bmc_fingerprint
    (first, user, password), *rest = passwords
    async with redfish.connect(seen.address, user, password, ca, patience, pin=pin, look=True) as client:
        seen = replace(seen, login=await _login(client, first))
        for login, other, secret in rest:
            if seen.login is Login.REFUSED:
                await client.become(other, secret)
                seen = replace(seen, login=await _login(client, login))
        if seen.login not in (Login.IN, Login.FACTORY):
            return seen
        found = await machines.find(client, host.identity.hardware())
        says = await machines.read(found, host.identity.hardware())
        seen = await _clock(replace(seen, identity=says), client, found.manager)
        return replace(seen, drives=await _drives(client, found.system))


async def _passwords(accounts: Accounts, slot: str, base: Path) -> list[tuple[Login, str, str]] | str:
    """Return what to try, in order, or why there is nothing to try."""
    found: list[tuple[Login, str, str]] = []
    missing = ""
    for login, account in ((Login.IN, accounts.own), (Login.FACTORY, accounts.factory)):
        if account is not None:
            try:
                found.append((login, account.username, await account.resolve(slot, base)))
            except CouldNotRun as error:
                missing = missing or f"{error.where}: {error.what}"
    return found or missing


async def _login(client: Redfish, login: Login) -> Login:
    """Try one password, once."""
    try:
        await client.sign_in()
    except RedfishError as error:
        if any(entry.rpartition(".")[2] in CHANGE_REQUIRED for entry in error.message_ids):
            return _CLOSED[login]
        if error.status == 401:
            return Login.REFUSED
        raise
    return _CLOSED[login] if client.account else login


_CLOSED = {Login.IN: Login.MUST_CHANGE, Login.FACTORY: Login.FACTORY_CLOSED}


async def _clock(seen: BmcSeen, client: Redfish, manager: str) -> BmcSeen:
    """Read the controller's clock; half of the time that the answer took is taken for its way back."""
    if not manager:
        return seen
    begun = time.time()
    document = await client.get(manager)
    ours = (begun + time.time()) / 2
    said = str(document.get("DateTime") or "")
    try:
        theirs = datetime.fromisoformat(said)
    except ValueError:
        return replace(seen, clock=said)
    theirs = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    return replace(seen, clock=said, clock_ahead_s=theirs.timestamp() - ours)


async def _drives(client: Redfish, system: str) -> tuple[Drive, ...] | None:
    """List the drives: Storage, where the controller has it, else SimpleStorage; None when it has neither."""
    document = await client.get(system)
    found: list[Drive] = []
    storage, simple = (_link(document, name) for name in ("Storage", "SimpleStorage"))
    if not (storage or simple):
        return None
    for controller in await _members(client, storage):
        for entry in (controller.get("Drives") or ())[: _MOST_DRIVES - len(found)]:
            found.append(_drive((await client.find(str(entry.get("@odata.id")))) or {}))
    if not found:
        devices = [d for c in await _members(client, simple) for d in c.get("Devices") or ()]
        found = [_drive(device) for device in devices]
    return tuple(drive for drive in found if drive.health != "Absent")


async def _members(client: Redfish, collection: str) -> list[redfish.Json]:
    if not collection or await client.find(collection) is None:
        return []
    return await client.members(collection)


def _drive(document: Mapping[str, Any]) -> Drive:
    status = document.get("Status") or {}
    health = "Absent" if status.get("State") == "Absent" else str(status.get("Health") or "")
    size = document.get("CapacityBytes")
    name, model, serial = (str(document.get(key) or "").strip() for key in ("Name", "Model", "SerialNumber"))
    return Drive(name, model, serial, int(size) if isinstance(size, int | float) else None, health)


def _link(resource: Mapping[str, Any], name: str) -> str:
    return str((resource.get(name) or {}).get("@odata.id") or "")
