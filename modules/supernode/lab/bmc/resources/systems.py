"""Systems/1: the machine itself: power, boot, ports, GPUs."""

from __future__ import annotations

from typing import Any

from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, links, only, parameters, resource
from supernode.lab.bmc.routes import Body, Call, Reply, get, patch, post
from supernode.lab.bmc.settings import ENABLED, MODES, TARGETS, change_boot
from supernode.lab.chassis import Identity, Port, Power, Progress

SYSTEMS = f"{V1}/Systems"
SYSTEM = f"{SYSTEMS}/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
RESET_TYPES = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "ForceOn")
PORTS = f"{SYSTEM}/EthernetInterfaces"
GPUS = f"{SYSTEM}/Processors"
# What else can stand in Systems: the GPU board of an HGX server, or another server altogether.
OTHERS = {"baseboard": "HGX_Baseboard_0", "witness": "Witness"}
READ_ONLY = ("PowerState", "SerialNumber", "UUID", "Manufacturer", "Model", "BiosVersion", "BootProgress", "Status")


@get(SYSTEMS)
def systems(bmc: Bmc, call: Call) -> Body:
    """List the one system, and another before it where a fault has it so."""
    other = bmc.faults.get("bmc-two-systems")
    before = [f"{SYSTEMS}/{OTHERS[other['other']]}"] if other else []
    return collection("ComputerSystem", SYSTEMS, "Computer Systems", [*before, SYSTEM], call)


@get(SYSTEM)
def system(bmc: Bmc, _call: Call) -> Body:
    """Show the machine."""
    identity, state = bmc.chassis.identity, bmc.state
    power, progress = bmc.chassis.power_state(), bmc.chassis.boot_progress()
    if moment := bmc.stale.of("power"):
        power, progress = moment.power, moment.progress
    former = bmc.stale.of("identity")
    return resource(
        "ComputerSystem",
        SYSTEM,
        "System",
        SystemType="Physical",
        Manufacturer=bmc.kind.vendor,
        Model=bmc.kind.model,
        SKU=bmc.kind.name,
        SerialNumber=former.serial if former else identity.system_serial,
        UUID=identity.uuid,
        AssetTag=state.asset_tag,
        LocationIndicatorActive=state.indicator,
        BiosVersion=state.firmware.get("BIOS", ""),
        PowerState=power.value,
        Status={"State": "Enabled" if power is not Power.OFF else "StandbyOffline", "Health": "OK"},
        Boot=_boot(bmc),
        BootProgress={"LastState": progress.value},
        Bios=link(f"{SYSTEM}/Bios"),
        EthernetInterfaces=link(PORTS),
        Processors=link(GPUS),
        Storage=link(f"{SYSTEM}/Storage"),
        LogServices=link(f"{SYSTEM}/LogServices"),
        Links={"Chassis": links([f"{V1}/Chassis/1"]), "ManagedBy": links([f"{V1}/Managers/1"])},
        Actions={
            "#ComputerSystem.Reset": {
                "target": RESET,
                "ResetType@Redfish.AllowableValues": list(RESET_TYPES),
                "@Redfish.ActionInfo": f"{SYSTEM}/ResetActionInfo",
            }
        },
    )


def _boot(bmc: Bmc) -> dict[str, Any]:
    boot = bmc.state.boot
    lie = bmc.faults.get("bmc-once-continuous")
    enabled = "Once" if lie and lie["shows"] == "Once" and boot.enabled == "Continuous" else boot.enabled
    return {
        "BootSourceOverrideTarget": boot.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        "BootSourceOverrideEnabled": enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": list(ENABLED),
        "BootSourceOverrideMode": boot.mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": list(MODES),
        "HttpBootUri": boot.http_uri,
        "Certificates": link(f"{SYSTEM}/Boot/Certificates"),
    }


@patch(SYSTEM)
def set_system(bmc: Bmc, call: Call) -> Reply:
    """Change boot override, asset tag or locator light."""
    only(call.body, {"Boot": dict, "AssetTag": str, "LocationIndicatorActive": bool}, READ_ONLY)
    change_boot(bmc.state.boot, call.body.get("Boot", {}))
    if bmc.state.boot.enabled == "Once" and bmc.faults.get("bmc-once-continuous") is not None:
        bmc.state.boot.enabled = "Continuous"
    bmc.state.asset_tag = call.body.get("AssetTag", bmc.state.asset_tag)
    bmc.state.indicator = call.body.get("LocationIndicatorActive", bmc.state.indicator)
    return Reply()


@get(f"{SYSTEMS}/{{}}")
def other(bmc: Bmc, call: Call) -> Body:
    """Show the other system; a GPU board is silent while its server is off (DGX H100)."""
    fault = bmc.faults.get("bmc-two-systems")
    if fault is None or call.ids[0] != OTHERS[fault["other"]]:
        raise RedfishError("ResourceMissingAtURI", call.path)
    if fault["other"] == "baseboard" and bmc.chassis.power_state() is Power.OFF:
        raise RedfishError("ServiceTemporarilyUnavailable", "30")
    stranger = Identity.manufactured("witness", bmc.chassis.slot)
    action = {"target": f"{call.path}/Actions/ComputerSystem.Reset"}
    body = resource("ComputerSystem", call.path, call.ids[0], SystemType="Physical", PowerState="On", Status=HEALTHY)
    body |= {"SerialNumber": stranger.system_serial, "UUID": stranger.uuid}
    return body | {"Boot": {}, "Actions": {"#ComputerSystem.Reset": action}}


@post(f"{SYSTEMS}/{{}}/Actions/ComputerSystem.Reset")
def reset_other(bmc: Bmc, call: Call) -> Reply:
    """Do a power action on a system that is not this machine; it is on record."""
    bmc.record(f"Power of {call.ids[0]}: {call.body.get('ResetType')}", "Critical")
    return Reply()


@get(f"{SYSTEM}/ResetActionInfo")
def reset_info(_bmc: Bmc, call: Call) -> Body:
    """Tell what Reset takes."""
    parameter = {"Name": "ResetType", "Required": True, "DataType": "String", "AllowableValues": list(RESET_TYPES)}
    return resource("ActionInfo", call.path, "Reset Action Info", Parameters=[parameter])


@post(RESET)
async def reset(bmc: Bmc, call: Call) -> Reply:
    """Do a power action; a forced one is done when the answer comes, a graceful one is only asked for."""
    parameters("ComputerSystem.Reset", call.body, {"ResetType": str}, ["ResetType"])
    wanted = call.body["ResetType"]
    if wanted not in RESET_TYPES:
        raise RedfishError("ActionParameterValueNotInList", wanted, "ResetType", "ComputerSystem.Reset")
    if wanted in ("GracefulRestart", "ForceRestart") and bmc.chassis.power_state() is Power.OFF:
        raise RedfishError("ActionNotSupported", f"{wanted} of a machine that is off", status=409)
    await bmc.power(wanted)
    return Reply()


@get(PORTS)
def ports(bmc: Bmc, call: Call) -> Body:
    """List the host's network ports."""
    return collection("EthernetInterface", PORTS, "Ports", (f"{PORTS}/{port.name}" for port in bmc.chassis.ports), call)


@get(f"{PORTS}/{{}}")
def port(bmc: Bmc, call: Call) -> Body:
    """Show a port; whether its link is up a BMC knows only while the system runs."""
    found: Port | None = next((each for each in bmc.chassis.ports if each.name == call.ids[0]), None)
    if found is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    running = bmc.chassis.boot_progress() is Progress.RUNNING
    body = resource("EthernetInterface", call.path, found.name, Status=HEALTHY, InterfaceEnabled=True)
    body |= {"MACAddress": found.mac, "PermanentMACAddress": found.mac}
    return body | {"SpeedMbps": int(found.speed_mbit_s) or None, "LinkStatus": "LinkUp" if running else "NoLink"}


@get(GPUS)
def processors(bmc: Bmc, call: Call) -> Body:
    """List the GPUs."""
    return collection("Processor", GPUS, "Processors", (f"{GPUS}/GPU{n}" for n in range(bmc.kind.gpus)), call)


@get(f"{GPUS}/{{}}")
def processor(bmc: Bmc, call: Call) -> Body:
    """Show a GPU."""
    if call.ids[0] not in {f"GPU{n}" for n in range(bmc.kind.gpus)}:
        raise RedfishError("ResourceMissingAtURI", call.path)
    body = resource("Processor", call.path, call.ids[0], ProcessorType="GPU", Model=bmc.kind.gpu)
    return body | {"Socket": call.ids[0], "Status": HEALTHY}
