"""Progress to the engine's log; without an engine, to nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import grpc.aio
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

INFO, WARNING = engine_pb2.LogSeverity.INFO, engine_pb2.LogSeverity.WARNING
WAITING_AT_MOST = 1000
_LOG = logging.getLogger(__name__)


class EngineLog:
    """Sends lines to the engine in order, from a queue of its own: a slow engine holds nobody up.

    Ephemeral lines are dropped when the queue is full; warnings never are.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._queue: asyncio.Queue[engine_pb2.LogRequest] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def attach(self, address: str) -> None:
        """Take the address of an engine that did not start this process."""
        self._address = address

    def info(self, urn: str, text: str) -> None:
        """Show a line beside the resource while it works; `<phase>: <detail>`."""
        if self._queue.qsize() < WAITING_AT_MOST:
            self._put(urn, text, INFO, ephemeral=True)

    def warn(self, urn: str, text: str) -> None:
        """Leave a warning that the user sees at the end."""
        self._put(urn, text, WARNING, ephemeral=False)

    def _put(self, urn: str, text: str, severity: int, *, ephemeral: bool) -> None:
        _LOG.log(logging.WARNING if severity == WARNING else logging.INFO, "%s: %s", urn, text)
        if self._address is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=text, urn=urn, ephemeral=ephemeral)  # type: ignore[arg-type]
        self._queue.put_nowait(request)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        assert self._address is not None  # noqa: S101 - for the type checker; _put checked it
        async with grpc.aio.insecure_channel(self._address, options=_GRPC_CHANNEL_OPTIONS) as channel:
            stub = engine_pb2_grpc.EngineStub(channel)
            while not self._queue.empty():
                request = self._queue.get_nowait()
                # A line that cannot be delivered is no reason to stop work on a machine.
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await stub.Log(request, timeout=10)

    async def drain(self) -> None:
        """Wait until every line was sent, so that none is lost behind the answer it belongs to."""
        if self._task is not None and not self._task.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    await asyncio.shield(self._task)
