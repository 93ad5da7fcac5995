"""Another machine of the same kind is put into a slot, and the truck leaves a new sheet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from supernode import workspace
from supernode.errors import WrongInput
from supernode.lab import artefacts, factory, wiring
from supernode.lab.bmc.certificates import Authority
from supernode.lab.factory import Factory
from supernode.lab.places import Places
from supernode.lab.servers import ServerWorks
from supernode.lab.vendor import repository

NAME = "exchange-machine"
BMC = ("factory", "restored")


def refitted(lab: str, old: ServerWorks, made: Factory) -> ServerWorks:
    """Take a machine that is off out of its slot and return the works of the next one: other labels, an empty disk.

    The cables are plugged into the same ports of it.
    """
    slot = old.server.slot
    made.next_machine(slot)
    old.disk.erase()
    old.ports.ports = wiring.server_ports(lab, old.server, made.generation(slot))
    old.ports.renew()  # which gives them their own addresses
    return dataclasses.replace(old, identity=made.identity(lab, slot))


def keeps_settings(bmc: str) -> bool:
    """Say whether the new machine's controller has the old one's accounts and certificate.

    Raises:
        WrongInput: neither of the two ways in which machines are exchanged.
    """
    if bmc not in BMC:
        raise WrongInput(NAME, f"bmc is one of {', '.join(BMC)}, not {bmc!r}")
    return bmc == "restored"


def deliver(places: Places) -> None:
    """Write the delivery of the machines that stand in the lab now, where the last start wrote it."""
    folder = Path(places.delivery.read_text(encoding="utf-8"))
    certificate = Authority(places.factory / "ca").certificate.read_text(encoding="ascii")
    key = places.vendor / repository.KEY
    if key.is_file():  # a lab that was started by earlier code has no vendor
        workspace.write_atomically(folder / repository.KEY, key.read_text(encoding="ascii"))
    factory.deliver(folder, places.name, artefacts.read(places.artefacts), Factory(places.factory), certificate)
