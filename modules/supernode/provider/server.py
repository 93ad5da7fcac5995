"""The plugin's process, and what the SDK's server leaves out.

Gaps of pulumi.provider.experimental.server 3.272 that are closed here: Handshake, Attach, DiffConfig, a resource that
is only partly made (ErrorResourceInitFailed), and errors that reach the user without a Python traceback.
"""
# ruff: noqa: ARG002, N802 - the methods' names and arguments are gRPC's

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf import empty_pb2
from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime import proto
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from supernode.errors import CouldNotRun, SupernodeError
from supernode.plan import machine as plan
from supernode.provider import schema, watch
from supernode.provider.machine import MachineResource
from supernode.provider.progress import EngineLog
from supernode.provider.resource import InitFailedError, Resource
from supernode.provider.service import SupernodeProvider
from supernode.provider.settings import ConfigError
from supernode.provider.switch_config import SwitchConfigResource
from supernode.provider.tunnel import TunnelResource
from supernode.provider.values import wire_map

Handler = Callable[[Any, Any], Awaitable[Any]]


class Servicer(ProviderServicer):
    """The SDK's servicer with its gaps closed."""

    def __init__(self, provider: SupernodeProvider, engine_address: str) -> None:
        super().__init__([], schema.VERSION, provider, engine_address)
        self._plugin = provider

    async def Handshake(self, request: Any, context: Any) -> Any:
        """Say what this provider can take."""
        return proto.ProviderHandshakeResponse(accept_secrets=False, accept_resources=False, accept_outputs=False)

    async def Attach(self, request: Any, context: Any) -> Any:
        """Take the engine's address when the engine did not start this process (PULUMI_DEBUG_PROVIDERS)."""
        self._engine_address = request.address
        self._plugin.attach(request.address)
        return empty_pb2.Empty()

    async def CheckConfig(self, request: Any, context: Any) -> Any:
        """Check the provider's configuration."""
        return await self._told(super().CheckConfig, request, context)

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        """No configuration forces anything to be replaced; the SDK's own answer cannot be encoded."""
        changed = request.olds != request.news
        changes = proto.DiffResponse.DIFF_SOME if changed else proto.DiffResponse.DIFF_NONE
        return proto.DiffResponse(changes=changes)

    async def Configure(self, request: Any, context: Any) -> Any:
        """Take the configuration."""
        return await self._told(super().Configure, request, context)

    async def Check(self, request: Any, context: Any) -> Any:
        """Check a resource's inputs."""
        return await self._told(super().Check, request, context)

    async def Diff(self, request: Any, context: Any) -> Any:
        """Compare a resource with its new inputs."""
        return await self._told(super().Diff, _with_state(request), context)

    async def Create(self, request: Any, context: Any) -> Any:
        """Make a resource."""

        async def create(request: Any, _: Any) -> Any:
            properties = PropertyValue.unmarshal_map(request.properties)
            call = sdk.CreateRequest(request.urn, properties, request.timeout, request.preview)
            answer = await self._provider.create(call)
            outputs = PropertyValue.marshal_map(answer.properties)
            return proto.CreateResponse(id=answer.resource_id or "", properties=outputs)

        return await self._told(create, request, context)

    async def Update(self, request: Any, context: Any) -> Any:
        """Change a resource."""

        async def update(request: Any, _: Any) -> Any:
            olds = PropertyValue.unmarshal_map(_with_state(request).olds)
            news = PropertyValue.unmarshal_map(request.news)
            ignored = list(request.ignoreChanges)
            call = sdk.UpdateRequest(request.urn, request.id, olds, news, request.timeout, ignored, request.preview)
            answer = await self._provider.update(call)
            return proto.UpdateResponse(properties=PropertyValue.marshal_map(answer.properties))

        return await self._told(update, request, context)

    async def Read(self, request: Any, context: Any) -> Any:
        """Look at a resource."""

        async def read(request: Any, _: Any) -> Any:
            properties, inputs = (PropertyValue.unmarshal_map(m) for m in (request.properties, request.inputs))
            answer = await self._provider.read(sdk.ReadRequest(request.urn, request.id, properties, inputs))
            return proto.ReadResponse(
                id=answer.resource_id or "",
                properties=PropertyValue.marshal_map(answer.properties),
                inputs=PropertyValue.marshal_map(answer.inputs),
            )

        return await self._told(read, request, context)

    async def Delete(self, request: Any, context: Any) -> Any:
        """Let go of a resource."""

        async def delete(request: Any, _: Any) -> Any:
            properties = PropertyValue.unmarshal_map(request.properties)
            if "state" in request.old_inputs.fields:
                properties["state"] = PropertyValue(request.old_inputs["state"])
            await self._provider.delete(sdk.DeleteRequest(request.urn, request.id, properties, request.timeout))
            return empty_pb2.Empty()

        return await self._told(delete, request, context)

    async def _told(self, handler: Handler, request: Any, context: Any) -> Any:
        """Answer with a plain sentence when something that was foreseen goes wrong."""
        try:
            return await handler(request, context)
        except InitFailedError as error:
            await _abort_half_made(context, error)
        except (SupernodeError, ConfigError) as error:
            hint = f"\nhint: {error.hint}" if isinstance(error, CouldNotRun) and error.hint else ""
            await context.abort(grpc.StatusCode.UNKNOWN, f"{error}{hint}")


def _with_state(request: Any) -> Any:
    """Let the old state carry the old input `state`: going into quarantine is no change, so outputs do not show it."""
    if "state" in request.old_inputs.fields:
        request.olds["state"] = request.old_inputs["state"]
    return request


async def _abort_half_made(context: Any, error: InitFailedError) -> None:
    """Fail the call in the way that makes the engine keep what there is (Go: rpcerror with ErrorResourceInitFailed)."""
    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=PropertyValue.marshal_map(wire_map(error.outputs)),
        reasons=[error.reason],
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=error.reason)
    status.details.add().Pack(detail)
    trailer = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(grpc.StatusCode.UNKNOWN, error.reason, trailer)


def build(engine_address: str | None) -> SupernodeProvider:
    """Return the provider with its resource types."""
    resources: dict[str, Resource] = {
        schema.MACHINE: MachineResource(plan.decide),
        schema.SWITCH_CONFIG: SwitchConfigResource(),
        schema.TUNNEL: TunnelResource(),
    }
    return SupernodeProvider(resources, EngineLog(engine_address))


async def start(provider: SupernodeProvider, engine_address: str) -> tuple[grpc.aio.Server, int]:
    """Serve on a free port of the loopback; return the server and the port."""
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(provider, engine_address), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


async def serve(engine_address: str) -> None:
    """Serve until told to stop or until the engine is gone; then let go of every BMC."""
    parent, stop = os.getppid(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    provider = build(engine_address or None)
    server, port = await start(provider, engine_address)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    ends = [loop.create_task(stop.wait()), loop.create_task(watch.parent_gone(parent))]
    if engine_address:
        ends.append(loop.create_task(watch.engine_gone(engine_address)))
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    await provider.stop()
    await server.stop(grace=1)
    for end in ends:
        end.cancel()


def main() -> None:
    """Run as the console script pulumi-resource-supernode; the engine passes its own address."""
    parser = argparse.ArgumentParser(description="Pulumi provider of supernode; started by the engine, not by hand")
    parser.add_argument("engine", nargs="?", default="", help="the engine's address, host:port")
    known, _ = parser.parse_known_args()
    asyncio.run(serve(known.engine))
