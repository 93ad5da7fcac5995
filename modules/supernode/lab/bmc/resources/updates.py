"""UpdateService and TaskService: firmware as it is, and updates on their way."""

from __future__ import annotations

from supernode.lab.bmc.controller import Bmc, timestamp
from supernode.lab.bmc.firmware import FINAL
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, parameters, resource
from supernode.lab.bmc.routes import Body, Call, Reply, get, post
from supernode.lab.bmc.state import FirmwareTask

SERVICE = f"{V1}/UpdateService"
INVENTORY = f"{SERVICE}/FirmwareInventory"
SIMPLE = f"{SERVICE}/Actions/UpdateService.SimpleUpdate"
TASK_SERVICE = f"{V1}/TaskService"
TASKS = f"{TASK_SERVICE}/Tasks"
MONITORS = f"{TASK_SERVICE}/TaskMonitors"
PROTOCOLS = ("HTTP", "HTTPS")


@get(SERVICE)
def service(_bmc: Bmc, _call: Call) -> Body:
    """Tell how to update."""
    action = {"target": SIMPLE, "TransferProtocol@Redfish.AllowableValues": list(PROTOCOLS)}
    body = resource("UpdateService", SERVICE, "Update Service", Status=HEALTHY, ServiceEnabled=True)
    return body | {"FirmwareInventory": link(INVENTORY), "Actions": {"#UpdateService.SimpleUpdate": action}}


@get(INVENTORY)
def inventory(bmc: Bmc, call: Call) -> Body:
    """List the components that have firmware."""
    paths = (f"{INVENTORY}/{name}" for name in bmc.state.firmware)
    return collection("SoftwareInventory", INVENTORY, "Firmware Inventory", paths, call)


@get(f"{INVENTORY}/{{}}")
def component(bmc: Bmc, call: Call) -> Body:
    """Show the version that runs."""
    name = call.ids[0]
    if name not in bmc.state.firmware:
        raise RedfishError("ResourceMissingAtURI", call.path)
    stale = bmc.stale.of("firmware")
    version = stale.firmware.get(name, "") if stale else bmc.state.firmware[name]
    body = resource("SoftwareInventory", call.path, name, Version=version)
    return body | {"SoftwareId": f"{bmc.kind.name}/{name}", "Updateable": True, "Status": HEALTHY}


@post(SIMPLE, "ConfigureManager")
def simple_update(bmc: Bmc, call: Call) -> Reply:
    """Begin an update; the task is over after the next reset of what it is for."""
    allowed: dict[str, type | tuple[type, ...]] = {"ImageURI": str, "TransferProtocol": str, "Targets": list}
    parameters("UpdateService.SimpleUpdate", call.body, allowed, ["ImageURI"])
    protocol = call.body.get("TransferProtocol", PROTOCOLS[0])
    if protocol not in PROTOCOLS:
        raise RedfishError("ActionParameterValueNotInList", protocol, "TransferProtocol", "SimpleUpdate")
    task = bmc.updates.start(call.body["ImageURI"], [str(target) for target in call.body.get("Targets", [])])
    return accepted(bmc, task)


def accepted(bmc: Bmc, task: FirmwareTask) -> Reply:
    """Answer that a task was begun, and where it can be watched."""
    return Reply(202, _describe(bmc, task), {"Location": f"{MONITORS}/{task.id}", "Retry-After": "1"})


@get(TASK_SERVICE)
def task_service(bmc: Bmc, _call: Call) -> Body:
    """Tell where the tasks are."""
    body = resource("TaskService", TASK_SERVICE, "Task Service", Status=HEALTHY, ServiceEnabled=True)
    return body | {"DateTime": timestamp(bmc.now()), "CompletedTaskOverWritePolicy": "Oldest", "Tasks": link(TASKS)}


@get(TASKS)
def tasks(bmc: Bmc, call: Call) -> Body:
    """List the tasks."""
    return collection("Task", TASKS, "Tasks", (f"{TASKS}/{task.id}" for task in bmc.state.tasks), call)


@get(f"{TASKS}/{{}}")
def task(bmc: Bmc, call: Call) -> Body:
    """Show a task."""
    return _describe(bmc, _find(bmc, call))


@get(f"{MONITORS}/{{}}")
def monitor(bmc: Bmc, call: Call) -> Reply:
    """Answer 202 until the task is over."""
    found = _find(bmc, call)
    if found.state not in FINAL:
        return Reply(202, _describe(bmc, found), {"Location": call.path, "Retry-After": "1"})
    return Reply(200, _describe(bmc, found))


def _find(bmc: Bmc, call: Call) -> FirmwareTask:
    found = next((each for each in bmc.state.tasks if each.id == call.ids[0]), None)
    if found is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    return found


def _describe(bmc: Bmc, task: FirmwareTask) -> Body:
    started = timestamp(bmc.clock.told(task.started))
    body = resource("Task", f"{TASKS}/{task.id}", task.name, TaskState=task.state, StartTime=started)
    if task.ended is not None:
        body["EndTime"] = timestamp(bmc.clock.told(task.ended))
    body["TaskStatus"] = "Critical" if task.state == "Exception" else "OK"
    body["TaskMonitor"] = f"{MONITORS}/{task.id}"
    body["PercentComplete"] = 100 if task.state == "Completed" else 50 if task.state == "Pending" else 0
    body["Messages"] = [
        {"MessageId": "Update.1.2.Update", "Message": text, "MessageSeverity": severity}
        for severity, text in task.messages
    ]
    return body
