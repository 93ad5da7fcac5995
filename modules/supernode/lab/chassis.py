"""The line between a simulated server and its BMC.

    Chassis   what the BMC can do to the machine: power, and looking at it          implemented by the lab
    Board     what the machine's firmware asks its BMC on each way through POST     implemented by the BMC

Every start of the machine (power on, reset, a reboot from inside) goes through `Board.post`, for that is where real
hardware applies pending settings and chooses what to boot. `lab.machine.Machine` is a Chassis that needs only `Works`
from the lab.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Power(StrEnum):
    """Redfish's PowerState."""

    ON = "On"
    OFF = "Off"
    POWERING_ON = "PoweringOn"
    POWERING_OFF = "PoweringOff"


class Progress(StrEnum):
    """Redfish's BootProgress.LastState, in the order a machine goes through them."""

    NONE = "None"
    PROCESSOR = "PrimaryProcessorInitializationStarted"
    MEMORY = "MemoryInitializationStarted"
    PCI = "PCIResourceConfigStarted"
    READY = "SystemHardwareInitializationComplete"
    SETUP = "SetupEntered"
    BOOT_STARTED = "OSBootStarted"
    RUNNING = "OSRunning"


@dataclass(frozen=True)
class PostCode:
    """One code that the firmware wrote to port 80.

    Attributes:
        boot: which start of the machine it belongs to, counted from 1.
        at: seconds since the epoch.
        code: the value, e.g. 0x92 for PCI bus initialisation.
    """

    boot: int
    at: float
    code: int


@dataclass(frozen=True)
class Port:
    """A network port of the machine as its BMC lists it, named `management` or `rail<n>`."""

    name: str
    mac: str
    speed_mbit_s: float = 0


@dataclass(frozen=True)
class Identity:
    """What a truck delivers: the numbers on the labels."""

    system_serial: str
    board_serial: str
    chassis_serial: str
    uuid: str
    bmc_mac: str
    management_mac: str

    @classmethod
    def manufactured(cls, lab: str, slot: str, generation: int = 1) -> Identity:
        """Make the identity of the n-th machine that ever stood in a slot; the same arguments give the same labels."""
        digest = hashlib.sha256(f"{lab}/{slot}/{generation}".encode()).digest()
        text = digest.hex().upper()
        return cls(
            system_serial=f"SN{text[:10]}",
            board_serial=f"MB{text[10:20]}",
            chassis_serial=f"CH{text[20:30]}",
            uuid=str(uuid.UUID(bytes=digest[:16], version=4)),
            bmc_mac=manufactured_mac(lab, slot, "bmc", generation),
            management_mac=manufactured_mac(lab, slot, "management", generation),
        )


def manufactured_mac(lab: str, slot: str, port: str, generation: int = 1) -> str:
    """Make the address of a port; from the locally administered range, so that it never meets a real one."""
    digest = hashlib.sha256(f"{lab}/{slot}/{generation}/{port}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))


@dataclass(frozen=True)
class MediaInfo:
    """What a deploy ISO says, read out of the ISO itself (contracts, section 5).

    Attributes:
        kernel_arguments: those of the default menu entry; a flag without a value maps to "".
        image_url, image_digest, disk, report_url: the `supernode.*` arguments; empty where the ISO has none.
        seed: the files under /seed by name, without ca.pem and token.
        ca_pem: the certificates that the deploy step trusts.
        token: what the report is sent with; in no log.
    """

    kernel_arguments: Mapping[str, str]
    image_url: str
    image_digest: str
    report_url: str
    disk: str
    seed: Mapping[str, str]
    ca_pem: str
    token: str = field(repr=False)


class PostHung(Exception):
    """POST stopped at a code and goes no further until the power is cut."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"POST code {code:#04x}")


class Board(Protocol):
    """What the machine asks of its BMC."""

    def alive(self) -> bool:
        """Tell whether anything at all happens when power comes on."""

    async def post(self) -> MediaInfo | None:
        """Apply pending settings and choose what to boot: media, or None for the disk.

        To be called once on each way through POST.

        Raises:
            PostHung: the machine stays in POST; the chassis shows the code until power is cut.
        """

    def record(self, message: str, severity: str = "OK") -> None:
        """Write a line into the system event log; severity is OK, Warning or Critical."""


class Chassis(Protocol):
    """A server as its BMC sees it."""

    slot: str
    kind: str
    identity: Identity
    ports: Sequence[Port]

    def connect(self, board: Board) -> None:
        """Take the BMC that this machine asks in POST; called once, before any power action."""

    async def power_on(self) -> None:
        """Start the machine; does nothing when it is on. Returns when power is on, not when the system is up."""

    async def power_off(self, hard: bool) -> None:
        """Cut the power and return when it is off; without `hard` ask the system to shut down and return at once."""

    async def reset(self, hard: bool) -> None:
        """Start the machine again, by its reset line or by asking the system; one that is off stays off."""

    def power_state(self) -> Power:
        """Return the present state; costs nothing."""

    def boot_progress(self) -> Progress:
        """Return how far the present boot came; NONE when off."""

    def post_codes(self) -> Sequence[PostCode]:
        """Return the codes of the last boots, oldest first."""

    def console_tail(self, lines: int) -> Sequence[str]:
        """Return the last lines of the serial console; they outlive a power cut."""
