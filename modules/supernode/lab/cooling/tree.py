"""What a cooling unit shows as Redfish resources: DMTF's CoolingUnit model of release 2025.4.

The names of chassis, sensors and detectors are ours; the properties are those of the schemas named in `TYPES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from supernode.lab.cooling.unit import Unit

V1 = "/redfish/v1"
EQUIPMENT, CHASSIS = f"{V1}/ThermalEquipment", f"{V1}/Chassis/CDU"
UNIT = f"{EQUIPMENT}/CDUs/1"
SESSION_SERVICE = f"{V1}/SessionService"
SESSIONS = f"{SESSION_SERVICE}/Sessions"
TYPES: Mapping[str, str] = {
    "Chassis": "v1_28_0",
    "CoolantConnector": "v1_3_0",
    "CoolingUnit": "v1_5_0",
    "LeakDetection": "v1_2_0",
    "LeakDetector": "v1_6_0",
    "Pump": "v1_2_0",
    "Sensor": "v1_12_0",
    "ServiceRoot": "v1_20_0",
    "SessionService": "v1_2_0",
    "ThermalEquipment": "v1_2_0",
}
_STATES = {"ok": "OK", "warning": "Warning", "critical": "Critical"}
Body = dict[str, Any]
# A connector's property, the word in a point's name, what the property's unit is worth, the sensor behind it.
_EXCERPTS = (
    ("FlowLitersPerMinute", "flow", 1 / 60_000, "Flow", "LiquidFlowLPM", "L/min"),
    ("SupplyTemperatureCelsius", "supply_temperature", 1.0, "SupplyTemp", "Temperature", "Cel"),
    ("ReturnTemperatureCelsius", "return_temperature", 1.0, "ReturnTemp", "Temperature", "Cel"),
    ("SupplyPressurekPa", "supply_pressure", 1000.0, "SupplyPressure", "PressurekPa", "kPa"),
    ("ReturnPressurekPa", "return_pressure", 1000.0, "ReturnPressure", "PressurekPa", "kPa"),
)


def resources(unit: Unit) -> dict[str, Body]:
    """Return the whole tree by path, as it stands now."""
    return {path: body for path, body in _all(unit)}


def resource(kind: str, path: str, name: str, **properties: Any) -> Body:
    """Build a resource; its Id is the last part of its path."""
    head = {"@odata.type": f"#{kind}.{TYPES[kind]}.{kind}", "@odata.id": path, "Id": path.rpartition("/")[2]}
    return {**head, "Name": name, **properties}


def collection(kind: str, path: str, members: Iterable[str]) -> Body:
    """Build a collection of references."""
    rows = [at(member) for member in members]
    head = {"@odata.type": f"#{kind}Collection.{kind}Collection", "@odata.id": path, "Name": f"{kind} Collection"}
    return {**head, "Members": rows, "Members@odata.count": len(rows)}


def at(path: str) -> dict[str, str]:
    """Return a reference."""
    return {"@odata.id": path}


def _all(unit: Unit) -> Iterator[tuple[str, Body]]:
    yield V1, resource(
        "ServiceRoot", V1, "Redfish Service", RedfishVersion="1.22.0", ThermalEquipment=at(EQUIPMENT),
        Chassis=at(f"{V1}/Chassis"), SessionService=at(SESSION_SERVICE), Links={"Sessions": at(SESSIONS)},
    )  # fmt: skip
    yield EQUIPMENT, resource("ThermalEquipment", EQUIPMENT, "Cooling Equipment", CDUs=at(f"{EQUIPMENT}/CDUs"))
    yield f"{EQUIPMENT}/CDUs", collection("CoolingUnit", f"{EQUIPMENT}/CDUs", [UNIT])
    yield UNIT, _unit(unit)
    for side in ("primary", "secondary"):
        yield from _connector(unit, side)
    yield from _pumps(unit)
    yield from _leaks(unit)
    yield f"{V1}/Chassis", collection("Chassis", f"{V1}/Chassis", [CHASSIS])
    yield CHASSIS, resource(
        "Chassis", CHASSIS, f"Cooling unit {unit.row.unit}", ChassisType="RackMount",
        Sensors=at(f"{CHASSIS}/Sensors"), LeakDetectors=at(f"{CHASSIS}/LeakDetectors"),
    )  # fmt: skip
    sensors = dict(_sensors(unit))
    yield f"{CHASSIS}/Sensors", collection("Sensor", f"{CHASSIS}/Sensors", sensors)
    yield from sensors.items()


def _unit(unit: Unit) -> Body:
    links = ("PrimaryCoolantConnectors", "SecondaryCoolantConnectors", "Pumps", "LeakDetection")
    health = "OK" if all(state == "ok" for state in unit.shown.detectors.values()) else "Critical"
    return resource(
        "CoolingUnit", UNIT, f"Cooling unit {unit.row.unit}", EquipmentType="CDU", Manufacturer=unit.kind.vendor,
        Model=unit.kind.model, Status={"State": "Enabled", "HealthRollup": health}, Links={"Chassis": [at(CHASSIS)]},
        **{name: at(f"{UNIT}/{name}") for name in links},
    )  # fmt: skip


def _connector(unit: Unit, side: str) -> Iterator[tuple[str, Body]]:
    path = f"{UNIT}/{side.title()}CoolantConnectors"
    values = unit.shown.values
    excerpts = {
        name: {"Reading": round(values[f"{side}_{word}"] / worth, 3), "DataSourceUri": _sensor(side, sensor)}
        for name, word, worth, sensor, _, _ in _EXCERPTS
        if f"{side}_{word}" in values
    }
    excerpts["HeatRemovedkW"] = {"Reading": round(values["heat_removed"] / 1000, 3)}
    yield path, collection("CoolantConnector", path, [f"{path}/1"])
    yield (
        f"{path}/1",
        resource("CoolantConnector", f"{path}/1", f"{side.title()} loop", CoolantConnectorType="Pair", **excerpts),
    )


def _pumps(unit: Unit) -> Iterator[tuple[str, Body]]:
    path = f"{UNIT}/Pumps"
    numbers = [n for n in (1, 2) if f"pump{n}_speed" in unit.shown.values]
    yield path, collection("Pump", path, [f"{path}/{n}" for n in numbers])
    for n in numbers:
        speed = {"Reading": round(unit.shown.values[f"pump{n}_speed"] * 100, 2)}
        yield f"{path}/{n}", resource("Pump", f"{path}/{n}", f"Pump {n}", PumpType="Liquid", PumpSpeedPercent=speed)


def _leaks(unit: Unit) -> Iterator[tuple[str, Body]]:
    """Yield the groups of release 2025.4, whose detectors stand in the chassis."""
    listed = f"{CHASSIS}/LeakDetectors"
    states = {name: _STATES[state] for name, state in unit.shown.detectors.items()}
    health = "OK" if set(states.values()) <= {"OK"} else "Critical"
    group = {
        "GroupName": "Detectors of the unit and its racks",
        "Status": {"State": "Enabled", "Health": health},
        "Detectors": [
            {"DataSourceUri": f"{listed}/{name}", "DeviceName": name, "DetectorState": state}
            for name, state in states.items()
        ],
    }
    path = f"{UNIT}/LeakDetection"
    yield path, resource("LeakDetection", path, "Leak Detection", LeakDetectorGroups=[group])
    yield listed, collection("LeakDetector", listed, [f"{listed}/{name}" for name in states])
    for name, state in states.items():
        yield (
            f"{listed}/{name}",
            resource(
                "LeakDetector", f"{listed}/{name}", name, LeakDetectorType="Moisture", DetectorState=state, Enabled=True
            ),
        )


def _sensor(side: str, name: str) -> str:
    return f"{CHASSIS}/Sensors/{side.title()}{name}"


def _sensors(unit: Unit) -> Iterator[tuple[str, Body]]:
    measured = datetime.fromtimestamp(unit.shown.at, UTC).isoformat(timespec="milliseconds")
    for side in ("primary", "secondary"):
        for _, word, worth, name, kind, units in _EXCERPTS:
            value = unit.shown.values.get(f"{side}_{word}")
            if value is not None:
                path = _sensor(side, name)
                yield path, resource(
                    "Sensor", path, f"{side.title()} {name}", ReadingType=kind, ReadingUnits=units,
                    Reading=round(value / worth, 3), ReadingTime=measured.replace("+00:00", "Z"),
                    SensingInterval=f"PT{unit.kind.refresh_s:g}S",
                )  # fmt: skip
