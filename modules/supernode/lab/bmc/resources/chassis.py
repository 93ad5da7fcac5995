"""Chassis/1: the enclosure and the boards in it."""

from __future__ import annotations

from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, links, resource
from supernode.lab.bmc.routes import Body, Call, get

ALL = f"{V1}/Chassis"
ONE = f"{ALL}/1"


@get(ALL)
def every(_bmc: Bmc, call: Call) -> Body:
    """List the one chassis."""
    return collection("Chassis", ALL, "Chassis", [ONE], call)


@get(ONE)
def chassis(bmc: Bmc, _call: Call) -> Body:
    """Show the enclosure."""
    power = bmc.chassis.power_state()
    return resource(
        "Chassis",
        ONE,
        "Chassis",
        ChassisType="RackMount",
        Manufacturer=bmc.kind.vendor,
        Model=bmc.kind.model,
        SerialNumber=bmc.chassis.identity.chassis_serial,
        PowerState=power.value,
        Status=HEALTHY,
        MaxPowerWatts=bmc.kind.power_w,
        Location=_location(bmc.chassis.slot),
        Assembly=link(f"{ONE}/Assembly"),
        Links={"ComputerSystems": links([f"{V1}/Systems/1"]), "ManagedBy": links([f"{V1}/Managers/1"])},
    )


def _location(slot: str) -> Body:
    """Return where a slot is: its rack, and the lowest unit of it that the chassis fills (EIA-310 counts from 1)."""
    location: Body = {"PartLocation": {"LocationType": "Slot", "ServiceLabel": slot}}
    rack, _, unit = slot.rpartition("u")
    if rack and unit.isdigit():
        location["Placement"] = {"Rack": rack, "RackOffset": int(unit), "RackOffsetUnits": "EIA_310"}
    return location


@get(f"{ONE}/Assembly")
def assembly(bmc: Bmc, call: Call) -> Body:
    """Show the system board, which has a serial number of its own."""
    board = {
        "@odata.id": f"{call.path}#/Assemblies/0",
        "MemberId": "0",
        "Name": "System Board",
        "PhysicalContext": "SystemBoard",
        "SerialNumber": bmc.chassis.identity.board_serial,
        "Status": HEALTHY,
    }
    return resource("Assembly", call.path, "Assemblies", Assemblies=[board])
