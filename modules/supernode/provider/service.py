"""The provider: dispatches the engine's calls to the resource types, and stops their work when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from pulumi.provider.experimental import provider as sdk

from supernode.errors import CouldNotRun
from supernode.provider import schema
from supernode.provider.progress import EngineLog
from supernode.provider.resource import Difference, Resource, Scene
from supernode.provider.settings import ConfigError, Settings
from supernode.provider.values import UNKNOWN, plain_map, wire_map

_T = TypeVar("_T")
_KINDS = {
    "add": sdk.PropertyDiffKind.ADD,
    "add-replace": sdk.PropertyDiffKind.ADD_REPLACE,
    "delete": sdk.PropertyDiffKind.DELETE,
    "delete-replace": sdk.PropertyDiffKind.DELETE_REPLACE,
    "update": sdk.PropertyDiffKind.UPDATE,
    "update-replace": sdk.PropertyDiffKind.UPDATE_REPLACE,
}


class SupernodeProvider(sdk.Provider):
    """Resources by their type token."""

    def __init__(self, resources: Mapping[str, Resource], log: EngineLog) -> None:
        self._resources, self._log = resources, log
        self._settings = Settings()
        self._running: set[asyncio.Task[Any]] = set()

    async def get_schema(self, request: sdk.GetSchemaRequest) -> sdk.GetSchemaResponse:  # noqa: ARG002 - the SDK's
        """Return the package's schema."""
        return sdk.GetSchemaResponse(json.dumps(schema.package_schema()))

    async def check_config(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        """Refuse configuration that cannot be used."""
        try:
            Settings.read(_texts(plain_map(request.new_inputs)))
        except ConfigError as error:
            return sdk.CheckResponse(request.new_inputs, [sdk.CheckFailure(error.key, error.what)])
        return sdk.CheckResponse(request.new_inputs)

    async def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        """Keep the configuration; it holds for this process."""
        given = {k.rpartition(":")[2]: v for k, v in request.variables.items()} or _texts(plain_map(request.args))
        self._settings = Settings.read(given)
        # Secrets: inputs carry references only, so the engine may keep its secret marks to itself.
        return sdk.ConfigureResponse(accept_secrets=False, supports_preview=True, accept_outputs=False)

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        """Return the inputs with defaults, and every problem at once."""
        inputs, failures = self._of(request.urn).check(plain_map(request.new_inputs))
        return sdk.CheckResponse(wire_map(inputs), [sdk.CheckFailure(p, r) for p, r in failures])

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        """Compare; the detailed diff is always filled when something changes."""
        resource, scene = self._of(request.urn), self._scene(request.urn)
        new = {k: v for k, v in plain_map(request.new_inputs).items() if k not in request.ignore_changes}
        old = plain_map(request.old_state)
        found = resource.diff(scene, old, {**{k: old[k] for k in request.ignore_changes if k in old}, **new})
        return _diff_response(found)

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        """Make or adopt; a preview touches nothing."""
        resource, inputs = self._of(request.urn), plain_map(request.properties)
        if request.preview:
            return sdk.CreateResponse("", wire_map(_preview(resource, inputs)))
        outputs = await self._work(resource.create(self._scene(request.urn, request.timeout), inputs))
        return sdk.CreateResponse(resource.resource_id(inputs), wire_map(outputs))

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        """Change in place; a preview touches nothing."""
        resource, new = self._of(request.urn), plain_map(request.news)
        if request.preview:
            return sdk.UpdateResponse(wire_map(_preview(resource, new)))
        scene = self._scene(request.urn, request.timeout)
        return sdk.UpdateResponse(wire_map(await self._work(resource.update(scene, plain_map(request.olds), new))))

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        """Look at what is there; answers an import, too, which brings an id and nothing else."""
        resource, scene = self._of(request.urn), self._scene(request.urn)
        old, inputs = plain_map(request.properties), plain_map(request.inputs)
        found = await self._work(resource.read(scene, request.resource_id, old, inputs))
        return sdk.ReadResponse(found.resource_id, wire_map(found.outputs), wire_map(found.inputs))

    async def delete(self, request: sdk.DeleteRequest) -> None:
        """Let go."""
        resource, scene = self._of(request.urn), self._scene(request.urn, request.timeout)
        await self._work(resource.delete(scene, plain_map(request.properties)))

    def attach(self, address: str) -> None:
        """Report progress to another engine from now on."""
        self._log.attach(address)

    async def cancel(self) -> None:
        """Stop all work; each call then answers with how far it came."""
        for task in tuple(self._running):
            task.cancel("the engine cancelled the run")

    async def stop(self) -> None:
        """Stop all work and wait, briefly, until the sessions on the BMCs are closed."""
        await self.cancel()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=6)
        await self._log.drain()

    async def _work(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        task = asyncio.ensure_future(coroutine)
        self._running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                raise
            raise CouldNotRun("supernode", "cancelled") from None
        finally:
            self._running.discard(task)
            await self._log.drain()

    def _of(self, urn: str) -> Resource:
        token = sdk._extract_type(urn).rpartition("$")[2]
        if token not in self._resources:
            raise CouldNotRun(token, "is no resource type of this provider")
        return self._resources[token]

    def _scene(self, urn: str, limit_s: float = 0) -> Scene:
        return Scene(urn, self._settings.base(urn), self._settings, self._log, limit_s or None)


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    """Return configuration as text: what is none arrives as JSON text or as a value, and both are read alike."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in config.items() if v not in (None, UNKNOWN)}


def _preview(resource: Resource, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {**inputs, **dict.fromkeys(resource.computed, UNKNOWN)}


def _diff_response(found: Difference) -> sdk.DiffResponse:
    # Against the outputs, not the old inputs: the outputs hold what was observed.
    detailed = {path: sdk.PropertyDiff(_KINDS[kind], input_diff=False) for path, kind in found.changes.items()}
    tops = [path.split(".")[0].split("[")[0] for path in found.changes]
    return sdk.DiffResponse(
        changes=bool(detailed),
        replaces=[path.split(".")[0].split("[")[0] for path in found.replaces],
        # The old and the new machine of a slot are one piece of hardware.
        delete_before_replace=True,
        diffs=list(dict.fromkeys(tops)),
        detailed_diff=detailed,
    )
