"""What a host or a switch is asked, and how its answers are read. Asking is `look`'s; every command here only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from supernode import catalog
from supernode.bringup.survey.observed import DeviceSeen, Hop, HostSeen, SwitchSeen
from supernode.clients.exchange import printable
from supernode.verify.facts import clock, fib, lldp, ports
from supernode.verify.facts.raw import NotSeenError, Raw

T = TypeVar("T")
Device = TypeVar("Device", bound=DeviceSeen)
Answers = Mapping[str, Raw]
_DMI = "/sys/class/dmi/id"
_APT = "/var/log/apt"
_FILES = {
    "vendor": f"{_DMI}/sys_vendor",
    "model": f"{_DMI}/product_name",
}
_BOTH: Mapping[str, tuple[str, ...]] = {
    "hostname": ("hostname",),
    "addresses": ports.COMMAND,
    "routes": fib.COMMAND,
    "lldp": lldp.COMMAND,
    **{name: ("cat", path) for name, path in _FILES.items()},
}
SWITCH: Mapping[str, tuple[str, ...]] = {
    **_BOTH,
    "serial": ("sudo", "-n", "cat", f"{_DMI}/product_serial"),
    "frr": ("sudo", "-n", "vtysh", "-c", "show running-config"),
}
NEIGHBOURS: Mapping[str, tuple[str, ...]] = {"addresses": ports.COMMAND, "lldp": lldp.COMMAND}


def host_commands() -> dict[str, tuple[str, ...]]:
    """Return what a host is asked first."""
    return {
        **_BOTH,
        "fqdn": ("hostname", "-f"),
        "serial": ("sudo", "-n", "cat", f"{_DMI}/product_serial"),
        "uuid": ("sudo", "-n", "cat", f"{_DMI}/product_uuid"),
        "nics": ("ls", "-1", *(f"/sys/bus/pci/devices/{pci}/net" for pci in _addresses())),
        "clock": ("chronyc", "-n", "-c", "tracking"),
        "chrony": ("cat", "/etc/chrony/chrony.conf"),
        "resolvers": ("cat", "/etc/resolv.conf"),
        "resolved": ("cat", "/run/systemd/resolve/resolv.conf"),
        "mirror": ("cat", "/etc/apt/sources.list.d/supernode.list"),
        "release": ("cat", "/etc/os-release"),
        "installed": ("dpkg-query", "-W", "-f", r"${Package}\t${Version}\n"),
        "manual": ("apt-mark", "showmanual"),
        "history": ("cat", f"{_APT}/history.log"),
        "histories": ("ls", "-1", _APT),
        "image": ("cat", "/etc/supernode/image"),
    }


def speed_commands(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return what tells which ports are hardware, and what speed those report: a virtual port's driver invents one."""
    return {
        "devices": ("ls", "-1d", *(f"/sys/class/net/{name}/device" for name in names)),
        "speeds": ("grep", "-H", "-s", ".", *(f"/sys/class/net/{name}/speed" for name in names)),
    }


def port_names(addresses: Raw) -> tuple[str, ...]:
    """Return the names of all ports that a device showed, but for its loopback; () when it showed none."""
    try:
        return tuple(name for name in ports.parse(addresses, Raw(1, "")) if name != "lo")
    except (NotSeenError, KeyError, ValueError, TypeError):
        return ()


def again(seen: Device, raw: Answers) -> Device:
    """Return a device with its ports and neighbours as they are now; what cannot be read stays as it was."""
    reader = _Reader(raw)
    speeds = {n: f"{p.speed or -1:g}" for n, p in (seen.ports or {}).items() if p.hardware}
    found = reader.seen("ports", lambda: ports.parse(raw["addresses"], Raw(0, json.dumps(speeds))))
    heard = reader.seen("neighbours", lambda: lldp.parse(raw["lldp"]))
    return replace(
        seen, ports=seen.ports if found is None else found, neighbours=seen.neighbours if heard is None else heard
    )


def _addresses() -> list[str]:
    """Return the PCI addresses at which any known kind has a port of the fabric."""
    kinds = (catalog.server(name) for name in catalog.server_kinds())
    return sorted({nic.pci for kind in kinds if kind.on_fabric for nic in kind.nics if nic.pci})


def host(address: str, key: str, raw: Answers) -> HostSeen:
    """Read a host's answers."""
    reader = _Reader(raw)
    return HostSeen(
        **reader.both(address, key),
        fqdn=reader.line("fqdn"),
        serial=reader.line("serial"),
        uuid=reader.line("uuid").lower(),
        nics=nics(reader.text("nics", partial=True)),
        clock=reader.seen("clock", lambda: clock.parse(raw["clock"])),
        time_servers=_after(reader.text("chrony"), "server", "pool"),
        name_servers=_resolvers(reader.text("resolvers"), reader.text("resolved")),
        mirror=_mirror(reader.text("mirror")),
        suite=_release(reader.text("release")),
        kernels=_kernels(reader.text("manual")),
        packages=_packages(raw),
        image=next(iter(reader.text("image").split()), ""),
        unseen=reader.unseen,
    )


def switch(address: str, key: str, raw: Answers) -> SwitchSeen:
    """Read a switch's answers."""
    reader = _Reader(raw)
    both, config = reader.both(address, key), reader.text("frr")
    found = re.search(r"^router bgp (\d+)", config, re.MULTILINE)
    router = re.search(r"^ bgp router-id (\S+)", config, re.MULTILINE)
    return SwitchSeen(
        **both,
        serial=reader.line("serial"),
        asn=int(found[1]) if found else 0,
        loopback=router[1] if router else "",
        announced=tuple(re.findall(r"^  network (\S+)", config, re.MULTILINE)),
        ranges=tuple(_ranges(config)),
        unseen=reader.unseen,
    )


class _Reader:
    """Reads answers one by one, and notes what could not be."""

    def __init__(self, raw: Answers) -> None:
        self._raw = raw
        self.unseen: dict[str, str] = {}

    def seen(self, fact: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (NotSeenError, KeyError, ValueError, TypeError) as error:
            self.unseen[fact] = str(error)
            return None

    def text(self, key: str, *, partial: bool = False) -> str:
        """Return what a command printed, "" when it failed; with `partial`, whatever it printed before it did."""
        row = self._raw.get(key)
        return row.out if row is not None and (row.rc == 0 or partial) else ""

    def line(self, key: str) -> str:
        return printable(self.text(key).strip())

    def both(self, address: str, key: str) -> dict[str, Any]:
        raw = self._raw
        return {
            "address": address,
            "host_key": key,
            "hostname": self.line("hostname").split(".")[0],
            "ports": self.seen("ports", lambda: ports.parse(raw["addresses"], _hardware(raw))),
            "neighbours": self.seen("neighbours", lambda: lldp.parse(raw["lldp"])),
            "routes": self.seen("routes", lambda: fib.parse(raw["routes"])),
            "hops": tuple(self.seen("hops", lambda: list(_hops(raw["routes"].json()))) or ()),
            "vendor": self.line("vendor"),
            "model": self.line("model"),
        }


def _hardware(raw: Answers) -> Raw:
    """Bring both answers about speeds into the shape that `verify.facts.ports` reads."""
    device = raw.get("devices", Raw(0, "")).out
    real = {match[1] for match in re.finditer(r"^/sys/class/net/(.+)/device$", device, re.MULTILINE)}
    speeds = raw.get("speeds", Raw(0, "")).out
    rows = {m[1]: m[2] for m in re.finditer(r"^/sys/class/net/(.+)/speed:(.*)$", speeds, re.MULTILINE)}
    return Raw(0, json.dumps({name: rows.get(name, "") for name in sorted(real)}))


def _hops(rows: Any) -> Iterator[Hop]:
    for row in rows:
        for hop in row.get("nexthops") or [row]:
            yield Hop(str(row.get("dst", "")), str(hop.get("gateway", "")), str(hop.get("dev", "")))


def nics(listed: str) -> dict[str, str]:
    """Read `ls` of the folders that name the ports of PCI addresses; one folder alone is listed without its name."""
    found: dict[str, str] = {}
    pci = ""
    for line in listed.splitlines():
        named = re.fullmatch(r"/sys/bus/pci/devices/([^/]+)/net:", line.strip())
        if named:
            pci = named[1]
        elif line.strip() and pci:
            found.setdefault(pci, line.strip())
    return found


def _after(text: str, *words: str) -> tuple[str, ...]:
    """Return the second word of each line that begins with one of the words."""
    rows = (line.split() for line in text.splitlines())
    return tuple(row[1] for row in rows if len(row) > 1 and row[0] in words)


def _resolvers(own: str, behind: str) -> tuple[str, ...]:
    """Return the name servers; behind a stub on the host itself are those that it asks."""
    listed = _after(own, "nameserver")
    return _after(behind, "nameserver") if any(row.startswith("127.") for row in listed) else listed


def _mirror(text: str) -> str:
    found = re.search(r"https://([^/\s:]+:\d+)/mirror", text)
    return found[1] if found else ""


def _release(text: str) -> str:
    found = re.search(r'^VERSION_CODENAME="?([A-Za-z0-9.-]+)"?$', text, re.MULTILINE)
    return found[1] if found else ""


def _kernels(manual: str) -> tuple[str, ...]:
    """Return the kernel packages that were asked for, not those that they brought: a version is in those names."""
    found = re.findall(r"^(linux-image-\S+)$", manual, re.MULTILINE)
    return tuple(name for name in found if not re.search(r"-\d+\.\d+", name))


def _packages(raw: Answers) -> tuple[str, ...] | None:
    """Return the packages that somebody asked for by name since the image was made, and that are still there.

    An image leaves no history of its own; in a history, what came along is marked "automatic". None: not seen, also
    where the beginning of the history was rotated away.
    """
    history, others, manual = (raw.get(key) for key in ("history", "histories", "manual"))
    if history is None or others is None or manual is None or history.rc or others.rc or manual.rc:
        return None
    if any(name.startswith("history.log.") for name in others.out.split()):
        return None
    asked = []
    for line in re.findall(r"^Install: (.*)$", history.out, re.MULTILINE):
        asked += [n for n, detail in re.findall(r"([^\s,]+?)(?::\w+)? \(([^)]*)\)", line) if "automatic" not in detail]
    kept = set(manual.out.split())
    return tuple(sorted({name for name in asked if name in kept}))


def _ranges(config: str) -> Iterator[tuple[str, int, int]]:
    """Yield what prefix lists let pass within bounds of length."""
    rule = r"^ip prefix-list \S+ seq \d+ permit (\S+) ge (\d+) le (\d+)"
    for match in re.finditer(rule, config, re.MULTILINE):
        yield match[1], int(match[2]), int(match[3])
