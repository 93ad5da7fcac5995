"""What a change means for a machine: the one answer for `supernode plan` and for the provider's diff.

A machine in service is not restarted, powered off or installed anew unless that is confirmed. What only the next
installation uses (the deploy medium, where to enrol) is no change by itself. What was never read from a machine in
service is no difference either: it is asked first, and only what it answers can be a reason to stop it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PHASES = ("contact", "power", "bios", "firmware", "boot", "deploy", "eject", "login")
INSTALL = ("boot", "deploy", "eject", "login")
Action = Literal["none", "create", "update", "replace", "refuse"]
Kind = Literal["add", "update", "delete", "add-replace", "update-replace", "delete-replace"]

# What a difference at a path costs; a path that is not here costs nothing until the next installation.
_COST: Mapping[str, tuple[str, ...]] = {
    "image": INSTALL,
    "name": INSTALL,  # the host's name and address come out of the seed, which is read once
    "address": INSTALL,
    "identity": INSTALL,  # another machine stands there
    "bios": ("bios", "login"),  # the machine restarts
    "firmware": ("firmware", "login"),
    "power": ("power", "login"),
    "bmc": (),
    "sshUser": ("login",),
}
_LOOK = ("contact", "power", "login")  # what may be done to a machine in service without asking anybody
# Where the resource keeps what was read from the machine, for each input that drifts.
_READ_BACK: Mapping[str, str] = {"image": "installedImage", "bios": "biosApplied", "firmware": "firmwareFound"}
_WORDS = {"boot": "installed anew", "bios": "restarted for its BIOS", "firmware": "restarted for its firmware"}


@dataclass(frozen=True)
class Decision:
    """What is to be done with one machine.

    Attributes:
        action: "refuse" is a change that would stop a machine in service without confirmation.
        phases: the provider's phases, in order; contact is the first of every one that is not empty.
        reason: one sentence for a person, no full stop.
        detailed: input path to kind of difference; empty for "none" alone.
    """

    action: Action
    phases: tuple[str, ...] = ()
    reason: str = ""
    detailed: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def reinstalls(self) -> bool:
        """Whether the disk's content ends."""
        return "boot" in self.phases and self.action != "refuse"


def decide(old: Mapping[str, Any], new: Mapping[str, Any], reinstall_confirmed: bool) -> Decision:
    """Decide what a machine's inputs ask for.

    Args:
        old: the resource's outputs as last written or just observed; `power`, `bios`, `image` and `firmware` as seen on
            the machine. {} where there are none.
        new: its inputs. What it does not hold is not compared, so that a plan may leave out what it cannot know.
        reinstall_confirmed: stack config names the slot, together with the hash of the plan that was shown.
    """
    if new.get("state") == "quarantined":
        return Decision("none", reason="quarantined: never contacted")
    if not old:
        return _create(new)
    if old.get("slot") and old["slot"] != new.get("slot"):
        reason = f"moved from slot {old['slot']} to {new.get('slot')}: another resource"
        return Decision("replace", PHASES, reason, {"slot": "update-replace"})
    unfinished = _is_unfinished(old)
    differences = dict(_differences(old, new))
    detailed = {path: kind for path, kind in differences.items() if path.split(".")[0] in _COST}
    if not detailed and not unfinished:
        return Decision("none", reason="what differs is used at the next installation" if differences else "")
    kept = _is_kept(old, new, reinstall_confirmed)
    phases = {"contact"} | _unfinished(old, new, kept)
    for path, kind in detailed.items():
        if kept and _is_unread(old, path):
            phases |= {"contact", "login"}
        # An image that was never seen is no other image: how far the last attempt came says what is left.
        elif not (unfinished and (path, kind) == ("image", "add")):
            phases |= _cost(path, new)
    if unfinished:
        detailed["status"] = "update"
    ordered = tuple(phase for phase in PHASES if phase in phases)
    wanted = Decision("update", ordered, _reason(old, ordered, detailed), detailed)
    return _permitted(old, new, wanted, reinstall_confirmed)


def _create(new: Mapping[str, Any]) -> Decision:
    detailed: dict[str, Kind] = dict.fromkeys(sorted(new), "add")
    if new.get("inService", True):  # whatever was confirmed: what runs on it is not known yet
        return Decision("create", ("contact", "login"), "in service already: adopted as it stands", detailed)
    return Decision("create", tuple(p for p in PHASES if p != "power"), "a new machine", detailed)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Kind]]:
    """Yield the paths that differ; in identity, only a value that contradicts a known one is another machine."""
    for key in sorted(new):
        if key in {"inService", "strict", "deadlineS", "state"}:
            continue  # these say how the machine may be treated, not how it is
        if key in {"bios", "firmware", "identity", "bmc", "media"}:
            yield from _inside(key, old.get(key) or {}, new[key] or {})
        elif key == "power" and not old.get(key):
            continue  # not seen is unknown, not off
        elif old.get(key) != new[key]:
            yield key, "update" if old.get(key) not in (None, "") else "add"


def _inside(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Kind]]:
    for name in sorted(new):
        if old.get(name) != new[name]:
            known = old.get(name) not in (None, "")
            if key == "identity" and not known:
                continue  # learnt since: the same machine
            yield f"{key}.{name}", "update" if known else "add"


def _cost(path: str, new: Mapping[str, Any]) -> set[str]:
    head = path.split(".")[0]
    if head == "identity":  # another machine stands there: it has neither the settings nor the image
        wanted = {"bios": new.get("bios"), "firmware": new.get("firmware")}
        return {*INSTALL, *(phase for phase, values in wanted.items() if values)}
    if head == "power" and new.get("power") == "Off":
        return {"power"}
    return set(_COST.get(head, ()))


def _is_unfinished(old: Mapping[str, Any]) -> bool:
    """Tell whether the last attempt did not end well, or the slot comes back from quarantine."""
    return str(old.get("status", "ready")) != "ready" or old.get("state") == "quarantined"


def _is_kept(old: Mapping[str, Any], new: Mapping[str, Any], confirmed: bool) -> bool:
    """Tell whether the machine is in service and runs something; a confirmed installation that broke off goes on."""
    broke_off = _is_unfinished(old) and old.get("phase") in ("boot", "deploy", "eject")
    return bool(new.get("inService", True)) and not (confirmed and broke_off)


def _is_unread(old: Mapping[str, Any], path: str) -> bool:
    """Tell whether what stands at a path was never read from the machine."""
    head = path.split(".")[0]
    return head in _READ_BACK and not old.get(head) and not old.get(_READ_BACK[head])


def _unfinished(old: Mapping[str, Any], new: Mapping[str, Any], kept: bool) -> set[str]:
    """Return what is left from the phase where the last attempt ended; the disk is written only if it has to be.

    Of a machine in service nothing but a look is left: what differs on it shows then, and is a difference of its own.
    """
    if not _is_unfinished(old):
        return set()
    phase = old.get("phase")
    left = set(PHASES[PHASES.index(phase) :] if phase in PHASES else PHASES)
    if kept:
        return (left & set(_LOOK)) - ({"power"} if new.get("power") == "Off" else set())
    if new.get("image") and old.get("image") == new["image"]:
        left -= {"boot", "deploy"} | (set() if phase == "eject" else {"eject"})
    return left if phase == "power" else left - {"power"}


def _permitted(old: Mapping[str, Any], new: Mapping[str, Any], wanted: Decision, confirmed: bool) -> Decision:
    """Refuse what would stop a machine in service; one that was found off is not stopped by being switched on."""
    stopping = [phase for phase in ("boot", "bios", "firmware") if phase in wanted.phases]
    off = "power" in wanted.phases and new.get("power") == "Off"
    if confirmed or not new.get("inService", True) or not (stopping or off):
        return wanted
    what = " and ".join(dict.fromkeys(_WORDS[phase] for phase in stopping)) or "switched off"
    reason = f"{new.get('slot') or old.get('slot')} is in service and would be {what}: confirm it with --reinstall"
    return Decision("refuse", (), reason, wanted.detailed)


def _reason(old: Mapping[str, Any], phases: tuple[str, ...], detailed: Mapping[str, Kind]) -> str:
    if any(path.startswith("identity.") for path in detailed):
        return "another machine stands in the slot: it is installed"
    if "status" in detailed:
        if old.get("state") == "quarantined":
            return "back from quarantine"
        why = f": {old['reason']}" if old.get("reason") else ""
        return f"{old.get('status')} in {old.get('phase') or 'contact'} at the last attempt{why}"
    words = [path for path in detailed if path != "status"]
    shown = ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")
    return f"{'installed anew' if 'boot' in phases else 'changed'}: {shown}"
