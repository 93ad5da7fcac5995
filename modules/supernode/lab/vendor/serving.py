"""The vendor's web server: its repository over plain HTTP, as archives are; the signature is what is trusted."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address
from pathlib import Path

from aiohttp import web

PORT = 8090
PATH = "/nvidia"


async def serve(folder: Path, address: IPv4Address) -> None:
    """Serve a repository for good at http://<address>:8090/nvidia."""
    application = web.Application()
    application.router.add_static(PATH, folder)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, str(address), PORT).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
