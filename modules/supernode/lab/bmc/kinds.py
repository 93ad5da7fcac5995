"""The kinds of fault that a BMC or its machine can have; each lie is one that a real controller was seen to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The requests that a lie can be about, as `answers.request_of` names them; "any" is each of them.
REQUESTS = ("power", "boot", "bios", "insert", "eject", "any")


@dataclass(frozen=True)
class FaultKind:
    """A fault that can be injected.

    Attributes:
        about: one line for `supernode lab fault`.
        arguments: their defaults, numbers or words. `rate` is the share of requests that it strikes, `times` how often
            it strikes before it is over (0: as long as it stands).
        choices: what an argument that is a word may be.
        source: where a real controller was seen to behave so; empty for what needs no witness.
    """

    name: str
    about: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""


FAULTS = (
    FaultKind("bmc-dead", "the BMC answers no packet"),
    FaultKind("bmc-slow", "answers come late, at a rate", {"delay_s": 10.0, "rate": 1.0}),
    FaultKind("bmc-503", "answers are 503, at a rate", {"rate": 1.0, "retry_after_s": 0}),
    FaultKind("host-never-boots", "power comes on, POST stops at a code", {"code": 0x92}),
)

LIES = (
    FaultKind(
        "bmc-no-effect",
        "a change is answered 204 and nothing is done (request: power, boot, bios, insert, eject, any)",
        {"request": "boot", "times": 0},
        {"request": REQUESTS},
        "bmc-toolbox/bmclib#459: 200, and another override; redhat-performance/jetlag#245: no power on, no error",
    ),
    FaultKind(
        "bmc-400-applied",
        "a change is answered 400 and was done (request: power, boot, bios, insert, eject, any)",
        {"request": "bios", "times": 0},
        {"request": REQUESTS},
        'quadsproject/badfish#29: 400 "already committed" on pending values that hold',
    ),
    FaultKind(
        "bmc-task-lost",
        "a change becomes a task, the BMC resets, the task is gone; happens=0: and nothing was done",
        {"request": "insert", "happens": 1, "times": 1},
        {"request": REQUESTS},
        "ibm-openbmc/dev#3197: tasks do not survive a reset; ironcore-dev/metal-operator#617: 404 on the monitor",
    ),
    FaultKind(
        "bmc-once-continuous",
        "the boot override Once is kept as Continuous (shows=Once: and reads Once)",
        {"shows": "Continuous"},
        {"shows": ("Continuous", "Once")},
        "kubevirtbmc/kubevirtbmc#165; sushy-emulator 2.2.0 by our own measurement",
    ),
    FaultKind(
        "bmc-sessions-full",
        "others hold all sessions, and take each that becomes free",
        source="stmcginnis/gofish#75, bb-Ricardo/check_redfish#198: iDRAC RAC0218",
    ),
    FaultKind(
        "bmc-stale-inventory",
        "what is read is of earlier, until the BMC is reset or for_s is over (what: power, firmware, identity)",
        {"what": "power", "for_s": 0.0},
        {"what": ("power", "firmware", "identity")},
        "Cray-HPE/docs-csm#832: Gigabyte, a cold reset of the BMC refreshes the values",
    ),
    FaultKind(
        "host-dead",
        "power is on and nothing follows: no POST, no console",
        source="xcat2/xcat-core#3991: the chassis is on and the host is not",
    ),
    FaultKind(
        "bmc-two-systems",
        "Systems lists another system first (other: baseboard, of this server; witness, another server)",
        {"other": "witness"},
        {"other": ("baseboard", "witness")},
        "dsx-ai-factory/libredfish#89: HGX_Baseboard_0 first; dell/terraform-provider-redfish#192: XR4000w first",
    ),
    FaultKind(
        "bmc-clock-1970",
        "the BMC's clock starts in 1970, again after each reset",
        source="turing-machines/BMC-Firmware#51: no clock is kept without power",
    ),
    FaultKind(
        "bmc-pending-forever",
        "what waits goes on waiting (what: bios settings through every POST, or a task that InsertMedia became)",
        {"what": "bios"},
        {"what": ("bios", "task")},
        "dell/iDRAC-Redfish-Scripting#84: pending after reboots; ironcore-dev/metal-operator#453: no progress",
    ),
    FaultKind(
        "bmc-one-slot",
        "the only virtual drive is no use (holds: stranger, somebody's image; usb, it takes no CD)",
        {"holds": "stranger"},
        {"holds": ("stranger", "usb")},
        "dell/iDRAC-Redfish-Scripting#290: only the first of two media goes in",
    ),
    FaultKind(
        "bmc-media-ignored",
        "InsertMedia is answered 204 and no image is fetched (shows: nothing, or inserted)",
        {"shows": "nothing"},
        {"shows": ("nothing", "inserted")},
        "HewlettPackard/python-ilorest-library#7: 200, and Image Inserted: None",
    ),
)

KINDS: Mapping[str, FaultKind] = {kind.name: kind for kind in (*FAULTS, *LIES)}
