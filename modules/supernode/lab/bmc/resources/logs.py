"""Log services of the system: event log, POST codes, and the host's console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from supernode.lab.bmc.controller import Bmc, timestamp
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, parameters, resource, selected
from supernode.lab.bmc.routes import Body, Call, Reply, get, post

SERVICES = f"{V1}/Systems/1/LogServices"
CONSOLE_LINES = 200
ENTRY = "LogEntry"


def _event_log(bmc: Bmc, path: str) -> list[Body]:
    return [
        resource(
            ENTRY,
            f"{path}/{entry.id}",
            "System Event Log Entry",
            EntryType="SEL",
            Created=timestamp(entry.at),
            Severity=entry.severity,
            Message=entry.message,
        )
        for entry in bmc.state.log
    ]


def _post_codes(bmc: Bmc, path: str) -> list[Body]:
    entries: list[Body] = []
    numbers: dict[int, int] = {}
    for code in bmc.chassis.post_codes():
        numbers[code.boot] = numbers.get(code.boot, 0) + 1
        text = f"{code.code:#04x}"
        entry = resource(ENTRY, f"{path}/B{code.boot}-{numbers[code.boot]}", "POST Code", EntryType="Event")
        entry |= {"Created": timestamp(bmc.clock.told(code.at)), "Severity": "OK"}
        entry |= {"Message": f"Boot {code.boot}; POST code {text}", "MessageArgs": [str(code.boot), text]}
        entries.append(entry)
    return entries


def _console(bmc: Bmc, path: str) -> list[Body]:
    lines = bmc.chassis.console_tail(CONSOLE_LINES)
    created = timestamp(bmc.now())
    return [
        resource(ENTRY, f"{path}/{number}", "Host Logger Entry", EntryType="Oem", OemRecordFormat="Console line")
        | {"Created": created, "Severity": "OK", "Message": line}
        for number, line in enumerate(lines)
    ]


@dataclass(frozen=True)
class _Log:
    name: str
    kind: str
    records: int
    entries: Callable[[Bmc, str], list[Body]]
    clear: Callable[[Bmc], None] | None = None


LOGS: Mapping[str, _Log] = {
    "SEL": _Log("System Event Log", "SEL", 500, _event_log, lambda bmc: bmc.state.log.clear()),
    "PostCodes": _Log("POST Codes", "Multiple", 200, _post_codes),
    "HostLogger": _Log("Host Console", "Multiple", CONSOLE_LINES, _console),
}


@get(SERVICES)
def services(_bmc: Bmc, call: Call) -> Body:
    """List the logs."""
    return collection("LogService", SERVICES, "Log Services", (f"{SERVICES}/{name}" for name in LOGS), call)


@get(f"{SERVICES}/{{}}")
def service(bmc: Bmc, call: Call) -> Body:
    """Show a log."""
    log = _find(call)
    actions: dict[str, Any] = {}
    if log.clear is not None:
        actions = {"Actions": {"#LogService.ClearLog": {"target": f"{call.path}/Actions/LogService.ClearLog"}}}
    body = resource("LogService", call.path, log.name, Status=HEALTHY, ServiceEnabled=True, LogEntryType=log.kind)
    body |= {"MaxNumberOfRecords": log.records, "OverWritePolicy": "WrapsWhenFull", "DateTime": timestamp(bmc.now())}
    return body | {"DateTimeLocalOffset": "+00:00", "Entries": link(f"{call.path}/Entries"), **actions}


@get(f"{SERVICES}/{{}}/Entries")
def entries(bmc: Bmc, call: Call) -> Body:
    """Show the entries, whole, oldest first."""
    log = _find(call)
    everything = log.entries(bmc, call.path)
    body = collection("LogEntry", call.path, f"{log.name} Entries", ())
    return body | {"Members": selected(everything, call), "Members@odata.count": len(everything)}


@get(f"{SERVICES}/{{}}/Entries/{{}}")
def entry(bmc: Bmc, call: Call) -> Body:
    """Show one entry."""
    path = call.path.rpartition("/")[0]
    found = next((each for each in _find(call).entries(bmc, path) if each["@odata.id"] == call.path), None)
    if found is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    return found


@post(f"{SERVICES}/{{}}/Actions/LogService.ClearLog", "ConfigureManager")
def clear(bmc: Bmc, call: Call) -> Reply:
    """Empty a log; entries go on counting."""
    parameters("LogService.ClearLog", call.body, {"LogEntriesETag": str})
    log = _find(call)
    if log.clear is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    log.clear(bmc)
    return Reply()


def _find(call: Call) -> _Log:
    log = LOGS.get(call.ids[0])
    if log is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    return log
