"""One server behind its management controller: its power, its boot override, and the controller itself.

Every change is read back (`readback`); a restart is seen by the power going off and coming on again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from supernode.clients.redfish import Ambiguous, Answer, Json, Redfish, RedfishError, Unreachable
from supernode.errors import CouldNotRun
from supernode.provider import readback
from supernode.provider.quirks import Quirks
from supernode.provider.readback import Change, NotDoneError
from supernode.provider.timing import Deadline, LateError, until

GRACE_S = 60.0  # how long a system may take to go down by itself
POWER_S = 60.0  # how long PowerState may take to follow
SILENCE_S = 2.0  # a controller that resets still answers for a moment
OFF = ("Disabled", None)  # BootSourceOverrideEnabled when nothing is overridden


async def _forbidden() -> bool:
    return False


async def _permitted() -> None:
    return None


@dataclass
class Bmc:
    """A controller that was logged in to; made by `identity.find`.

    Attributes:
        system: path of the ComputerSystem.
        manager, chassis: paths of what manages and what holds it; empty when it names none.
        say: takes a line for whoever watches.
        resettable: tells whether the controller itself may be reset now; a machine in service keeps its own.
        permit_on: called right before each power-on, and before a machine is switched off to start anew; raises where
            it may not be switched on.
    """

    redfish: Redfish
    quirks: Quirks
    system: str
    manager: str
    chassis: str
    say: Callable[[str], None] = lambda _: None
    resettable: Callable[[], Awaitable[bool]] = _forbidden
    permit_on: Callable[[], Awaitable[None]] = _permitted
    _was_reset: bool = field(default=False)

    async def read(self) -> Json:
        """Fetch the ComputerSystem."""
        return await self.redfish.get(self.system)

    async def power(self) -> str:
        """Return PowerState: On, Off, PoweringOn or PoweringOff."""
        return str((await self.read()).get("PowerState") or "Unknown")

    async def turn(self, wanted: str, deadline: Deadline) -> None:
        """Switch On or Off and see that it came to pass; nothing when it is so already.

        Raises:
            NotDoneError: the power state did not follow.
        """
        system = await self.read()
        if system.get("PowerState") == wanted:
            return
        if wanted == "Off" and _listens(system) and "GracefulShutdown" in await self._reset_types(system):
            with contextlib.suppress(Ambiguous, RedfishError, LateError):
                await self._reset("GracefulShutdown")
                await self._wait_off(deadline.part(min(GRACE_S, deadline.left / 2)))
                return
        await self._force(wanted, deadline)

    async def ask_restart(self) -> bool:
        """Ask a running system to restart itself; False when none runs or the controller cannot ask."""
        system = await self.read()
        if not _listens(system) or "GracefulRestart" not in await self._reset_types(system):
            return False
        with contextlib.suppress(Ambiguous):
            await self._reset("GracefulRestart")
        return True

    async def restart(self, deadline: Deadline) -> None:
        """Start the machine anew from its firmware: off, if it is on, and on.

        ForceRestart would do the same in one step; but a controller that says so and does nothing looks just the same.
        """
        if await self.power() != "Off":
            await self.permit_on()  # once it is off it has to be let on again
            await self._force("Off", deadline.part(deadline.left / 2))
        await self._force("On", deadline)

    async def override_boot(self, boot: Mapping[str, Any], deadline: Deadline) -> None:
        """Set the boot override and read it back; `Once` that is kept as `Continuous` counts, and is said.

        Raises:
            NotDoneError: the controller says it did, and did not.
        """

        async def missing() -> str:
            found = (await self.read()).get("Boot") or {}
            different = [f"{k}: set {v!r}, found {found.get(k)!r}" for k, v in boot.items() if not _holds(k, v, found)]
            return "the boot override reads " + "; ".join(different) if different else ""

        async def send() -> Answer:
            return await self.redfish.patch(self.system, {"Boot": dict(boot)})

        await readback.make(self.redfish, Change("the boot override", send, missing), deadline, self.say)
        if boot.get("BootSourceOverrideEnabled") == "Once" and await self.override() == "Continuous":
            self.say("the boot override reads Continuous after Once was set: it is taken back once this boot was seen")

    async def override(self) -> str:
        """Return BootSourceOverrideEnabled; Disabled where there is none."""
        return str(((await self.read()).get("Boot") or {}).get("BootSourceOverrideEnabled") or "Disabled")

    async def clear_override(self, deadline: Deadline) -> bool:
        """Let the machine boot from its disk again; tells whether there was anything to take back.

        Raises:
            NotDoneError: it stands, whatever the controller says.
        """
        found = await self.override()
        if found in OFF:
            return False
        await self.override_boot({"BootSourceOverrideEnabled": "Disabled"}, deadline)
        self.say(f"the boot override still read {found} after the boot: it was taken back")
        return True

    async def reset_itself(self, deadline: Deadline) -> bool:
        """Reset the controller, once and where that is allowed, until it answers again; tells whether it did."""
        action = _action((await self.redfish.find(self.manager)) or {} if self.manager else {}, "#Manager.Reset")
        if self._was_reset or not action or not await self.resettable():
            return False
        self._was_reset = True
        self.say("resetting the controller: what it shows does not fit")
        allowed = action.get("ResetType@Redfish.AllowableValues") or ("ForceRestart",)
        kind = "GracefulRestart" if "GracefulRestart" in allowed else str(allowed[0])
        with contextlib.suppress(Ambiguous):
            await self.redfish.post(action["target"], {"ResetType": kind})
        await asyncio.sleep(min(SILENCE_S, deadline.left / 4))
        await self.answers(deadline)
        return True

    async def answers(self, deadline: Deadline) -> None:
        """Wait until the controller answers, as after a reset.

        Raises:
            LateError: it does not.
        """

        async def look() -> Json | None:
            try:
                return await self.read()
            except (RedfishError, Ambiguous, Unreachable):
                return None

        await until(look, deadline, "the controller did not answer again")

    async def _force(self, wanted: str, deadline: Deadline) -> None:
        """Switch On or Off; a controller that does not show it is reset once, for it may show an earlier moment."""
        kind = "On" if wanted == "On" else "ForceOff"

        async def missing() -> str:
            power = await self.power()
            return "" if power == wanted else f"PowerState still reads {power}"

        change = Change(f"Reset ({kind})", lambda: self._reset(kind), missing, min(POWER_S, deadline.left / 4))
        try:
            await readback.make(self.redfish, change, deadline, self.say)
        except NotDoneError as error:
            if not await self.reset_itself(deadline):
                raise
            if left := await missing():
                raise NotDoneError(error.where, f"{error.what}, also after the BMC was reset ({left})") from error
            self.say(f"PowerState was of an earlier moment until the BMC was reset; it reads {wanted} now")

    async def _reset(self, kind: str) -> Answer:
        system = await self.read()
        allowed = await self._reset_types(system)
        if kind == "On" and "On" not in allowed and "ForceOn" in allowed:
            kind = "ForceOn"
        action = _action(system, "#ComputerSystem.Reset")
        if not action:
            raise CouldNotRun(
                self.redfish.address, "offers no ComputerSystem.Reset", "does the account have the Operator role?"
            )
        if kind in ("On", "ForceOn"):
            await self.permit_on()
        return await self.redfish.post(action["target"], {"ResetType": kind})

    async def _reset_types(self, system: Json) -> Sequence[str]:
        action = _action(system, "#ComputerSystem.Reset")
        allowed = action.get("ResetType@Redfish.AllowableValues")
        if allowed is None and (info := action.get("@Redfish.ActionInfo")):
            parameters = (await self.redfish.get(str(info))).get("Parameters") or ()
            allowed = next((p.get("AllowableValues") for p in parameters if p.get("Name") == "ResetType"), None)
        return allowed or ("On", "ForceOff", "ForceRestart")

    async def _wait_off(self, deadline: Deadline) -> None:
        async def look() -> bool | None:
            return True if await self.power() == "Off" else None

        await until(look, deadline, "the machine did not report power Off")


def _holds(name: str, wanted: Any, found: Mapping[str, Any]) -> bool:
    value = found.get(name)
    if name == "BootSourceOverrideEnabled":
        return value == wanted or (wanted, value) == ("Once", "Continuous") or (wanted == "Disabled" and value in OFF)
    return bool((value or "") == (wanted or ""))


def _listens(system: Json) -> bool:
    """Say whether a system runs that would hear the power button."""
    return bool(system.get("PowerState") == "On" and (system.get("BootProgress") or {}).get("LastState") == "OSRunning")


def _action(resource: Json, name: str) -> Mapping[str, Any]:
    action = (resource.get("Actions") or {}).get(name)
    return action if isinstance(action, Mapping) and action.get("target") else {}


def link(resource: Json, name: str) -> str:
    """Return the path that a resource links to by this name; "" when it does not."""
    return str((resource.get(name) or {}).get("@odata.id") or "")
