"""What is wrong with a rank table, version 1.0: the rules of HCCL's guide for Atlas A2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

_LONGEST_ID = 64


def faults(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a rank table."""
    strange = list(_not_text(table))
    if strange:
        yield from (f"{place} is no text: every value is one" for place in strange)
        return
    if (table.get("version"), table.get("status")) != ("1.0", "completed"):
        yield "version is 1.0 and status completed, or nobody reads on"
    servers = table.get("server_list", [])
    if table.get("server_count") != str(len(servers)):
        yield f"server_count is {table.get('server_count')}, there are {len(servers)} servers"
    yield from _servers(servers)


def _not_text(value: Any, place: str = "table") -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _not_text(part, f"{place}.{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _not_text(part, f"{place}[{index}]")
    elif not isinstance(value, str):
        yield place


def _servers(servers: list[Mapping[str, Any]]) -> Iterator[str]:
    names = [server.get("server_id", "") for server in servers]
    yield from (f"server_id {name!r} is there twice" for name in sorted({n for n in names if names.count(n) > 1}))
    yield from (f"server_id {name!r} has not 1 to 64 characters" for name in names if not 0 < len(name) <= _LONGEST_ID)
    rank, addresses = 0, set[str]()
    for server in servers:
        devices = server.get("device", [])
        numbers = sorted(device.get("device_id", "") for device in devices)
        if numbers != sorted(map(str, range(len(devices)))):
            yield f"{server['server_id']}: device_id counts from 0 without a gap, not {', '.join(numbers)}"
        for device in devices:
            if device.get("rank_id") != str(rank):
                yield f"{server['server_id']}: rank_id {device.get('rank_id')} where {rank} follows"
            rank += 1
            yield from _address(server, device.get("device_ip", ""), addresses)


def _address(server: Mapping[str, Any], address: str, seen: set[str]) -> Iterator[str]:
    try:
        ip_address(address)
    except ValueError:
        yield f"{server['server_id']}: device_ip {address!r} is no address"
    if address in seen:
        yield f"device_ip {address} is there twice"
    seen.add(address)
