"""Run one BMC with a machine that is not there: `python -m supernode.lab.bmc --kind lab-gpu8 --state DIR`.

With `--replay TREE` it is the BMC whose tree `supernode survey BMC --save TREE` kept, and can only be read.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from supernode import workspace
from supernode.errors import SupernodeError
from supernode.lab.bmc.fleet import Fleet
from supernode.lab.bmc.hardware import Kind
from supernode.lab.chassis import Identity, MediaInfo, Port, manufactured_mac
from supernode.lab.console import Console
from supernode.lab.machine import Ending, Machine


class NoWorks:
    """Works of a machine without an operating system: what is deployed is remembered, what runs is a pause.

    Args:
        deploy_s: how long a deploy takes.
    """

    def __init__(self, console: Console, deploy_s: float = 1.0) -> None:
        self._console, self._deploy_s = console, deploy_s
        self.deployed: MediaInfo | None = None
        self._ending: asyncio.Queue[Ending] = asyncio.Queue()

    def installed(self) -> bool:
        """See Works."""
        return self.deployed is not None

    async def run(self, running: Callable[[], None]) -> Ending:
        """See Works."""
        self._console.write("the system runs")
        running()
        return await self._ending.get()

    async def ask(self, ending: Ending) -> None:
        """See Works."""
        self._ending.put_nowait(ending)

    async def deploy(self, media: MediaInfo) -> None:
        """See Works."""
        self._console.write(f"deploy of {media.image_digest}: remembered, not fetched")
        await asyncio.sleep(self._deploy_s)
        self.deployed = media


def machine(slot: str, kind: Kind, rails: int, console: Console, deploy_s: float = 1.0) -> Machine:
    """Make a machine with labels of its own."""
    identity = Identity.manufactured("alone", slot)
    ports = [Port("management", identity.management_mac, 1000)]
    ports += [Port(f"rail{n}", manufactured_mac("alone", slot, f"rail{n}")) for n in range(rails)]
    return Machine(slot, kind.name, identity, ports, NoWorks(console, deploy_s), console)


def _password(state: Path) -> Path:
    """Return the file of the password, made on the first call."""
    path = state / "bmc-password"
    if not path.is_file():
        workspace.write_atomically(path, secrets.token_urlsafe(12) + "\n", 0o600)
    return path


def _announce(host: str, port: int, ca: Path, password: Path) -> None:
    sys.stdout.write(f"https://{host}:{port}/redfish/v1/\nCA {ca}\npassword in {password}\n")
    sys.stdout.flush()


def _ended() -> asyncio.Event:
    """Return what a signal sets."""
    done = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    return done


async def serve_again(arguments: argparse.Namespace) -> None:
    """Serve a saved tree until a signal ends it."""
    from supernode.lab.bmc import replay
    from supernode.lab.bmc.certificates import Authority

    tree = replay.read(arguments.replay)
    password, authority = _password(arguments.state), Authority(arguments.state / "ca")
    context = authority.issue(arguments.state / "replay", "replay", arguments.address)
    answers = replay.Replay(tree, arguments.username, password.read_text(encoding="utf-8").strip())
    runner, port = await replay.serve(answers, arguments.address, arguments.port, context)
    _announce(arguments.address, port, authority.certificate, password)
    await _ended().wait()
    await runner.cleanup()


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    from supernode import catalog

    kind = catalog.server(arguments.kind)
    state: Path = arguments.state
    password = _password(state)
    fleet = Fleet(state, (arguments.username, password.read_text(encoding="utf-8").strip()))
    console = Console(state / "console.log")
    await fleet.add(machine(arguments.slot, kind, len(kind.nics), console), kind, arguments.address, arguments.port)
    host, port = fleet.address(arguments.slot)
    _announce(host, port, fleet.authority.certificate, password)
    done = _ended()
    for fault in arguments.fault:
        name, *pairs = fault.split(",")
        fleet.set_fault(arguments.slot, name, **{k: _value(v) for k, _, v in (p.partition("=") for p in pairs)})
    await done.wait()
    await fleet.close()


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def main() -> int:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m supernode.lab.bmc", description=__doc__)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9443)
    parser.add_argument("--kind", default="lab-gpu8")
    parser.add_argument("--slot", default="r01u01")
    parser.add_argument("--username", default="admin")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--fault", action="append", default=[], help="e.g. bmc-503,rate=0.05")
    parser.add_argument("--replay", type=Path, metavar="TREE", help="serve this saved tree, to be read alone")
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"))
    try:
        arguments = parser.parse_args()
        asyncio.run(serve_again(arguments) if arguments.replay else serve(arguments))
    except SupernodeError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
