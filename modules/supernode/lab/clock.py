"""The site's time server: a real chronyd that serves the machine's clock and never sets it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from supernode.lab.disks import mount, unmount

log = logging.getLogger(__name__)


def configuration(addresses: tuple[IPv4Address, ...], block: IPv4Network) -> str:
    """Return chrony.conf: stratum 1 from the local clock, for the lab's hosts only."""
    bind = f"bindaddress {addresses[0]}\n" if len(addresses) == 1 else ""
    return f"local stratum 1\nallow {block}\n{bind}cmdport 0\npidfile /run/chronyd.pid\nbindcmdaddress /\n"


async def serve(
    nos: Path, root: Path, addresses: tuple[IPv4Address, ...], block: IPv4Network, line: Callable[[str], None]
) -> None:
    """Run chronyd for good, out of the switches' operating system, so that the machine needs none.

    Args:
        nos: the folder of that system's files; nothing is written there.
        root: an empty folder, where they are mounted read-only.
        addresses: to answer on.
        block: whom to answer.
        line: takes what it logs.
    """
    if not addresses:
        return
    try:
        await asyncio.to_thread(_prepare, nos, root, configuration(addresses, block))
        while True:
            status = await _once(root, line)
            log.warning("the time server ended with status %d; starting it again", status)
            await asyncio.sleep(1.0)
    finally:
        for folder in (root / "dev", root / "run", root):
            unmount(folder)


def _prepare(nos: Path, root: Path, text: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    mount("--bind", "-o", "ro", str(nos), str(root))
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(root / "run"))
    mount("--bind", "/dev", str(root / "dev"))
    (root / "run" / "chrony.conf").write_text(text, encoding="utf-8")


async def _once(root: Path, line: Callable[[str], None]) -> int:
    process = await asyncio.create_subprocess_exec(
        "chroot", str(root), "/usr/sbin/chronyd", "-x", "-d", "-f", "/run/chrony.conf",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    if process.stdout is not None:
        async for text in process.stdout:
            line(text.decode(errors="replace").rstrip())
    return await process.wait()
