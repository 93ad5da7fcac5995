"""Firmware updates: an image is read now, and holds from the next reset of what it is for.

The lab's firmware images are JSON, `{"supernode-lab-firmware": 1, "kind": …, "component": …, "version": …}`: a real
image is opaque to us, and all that a rollout can see of one is which component and version it brings.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from supernode.lab.bmc.hardware import Kind
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.state import FirmwareTask, State
from supernode.lab.fetch import FetchFailed, fetch

BMC_COMPONENTS = ("BMC",)
LIMIT_BYTES = 256 << 20
TASKS_KEPT = 50
FINAL = ("Completed", "Exception", "Cancelled")


class Updates:
    """One BMC's update service.

    Args:
        later: runs something beside the answer, and saves the state after it.
    """

    def __init__(
        self, state: State, kind: Kind, folder: Path, later: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        self._state, self._kind, self._folder, self._later = state, kind, folder, later
        self._loading: asyncio.Task[None] | None = None
        self.space = ""  # as of the media

    def start(self, uri: str, targets: list[str]) -> FirmwareTask:
        """Begin an update; the answer is a task to watch.

        Args:
            uri: http or https; as on most BMCs, https is not verified here: the image is checked by its content.
            targets: FirmwareInventory paths, of which the image must be one; empty means whatever the image is for.

        Raises:
            RedfishError: an unknown target, or an update is being loaded.
        """
        for target in targets:
            if target.rpartition("/")[2] not in self._state.firmware:
                raise RedfishError("ActionParameterValueNotInList", target, "Targets", "SimpleUpdate")
        if self._loading is not None and not self._loading.done():
            raise RedfishError("ResourceInUse")
        task = self.begin("Firmware update")
        self._loading = self._later(self._load(task, uri, {target.rpartition("/")[2] for target in targets}))
        return task

    def begin(self, name: str) -> FirmwareTask:
        """Make a task that runs."""
        number = max((int(each.id) for each in self._state.tasks), default=0) + 1
        task = FirmwareTask(str(number), name, "Running", time.time())
        self._state.tasks = [*self._state.tasks, task][-TASKS_KEPT:]
        return task

    def end(self, task: FirmwareTask, state: str, text: str) -> None:
        """Say how a task ended, one of FINAL."""
        _end(task, state, text)

    async def _load(self, task: FirmwareTask, uri: str, components: set[str]) -> None:
        path = self._folder / f"firmware-{task.id}"
        try:
            await fetch(uri, path, None, LIMIT_BYTES, self.space)
            image = json.loads(await asyncio.to_thread(path.read_bytes))
            task.component, task.version = self._accept(image, components)
        except FetchFailed as failure:
            _end(task, "Exception", str(failure))
        except (ValueError, TypeError, KeyError) as failure:
            _end(task, "Exception", f"the image was refused: {failure}")
        else:
            task.state = "Pending"
            task.messages.append(("OK", f"{task.component} {task.version} is applied at the next reset"))
        finally:
            path.unlink(missing_ok=True)

    def _accept(self, image: Any, components: set[str]) -> tuple[str, str]:
        if image["supernode-lab-firmware"] != 1:
            raise ValueError("not a firmware image")
        if image["kind"] != self._kind.name:
            raise ValueError(f"it is for {image['kind']}, this is {self._kind.name}")
        component, version = str(image["component"]), str(image["version"])
        if component not in self._state.firmware or (components and component not in components):
            raise ValueError(f"it is for {component}")
        return component, version

    def apply(self, manager: bool) -> list[str]:
        """Make what waits hold; returns "component version" of each.

        Args:
            manager: whether the BMC was reset, else the host.
        """
        applied = []
        for task in self._state.tasks:
            if task.state == "Pending" and (task.component in BMC_COMPONENTS) is manager:
                self._state.firmware[task.component] = task.version
                _end(task, "Completed", f"{task.component} is {task.version}")
                applied.append(f"{task.component} {task.version}")
        return applied

    def drop_running(self) -> None:
        """Cancel what was being loaded: the BMC was reset."""
        if self._loading is not None:
            self._loading.cancel()
        for task in self._state.tasks:
            if task.state == "Running":
                _end(task, "Exception", "the BMC was reset meanwhile")


def _end(task: FirmwareTask, state: str, text: str) -> None:
    task.state, task.ended = state, time.time()
    task.messages.append(("OK" if state == "Completed" else "Critical", text))
