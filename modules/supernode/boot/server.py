"""`supernode serve`: run it here, start it detached, find it, stop it.

.supernode/<env>/serve/serve.pid    "<pid> <start time>": a pid alone may be another process by now
.supernode/<env>/serve/serve.log    requests and reports; no token is ever in it
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

import supernode
from supernode import spec
from supernode.boot import cache as store
from supernode.boot import media, routes, tls
from supernode.boot.site import Site
from supernode.clients.needles import is_secret_variable
from supernode.errors import CouldNotRun, Refusal
from supernode.spec import Environment
from supernode.workspace import EnvironmentFolder, write_atomically

_START_FOR_S = 30.0
_STOP_FOR_S = 5.0
_LOG_MOST = 10 << 20


def run(folder: EnvironmentFolder, ready: Callable[[str], None] = store.silent) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called with the base URL once it listens.

    Raises:
        Refusal: the documents are wrong.
        CouldNotRun: the address is not this machine's, or its port is taken.
    """
    environment = spec.read(folder.texts(), name=folder.name).environment
    asyncio.run(_serve(folder, environment, ready))


async def _serve(folder: EnvironmentFolder, environment: Environment, ready: Callable[[str], None]) -> None:
    serve = environment.site.serve
    identity = tls.ensure(folder, str(serve.address))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.certificate, identity.key)
    application = routes.application(Site(folder), fingerprint())
    runner = web.AppRunner(application, shutdown_timeout=2, access_log_class=routes.AccessLog)
    await runner.setup()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    pid = _pid_file(folder)
    try:
        await _listen(runner, context, str(serve.address), serve.port)
        write_atomically(pid, f"{os.getpid()} {_started(os.getpid())}\n")
        ready(media.base_url(environment))
        await stop.wait()
    finally:
        await runner.cleanup()
        if _recorded(folder) == os.getpid():
            pid.unlink(missing_ok=True)


async def _listen(runner: web.AppRunner, context: ssl.SSLContext, address: str, port: int) -> None:
    try:
        await web.TCPSite(runner, address, port, ssl_context=context).start()
    except OSError as error:
        where = f"{address}:{port}"
        if error.errno == errno.EADDRNOTAVAIL:
            hint = "add the address here, or name one of this machine in site.serve; a lab's exists while the lab runs"
            raise CouldNotRun(where, "site.serve is no address of this machine", hint) from error
        if error.errno == errno.EADDRINUSE:
            hint = "stop what listens there (`ss -ltnp` names it), or choose another site.serve.port"
            raise CouldNotRun(where, "another program listens there already", hint) from error
        raise CouldNotRun(where, f"cannot listen: {error}") from error


def ensure_running(folder: EnvironmentFolder, replace: bool = False) -> str:
    """Return the base URL of the environment's server, starting it detached when it does not answer.

    Args:
        folder: the environment.
        replace: restart one that runs other code than this, or whose log is gone, too. Machines may be loading from it,
            so that is for who is about to boot them, not for who only looks.

    Raises:
        Refusal: the documents are wrong.
        CouldNotRun: it does not come up (the last lines of its log say why), or the old one is another user's.
    """
    environment = spec.read(folder.texts(), name=folder.name).environment
    url = media.base_url(environment)
    with store.lock(folder.state / "serve" / "start.lock"):
        answer = health(folder, environment)
        if answer is not None:
            _remember(folder, answer)
            if not replace or (answer.get("code") == fingerprint() and _log(folder).exists()):
                return url
        stop(folder)
        _start(folder, environment)
    return url


def health(folder: EnvironmentFolder, environment: Environment) -> dict[str, Any] | None:
    """Return what the environment's server says of itself; None when none answers with our CA's certificate."""
    identity = tls.ensure(folder, str(environment.site.serve.address))
    context = ssl.create_default_context(cafile=str(identity.ca))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(f"{media.base_url(environment)}/health", timeout=5) as answer:
            document: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return None
    return document if document.get("environment") == folder.name else None


def stop(folder: EnvironmentFolder) -> bool:
    """End the environment's server; return whether there was one.

    Raises:
        CouldNotRun: it is another user's, or does not end.
    """
    pid = _recorded(folder) or _answering(folder)
    if pid is None:
        return False
    for number, seconds in ((signal.SIGTERM, _STOP_FOR_S), (signal.SIGKILL, _STOP_FOR_S)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it ended by itself, between the look and the signal
            return True
        except PermissionError as error:
            hint = "stop it as that user, or with sudo: `supernode serve <env> --stop`"
            raise CouldNotRun(f"process {pid}", "the server runs as another user", hint) from error
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if _recorded(folder) != pid:
                return True
            time.sleep(0.05)
    raise CouldNotRun(f"process {pid}", "the server does not end", "look at its log under .supernode/<env>/serve/")


def fingerprint() -> str:
    """Return a digest of what the package's own sources hold, wherever and whenever they were installed."""
    total = hashlib.sha256()
    base = Path(supernode.__file__).parent
    for part in ("boot", "design", "spec", "catalog"):
        for path in sorted((base / part).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                data = path.read_bytes()
                total.update(f"{path.relative_to(base)} {len(data)}\n".encode())
                total.update(data)
    return total.hexdigest()[:16]


def _start(folder: EnvironmentFolder, environment: Environment) -> None:
    log = _log(folder)
    if log.is_file() and log.stat().st_size > _LOG_MOST:
        log.replace(log.with_suffix(".old"))
    with log.open("ab") as stream:
        before = stream.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "supernode.boot", str(folder.folder)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            cwd=folder.root,
            env=_lasting(os.environ) | {"SUPERNODE_ROOT": str(folder.root)},
        )
    until = time.monotonic() + _START_FOR_S
    while time.monotonic() < until and process.poll() is None:
        if (_recorded(folder) == process.pid) and health(folder, environment) is not None:
            return
        time.sleep(0.1)
    process.terminate()
    lines = log.read_bytes()[before:].decode(errors="replace").strip().splitlines()
    raise CouldNotRun(
        media.base_url(environment), f"the server did not come up: {lines[-1] if lines else 'no word'}", f"see {log}"
    )


def _lasting(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out the mark of the run and the secrets of the session: the server outlives both."""
    return {k: v for k, v in variables.items() if k != "SUPERNODE_RUN" and not is_secret_variable(k)}


def _pid_file(folder: EnvironmentFolder) -> Path:
    return folder.state / "serve" / "serve.pid"


def _log(folder: EnvironmentFolder) -> Path:
    return folder.state / "serve" / "serve.log"


def _remember(folder: EnvironmentFolder, answer: Mapping[str, Any]) -> None:
    """Name the process that answers again, where the file that named it went with the state."""
    pid = answer.get("process")
    if isinstance(pid, int) and not _pid_file(folder).exists() and _started(pid):
        write_atomically(_pid_file(folder), f"{pid} {_started(pid)}\n")


def _answering(folder: EnvironmentFolder) -> int | None:
    """Ask the server itself who it is, where nothing on disk says so."""
    if _pid_file(folder).exists() or not (folder.secrets / "serve-ca.pem").exists():
        return None
    with suppress(Refusal):
        _remember(folder, health(folder, spec.read(folder.texts(), name=folder.name).environment) or {})
    return _recorded(folder)


def _recorded(folder: EnvironmentFolder) -> int | None:
    """Return the pid of the running server, or None; a reused pid has another start time."""
    try:
        pid, started = _pid_file(folder).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return None
    return int(pid) if _started(int(pid)) == started else None


def _started(pid: int) -> str:
    """Return a process's start time in clock ticks since boot, or "" when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def log_to_stderr() -> None:
    """Send the server's log to standard error, with times."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
