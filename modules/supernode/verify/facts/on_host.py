"""Runs on a host or a switch, as the login user, with Debian's python3 alone: gathers raw output and judges nothing.

    python3 -c <this text> <request, base64 of JSON>

The request: commands {key: argv}, files {key: path}, wait_lldp (count of ports), patience_s. The answer is one JSON
line of {key: {"rc", "out", "err"}}; rc 127 means that the program is not there, 124 that it did not end in time.
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Answer = dict[str, Any]

LIMIT_S = 20
AT_ONCE = 16


def run(argv: list[str]) -> Answer:
    """Run one program; never raise. Root needs no sudo, and a switch on which root logs in may have none."""
    if argv[:2] == ["sudo", "-n"] and os.geteuid() == 0:
        argv = argv[2:]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    except FileNotFoundError as gone:
        return {"rc": 127, "out": "", "err": str(gone)}
    except subprocess.TimeoutExpired:
        return {"rc": 124, "out": "", "err": f"no end after {LIMIT_S} s"}
    return {"rc": done.returncode, "out": done.stdout, "err": done.stderr}


def read(path: str) -> Answer:
    """Read a file as the login user, else by sudo: serial numbers are for root only."""
    try:
        return {"rc": 0, "out": Path(path).read_text(encoding="utf-8"), "err": ""}
    except PermissionError:
        return run(["sudo", "-n", "cat", path])
    except (OSError, UnicodeDecodeError) as error:
        return {"rc": 1, "out": "", "err": str(error)}


def hardware() -> Answer:
    """Say which ports are devices, and what speed those report: a virtual port's driver makes its speed up."""
    found: dict[str, str] = {}
    for path in Path("/sys/class/net").iterdir():
        with contextlib.suppress(OSError):  # an entry that cannot be looked at is no reason to see nothing else
            if (path / "device").exists():
                found[path.name] = read(str(path / "speed"))["out"].strip()
    return {"rc": 0, "out": json.dumps(found), "err": ""}


def bus() -> Answer:
    """List the devices on the PCI bus by address: class, vendor and device, as the kernel writes them."""
    found: dict[str, dict[str, str]] = {}
    root = Path("/sys/bus/pci/devices")
    for path in root.iterdir() if root.is_dir() else ():
        found[path.name] = {name: read(str(path / name))["out"].strip() for name in ("class", "vendor", "device")}
    return {"rc": 0, "out": json.dumps(found), "err": ""}


def heard(text: str) -> int:
    """Count the ports on which a neighbour is heard."""
    try:
        lldp = json.loads(text).get("lldp", [])
    except ValueError:
        return 0
    blocks = lldp if isinstance(lldp, list) else [lldp]
    ports = [port for block in blocks for port in (block.get("interface") or [])]
    return len(ports)


def lldp(argv: list[str], wanted: int, patience_s: float) -> Answer:
    """Ask for the neighbours until enough ports hear one or the patience ends.

    A daemon that has just started hears its neighbours one by one.
    """
    until = time.monotonic() + patience_s
    answer = run(argv)
    while heard(answer["out"]) < wanted and time.monotonic() < until:
        time.sleep(0.5)
        answer = run(argv)
    return answer


def settled(argv: list[str], patience_s: float) -> Answer:
    """Ask for the links of a subnet until its manager has brought all of them up or the patience ends.

    A link that was plugged in a moment ago waits for the manager's next look.
    """
    until = time.monotonic() + patience_s
    answer = run(argv)
    while ("Initialize/" in answer["out"] or "Armed/" in answer["out"]) and time.monotonic() < until:
        time.sleep(1)
        answer = run(argv)
    return answer


def main() -> None:
    """Answer the request."""
    request = json.loads(base64.b64decode(sys.argv[1]))
    commands = dict(request.get("commands", {}))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs: dict[str, concurrent.futures.Future[Answer]] = {}
        if "lldp" in commands:
            wait = (request.get("wait_lldp", 0), request.get("patience_s", 0))
            jobs["lldp"] = pool.submit(lldp, commands.pop("lldp"), *wait)
        if "iblinkinfo" in commands:
            jobs["iblinkinfo"] = pool.submit(settled, commands.pop("iblinkinfo"), request.get("patience_s", 0))
        jobs.update({key: pool.submit(run, argv) for key, argv in commands.items()})
        jobs.update({key: pool.submit(read, path) for key, path in request.get("files", {}).items()})
        answer = {key: job.result() for key, job in jobs.items()}
    answer["hardware"] = hardware()
    answer["bus"] = bus()
    answer["now"] = {"rc": 0, "out": repr(time.time()), "err": ""}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
