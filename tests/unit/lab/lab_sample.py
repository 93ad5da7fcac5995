"""Artefacts of a small site, as a cabling crew would get them: two servers, two rails, one spine."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

SERVERS = (("r01u01", "gpu-001"), ("r01u09", "gpu-002"))
LEAVES = (("r03u01", "su01-leaf0"), ("r03u02", "su01-leaf1"))
SPINES = (("r03u03", "spine01"),)


@dataclass(frozen=True)
class Shape:
    """What stands where; every server has a rail to every leaf, every leaf an uplink to every spine."""

    servers: tuple = SERVERS
    leaves: tuple = LEAVES
    spines: tuple = SPINES
    first_switch: int = 20

    @classmethod
    def of(cls, servers: int, rails: int = 8, spines: int = 2) -> Shape:
        return cls(
            tuple((f"r{1 + n // 6:02d}u{1 + 8 * (n % 6):02d}", f"gpu-{n + 1:03d}") for n in range(servers)),
            tuple((f"r90u{n + 1:02d}", f"su01-leaf{n}") for n in range(rails)),
            tuple((f"r91u{n + 1:02d}", f"spine{n + 1:02d}") for n in range(spines)),
            first_switch=200,
        )


COLUMNS = "cable,kind,a_device,a_slot,a_port,b_device,b_slot,b_port,rate_mbit_s,mtu,length_m"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFixed operator"


def table(columns: str, rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns.split(","))
    writer.writerows(rows)
    return text.getvalue()


def cabling(rate: float = 10, shape: Shape = Shape()) -> list[tuple]:
    rows = [
        ("rail", name, slot, f"rail{rail}", leaf, leaf_slot, f"swp{number + 1}", rate, 9000, 3)
        for number, (slot, name) in enumerate(shape.servers)
        for rail, (leaf_slot, leaf) in enumerate(shape.leaves)
    ]
    first = max(60, len(shape.servers) + 1)
    rows += [
        ("uplink", leaf, slot, f"swp{first + number}", spine, spine_slot, f"swp{place + 1}", 5 * rate, 9000, 5)
        for place, (slot, leaf) in enumerate(shape.leaves)
        for number, (spine_slot, spine) in enumerate(shape.spines)
    ]
    return [(f"C{number:05d}", *row) for number, row in enumerate(rows, 1)]


def write(
    folder: Path,
    third: int = 0,
    key: str = KEY,
    rate: float = 10,
    shape: Shape = Shape(),
    **replaced: str,
) -> Path:
    """Write a folder of artefacts in 198.18.<third>.0/19; `replaced` gives whole texts, by name without its suffix."""

    def address(network: int, host: int) -> str:
        return f"198.18.{third + network}.{host}"

    site = {
        "name": "sample",
        "domain": "lab.internal",
        "networks": {
            "management": {"cidr": f"{address(0, 0)}/23", "gateway": address(0, 1)},
            "bmc": {"cidr": f"{address(2, 0)}/23", "gateway": address(2, 1)},
            "loopbacks": {"cidr": f"{address(4, 0)}/24", "gateway": None},
            "rails": {"cidr": f"{address(8, 0)}/21", "gateway": None},
        },
        "time_servers": [address(0, 1)],
        "serve": {"address": address(31, 253), "port": 8443},
        "bmc_username": "admin",
    }
    texts = {
        "cabling.csv": table(COLUMNS, cabling(rate, shape)),
        "bmc.csv": table(
            "slot,device,kind,bmc_address,management_address",
            [
                (slot, name, "lab-gpu8", f"{address(2, 11 + n)}/23", f"{address(0, 11 + n)}/23")
                for n, (slot, name) in enumerate(shape.servers)
            ],
        ),
        "switches.csv": table(
            "slot,device,kind,management_address",
            [
                (slot, name, "lab-leaf", f"{address(0, shape.first_switch + n)}/23")
                for n, (slot, name) in enumerate((*shape.leaves, *shape.spines))
            ],
        ),
        "cooling.csv": "unit,kind,address,port,racks,username,ca\n",
        "site.json": json.dumps(site),
        "authorized_keys": key + "\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(replaced.get(name.split(".")[0], text))
    return folder
