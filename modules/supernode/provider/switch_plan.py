"""What a change of a switch's files means: which files differ, and which commands bring them into force. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

FRR_CONF, FRR_DAEMONS = "/etc/frr/frr.conf", "/etc/frr/daemons"
NFTABLES, WIREGUARD = "/etc/nftables.conf", "/etc/wireguard/wg0.conf"
RUNNING = "running-config"  # the key in `applied` for the digest of FRR's running configuration
FRR_RELOAD = "/usr/lib/frr/frr-reload.py"


@dataclass(frozen=True)
class Command:
    """One shell line, run as root.

    Attributes:
        about: what it does, for the progress line.
        line: `{paths}` in it stands for the changed files that ask for it.
        stops: what it restarts, or may restart, carries traffic.
    """

    about: str
    line: str
    stops: bool = False


def _restart(unit: str) -> str:
    """Restart a unit also when that was done often of late: systemd counts starts, and refuses FRR the fourth."""
    return f"systemctl reset-failed {unit} 2>/dev/null; systemctl restart {unit}"


# A reload of FRR needs its daemons up and its reload script (a package of its own in Debian); else it is a restart.
_RELOAD_FRR = Command(
    "reload frr",
    f"if systemctl is-active --quiet frr && [ -x {FRR_RELOAD} ]; then {FRR_RELOAD} --reload {FRR_CONF}; "
    f"else {_restart('frr')}; fi",
    stops=True,
)
_RESTART_FRR = Command("restart frr", _restart("frr"), stops=True)
# Loaded in one transaction while the service runs; what a gateway had before it had any is nothing.
_LOAD_FIREWALL = Command(
    "load firewall",
    f"if [ -e {NFTABLES} ]; then systemctl enable --quiet nftables && "
    "if systemctl is-active --quiet nftables; then systemctl reload nftables; else systemctl start nftables; fi; "
    "else nft flush ruleset; fi",
)
# wg-quick needs the file to take an interface down: where it is gone, the interface goes, and wireguard-go too. What
# had forwarded behind the firewall forwards nothing any more: a setting outlives the file that made it.
_RESTART_TUNNEL = Command(
    "restart tunnel",
    f"systemctl reset-failed wg-quick@wg0 2>/dev/null; if [ -e {WIREGUARD} ]; then "
    "systemctl enable --quiet wg-quick@wg0 && systemctl restart wg-quick@wg0; "
    "else systemctl disable --quiet wg-quick@wg0; ip link delete wg0 2>/dev/null; systemctl stop wg-quick@wg0; "
    "systemctl reset-failed wg-quick@wg0 2>/dev/null; rm -f /etc/wireguard/wg0.key; "
    "sysctl --quiet --write net.ipv4.ip_forward=0; fi",
    stops=True,
)
# In the order in which they are run: the kernel's settings and the links first, then what runs over them.
_RULES: tuple[tuple[tuple[str, ...], Command], ...] = (
    (("/etc/systemd/system/*",), Command("reload units", "systemctl daemon-reload")),
    # These files alone: others may name settings that are not this system's to change, and their failure is not ours.
    (
        ("/etc/sysctl.d/*.conf", "/etc/sysctl.conf"),
        Command(
            "apply sysctl", 'for file in {paths}; do [ ! -e "$file" ] || sysctl --quiet --load "$file" || exit; done'
        ),
    ),
    (
        ("/etc/systemd/networkd.conf", "/etc/systemd/networkd.conf.d/*"),
        Command("restart networkd", _restart("systemd-networkd"), stops=True),
    ),
    (("/etc/systemd/network/*",), Command("reload networkd", "networkctl reload")),
    ((NFTABLES,), _LOAD_FIREWALL),
    ((WIREGUARD,), _RESTART_TUNNEL),
    ((FRR_DAEMONS,), _RESTART_FRR),
    ((FRR_CONF, "/etc/frr/*.conf"), _RELOAD_FRR),
    (("/etc/lldpd.d/*", "/etc/lldpd.conf", "/etc/default/lldpd"), Command("restart lldpd", _restart("lldpd"))),
)


def commands(changed: Iterable[str]) -> tuple[Command, ...]:
    """Return what brings changed files into force, each command once, in the order to run them.

    A restart covers a reload of the same program.
    """
    paths = list(changed)
    found = []
    for patterns, command in _RULES:
        asking = [path for path in paths if any(fnmatch.fnmatch(path, pattern) for pattern in patterns)]
        if asking:
            found.append(replace(command, line=command.line.replace("{paths}", shlex.join(asking))))
    if _RESTART_FRR in found and _RELOAD_FRR in found:
        found.remove(_RELOAD_FRR)
    return tuple(found)


def digest(content: str) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content.encode()).hexdigest()


def mode(text: str) -> str:
    """Write an octal mode as stat does: without leading zeros."""
    return f"{int(text, 8):o}"


def outdated(files: Sequence[Mapping[str, Any]], applied: Mapping[str, str]) -> list[str]:
    """Return the paths whose content is not what `applied` says is there."""
    return [str(f["path"]) for f in files if applied.get(str(f["path"])) != digest(str(f["content"]))]


PLAIN = ("name", "address", "hostKey", "sshUser", "sshKey", "strict")


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Compare a switch's outputs with its new inputs; property path to kind of change.

    Content is compared with what was read back from the switch, so drift shows; a switch that is not ready, or whose
    running configuration left the file, differs as a whole.
    """
    changes = {key: _kind(old, new, key) for key in PLAIN if old.get(key) != new.get(key)}
    if old.get("slot") != new.get("slot"):
        changes["slot"] = "update-replace"
    changes |= _file_changes(old, new)
    if old.get("status", "ready") != "ready" or old.get("drift"):
        changes.setdefault("files", "update")
    return changes


def _kind(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> str:
    if key not in old or old[key] is None:
        return "add"
    return "delete" if key not in new else "update"


def _file_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    before = {f["path"]: f for f in old.get("files") or ()}
    after = new.get("files") or ()
    applied = old.get("applied") or {}
    changes = {}
    for index, file in enumerate(after):
        was = before.get(file["path"])
        if was is None:
            changes[f"files[{index}]"] = "add"
        elif applied.get(file["path"]) != digest(file["content"]):
            changes[f"files[{index}].content"] = "update"
        elif mode(str(was["mode"])) != mode(str(file["mode"])):
            changes[f"files[{index}].mode"] = "update"
    kept = {f["path"] for f in after}
    for index, path in enumerate(before):
        if path not in kept:
            changes[f"files[{index}]"] = "delete"
    return changes
