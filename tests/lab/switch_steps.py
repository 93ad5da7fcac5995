"""Runs inside the switch's namespace: the provider's SwitchConfig through its whole life; prints JSON."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from supernode.provider.progress import EngineLog
from supernode.provider.resource import Scene
from supernode.provider.settings import Settings
from supernode.provider.switch_config import SwitchConfigResource

FOLDER = Path(sys.argv[1])
CONF = """frr defaults traditional
hostname leaf
interface swp1
 ip address 198.18.8.0/31
exit
router bgp 65001
 bgp router-id 198.18.4.1
 timers bgp 1 3
exit
"""
FILES = {
    "/etc/frr/frr.conf": CONF,
    "/etc/frr/daemons": "bgpd=yes\nvtysh_enable=yes\n",
    "/etc/sysctl.d/60-supernode.conf": "net.ipv4.ip_forward = 1\nnet.ipv4.fib_multipath_hash_policy = 1\n",
    "/etc/systemd/network/20-swp.network": "[Match]\nName=swp*\n[Link]\nMTUBytes=9000\n",
    "/etc/lldpd.d/supernode.conf": "configure system hostname leaf\n",
}
SCENE = Scene("urn:pulumi:lab::p::supernode:index:SwitchConfig::leaf", FOLDER, Settings(), EngineLog(None))
RESOURCE = SwitchConfigResource()


def inputs(**changed):
    files = [
        {"path": p, "content": c, "mode": "0640" if "frr" in p else "0644"} for p, c in {**FILES, **changed}.items()
    ]
    wanted = {
        "name": "leaf",
        "slot": "r01u01",
        "address": "127.0.0.1",
        "hostKey": (FOLDER / "hostkey.pub").read_text().strip(),
        "sshKey": "file:id",
        "files": files,
    }
    filled, failures = RESOURCE.check(wanted)
    assert failures == []
    return filled


def at(command):
    words = ["ssh", "-q", "-i", str(FOLDER / "id"), "-o", f"UserKnownHostsFile={FOLDER / 'known'}"]
    return subprocess.run([*words, "admin@127.0.0.1", command], capture_output=True, text=True, check=False).stdout


async def look(old, wanted):
    found = await RESOURCE.read(SCENE, "r01u01", old, wanted)
    return {
        "drift": found.outputs["drift"],
        "diff": dict(RESOURCE.diff(SCENE, found.outputs, wanted).changes),
        "old": found.outputs,
    }


async def life():
    (FOLDER / "known").write_text(f"127.0.0.1 {(FOLDER / 'hostkey.pub').read_text()}")
    seen = {}
    wanted = inputs()
    made = await RESOURCE.create(SCENE, wanted)
    seen["create"] = {k: made[k] for k in ("status", "phase", "reason")}
    seen["running"] = at("sudo vtysh -c 'show running-config'")
    seen["addresses"] = at(
        "ip -br address show swp1; cat /sys/class/net/swp1/mtu; sudo sysctl -n net.ipv4.fib_multipath_hash_policy"
    )
    seen["same"] = await look(made, wanted)
    at("sudo vtysh -c 'conf t' -c 'ip route 198.18.77.0/24 blackhole'")
    at("echo by-hand | sudo tee /etc/lldpd.d/supernode.conf")
    seen["drifted"] = await look(made, wanted)
    mended = await RESOURCE.update(SCENE, seen["drifted"]["old"], wanted)
    seen["mended"] = await look(mended, wanted)
    bad = inputs(**{"/etc/frr/frr.conf": CONF + "router bgp 65001\n garbage\n"})
    refused = await RESOURCE.update(SCENE, mended, bad)
    seen["refused"] = {k: refused[k] for k in ("status", "phase", "reason")}
    seen["after refusal"] = (await look(mended, wanted))["diff"]
    changed = inputs(**{"/etc/frr/frr.conf": CONF.replace("1 3", "2 6")})
    seen["change"] = (await RESOURCE.update(SCENE, mended, changed))["status"]
    seen["timers"] = at("sudo vtysh -c 'show running-config'")
    await RESOURCE.delete(SCENE, await RESOURCE.update(SCENE, mended, wanted))
    seen["deleted"] = at(
        "sudo vtysh -c 'show running-config'; ip -br address show swp1; sudo ls /etc/lldpd.d /var/lib/supernode"
    )
    for step in seen.values():
        if isinstance(step, dict):
            step.pop("old", None)
    print(json.dumps(seen))


asyncio.run(life())
