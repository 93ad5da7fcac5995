"""Who stands at the other end of each port, as it says itself by LLDP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from supernode.verify.facts.raw import Raw

COMMAND = ("sudo", "-n", "lldpcli", "-f", "json0", "show", "neighbors")


@dataclass(frozen=True)
class Neighbour:
    """What one neighbour announced; ports holds its port's name and description, since some send a MAC as the name."""

    device: str
    ports: tuple[str, ...]
    age: str = ""

    @property
    def text(self) -> str:
        """Write it as `device:port`."""
        return f"{self.device or '(nameless)'}:{self.ports[0] if self.ports else '?'}"


def parse(raw: Raw) -> dict[str, tuple[Neighbour, ...]]:
    """Read lldpcli's JSON, `json` and `json0` alike.

    The plain form unwraps what is there once and keys a list by its names; `json0` always lists. Ports that hear nobody
    are absent.

    Raises:
        NotSeenError: the daemon does not answer, or the tool is not there.
    """
    found: dict[str, list[Neighbour]] = {}
    for block in _listed(raw.json().get("lldp")):
        for local, entry in _interfaces(block.get("interface")):
            found.setdefault(local, []).append(_neighbour(entry))
    return {port: tuple(rows) for port, rows in found.items()}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _interfaces(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (local port, entry) from [{"name": p, ...}], [{p: {...}}] or {p: {...}}."""
    for row in _listed(value):
        if isinstance(row.get("name"), str):
            yield row["name"], row
        else:
            yield from row.items()


def _neighbour(entry: Mapping[str, Any]) -> Neighbour:
    chassis = _first(entry.get("chassis"))
    port = _first(entry.get("port"))
    names = [value for kind, value in (_id(row) for row in _listed(port.get("id"))) if kind in ("ifname", "local")]
    names += [_text(row) for row in _listed(port.get("descr"))]
    names += [value for kind, value in (_id(row) for row in _listed(port.get("id"))) if kind not in ("ifname", "local")]
    return Neighbour(
        _name(chassis).split(".")[0], tuple(dict.fromkeys(n for n in names if n)), str(entry.get("age", ""))
    )


def _first(value: Any) -> Mapping[str, Any]:
    rows = _listed(value)
    return rows[0] if rows else {}


def _name(chassis: Mapping[str, Any]) -> str:
    """Return the system name: a field in json0; in plain json the key under which the chassis' id stands."""
    if "name" in chassis:
        return _text(_first_any(chassis["name"]))
    keyed = [key for key, value in chassis.items() if isinstance(value, Mapping) and "id" in value]
    return keyed[0] if keyed else ""


def _first_any(value: Any) -> Any:
    rows = _listed(value)
    return rows[0] if rows else ""


def _id(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("type", "")), _text(row)


def _text(row: Any) -> str:
    return str(row.get("value", "")) if isinstance(row, Mapping) else str(row)
