"""`Tunnel`: both gateways of a site-to-site tunnel, the only owner of its keys, addresses, routes and firewalls.

Each gateway makes its own key, and only the public ones are read. The files are placed as a switch's are: all or none
on each gateway, checked first, read back, given back by delete. It is ready when the two have shaken hands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supernode.errors import CouldNotRun
from supernode.provider import check, schema, switch_plan
from supernode.provider.check import Failure
from supernode.provider.phases.run import Outcome
from supernode.provider.placing import ENDS, StoppedError, carry_out, ended, opened, prepare
from supernode.provider.resource import Difference, Found, InitFailedError, Properties, Scene
from supernode.provider.switch_session import Switch
from supernode.provider.timing import Deadline, LateError, until

LIMIT_S, REACH_S, HANDSHAKE_S = 240.0, 60.0, 30.0
FRESH_S = 180  # after this long without a new one, WireGuard refuses to send (https://www.wireguard.com/protocol/)
PLAIN = ("name", "sshUser", "sshKey", "strict")

# 0600 from its first byte on, and in place only whole; what is printed is the public key.
_KEY = """set -eu; umask 077; key=/etc/wireguard/wg0.key; mkdir -p /etc/wireguard
if [ ! -s "$key" ]; then wg genkey >"$key.new"; sync "$key.new"; mv "$key.new" "$key"; fi
chmod 0600 "$key"; wg pubkey <"$key"
"""
_AGE = 'set -- $(wg show wg0 latest-handshakes); [ "${2:-0}" -gt 0 ] && echo $(($(date +%s) - $2))'
_SEEN = "wg show wg0 endpoints; wg show wg0 latest-handshakes; wg show wg0 transfer"


@dataclass(frozen=True)
class _Side:
    """One gateway, logged in to; `inputs` is its part of the resource's."""

    inputs: Mapping[str, Any]
    switch: Switch

    @property
    def name(self) -> str:
        return str(self.inputs["name"])


class TunnelResource:
    """See the module.

    Args:
        reach_s: how long a gateway may take to answer.
        handshake_s: how long the two may take to find each other.
    """

    computed = tuple(schema.TUNNEL_OUTPUTS)

    def __init__(self, reach_s: float = REACH_S, handshake_s: float = HANDSHAKE_S) -> None:
        self._reach_s, self._handshake_s = reach_s, handshake_s

    def check(self, inputs: Properties) -> tuple[dict[str, Any], list[Failure]]:
        """See Resource."""
        filled = check.with_defaults(inputs, schema.TUNNEL_DEFAULTS)
        return filled, check.tunnel(filled)

    def resource_id(self, inputs: Properties) -> str:
        """See Resource."""
        return str(inputs["name"])

    def diff(self, scene: Scene, old: Properties, new: Properties) -> Difference:  # noqa: ARG002 - needs nothing of it
        """See Resource."""
        return Difference(differences(old, new))

    async def create(self, scene: Scene, inputs: Properties) -> Properties:
        """Make the tunnel, or adopt what stands of it: keys and files that are there already are not touched."""
        return await self._apply(scene, inputs, {})

    async def update(self, scene: Scene, old: Properties, new: Properties) -> Properties:
        """Apply; files that are no longer listed are given back."""
        return await self._apply(scene, new, old)

    async def read(self, scene: Scene, resource_id: str, old: Properties, inputs: Properties) -> Found:
        """Look at both gateways; one that does not answer changes nothing."""
        if not old:
            raise CouldNotRun(resource_id, "a tunnel is not imported", "`pulumi up` adopts what stands of it")
        try:
            async with self._sides(scene, inputs or old) as (sides, host_keys):
                keys = {side.name: await _public_key(side) for side in sides}
                applied = {side.name: await side.switch.applied(_paths(side.inputs)) for side in sides}
        except (CouldNotRun, LateError) as error:
            scene.warn(f"tunnel to {resource_id}: cannot be read: {error}")
            return Found(resource_id, old, inputs)
        seen = {"publicKeys": keys, "hostKeys": host_keys, "applied": applied}
        return Found(resource_id, {**old, **seen}, inputs)

    async def delete(self, scene: Scene, old: Properties) -> None:
        """Give both gateways back as they were, without the keys that they made."""
        try:
            async with self._sides(scene, old) as (sides, _):
                for side in sides:
                    paths = _paths(side.inputs)
                    await side.switch.restore(paths, switch_plan.commands(paths))
        except (CouldNotRun, LateError) as error:
            scene.warn(f"tunnel to {old.get('name')}: let go without being given back: {error}")

    async def _apply(self, scene: Scene, inputs: Properties, old: Properties) -> Properties:
        outputs = {**inputs, **{key: dict(old.get(key) or {}) for key in ("publicKeys", "hostKeys", "applied")}}
        try:
            async with asyncio.timeout(scene.limit_s or LIMIT_S), self._sides(scene, inputs) as (sides, host_keys):
                outputs["hostKeys"] = host_keys
                await self._join(scene, sides, outputs, old)
                outcome = Outcome()
        except ENDS as error:
            outcome = ended(error, "apply", scene.limit_s or LIMIT_S)
        return self._finish(scene, outputs, outcome)

    async def _join(self, scene: Scene, sides: Sequence[_Side], outputs: dict[str, Any], old: Properties) -> None:
        """Read the keys, prepare both gateways before either is changed, and wait for the handshake."""
        keys = outputs["publicKeys"] = {side.name: await _public_key(side) for side in sides}
        wanted = {side.name: {"files": filled(side.inputs["files"], keys)} for side in sides}
        before = {g["name"]: {"files": g["files"]} for g in old.get("gateways") or ()}
        todo = {}
        for side in sides:
            todo[side.name] = await prepare(side.switch, scene, wanted[side.name], before.get(side.name, {}))
        for side in reversed(sides):  # the far one first: its new firewall must be there when the near one calls
            await carry_out(side.switch, scene, wanted[side.name], todo[side.name])
            outputs["applied"][side.name] = await side.switch.applied(_paths(side.inputs))
        await self._shaken(scene, sides)

    async def _shaken(self, scene: Scene, sides: Sequence[_Side]) -> None:
        """Wait until the end that calls has heard the other."""
        scene.say("handshake", " and ".join(side.name for side in sides))
        caller = next((side for side in sides if side.inputs.get("initiates")), sides[0])

        async def look() -> bool | None:
            age = (await caller.switch.root(_AGE, check=False)).stdout.strip()
            return True if age.isdigit() and int(age) < FRESH_S else None

        try:
            await until(look, Deadline(self._handshake_s), "no handshake", longest_s=1.0)
        except LateError as error:
            seen = [
                f"{side.name}: {line}"
                for side in sides
                for line in (await side.switch.root(_SEEN, check=False)).stdout.splitlines()
            ]
            said = f"{caller.name} called and heard nothing within {self._handshake_s:.0f} s"
            raise StoppedError("handshake", f"{said}: is UDP let through?", seen) from error

    def _finish(self, scene: Scene, outputs: dict[str, Any], outcome: Outcome) -> Properties:
        told = {"status": outcome.status, "phase": outcome.phase, "reason": outcome.reason}
        found = {**outputs, **told, "evidence": list(outcome.evidence)}
        if outcome.status != "ready":
            text = f"tunnel to {outputs['name']}: {outcome.status} in phase {outcome.phase}: {outcome.reason}"
            if outputs.get("strict") is not False:
                raise InitFailedError(self.resource_id(outputs), found, text)
            scene.warn(text)
        return found

    @asynccontextmanager
    async def _sides(self, scene: Scene, inputs: Properties) -> AsyncIterator[tuple[list[_Side], dict[str, str]]]:
        """Log in to both; yields them with the keys that they showed."""
        sides, host_keys = [], {}
        async with AsyncExitStack() as stack:
            for gateway in inputs["gateways"]:
                host_keys[gateway["name"]] = key = await _host_key(scene.base, str(gateway["hostKey"]))
                login = {**gateway, "hostKey": key, "sshUser": inputs["sshUser"], "sshKey": inputs["sshKey"]}
                sides.append(_Side(gateway, await stack.enter_async_context(opened(scene, login, self._reach_s))))
            yield sides, host_keys


async def _public_key(side: _Side) -> str:
    return (await side.switch.root(_KEY)).stdout.strip()


async def _host_key(base: Path, name: str) -> str:
    """Read a gateway's public host key from the file that came with it."""
    try:
        text = await asyncio.to_thread((base / name).read_text, encoding="utf-8")
    except OSError as error:
        hint = "it comes with the gateway: vpn.*.host_key names its file"
        raise CouldNotRun(name, f"the gateway's public key cannot be read ({error.strerror})", hint) from error
    return " ".join(text.split()[:2])


def _paths(gateway: Mapping[str, Any]) -> list[str]:
    return [str(file["path"]) for file in gateway["files"]]


def filled(files: Sequence[Mapping[str, Any]], keys: Mapping[str, str]) -> list[dict[str, Any]]:
    """Put each gateway's public key where its name stands between two @."""
    found = []
    for file in files:
        content = str(file["content"])
        for name, key in keys.items():
            content = content.replace(f"@{name}@", key)
        found.append({**file, "content": content})
    return found


def differences(old: Properties, new: Properties) -> dict[str, str]:
    """Compare a tunnel's outputs with its new inputs; property path to kind of change. What was read back counts."""
    changes = {key: "update" for key in PLAIN if old.get(key) != new.get(key)}
    if "name" in changes:
        changes["name"] = "update-replace"
    keys, applied = old.get("publicKeys") or {}, old.get("applied") or {}
    before = {gateway["name"]: gateway for gateway in old.get("gateways") or ()}
    for index, gateway in enumerate(new.get("gateways") or ()):
        was, at = before.get(gateway["name"], {}), f"gateways[{index}]"
        changes |= {f"{at}.{key}": "update" for key in ("address", "hostKey") if was.get(key) != gateway.get(key)}
        there = applied.get(gateway["name"]) or {}
        for number in _outdated(gateway, keys, there):
            changes[f"{at}.files[{number}].content"] = "update"
        if {f["path"] for f in was.get("files") or ()} - set(_paths(gateway)):
            changes[f"{at}.files"] = "update"
    if old.get("status", "ready") != "ready":
        changes.setdefault("gateways", "update")
    return changes


def _outdated(gateway: Mapping[str, Any], keys: Mapping[str, str], there: Mapping[str, str]) -> list[int]:
    files = filled(gateway["files"], keys)
    wrong = set(switch_plan.outdated(files, there))
    return [number for number, file in enumerate(files) if file["path"] in wrong]
