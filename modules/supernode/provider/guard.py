"""Nobody's work is lost: whether a machine may be powered off or reinstalled, looked up just before it happens."""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from supernode.errors import Refusal
from supernode.plan.share import at_once
from supernode.provider.job import Job, RefusedError
from supernode.provider.resource import Scene

IDLE = {"new", "spare", "drained", "quarantined"}


def confirmed(scene: Scene, slot: str) -> bool:
    """Say whether the stack's configuration names this slot, together with a plan's hash."""
    return slot in scene.settings.reinstall


async def confirmation(scene: Scene, slot: str) -> tuple[bool, str]:
    """Say whether the confirmation of a slot holds, and why it does not where it was given.

    One that names more machines in service than one run may change is good for none of them.
    """
    if not confirmed(scene, slot):
        return False, ""
    try:
        why = await asyncio.to_thread(_too_many, scene.base, scene.settings.reinstall)
    except RefusedError as error:
        why = str(error)
    return not why, f"{slot}: {why}" if why else ""


async def permit(job: Job, act: str) -> None:
    """Return when `act` ("restarting", "reinstalling", …) may be done to this machine now.

    Raises:
        RefusedError: it is in service, by its inputs or by machines.yml as it stands at this moment, and not confirmed,
            or confirmed together with too many others.
    """
    slot = job.wanted.slot
    holds, why = await confirmation(job.scene, slot)
    if holds or not (job.wanted.in_service or await in_service_now(job.scene.base, slot)):
        return
    must = "it must be confirmed (supernode:reinstall and supernode:plan)"
    raise RefusedError(f"{slot} is in service: {act} {must}" if not why else f"{act} it is refused: {why}")


def _too_many(folder: Path, named: frozenset[str]) -> str:
    """Say why a confirmation is too wide; empty when it is not. One slot alone is within any share.

    Raises:
        RefusedError: a document cannot be read, so that nobody can say.
    """
    if len(named) < 2:
        return ""
    slots = _read(folder / "machines.yml", "each slot")
    if slots is None:
        return f"{len(named)} slots are confirmed, and no machines.yml says how many machines are in service"
    serving = sum(_serves(record) for record in slots.values())
    changing = sum(_serves(slots.get(slot)) for slot in named)
    most = at_once(_share(folder / "environment.yml"), serving)
    if changing <= most:
        return ""
    return f"{changing} of {serving} machines in service are confirmed at once, a run may change at most {most}"


def _share(path: Path) -> float:
    try:
        stamp = path.stat()
        return _change_at_once(os.fspath(path), stamp.st_mtime_ns, stamp.st_size)
    except (OSError, UnicodeDecodeError, Refusal) as error:
        why = " ".join(str(error).split())
        raise RefusedError(f"nobody can say how many machines a run may change: {path}: {why}") from error


@lru_cache(maxsize=4)
def _change_at_once(path: str, _mtime: int, _size: int) -> float:
    from supernode import spec  # late: few runs ask, and the models of all documents cost start-up time

    return spec.read({"environment": Path(path).read_text(encoding="utf-8")}).environment.machines.change_at_once


async def in_service_now(folder: Path, slot: str) -> bool:
    """Look the slot up in machines.yml: all but a record in one of the idle states is in service, no record too.

    A machine gets its record, with the state new, when `supernode assign` binds it: before that there is none to touch.

    Raises:
        RefusedError: the file cannot be read, so that nobody can say.
    """
    return await asyncio.to_thread(_in_service, folder / "machines.yml", slot)


async def any_in_service(folder: Path) -> bool:
    """Say whether machines.yml has any slot in service; no file at all counts as yes.

    Raises:
        RefusedError: the file cannot be read.
    """

    def look() -> bool:
        slots = _read(folder / "machines.yml", "some machine")
        return slots is None or any(_serves(record) for record in slots.values())

    return await asyncio.to_thread(look)


def _in_service(path: Path, slot: str) -> bool:
    slots = _read(path, slot)
    return slots is None or _serves(slots.get(slot))


def _serves(record: Any) -> bool:
    return not isinstance(record, dict) or str(record.get("state", "new")) not in IDLE


def _read(path: Path, slot: str) -> dict[str, Any] | None:
    """Return the slots; None when there is no file."""
    try:
        stamp = path.stat()
        return _slots(os.fspath(path), stamp.st_mtime_ns, stamp.st_size)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise RefusedError(f"{slot} counts as in service: {path} cannot be read: {why}") from error


@lru_cache(maxsize=4)
def _slots(path: str, _mtime: int, _size: int) -> dict[str, Any]:
    """Parse once for each version of the file: it lists every machine, and every machine asks."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - a safe loader, the C one
    slots = document.get("slots") if isinstance(document, dict) else None
    return slots if isinstance(slots, dict) else {}
