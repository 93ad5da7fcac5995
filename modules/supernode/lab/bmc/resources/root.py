"""The service root, and what a client may read before it logs in; registries of attributes."""

from __future__ import annotations

from typing import Any

from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.hardware import BiosAttribute
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import V1, VERSIONS, collection, link, resource
from supernode.lab.bmc.routes import Body, Call, Reply, get

EDM = "http://docs.oasis-open.org/odata/ns/edm"
EDMX = "http://docs.oasis-open.org/odata/ns/edmx"
COLLECTIONS = (
    "Certificate",
    "Chassis",
    "ComputerSystem",
    "EthernetInterface",
    "LogEntry",
    "LogService",
    "Manager",
    "ManagerAccount",
    "MessageRegistryFile",
    "Processor",
    "Role",
    "Session",
    "SoftwareInventory",
    "Storage",
    "Task",
    "VirtualMedia",
)
SERVICES = {
    "Systems": "Systems",
    "Chassis": "Chassis",
    "Managers": "Managers",
    "SessionService": "SessionService",
    "AccountService": "AccountService",
    "UpdateService": "UpdateService",
    "Tasks": "TaskService",
    "Registries": "Registries",
}


@get("/redfish", privilege=None)
def versions(_bmc: Bmc, _call: Call) -> Body:
    """Tell the versions of the protocol."""
    return {"v1": f"{V1}/"}


@get(V1, privilege=None)
def service_root(bmc: Bmc, _call: Call) -> Body:
    """Tell where everything is."""
    root = resource("ServiceRoot", f"{V1}/", "Root Service")
    return {
        **root,
        "Id": "RootService",
        "RedfishVersion": "1.17.0",
        "UUID": bmc.uuid,
        "Vendor": bmc.kind.vendor,
        "Product": f"{bmc.kind.model} BMC",
        **{name: link(f"{V1}/{path}") for name, path in SERVICES.items()},
        "Links": {"Sessions": link(f"{V1}/SessionService/Sessions")},
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {"ExpandAll": False, "Levels": False, "Links": False, "NoLinks": False},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
            "ExcerptQuery": False,
            "TopSkipQuery": True,
        },
    }


@get(f"{V1}/odata", privilege=None)
def odata(_bmc: Bmc, _call: Call) -> Body:
    """List the services as OData does."""
    value = [{"name": name, "kind": "Singleton", "url": f"{V1}/{path}"} for name, path in SERVICES.items()]
    return {"@odata.context": f"{V1}/$metadata", "value": value}


@get(f"{V1}/$metadata", privilege=None)
def metadata(_bmc: Bmc, _call: Call) -> Reply:
    """Name the schemas that the resources follow, as OData wants it (DSP0266, "OData $metadata")."""
    kinds = [*VERSIONS, *(f"{kind}Collection" for kind in COLLECTIONS)]
    references = "".join(_reference(kind) for kind in sorted(kinds))
    schema = (
        f'<Schema xmlns="{EDM}" Namespace="Service"><EntityContainer Name="Service" Extends="{_root_type()}"/></Schema>'
    )
    services = f"<edmx:DataServices>{schema}</edmx:DataServices>"
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return Reply(200, xml=f'{head}<edmx:Edmx xmlns:edmx="{EDMX}" Version="4.0">{references}{services}</edmx:Edmx>')


def _reference(kind: str) -> str:
    spaces = [kind, f"{kind}.{VERSIONS[kind]}"] if kind in VERSIONS else [kind]
    includes = "".join(f'<edmx:Include Namespace="{space}"/>' for space in spaces)
    return f'<edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/{kind}_v1.xml">{includes}</edmx:Reference>'


def _root_type() -> str:
    return f"ServiceRoot.{VERSIONS['ServiceRoot']}.ServiceContainer"


def registry_name(bmc: Bmc) -> str:
    """Return the name of this machine's attribute registry, which holds for its kind and BIOS version."""
    words = [bmc.kind.name, bmc.state.firmware.get("BIOS", "0")]
    return "BiosAttributeRegistry_" + "_".join("".join(c if c.isalnum() else "_" for c in word) for word in words)


@get(f"{V1}/Registries")
def registries(bmc: Bmc, _call: Call) -> Body:
    """List the registries that this BMC holds itself; those of the DMTF are published."""
    return collection(
        "MessageRegistryFile", f"{V1}/Registries", "Registries", [f"{V1}/Registries/{registry_name(bmc)}"]
    )


@get(f"{V1}/Registries/{{}}")
def registry_file(bmc: Bmc, call: Call) -> Body:
    """Tell where a registry lies."""
    _known(bmc, call)
    body = resource("MessageRegistryFile", call.path, "BIOS attribute registry")
    body |= {"Languages": ["en"], "Registry": registry_name(bmc)}
    return body | {"Location": [{"Language": "en", "Uri": f"{call.path}/registry.json"}]}


@get(f"{V1}/Registries/{{}}/registry.json")
def registry(bmc: Bmc, call: Call) -> Body:
    """List the BIOS attributes, with their types and values."""
    _known(bmc, call)
    attributes = [_entry(name, attribute) for name, attribute in bmc.kind.bios.items()]
    return {
        "@odata.type": "#AttributeRegistry.v1_3_8.AttributeRegistry",
        "Id": registry_name(bmc),
        "Name": "BIOS attribute registry",
        "Language": "en",
        "OwningEntity": bmc.kind.vendor,
        "RegistryVersion": "1.0.0",
        "SupportedSystems": [{"ProductName": bmc.kind.model, "FirmwareVersion": bmc.state.firmware.get("BIOS", "")}],
        "RegistryEntries": {"Attributes": attributes},
    }


def _entry(name: str, attribute: BiosAttribute) -> dict[str, Any]:
    kind = attribute.type.capitalize()
    entry: dict[str, Any] = {
        "AttributeName": name,
        "DisplayName": name,
        "Type": kind,
        "DefaultValue": attribute.default,
        "ReadOnly": False,
        "ResetRequired": True,
    }
    values = list(attribute.values or ())
    if kind == "Enumeration":
        entry["Value"] = [{"ValueName": value, "ValueDisplayName": value} for value in values]
    elif kind == "Integer" and values:
        entry |= {"LowerBound": min(values), "UpperBound": max(values)}
    return entry


def _known(bmc: Bmc, call: Call) -> None:
    if call.ids[0] != registry_name(bmc):
        raise RedfishError("ResourceMissingAtURI", call.path)
