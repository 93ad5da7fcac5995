"""Notice that the engine is gone: after a kill -9 nobody else would tell this process."""

from __future__ import annotations

import asyncio
import os

import grpc
import grpc.aio

EVERY_S = 0.5
GONE_AFTER = 6  # failed connections in a row


async def parent_gone(parent: int) -> None:
    """Return when the process that started this one has ended."""
    while os.getppid() == parent:  # noqa: ASYNC110 - nothing but looking tells
        await asyncio.sleep(EVERY_S)


async def engine_gone(address: str) -> None:
    """Return when the engine's address has refused connections for some seconds; used where the engine is no parent."""
    failures = 0
    async with grpc.aio.insecure_channel(address) as channel:
        while failures < GONE_AFTER:
            state = channel.get_state(try_to_connect=True)
            failures = failures + 1 if state == grpc.ChannelConnectivity.TRANSIENT_FAILURE else 0
            await asyncio.sleep(EVERY_S)
