"""Look at the operator's machine: the boot server's address and port, what is built, and how much room is left."""

from __future__ import annotations

import errno
import json
import shutil
import socket
import ssl
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from supernode.boot import cache as store
from supernode.boot import image, media, mirror, pins, server, vendor
from supernode.bringup.live.seen import HereSeen, Port
from supernode.design import Design
from supernode.spec import Environment, Software
from supernode.workspace import EnvironmentFolder

LIMIT_S = 5.0


def look(folder: EnvironmentFolder, design: Design, cache: Path | None = None) -> HereSeen:
    """Look at everything; blocks for a few seconds at most, and makes nothing."""
    cache, environment = cache or store.default(), design.environment
    port, said = _port(environment)
    health = _ask(folder, environment, "/health") if port is Port.OTHER else None
    served, code = None, True
    if health is not None and health.get("environment") == folder.name:
        port, said, code = Port.OURS, "", health.get("code") == server.fingerprint()
        served = _ask(folder, environment, "/mirror/Release") is not None
    made, packages = _packages(design.software(), cache, vendor.of(design, folder.folder))
    places = (cache, folder.root)
    return HereSeen(port, said, served, code, made, packages, {str(path): _free(path) for path in places})


def _port(environment: Environment) -> tuple[Port, str]:
    """Try whether the boot server could listen, without listening."""
    serve = environment.site.serve
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(serve.address), serve.port))
        except OSError as error:
            states = {errno.EADDRNOTAVAIL: Port.ELSEWHERE, errno.EADDRINUSE: Port.OTHER}
            return states.get(error.errno or 0, Port.OTHER), error.strerror or str(error)
    return Port.FREE, ""


def _ask(folder: EnvironmentFolder, environment: Environment, path: str) -> dict[str, Any] | None:
    """Ask what listens there, under the CA that is kept; {} for an answer that is no JSON, None for none."""
    ca = folder.folder / "secrets" / "serve-ca.pem"
    if not ca.is_file():
        return None
    try:
        context = ssl.create_default_context(cafile=str(ca))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(f"{media.base_url(environment)}{path}", timeout=LIMIT_S) as answer:
            text = answer.read(1 << 20)
    except OSError:
        return None
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}


def _packages(software: Software, cache: Path, vendors: Sequence[vendor.Vendor]) -> tuple[bool, dict[str, str] | None]:
    """Return whether the image is built, and what image and mirror have together once both are."""
    made = image.find(software, cache)
    if made is None:
        return False, None
    repository = mirror.find(software, made, cache, vendors)
    if repository is None:
        return True, None
    return True, {**pins.parse(made.lock.read_text(encoding="utf-8")), **repository.packages}


def _free(path: Path) -> int:
    """Return the free bytes of the file system that a folder lies on, or will."""
    present = next(place for place in (path, *path.parents) if place.exists())
    return shutil.disk_usage(present).free
