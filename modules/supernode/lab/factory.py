"""What was made before the truck came: labels, keys and passwords; and the delivery sheet that comes with the machines.

Labels follow from the lab's name and the slot. Keys are made once and outlive a stop: what was bound stays bound.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from supernode import workspace
from supernode.lab.artefacts import Artefacts
from supernode.lab.chassis import Identity

MACHINE_COLUMNS = (
    "slot",
    "kind",
    "system_serial",
    "board_serial",
    "chassis_serial",
    "uuid",
    "bmc_mac",
    "management_mac",
)
GENERATIONS = "generations.json"  # by slot; a start of the lab begins with the first machine of each again
SWITCH_COLUMNS = ("slot", "kind", "system_serial", "management_mac", "ssh_host_key")


@dataclass(frozen=True)
class SwitchKey:
    """A switch's SSH host key, in OpenSSH's forms."""

    private: str
    public: str

    def __repr__(self) -> str:
        """Show the public half alone."""
        return f"SwitchKey({self.public})"


@dataclass(frozen=True)
class Factory:
    """The folder of keys and passwords of one lab."""

    folder: Path

    def password(self, slot: str) -> str:
        """Return the password on a BMC's label, made on the first call."""
        return _once(self.folder / "bmc-labels" / slot, lambda: secrets.token_urlsafe(9))

    def unit_password(self, unit: str) -> str:
        """Return the password on a cooling unit's label, made on the first call."""
        return _once(self.folder / "cdu-labels" / unit, lambda: secrets.token_urlsafe(9))

    def generation(self, slot: str) -> int:
        """Return which of the machines that ever stood in a slot stands there now, from 1."""
        return int(self._generations().get(slot, 1))

    def identity(self, lab: str, slot: str) -> Identity:
        """Return the labels of the machine that stands in a slot."""
        return Identity.manufactured(lab, slot, self.generation(slot))

    def next_machine(self, slot: str) -> None:
        """Have another machine stand in a slot, with its own labels and its own password on one of them."""
        counted = {**self._generations(), slot: self.generation(slot) + 1}
        (self.folder / "bmc-labels" / slot).unlink(missing_ok=True)
        workspace.write_atomically(self.folder / GENERATIONS, json.dumps(counted), 0o600)

    def _generations(self) -> dict[str, int]:
        path = self.folder / GENERATIONS
        found: dict[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return found

    def switch_key(self, slot: str) -> SwitchKey:
        """Return a switch's host key, made on the first call."""
        private = _once(self.folder / f"ssh-{slot}", _ed25519)
        key = serialization.load_ssh_private_key(private.encode(), None)
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        return SwitchKey(private, public.decode())


def deliver(folder: Path, lab: str, artefacts: Artefacts, factory: Factory, bmc_ca: str) -> None:
    """Write the delivery (contracts, section 3) for an environment.

    Args:
        folder: `inventories/<env>/delivery`.
        lab: the lab's name, which the labels follow from.
        artefacts: what stands where.
        factory: the lab's keys.
        bmc_ca: the certificate of the authority that signed the BMCs' own, as PEM.
    """
    machines = (_machine(factory.identity(lab, row.slot), row.slot, row.kind) for row in artefacts.servers)
    switches = (_switch(lab, row.slot, row.kind, factory) for row in artefacts.switches)
    workspace.write_atomically(folder / "machines.csv", _table(MACHINE_COLUMNS, machines))
    workspace.write_atomically(folder / "switches.csv", _table(SWITCH_COLUMNS, switches))
    workspace.write_atomically(folder / "bmc-ca.pem", bmc_ca)
    for gateway in artefacts.wan.gateways if artefacts.wan else ():
        key = factory.switch_key(gateway.name).public
        workspace.write_atomically(folder / "gateways" / f"{gateway.name}.pub", key + "\n")
    labels = folder / "bmc-factory"
    labels.mkdir(mode=0o700, exist_ok=True)
    for row in artefacts.servers:
        workspace.write_atomically(labels / row.slot, factory.password(row.slot) + "\n", 0o600)
    for unit in (row.unit for row in artefacts.cooling if row.username):
        workspace.write_atomically(folder / "cdu" / unit, factory.unit_password(unit) + "\n", 0o600)
    for path in (folder, *folder.rglob("*")):  # root started the lab; whoever keeps it reads the sheets
        workspace.give(path, folder.parent)


def _machine(made: Identity, slot: str, kind: str) -> tuple[str, ...]:
    return (
        slot,
        kind,
        made.system_serial,
        made.board_serial,
        made.chassis_serial,
        made.uuid,
        made.bmc_mac,
        made.management_mac,
    )


def _switch(lab: str, slot: str, kind: str, factory: Factory) -> tuple[str, ...]:
    made = Identity.manufactured(lab, slot)
    return (slot, kind, made.system_serial, made.management_mac, factory.switch_key(slot).public)


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _once(path: Path, make: Callable[[], str]) -> str:
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        workspace.write_atomically(path, make(), 0o600)
    return path.read_text(encoding="utf-8")


def _ed25519() -> str:
    form = serialization.PrivateFormat.OpenSSH
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        .decode()
    )
