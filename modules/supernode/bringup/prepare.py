"""Before T0: the golden image, the package mirror, the deploy media's base and the server that hands them out."""

from __future__ import annotations

import time
from collections.abc import Callable

from supernode.boot import facts, image, iso, mirror, server, vendor
from supernode.design import Design
from supernode.records import Event, State
from supernode.workspace import EnvironmentFolder


def prepare(folder: EnvironmentFolder, design: Design, on_event: Callable[[Event], None]) -> None:
    """Make what machines boot from, if it is not there yet, and have it served.

    Raises:
        CouldNotRun: a tool is missing, a build failed, or the serve address is not on this machine.
    """

    def step(phase: str) -> Callable[[str], None]:
        return lambda line: on_event(Event(time.time(), "prepare", None, phase, State.PROGRESS, line))

    software = design.software()
    made = image.ensure(software, progress=step("image"))
    mirror.ensure(software, made, progress=step("mirror"), vendors=vendor.of(design, folder.folder))
    facts.write(folder, design, made, iso.base(made, progress=step("medium")))
    address = server.ensure_running(folder, replace=True)
    on_event(Event(time.time(), "prepare", None, "serve", State.OK, address))
