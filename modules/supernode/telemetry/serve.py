"""Serves `/metrics` from what was seen; a scrape never reaches a unit."""

from __future__ import annotations

import asyncio
import signal
import time

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from supernode.telemetry import metrics, poll
from supernode.telemetry.seen import Seen
from supernode.telemetry.settings import Settings


class Agent(Collector):
    """The agent: a task for each unit, and one page."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        now = time.monotonic()
        self.seen = {unit.name: Seen(unit.interval_s, now) for unit in settings.units}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def collect(self) -> list[Metric]:
        """Return all metrics as they are now."""
        return metrics.families(self.settings.units, self.seen, time.monotonic())

    def describe(self) -> list[Metric]:
        """Return nothing: names depend on what units tell."""
        return []

    async def page(self, _request: web.Request) -> web.Response:
        """Answer a scrape."""
        return web.Response(body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def run(self) -> None:
        """Read and serve until SIGTERM; sessions are then given back."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        app = web.Application()
        app.router.add_get("/metrics", self.page)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, self.settings.address, self.settings.port).start()
        tasks = [asyncio.create_task(poll.watch(unit, self.seen[unit.name])) for unit in self.settings.units]
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cleanup()
