"""Before T0: the golden image, the package mirror, the deploy media's base and the server that hands them out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from supernode import workspace
from supernode.boot import facts, image, iso, mirror, server, vendor
from supernode.design import Design, scheduler
from supernode.records import Event, State
from supernode.workspace import EnvironmentFolder

_KEY_BYTES = 64


def prepare(folder: EnvironmentFolder, design: Design, on_event: Callable[[Event], None]) -> None:
    """Make what machines boot from, if it is not there yet, and have it served.

    Raises:
        CouldNotRun: a vendor's key or a tool is missing, a build failed, or the serve address is not on this machine.
    """

    def step(phase: str) -> Callable[[str], None]:
        return lambda line: on_event(Event(time.time(), "prepare", None, phase, State.PROGRESS, line))

    if design.environment.scheduler is not None:
        cluster_key(folder)
    software, vendors = design.software(), vendor.of(design, folder.folder)
    if lacking := vendor.without_key(vendors):
        raise lacking  # before an image is built for nothing
    made = image.ensure(software, progress=step("image"))
    mirror.ensure(software, made, progress=step("mirror"), vendors=vendors)
    facts.write(folder, design, made, iso.base(made, progress=step("medium")))
    address = server.ensure_running(folder, replace=True)
    on_event(Event(time.time(), "prepare", None, "serve", State.OK, address))


def cluster_key(folder: EnvironmentFolder) -> None:
    """Make the secret that a scheduler's machines share, once: who has it can speak for any user of the cluster.

    It is made here and not on the controller, so that an exchanged controller changes nothing on the nodes.
    """
    path = folder.secrets / scheduler.MUNGE_KEY
    if not path.exists():
        workspace.write_once(path, secrets.token_hex(_KEY_BYTES) + "\n", 0o600)
        workspace.give(path, folder.folder)
