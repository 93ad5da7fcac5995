"""The leak detectors of a cooling unit by Redfish (DMTF LeakDetection 1.2, LeakDetector 1.6): every place counts.

A group holds excerpts, which have a state and neither `Enabled` nor `Status`: so each detector's own resource is read,
too. None of the three has to be there (`Enabled` since 1.3): dry is only who says OK and nowhere anything else. Since
1.3 one that is disabled has to say Unavailable; one before may say OK for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from supernode.clients.answer import Json
from supernode.clients.cdu import Detector, State
from supernode.clients.redfish import Redfish

_STATES: Mapping[str, State] = {state.lower(): state for state in get_args(State)}
# Status.State -> what it makes of a detector that says OK; Degraded is one that works, any other sees nothing now.
_STATUS: Mapping[str, State] = {"": "ok", "enabled": "ok", "degraded": "ok", "disabled": "disabled", "absent": "absent"}

# What a group names and nobody has: whatever the group says of it, nothing is known.
_GONE: Json = {"DetectorState": "unknown"}


async def read(client: Redfish, leaks: str, chassis: Sequence[str]) -> tuple[Detector, ...]:
    """Read all detectors: of the groups, as release 2025.4 has them, of the chassis, or where they were before.

    Args:
        client: the unit's.
        leaks: the path of its LeakDetection; "" where it links none.
        chassis: the paths of its chassis.
    """
    detection = await client.find(leaks) if leaks else None
    own = [row for path in chassis for row in await _collection(client, await client.find(path))]
    told = {_path(row) or f"#{number}": [row] for number, row in enumerate(own)}
    for number, row in enumerate(_excerpts(detection)):
        source = _path(row)
        if source and source not in told:
            told[source] = [await client.find(source) or _GONE]
        told.setdefault(source or f"#group {number}", []).append(row)
    if not told:
        told = {_path(row) or f"#{n}": [row] for n, row in enumerate(await _collection(client, detection))}
    names = _names(told)
    return tuple(Detector(names[key], _state(rows)) for key, rows in told.items())


def _excerpts(detection: Json | None) -> list[Json]:
    groups = (detection or {}).get("LeakDetectorGroups") or ()
    return [row for group in groups for row in group.get("Detectors") or ()]


async def _collection(client: Redfish, holder: Json | None) -> list[Json]:
    path = str(((holder or {}).get("LeakDetectors") or {}).get("@odata.id") or "")
    return await client.members(path) if path else []


def _path(row: Json) -> str:
    return str(row.get("DataSourceUri") or row.get("@odata.id") or "").rstrip("/")


def _state(rows: Sequence[Json]) -> State:
    """Return the worst that a detector's excerpts and its resource say: wet, then whatever does not see.

    A state that one of them leaves out the other may tell; where none does, it is unknown.
    """
    told = [_STATES.get(str(row["DetectorState"]).lower(), "unknown") for row in rows if row.get("DetectorState")]
    said = [*(state for row in rows for state in _stands(row)), *(told or ["unknown"])]
    worst: tuple[State, ...] = ("critical", "warning", *(state for state in said if state != "ok"))
    return next((state for state in worst if state in said), "ok")


def _stands(row: Json) -> tuple[State, State]:
    status = _STATUS.get(str((row.get("Status") or {}).get("State") or "").lower(), "unavailable")
    return "disabled" if row.get("Enabled") is False else "ok", status


def _names(told: Mapping[str, list[Json]]) -> dict[str, str]:
    """Name each by the last word of its path, or with its chassis before it where two have the same."""
    short = {key: _short(key, rows) for key, rows in told.items()}
    count = Counter(short.values())
    return {key: name if count[name] == 1 else _long(key, name) for key, name in short.items()}


def _short(key: str, rows: Sequence[Json]) -> str:
    if not key.startswith("#"):
        return key.rpartition("/")[2]
    return next((str(row[word]) for row in rows for word in ("DeviceName", "Id") if row.get(word)), "nameless")


def _long(key: str, name: str) -> str:
    """Tell two of one name apart: /redfish/v1/Chassis/CDU/LeakDetectors/Tray is CDU/Tray."""
    words = key.strip("/").split("/")
    return f"{words[-3]}/{name}" if len(words) > 2 else f"{name} {key.lstrip('#')}"
