"""Where a host or switch is logged in to, as whom and under which pinned keys; and the ssh command that does it."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supernode.bringup import inventory, inventory_source
from supernode.errors import CouldNotRun, WrongInput
from supernode.records import DeviceOutput, Outputs
from supernode.workspace import EnvironmentFolder, write_atomically

if TYPE_CHECKING:
    from supernode.design import Design, Host, Switch

MACHINES_KNOWN_HOSTS = "known_hosts.machines"


@dataclass(frozen=True)
class Target:
    """One device to log in to.

    Attributes:
        user: the account that provisioning makes on hosts, or the one that switches come with.
        host_keys: public keys in authorized_keys form; never empty.
    """

    name: str
    address: str
    user: str
    host_keys: tuple[str, ...]


def target(design: Design, outputs: Outputs | None, device: str, *, anyway: bool = False) -> Target:
    """Find a device by its name, slot or management address.

    Args:
        design: the Design.
        outputs: of the last provisioning; None when there was none.
        device: what the person wrote.
        anyway: also one that is quarantined.

    Raises:
        WrongInput: no such device; a near name is in the hint.
        CouldNotRun: it is quarantined, or no key is pinned for it; with the reason that is known.
    """
    name = _find(design, device)
    output = outputs.devices.get(name) if outputs else None
    reason = _quarantined(design, name)
    if reason is not None and not anyway:
        raise CouldNotRun(name, f"is quarantined{reason}", "--anyway logs in all the same")
    keys = host_keys(design, output, name)
    if not keys:
        hint = f"a device is only logged in to under a pinned key; {_next(design, name)}"
        raise CouldNotRun(name, _unpinned(output), hint)
    access = design.environment.access
    user = access.user if design.is_host(name) else access.switch_user
    return Target(name, _address(design, name), user, keys)


def _address(design: Design, name: str) -> str:
    gateway = next((row for row in design.gateways if row.name == name), None)
    if gateway is not None:
        return str(gateway.address)
    row = design.host(name) if design.is_host(name) else design.switch(name)
    return str(row.management.ip)


def host_keys(design: Design, output: DeviceOutput | None, device: str) -> tuple[str, ...]:
    """Return the keys that a device is known by: those of its provisioning, else the one that machines.yml binds."""
    if output is not None and output.host_keys:
        return output.host_keys
    if device in {row.name for row in design.gateways}:
        return ()
    row = design.host(device) if design.is_host(device) else design.switch(device)
    return (row.identity.ssh_host_key,) if row.identity.ssh_host_key else ()


def known_hosts_files(folder: EnvironmentFolder, design: Design, outputs: Outputs | None) -> tuple[Path, ...]:
    """Bring the known_hosts files up to date: one of what was provisioned, one of what only machines.yml knows."""
    provisioned = inventory_source.pin(folder, outputs or Outputs(folder.name, ""))
    devices = {} if outputs is None else outputs.devices
    only_bound = {
        row.name: DeviceOutput(row.name, "", row.slot, str(row.management.ip), host_keys=keys)
        for row in _devices(design)
        if not (row.name in devices and devices[row.name].host_keys) and (keys := host_keys(design, None, row.name))
    }
    bound = folder.state / MACHINES_KNOWN_HOSTS
    text = inventory.known_hosts(Outputs(folder.name, "", only_bound))
    if not bound.is_file() or bound.read_text(encoding="utf-8") != text:
        write_atomically(bound, text)
    return provisioned, bound


def command(wanted: Target, key: Path, known_hosts: Sequence[Path], words: Sequence[str] = ()) -> list[str]:
    """Return the ssh command line; a person's own ssh configuration may say how to get there, not whom to trust.

    Args:
        wanted: the device.
        key: the operator's private key.
        known_hosts: the files of pinned keys.
        words: what runs there: one is a line for the shell there, more are a command and reach it word by word; none
            for a shell.
    """
    files = " ".join(f'"{str(path).replace("%", "%%")}"' for path in known_hosts)
    options = {
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": files,
        "GlobalKnownHostsFile": "/dev/null",
        "KnownHostsCommand": "none",
        "VerifyHostKeyDNS": "no",
        "UpdateHostKeys": "no",
        "HostKeyAlias": wanted.name,
        "IdentityFile": f'"{str(key).replace("%", "%%")}"',
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PreferredAuthentications": "publickey",
        "ForwardAgent": "no",
        "ForwardX11": "no",
    }
    spelled = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    line = [shlex.join(words) if len(words) > 1 else words[0]] if words else []
    return ["ssh", *spelled, "-l", wanted.user, "--", wanted.address, *line]


def private_key(folder: EnvironmentFolder) -> Path:
    """Return the file of the operator's private key.

    Raises:
        CouldNotRun: it is not made yet.
    """
    path = folder.ssh_key_file
    if not path.is_file():
        raise CouldNotRun(str(path), "is not there yet", f"`supernode bringup {folder.name}` makes it on its first run")
    return path


def _devices(design: Design) -> list[Host | Switch]:
    return [*design.hosts, *design.switches]


def _find(design: Design, device: str) -> str:
    names = {*design.slots.values(), *(row.name for row in design.gateways)}
    name = design.slots.get(device, device)
    if name in names:
        return name
    for row in _devices(design):
        if device == str(row.management.ip):
            return row.name
    near = difflib.get_close_matches(device, [*names, *design.slots], n=1)
    hint = f"did you mean {near[0]}?" if near else f"`supernode design {design.name}` lists them"
    raise WrongInput(device, f"{design.name} has no such device, slot or address", hint)


def _quarantined(design: Design, name: str) -> str | None:
    """Return ": <reason>", empty when none is written, or None when the device is not quarantined."""
    if not design.is_host(name) or design.host(name).state != "quarantined":
        return None
    record = design.machines.slots.get(design.host(name).slot)
    return f": {record.reason}" if record and record.reason else ""


def _unpinned(output: DeviceOutput | None) -> str:
    if output is None:
        return "was never provisioned: no host key is pinned for it"
    if output.state != "ready":
        return f"{output.state} in {output.phase}: {output.reason}; no host key is pinned for it"
    return "no host key is pinned for it"


def _next(design: Design, name: str) -> str:
    if design.is_host(name):
        return f"run `supernode bringup {design.name} --only provision`"
    if name in {row.name for row in design.gateways}:
        return "its key comes with it, and is pinned by the run that makes the tunnel"
    return f"`supernode assign {design.name}` binds the key that a switch was delivered with"
