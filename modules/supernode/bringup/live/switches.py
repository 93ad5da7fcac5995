"""Look at switches: a login under the pinned key and one command that only reads."""

from __future__ import annotations

from dataclasses import replace

from supernode.bringup import login
from supernode.bringup.live.seen import SwitchSeen
from supernode.clients import ssh
from supernode.design import Design, Switch
from supernode.errors import SupernodeError
from supernode.records import Outputs

LIMIT_S = 6.0


async def look(design: Design, switch: Switch, outputs: Outputs | None, key: str, port: int = 22) -> SwitchSeen:
    """Look at one switch; nothing that goes wrong is raised.

    Args:
        design: the Design.
        switch: which.
        outputs: of the last provisioning; None before the first.
        key: the operator's private key; "" when there is none yet.
        port: where its SSH server listens.
    """
    seen = SwitchSeen(switch.name, str(switch.management.ip))
    if not key:
        return replace(
            seen, error="the operator has no key yet", hint=f"`supernode design {design.name} --out` makes it"
        )
    try:
        found = login.target(design, outputs, switch.name)
        opened = ssh.connect(found.address, found.user, key, found.host_keys, port=port, limit_s=LIMIT_S, look=True)
        async with opened as device:
            said = await device.run(("hostname",), limit_s=LIMIT_S, check=False)
    except SupernodeError as error:
        return replace(seen, error=getattr(error, "what", str(error)), hint=getattr(error, "hint", None) or "")
    return replace(seen, hostname=said.stdout.strip())
