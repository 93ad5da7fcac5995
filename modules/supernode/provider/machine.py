"""`Machine`: one server in one slot, from its controller to a login.

A machine is never "made": create adopts what stands in the slot, and delete lets go of it and leaves it powered as it
is (`supernode:powerOffOnDelete` switches it off). What a change means is `plan.machine.decide`; here it is carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from supernode.clients import ssh
from supernode.clients.answer import MISSHAPEN, misshapen
from supernode.clients.redfish import Patience
from supernode.errors import CouldNotRun
from supernode.provider import check, guard, importing, schema
from supernode.provider.check import Failure
from supernode.provider.doors import Doors
from supernode.provider.identity import normal
from supernode.provider.job import Job, PhaseFailedError, RefusedError, Wanted, begin, told
from supernode.provider.phases import bios, firmware, login
from supernode.provider.phases.run import Outcome, run
from supernode.provider.resource import Decide, Difference, Found, InitFailedError, Properties, Scene
from supernode.provider.timing import LateError

IN_SERVICE_PHASES = ("contact", "power", "login")
BOOT_SHARE = 0.25  # of the deadline, for a machine that may run what is wanted already; the rest can install it


class MachineResource:
    """See the module.

    Args:
        decide: what a change means.
        patience: how long to try a controller.
    """

    computed = tuple(schema.MACHINE_OUTPUTS)

    def __init__(self, decide: Decide, patience: Patience | None = None) -> None:
        self._decide, self._patience, self._doors = decide, patience, Doors()

    def check(self, inputs: Properties) -> tuple[dict[str, Any], list[Failure]]:
        """See Resource."""
        filled = check.with_defaults(inputs, schema.MACHINE_DEFAULTS)
        return filled, check.machine(filled)

    def resource_id(self, inputs: Properties) -> str:
        """See Resource."""
        return str(inputs["slot"])

    def diff(self, scene: Scene, old: Properties, new: Properties) -> Difference:
        """See Resource."""
        decision = self._decide(old, new, guard.confirmed(scene, str(new.get("slot", ""))))
        return Difference() if decision.action == "none" else Difference(dict(decision.detailed))

    async def create(self, scene: Scene, inputs: Properties) -> Properties:
        """Adopt a machine that runs the image already, or any in service; else deploy it. In service: never stopped."""
        wanted = Wanted.of(inputs)
        if wanted.state == "quarantined":
            return _outputs(inputs, _recorded(inputs), None, _QUARANTINED)
        known = _recorded(inputs)
        try:
            async with begin(wanted, scene, self._doors, self._patience, changes=True) as job:
                job.pinned = tuple(known.get("hostKeys") or ())
                outcome = await self._create(job, inputs, known)
                return self._finish(job, inputs, known, outcome)
        except RefusedError as error:
            return self._finish(None, inputs, known, Outcome("failed", "contact", str(error), refused=True), scene)
        except CouldNotRun as error:
            return self._finish(None, inputs, known, Outcome("failed", "contact", told(error)), scene)

    async def _create(self, job: Job, inputs: Properties, known: Properties) -> Outcome:
        outcome = await run(job, ())
        if outcome.status != "ready":
            return outcome
        in_service = job.wanted.in_service or await guard.in_service_now(job.scene.base, job.wanted.slot)
        confirmed, why = await guard.confirmation(job.scene, job.wanted.slot)
        old: Mapping[str, Any] = {}
        adopted = await _is_adopted(job, in_service=in_service)
        if adopted or (in_service and job.seen.image):
            what = "the wanted image already" if adopted else f"image {job.seen.image[:12]}"
            job.scene.say("contact", f"runs {what}: adopted")
            await look(job)
            old = _outputs(inputs, known, job, Outcome())
        elif in_service:  # even if confirmed: what runs on it was never seen
            return await _run_and_look(job, IN_SERVICE_PHASES, {})
        decision = self._decide(old, inputs, confirmed)
        if decision.action == "refuse":
            return Outcome("ready", "", why or decision.reason, refused=True)
        return await run(job, decision.phases)

    async def update(self, scene: Scene, old: Properties, new: Properties) -> Properties:
        """Carry out the phases that the change means."""
        wanted = Wanted.of(new)
        confirmed, why = await guard.confirmation(scene, wanted.slot)
        decision = self._decide(old, new, confirmed)
        if decision.action == "refuse":
            scene.warn(f"{wanted.name}: left as it is: {why or decision.reason}")
            return {**old, "reason": why or decision.reason}
        # Of another machine in the slot nothing is known that was known of the one before.
        known = _recorded(new) if _another(old, wanted) else old
        if wanted.state == "quarantined":
            return _outputs(new, old, None, _QUARANTINED)
        if not decision.phases:
            return _outputs(new, old, None, Outcome())
        try:
            async with begin(wanted, scene, self._doors, self._patience, changes=True) as job:
                job.pinned = tuple(known.get("hostKeys") or ())
                return self._finish(job, new, known, await _run_and_look(job, decision.phases, known))
        except CouldNotRun as error:
            return self._finish(None, new, known, Outcome("failed", "contact", told(error)), scene)

    async def read(self, scene: Scene, resource_id: str, old: Properties, inputs: Properties) -> Found:
        """Look at power, BIOS, firmware, image and host key; a controller that does not answer changes nothing."""
        if not old:
            inputs = await importing.machine(scene, resource_id)
        wanted = Wanted.of(inputs or old)
        if wanted.state == "quarantined":
            return Found(resource_id, old, inputs)
        kept = Outcome(old.get("status", "ready"), old.get("phase", ""), old.get("reason", ""))
        try:
            async with begin(wanted, scene, self._doors, self._patience) as job:
                known = _recorded(inputs) if not old or _another(old, wanted) else old
                job.pinned = tuple(known.get("hostKeys") or ())
                outcome = await run(job, ())
                if job.stranger and old:
                    scene.warn(f"{wanted.name}: {outcome.reason}")
                    said = {"status": outcome.status, "phase": outcome.phase, "reason": outcome.reason}
                    return Found(resource_id, {**old, **said}, inputs)
                if outcome.status != "ready":
                    raise CouldNotRun(wanted.name, outcome.reason)
                try:
                    await _look_in_time(job)
                except PhaseFailedError as error:
                    scene.warn(f"{wanted.name}: {error}")
                    kept = Outcome("failed", "login", str(error))
        except CouldNotRun as error:
            if not old:
                raise
            scene.warn(f"{wanted.name}: cannot be read: {error}")
            return Found(resource_id, old, inputs)
        outputs = _outputs(inputs or old, old or known, job, kept)
        seen = {k: outputs[k] for k in ("power", "bios", "image", "firmware") if k in (inputs or old)}
        return Found(wanted.slot, outputs, {**inputs, **seen})

    async def delete(self, scene: Scene, old: Properties) -> None:
        """Let go: empty the virtual drive; leave the power as it is, or switch off where the configuration says so."""
        wanted = Wanted.of(old)
        if wanted.state == "quarantined":
            return
        try:
            async with begin(wanted, scene, self._doors, self._patience) as job:
                await self._release(job)
        except (CouldNotRun, LateError, TimeoutError, RefusedError) as error:
            if wanted.strict:
                raise CouldNotRun(wanted.name, f"cannot be let go: {error}") from error
            scene.warn(f"{wanted.name}: let go without its controller: {error}")

    async def _release(self, job: Job) -> None:
        outcome = await run(job, ())
        if outcome.status != "ready":
            raise CouldNotRun(job.wanted.name, outcome.reason)
        ours = await run(job, ("eject",))
        if ours.status != "ready":
            raise CouldNotRun(job.wanted.name, ours.reason)
        if job.scene.settings.power_off_on_delete:
            await guard.permit(job, "switching off")
            with _shaped(job):
                await job.bmc.turn("Off", job.deadline.part(60))

    def _finish(
        self, job: Job | None, inputs: Properties, old: Properties, outcome: Outcome, scene: Scene | None = None
    ) -> Properties:
        """Turn an outcome into outputs; warn, or fail the stack when the machine is strict."""
        where = job.scene if job is not None else scene
        name = str(inputs.get("name"))
        if outcome.refused:
            if where is not None:
                where.warn(f"{name}: left as it is: {outcome.reason}")
            kept = old if "status" in old else _outputs(inputs, old, job, Outcome())
            return {**kept, "reason": outcome.reason}
        outputs = _outputs(inputs, _let_go(old), job, outcome)
        if outcome.status != "ready":
            text = f"{name}: {outcome.status} in phase {outcome.phase}: {outcome.reason}"
            if inputs.get("strict") is True:
                raise InitFailedError(self.resource_id(inputs), outputs, text)
            if where is not None:
                where.warn(text)
        return outputs


_QUARANTINED = Outcome("failed", "quarantined", "the slot is quarantined; the machine was not contacted")


def _recorded(inputs: Properties) -> dict[str, Any]:
    """Return what machines.yml recorded of a machine that no state knows: the host key to hold it to.

    From then on the state's own keys count: they follow an installation at once, the document at the end of the run.
    """
    return {"hostKeys": [inputs["hostKey"]]} if inputs.get("hostKey") else {}


def _another(old: Properties, wanted: Wanted) -> bool:
    before = check.identity_values(old.get("identity") or {})
    return any(name in before and normal(before[name]) != normal(value) for name, value in wanted.identity.items())


async def _run_and_look(job: Job, phases: Sequence[str], known: Properties) -> Outcome:
    """Run the phases; where settings were never read, as after a failed contact, read them now.

    Without that, a machine in service would differ for ever in what nobody asked it for.
    """
    outcome = await run(job, phases)
    if outcome.status == "ready" and job.wanted.power != "Off":
        try:
            with _shaped(job):
                if job.wanted.bios and not (job.seen.bios or known.get("biosApplied")):
                    job.seen.bios = await bios.read(job)
                if job.wanted.firmware and not (job.seen.firmware or known.get("firmwareFound")):
                    job.seen.firmware = await firmware.read(job)
        except CouldNotRun as error:
            job.scene.warn(f"{job.wanted.name}: its settings cannot be read: {error}")
    return outcome


@contextmanager
def _shaped(job: Job) -> Iterator[None]:
    """Turn what reading an answer of another shape raises into a CouldNotRun: the engine and the others go on."""
    try:
        yield
    except MISSHAPEN as error:
        raise CouldNotRun(job.redfish.address, misshapen(error)) from error


async def look(job: Job) -> None:
    """Read everything that can drift; what cannot be asked stays unknown.

    Raises:
        PhaseFailedError: the host shows another key than the pinned one.
        CouldNotRun: the controller does not answer, or not as Redfish says.
    """
    with _shaped(job):
        job.seen.power = await job.bmc.power()
        if job.wanted.bios:
            job.seen.bios = await bios.read(job)
        if job.wanted.firmware:
            job.seen.firmware = await firmware.read(job)
    if job.seen.power == "On" and not job.seen.image:
        await _runs_image(job)


async def _look_in_time(job: Job) -> None:
    """Read like `look`, within the job's deadline: a controller may answer each question just before it is given up."""
    try:
        async with asyncio.timeout(job.deadline.left + 1):
            await look(job)
    except TimeoutError as error:
        raise CouldNotRun(job.wanted.name, f"not all was told within {job.deadline.seconds:.0f} s") from error


async def _is_adopted(job: Job, *, in_service: bool) -> bool:
    """Say whether the machine runs what is wanted; under another key than the pinned one it is a stranger's system."""
    try:
        return await _runs_image(job) or (not in_service and await _runs_when_on(job))
    except PhaseFailedError as error:
        job.scene.say("login", str(error))
        return False


async def _runs_when_on(job: Job) -> bool:
    """Say whether a machine that was found off runs the wanted image once it is on; asked only where its key is known.

    To boot it once is less than to install it, and a machine with a known key was installed before.
    """
    if job.seen.power == "On" or not job.pinned or job.wanted.power != "On":
        return False
    job.scene.say("power", "was installed before: switched on to see what it runs")
    if (await run(job, ("power",))).status != "ready":
        return False
    limit = job.deadline.part(job.deadline.seconds * BOOT_SHARE)
    while limit.left > 0 and not job.seen.image:
        if await _runs_image(job):
            return True
        await asyncio.sleep(min(3.0, max(0.0, limit.left)))
    return False


async def _runs_image(job: Job) -> bool:
    """Say whether the host answers under the key that it is known by, with the wanted image; notes what it answers."""
    if job.seen.power != "On":
        return False
    try:
        keys = await login.known_keys(job)
        found = await login.image(job, keys) if keys else None
    except ssh.HostKeyMismatch as error:
        if job.pinned:
            raise PhaseFailedError(login.mismatch(error, job.pinned)) from error
        return False  # what a report says of a machine that nobody knows yet is no more than that
    except CouldNotRun:
        return False  # it cannot be asked just now, which says nothing
    if found is not None:
        job.seen.image, job.seen.host_keys = found, keys
    return found == job.wanted.image and bool(found)


def _let_go(old: Properties) -> Properties:
    """Forget that the cooling held the machine: of what came of it now that holds only if it was said again."""
    return {**old, "cooling": {}} if (old.get("cooling") or {}).get("verdict") == "held" else old


def _outputs(inputs: Properties, old: Properties, job: Job | None, outcome: Outcome) -> dict[str, Any]:
    """Return the outputs: inputs, with what was observed in place of what was asked where it is known."""
    seen = job.seen if job is not None else None

    def known(value: Any, name: str, empty: Any) -> Any:
        return value if value else old.get(name, empty)

    wanted_bios, wanted_firmware = inputs.get("bios") or {}, inputs.get("firmware") or {}
    applied = known(seen and seen.bios, "biosApplied", {})
    firmware_found = known(seen and seen.firmware, "firmwareFound", {})
    image, host_keys = known(seen and seen.image, "installedImage", ""), known(seen and seen.host_keys, "hostKeys", ())
    if job is not None and job.booted:  # the disk was being written, and the key of the system before went with it
        image, host_keys = job.seen.image, job.seen.host_keys
    power = known(seen and seen.power, "powerState", "")
    return {
        **inputs,
        "power": power if power in ("On", "Off") else inputs.get("power", "On"),
        "bios": {k: applied[k] for k in wanted_bios if applied.get(k) is not None},
        "firmware": {k: firmware_found[k] for k in wanted_firmware if k in firmware_found},
        "image": image,
        "status": outcome.status,
        "phase": outcome.phase,
        "reason": outcome.reason,
        "evidence": list(outcome.evidence),
        "serial": known(seen and seen.serial, "serial", ""),
        "uuid": known(seen and seen.uuid, "uuid", ""),
        "hostKeys": list(host_keys),
        "installedImage": image,
        "powerState": power,
        "biosApplied": applied,
        "firmwareFound": firmware_found,
        "cooling": known(seen and seen.cooling, "cooling", {}),
    }
