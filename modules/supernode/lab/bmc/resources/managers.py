"""Managers/1: the BMC itself: clock, own port, virtual media."""

from __future__ import annotations

import datetime

from supernode.lab.bmc.controller import Bmc, timestamp
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, links, only, parameters, resource
from supernode.lab.bmc.routes import Body, Call, Reply, get, patch, post

ALL = f"{V1}/Managers"
ONE = f"{ALL}/1"
RESET = f"{ONE}/Actions/Manager.Reset"
RESET_TYPES = ("GracefulRestart", "ForceRestart")
PORTS = f"{ONE}/EthernetInterfaces"
DRIVES = f"{ONE}/VirtualMedia"
DRIVE = f"{DRIVES}/Cd"
INSERT = f"{DRIVE}/Actions/VirtualMedia.InsertMedia"
EJECT = f"{DRIVE}/Actions/VirtualMedia.EjectMedia"
INSERT_PARAMETERS: dict[str, type | tuple[type, ...]] = {
    "Image": str,
    "Inserted": bool,
    "WriteProtected": bool,
    "TransferMethod": str,
    "TransferProtocolType": str,
    "MediaType": str,
}


@get(ALL)
def managers(_bmc: Bmc, call: Call) -> Body:
    """List the one manager."""
    return collection("Manager", ALL, "Managers", [ONE], call)


@get(ONE)
def manager(bmc: Bmc, _call: Call) -> Body:
    """Show the BMC."""
    return resource(
        "Manager",
        ONE,
        "Manager",
        ManagerType="BMC",
        Manufacturer=bmc.kind.vendor,
        UUID=bmc.uuid,
        FirmwareVersion=bmc.state.firmware.get("BMC", ""),
        DateTime=timestamp(bmc.now()),
        DateTimeLocalOffset="+00:00",
        PowerState="On",
        Status=HEALTHY,
        EthernetInterfaces=link(PORTS),
        VirtualMedia=link(DRIVES),
        Links={"ManagerForServers": links([f"{V1}/Systems/1"]), "ManagerForChassis": links([f"{V1}/Chassis/1"])},
        Actions={"#Manager.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(RESET_TYPES)}},
    )


@patch(ONE, "ConfigureManager")
def set_manager(bmc: Bmc, call: Call) -> Reply:
    """Set the clock."""
    only(call.body, {"DateTime": str}, ["FirmwareVersion", "UUID", "Status", "DateTimeLocalOffset"])
    if "DateTime" in call.body:
        try:
            wanted = datetime.datetime.fromisoformat(call.body["DateTime"])
        except ValueError as error:
            raise RedfishError("PropertyValueFormatError", call.body["DateTime"], "DateTime") from error
        if wanted.tzinfo is None:
            raise RedfishError("PropertyValueFormatError", call.body["DateTime"], "DateTime")
        bmc.clock.set(wanted.timestamp())
    return Reply()


@post(RESET, "ConfigureManager")
def reset(bmc: Bmc, call: Call) -> Reply:
    """Restart the BMC; the answer still comes."""
    parameters("Manager.Reset", call.body, {"ResetType": str})
    wanted = call.body.get("ResetType", RESET_TYPES[0])
    if wanted not in RESET_TYPES:
        raise RedfishError("ActionParameterValueNotInList", wanted, "ResetType", "Manager.Reset")
    bmc.later(bmc.restart())
    return Reply()


@get(PORTS)
def ports(_bmc: Bmc, call: Call) -> Body:
    """List the BMC's own port."""
    return collection("EthernetInterface", PORTS, "BMC Ports", [f"{PORTS}/eth0"], call)


@get(f"{PORTS}/eth0")
def port(bmc: Bmc, call: Call) -> Body:
    """Show it."""
    mac = bmc.chassis.identity.bmc_mac
    body = resource("EthernetInterface", call.path, "BMC port", Status=HEALTHY, InterfaceEnabled=True)
    body |= {"MACAddress": mac, "PermanentMACAddress": mac, "LinkStatus": "LinkUp"}
    if bmc.address is not None:
        own = {"Address": str(bmc.address.ip), "SubnetMask": str(bmc.address.netmask), "AddressOrigin": "Static"}
        body["IPv4Addresses"] = [own | ({"Gateway": bmc.gateway} if bmc.gateway else {})]
    return body


@get(DRIVES)
def drives(_bmc: Bmc, call: Call) -> Body:
    """List the one drive."""
    return collection("VirtualMedia", DRIVES, "Virtual Media", [DRIVE], call)


@get(DRIVE)
def drive(bmc: Bmc, _call: Call) -> Body:
    """Show what is in it."""
    medium = bmc.state.medium
    return resource(
        "VirtualMedia",
        DRIVE,
        "Virtual CD",
        MediaTypes=list(bmc.media.types),
        Image=medium.uri if medium else None,
        ImageName=medium.uri.rpartition("/")[2] if medium else None,
        Inserted=medium is not None,
        WriteProtected=medium.write_protected if medium else True,
        ConnectedVia="URI" if medium else "NotConnected",
        TransferMethod="Stream" if medium else None,
        VerifyCertificate=bmc.state.verify_media_certificate,
        Certificates=link(f"{DRIVE}/Certificates"),
        Status=HEALTHY,
        Actions={
            "#VirtualMedia.InsertMedia": {
                "target": INSERT,
                "TransferMethod@Redfish.AllowableValues": ["Stream"],
                "TransferProtocolType@Redfish.AllowableValues": ["HTTP", "HTTPS"],
            },
            "#VirtualMedia.EjectMedia": {"target": EJECT},
        },
    )


@patch(DRIVE)
def set_drive(bmc: Bmc, call: Call) -> Reply:
    """Choose whether the image's server must be trusted; holds for the next image."""
    only(call.body, {"VerifyCertificate": bool}, ["Image", "Inserted", "WriteProtected", "MediaTypes", "Status"])
    bmc.state.verify_media_certificate = call.body.get("VerifyCertificate", bmc.state.verify_media_certificate)
    return Reply()


@post(INSERT)
async def insert(bmc: Bmc, call: Call) -> Reply:
    """Load an image; it is in the drive when the answer comes."""
    parameters("VirtualMedia.InsertMedia", call.body, INSERT_PARAMETERS, ["Image"])
    for name, allowed in (("TransferMethod", ("Stream",)), ("TransferProtocolType", ("HTTP", "HTTPS"))):
        value = call.body.get(name, allowed[0])
        if value not in allowed:
            raise RedfishError("ActionParameterValueNotInList", value, name, "VirtualMedia.InsertMedia")
    await bmc.media.insert(call.body["Image"], call.body.get("WriteProtected", True))
    bmc.record(f"Virtual media inserted: {call.body['Image']}")
    return Reply()


@post(EJECT)
def eject(bmc: Bmc, call: Call) -> Reply:
    """Empty the drive."""
    parameters("VirtualMedia.EjectMedia", call.body, {})
    bmc.media.eject()
    return Reply()
