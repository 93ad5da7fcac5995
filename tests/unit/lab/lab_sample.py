"""Artefacts of a small site, as a cabling crew would get them: two servers, two rails, one spine."""

import csv
import io
import json
from pathlib import Path

SERVERS = (("r01u01", "gpu-001"), ("r01u09", "gpu-002"))
LEAVES = (("r03u01", "su01-leaf0"), ("r03u02", "su01-leaf1"))
SPINES = (("r03u03", "spine01"),)
COLUMNS = "cable,kind,a_device,a_slot,a_port,b_device,b_slot,b_port,rate_mbit_s,mtu,length_m"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFixed operator"


def table(columns: str, rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns.split(","))
    writer.writerows(rows)
    return text.getvalue()


def cabling(rate: float = 10) -> list[tuple]:
    rows = [
        ("rail", name, slot, f"rail{rail}", leaf, leaf_slot, f"swp{number + 1}", rate, 9000, 3)
        for number, (slot, name) in enumerate(SERVERS)
        for rail, (leaf_slot, leaf) in enumerate(LEAVES)
    ]
    rows += [
        ("uplink", leaf, slot, "swp60", SPINES[0][1], SPINES[0][0], f"swp{number + 1}", 50, 9000, 5)
        for number, (slot, leaf) in enumerate(LEAVES)
    ]
    return [(f"C{number:05d}", *row) for number, row in enumerate(rows, 1)]


def write(folder: Path, third: int = 0, key: str = KEY, rate: float = 10, **replaced: str) -> Path:
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
        "cabling.csv": table(COLUMNS, cabling(rate)),
        "bmc.csv": table(
            "slot,device,kind,bmc_address,management_address",
            [
                (slot, name, "lab-gpu8", f"{address(2, 11 + n)}/23", f"{address(0, 11 + n)}/23")
                for n, (slot, name) in enumerate(SERVERS)
            ],
        ),
        "switches.csv": table(
            "slot,device,kind,management_address",
            [(slot, name, "lab-leaf", f"{address(0, 20 + n)}/23") for n, (slot, name) in enumerate((*LEAVES, *SPINES))],
        ),
        "site.json": json.dumps(site),
        "authorized_keys": key + "\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(replaced.get(name.split(".")[0], text))
    return folder
