"""Where real management controllers differ from the standard: one table, each row with its source.

What any client can find out by looking (an action that is missing, a parameter that is asked for) is no quirk: the code
looks. Here stands only what must be known beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Quirks:
    """How to treat one controller.

    Attributes:
        cd_targets: boot override targets that mean the virtual CD, the best first.
        system_prefixes_skipped: members of Systems that are boards inside the server, not the server.
        media_ids_skipped: virtual media devices that take no image by URL.
        bios_apply_time: the `@Redfish.SettingsApplyTime` without which a BIOS change is never applied; empty for none.
    """

    cd_targets: tuple[str, ...] = ("Cd",)
    system_prefixes_skipped: tuple[str, ...] = ("HGX_",)
    media_ids_skipped: tuple[str, ...] = ()
    bios_apply_time: str = ""


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        vendor: start of the service root's Vendor, else of the system's Manufacturer; lower case.
        models: part of the system's Model, lower case; empty means any.
        change: the fields of Quirks that differ.
        source: where it is documented.
    """

    vendor: str
    models: tuple[str, ...]
    change: Mapping[str, Any]
    source: str


TABLE: tuple[Row, ...] = (
    Row(
        "supermicro",
        (),
        {"cd_targets": ("UsbCd", "Cd")},
        "virtual media is a USB CD on X11 and X12; openstack/sushy, release note change-bootdev-smc-ab30317eaf5c37d9",
    ),
    Row(
        "supermicro",
        ("ars-111gl-nhr",),
        {"cd_targets": ("Cd",)},
        "here the plain CD boots; openstack/sushy, release note supermicro-vmedia-dev-workaround-cc7a870c9a99d92b",
    ),
    Row(
        "lenovo",
        (),
        {"media_ids_skipped": ("RDOC1", "RDOC2", "Remote1", "Remote2", "Remote3", "Remote4")},
        "only the EXT devices take an image by URL; https://github.com/lenovo/python-redfish-lenovo/issues/21",
    ),
    Row(
        "dell",
        (),
        {"bios_apply_time": "OnReset"},
        "attributes stay pending without a job; the apply time makes one; https://github.com/dell/iDRAC-Redfish-Scripting/issues/84",
    ),
    Row(
        "nvidia",
        (),
        {"system_prefixes_skipped": ("HGX_",)},
        "HGX_Baseboard_0 is listed beside the server; https://docs.nvidia.com/dgx/dgxh100-user-guide/redfish-api-supp.html",
    ),
)


def of(vendor: str, manufacturer: str = "", model: str = "") -> Quirks:
    """Return how to treat a controller; later rows of the table win."""
    names = (vendor.lower(), manufacturer.lower())
    known = {f.name for f in fields(Quirks)}
    quirks = Quirks()
    for row in TABLE:
        fits = any(name.startswith(row.vendor) for name in names if name)
        if fits and (not row.models or any(part in model.lower() for part in row.models)):
            quirks = replace(quirks, **{k: v for k, v in row.change.items() if k in known})
    return quirks
