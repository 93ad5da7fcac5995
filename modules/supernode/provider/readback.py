"""A change is believed when it is read back, whatever the controller answered.

Controllers refuse what they did, accept what they do not do, and lose tasks on the way. What is safe to ask twice is
asked twice, and then named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from supernode.clients.redfish import Ambiguous, Answer, Json, Redfish, RedfishError, Unreachable
from supernode.errors import CouldNotRun
from supernode.provider.timing import Deadline, LateError, until

SETTLE_S = 3.0  # how long an answered change may take to be seen, where nothing slower is known of it
REFUSED_S = 0.5  # the same after an error: most errors mean what they say
RUNNING = {"New", "Starting", "Running", "Pending", "Suspended", "Interrupted", "Stopping", "Cancelling", "Service"}


class NotDoneError(CouldNotRun):
    """A change was answered, more than once, and did not come to pass; the text has the answer and what was found."""


@dataclass(frozen=True)
class Change:
    """One change of a controller or its machine, safe to be asked for again.

    Attributes:
        what: its name for a person, e.g. "InsertMedia".
        send: asks for it.
        missing: looks, and returns "" when it holds, else what holds instead in words that go on from "and".
        settle_s: how long it may take to be seen after a good answer; None is as long as most take.
    """

    what: str
    send: Callable[[], Awaitable[Answer]]
    missing: Callable[[], Awaitable[str]]
    settle_s: float | None = None

    @property
    def patience_s(self) -> float:
        """Seconds that a good answer is given."""
        return SETTLE_S if self.settle_s is None else self.settle_s


async def make(redfish: Redfish, change: Change, deadline: Deadline, say: Callable[[str], None]) -> None:
    """Ask for a change and see that it came to pass; ask once more when it did not.

    Raises:
        NotDoneError: it was answered twice and does not hold.
        RedfishError: it was refused, and indeed does not hold.
        Ambiguous: no answer came, twice, and it does not hold.
    """
    told, found = "", _Found("")
    for attempt in (1, 2):
        answer, error = await _send(change)
        status = answer.status if answer else error.status if error else 0
        told = f"the BMC {f'answered {status} to' if status else 'did not answer'} {change.what}"
        found = await _seen(redfish, change, answer, error, deadline)
        if not found.missing:
            if answer is None or found.task:
                say(f"{told}{found.task}, and it holds all the same")
            return
        if error is not None and error.status < 500:
            raise error
        if attempt == 1:
            say(f"{told}{found.task} and {found.missing}: asking once more")
    raise NotDoneError(redfish.address, f"{told} twice{found.task}, and {found.missing}")


async def _send(change: Change) -> tuple[Answer | None, RedfishError | None]:
    try:
        return await change.send(), None
    except RedfishError as error:
        return None, error
    except Ambiguous:
        return None, None


@dataclass(frozen=True)
class _Found:
    missing: str
    task: str = ""


async def _seen(
    redfish: Redfish, change: Change, answer: Answer | None, error: RedfishError | None, deadline: Deadline
) -> _Found:
    """Look until the change holds, for as long as what was answered makes it worth while."""
    if answer is not None and (monitor := _monitor(answer)):
        return await _followed(redfish, change, monitor, deadline.part(deadline.left / 3))
    refused = error is not None and error.status < 500
    # Most refusals mean what they say; of what is slow to be seen, as power is, a little more is waited for.
    patience = max(REFUSED_S, min(change.patience_s / 4, SETTLE_S)) if refused else change.patience_s
    return _Found(await _settled(change, deadline.part(min(patience, deadline.left / 3))))


async def _settled(change: Change, deadline: Deadline) -> str:
    missing = ""

    async def look() -> bool | None:
        nonlocal missing
        missing = await change.missing()
        return None if missing else True

    try:
        await until(look, deadline, change.what)
    except LateError:
        return missing
    return ""


def _monitor(answer: Answer) -> str:
    """Return where the task of a 202 can be watched (DSP0266, "Asynchronous operations"); "" when there is none."""
    if answer.status != 202:
        return ""
    place = answer.headers.get("Location") or str(answer.body.get("TaskMonitor") or answer.body.get("@odata.id") or "")
    return "/" + place.split("://", 1)[1].partition("/")[2] if "://" in place else place


async def _followed(redfish: Redfish, change: Change, monitor: str, deadline: Deadline) -> _Found:
    """Watch a task and what it is for: what holds holds, whatever its task says."""
    words = f", its task shows nothing in {deadline.seconds:.0f} s"

    async def look() -> _Found | None:
        nonlocal words
        try:
            ended, words = await _task(redfish, monitor)
            missing = await change.missing()
        except Unreachable:  # it may be resetting itself
            words = ", and the controller went silent"
            return None
        if not missing:
            return _Found("", words if not ended or "gone" in words else "")
        return _Found(await _settled(change, deadline.part(change.patience_s)), words) if ended else None

    try:
        return await until(look, deadline, change.what)
    except LateError:
        return _Found(await change.missing(), words)


async def _task(redfish: Redfish, monitor: str) -> tuple[bool, str]:
    """Return whether a task is over, and how it stands."""
    try:
        task = await redfish.get(monitor)
    except RedfishError as error:
        if error.status == 404:
            return True, ", its task is gone (404; a reset of the BMC loses tasks)"
        return False, f", its task answers {error.status}"
    state = str(task.get("TaskState") or "Completed")
    return state not in RUNNING, f", its task is {state}{_last_message(task)}"


def _last_message(task: Json) -> str:
    messages = [str(m.get("Message")) for m in task.get("Messages") or () if m.get("Message")]
    return f" ({messages[-1]})" if messages else ""
