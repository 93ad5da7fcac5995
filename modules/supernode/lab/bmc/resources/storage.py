"""Systems/1/Storage: the controller of the system disk and the disk itself."""

from __future__ import annotations

from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, links, resource
from supernode.lab.bmc.routes import Body, Call, get

ALL = f"{V1}/Systems/1/Storage"
ONE = f"{ALL}/1"
DRIVE = f"{ONE}/Drives/Disk0"
_GB = 10**9


@get(ALL)
def storages(_bmc: Bmc, call: Call) -> Body:
    """List the one controller."""
    return collection("Storage", ALL, "Storage", [ONE], call)


@get(ONE)
def storage(_bmc: Bmc, _call: Call) -> Body:
    """Show what hangs on it."""
    body = resource("Storage", ONE, "Storage", Status=HEALTHY, Drives=links([DRIVE]))
    return body | {"Drives@odata.count": 1, "Links": {"Enclosures": [link(f"{V1}/Chassis/1")]}}


@get(DRIVE)
def drive(bmc: Bmc, _call: Call) -> Body:
    """Show the system disk."""
    return resource(
        "Drive",
        DRIVE,
        "System Disk",
        Manufacturer=bmc.kind.vendor,
        Model=f"{bmc.kind.model} system disk",
        SerialNumber=f"{bmc.chassis.identity.board_serial}-D0",
        CapacityBytes=bmc.kind.disk.size_gb * _GB,
        MediaType="SSD",
        Status=HEALTHY,
    )
