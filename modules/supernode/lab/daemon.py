"""The lab's one long-lived program: holds the datacentre and answers on the control socket.

Started by labinit as `python -m supernode.lab.daemon NAME`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from supernode.errors import CouldNotRun, SupernodeError
from supernode.lab import artefacts, control
from supernode.lab.datacentre import Datacentre
from supernode.lab.disks import File
from supernode.lab.faults import Fault
from supernode.lab.places import Places

log = logging.getLogger(__name__)
Request = Mapping[str, Any]
LOG_MOST = 16 << 20  # every request that changes something at a BMC is a line


async def run(places: Places) -> None:
    """Build the lab and serve it until it is killed; a start that failed is told on the socket."""
    settings = json.loads(places.settings.read_text(encoding="utf-8"))
    datacentre = Datacentre(places, artefacts.read(places.artefacts), Path(settings["nos"]))
    server = await control.serve(places.control, lambda request: _answer(datacentre, request))
    async with server:
        try:
            await datacentre.build()
        except (SupernodeError, OSError) as error:
            log.exception("the start failed")
            datacentre.phase = f"failed: {error}"
        await server.serve_forever()


async def _answer(datacentre: Datacentre, request: Request) -> Any:
    handlers: dict[str, Callable[[Request], Awaitable[Any]]] = {
        "status": lambda _: _now(datacentre.status()),
        "fault": lambda r: datacentre.fault(Fault.from_json(r["fault"])),
        "clear": lambda r: datacentre.clear(Fault.from_json(r["fault"])),
        "power": lambda r: datacentre.power(r["target"], r["action"]),
        "install": lambda r: datacentre.install(
            r["target"], Path(r["image"]), {name: File(*file) for name, file in r["files"].items()}
        ),
    }
    handler = handlers.get(request["do"])
    if handler is None:
        raise CouldNotRun("lab", f"no request {request['do']!r}", f"known: {', '.join(handlers)}")
    return await handler(request)


async def _now(value: Any) -> Any:
    return value


def main() -> None:
    """Start in the foreground, with the log in the lab's folder."""
    places = Places.of(sys.argv[1])
    kept = RotatingFileHandler(places.log, maxBytes=LOG_MOST, backupCount=1)
    logging.basicConfig(handlers=[kept], level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if sys.version_info < (3, 12):  # the default there takes a thread for each child
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    try:
        asyncio.run(run(places))
    except BaseException:
        log.exception("the daemon ends")
        raise


if __name__ == "__main__":
    main()
