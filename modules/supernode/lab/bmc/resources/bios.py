"""Systems/1/Bios: applied attributes, and the pending ones under Bios/Settings."""

from __future__ import annotations

from supernode.lab.bmc.controller import Bmc, timestamp
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.root import registry_name
from supernode.lab.bmc.resources.shape import V1, etag, link, only, parameters, resource
from supernode.lab.bmc.routes import Body, Call, Reply, get, patch, post
from supernode.lab.bmc.settings import stage_bios

BIOS = f"{V1}/Systems/1/Bios"
SETTINGS = f"{BIOS}/Settings"
RESET = f"{BIOS}/Actions/Bios.ResetBios"


@get(BIOS)
def bios(bmc: Bmc, _call: Call) -> Body:
    """Show what holds."""
    annotation = {
        "@odata.type": "#Settings.v1_4_0.Settings",
        "SettingsObject": link(SETTINGS),
        "SupportedApplyTimes": ["OnReset"],
        "ETag": etag(_settings(bmc)),
        "Time": timestamp(bmc.state.bios_applied_at),
        "Messages": [
            {"MessageId": "Base.1.18.Success", "Message": text, "MessageSeverity": "OK"}
            for text in bmc.state.bios_messages
        ],
    }
    body = resource("Bios", BIOS, "BIOS Configuration", AttributeRegistry=registry_name(bmc))
    body |= {"@Redfish.Settings": annotation, "Attributes": dict(bmc.state.bios)}
    return body | {
        "Actions": {"#Bios.ResetBios": {"target": RESET}},
        "ResetBiosToDefaultsPending": _defaults_pending(bmc),
    }


@get(SETTINGS)
def settings(bmc: Bmc, _call: Call) -> Body:
    """Show what will hold: only the attributes that wait for the next reset."""
    return _settings(bmc)


def _settings(bmc: Bmc) -> Body:
    body = resource("Bios", SETTINGS, "BIOS Pending Settings", AttributeRegistry=registry_name(bmc))
    return body | {"Attributes": dict(bmc.state.bios_pending)}


@patch(SETTINGS)
def stage(bmc: Bmc, call: Call) -> Reply:
    """Take attributes for the next reset."""
    only(call.body, {"Attributes": dict}, ["AttributeRegistry"])
    apply_time = call.body.get("@Redfish.SettingsApplyTime", {})
    wanted = apply_time.get("ApplyTime", "OnReset") if isinstance(apply_time, dict) else None
    if wanted != "OnReset":
        raise RedfishError("PropertyValueNotInList", str(wanted), "ApplyTime", related=["#/@Redfish.SettingsApplyTime"])
    stage_bios(bmc.state, call.body.get("Attributes", {}), bmc.kind.bios)
    return Reply()


@post(RESET)
def reset_bios(bmc: Bmc, call: Call) -> Reply:
    """Take all defaults for the next reset."""
    parameters("Bios.ResetBios", call.body, {})
    stage_bios(bmc.state, {name: a.default for name, a in bmc.kind.bios.items()}, bmc.kind.bios)
    return Reply()


def _defaults_pending(bmc: Bmc) -> bool:
    pending = {**bmc.state.bios, **bmc.state.bios_pending}
    return bool(bmc.state.bios_pending) and all(pending[name] == a.default for name, a in bmc.kind.bios.items())
