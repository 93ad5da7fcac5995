"""Where a lab keeps its things, and what its parts are called on the machine.

/var/lib/supernode-lab/
  lock, <env>.lock            starts and stops take turns
      machine.json, capacity.json  of the machine, for all labs
  <env>/                      0700
    artefacts/                what the lab is built from (contracts, section 3)
    factory/                  what was made once and outlives the lab: keys, the passwords on the BMCs' labels
    faults.json               the faults that stand, applied again by each start
    images/                   golden images that a deploy step fetched
    vendor/                   the vendor's package repository, and the key that signs it
    slots/<slot>/             console.log, disk/, board/, root/
    control.sock lab.json delivery daemon.log
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from supernode.errors import CouldNotRun, WrongInput

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def labs_root() -> Path:
    """Return the folder of all labs: SUPERNODE_LAB_ROOT, else /var/lib/supernode-lab."""
    return Path(os.environ.get("SUPERNODE_LAB_ROOT", "/var/lib/supernode-lab"))


@contextmanager
def roots_alone(lab: str) -> Iterator[None]:
    """Say what to do where a lab's folder does not open: it is root's, and so are the lab's verbs.

    Raises:
        CouldNotRun: in the place of a PermissionError.
    """
    try:
        yield
    except PermissionError as error:
        raise CouldNotRun(lab, "needs root", "sudo supernode lab …") from error


@dataclass(frozen=True)
class SlotPlaces:
    """The folder of one machine or switch."""

    folder: Path

    @property
    def console(self) -> Path:
        """What the device wrote to its serial port, since the lab was started."""
        return self.folder / "console.log"

    @property
    def disk(self) -> Path:
        """The overlay's upper half: all that was ever written to the disk."""
        return self.folder / "disk"

    @property
    def board(self) -> Path:
        """The simulated part of /sys, read-only in the machine."""
        return self.folder / "board"

    @property
    def root(self) -> Path:
        """Where the disk is mounted while the device runs; empty outside the lab's mount namespace."""
        return self.folder / "root"


@dataclass(frozen=True)
class Places:
    """The folders and names of one lab."""

    name: str
    root: Path

    @classmethod
    def of(cls, environment: str) -> Places:
        """Return the places of an environment's lab, existing or not.

        Raises:
            WrongInput: the name has characters that cannot be part of a cgroup's and a folder's name.
        """
        if NAME.fullmatch(environment) is None:
            raise WrongInput(environment, "is no name for a lab", "use lower-case letters, digits and '-', at most 40")
        return cls(environment, labs_root())

    @property
    def folder(self) -> Path:
        """Everything of this lab on disk."""
        return self.root / self.name

    @property
    def artefacts(self) -> Path:
        """The exported artefacts that the running lab was built from."""
        return self.folder / "artefacts"

    @property
    def factory(self) -> Path:
        """Keys and passwords made once; they outlive a stop."""
        return self.folder / "factory"

    @property
    def faults(self) -> Path:
        """The faults that stand."""
        return self.folder / "faults.json"

    @property
    def images(self) -> Path:
        """Golden images that a deploy step fetched."""
        return self.folder / "images"

    @property
    def vendor(self) -> Path:
        """The vendor's package repository, and its key."""
        return self.folder / "vendor"

    @property
    def control(self) -> Path:
        """The daemon's socket."""
        return self.folder / "control.sock"

    @property
    def delivery(self) -> Path:
        """Names the folder that the delivery was written to."""
        return self.folder / "delivery"

    @property
    def settings(self) -> Path:
        """What the starter hands to the daemon."""
        return self.folder / "lab.json"

    @property
    def log(self) -> Path:
        """The daemon's log."""
        return self.folder / "daemon.log"

    @property
    def cgroup(self) -> str:
        """The name of the lab's cgroup: the one handle by which all of it ends."""
        return f"supernode-lab-{self.name}"

    @property
    def wire(self) -> str:
        """The root namespace's end of the link into the lab: at most 15 characters, one for each lab."""
        return f"lab-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    def slot(self, slot: str) -> SlotPlaces:
        """Return the folder of a slot."""
        return SlotPlaces(self.folder / "slots" / slot)
