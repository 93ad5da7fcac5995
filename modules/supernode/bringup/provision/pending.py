"""What a killed engine had begun and never wrote the end of: done again by the next `up`, then struck off the state.

The engine keeps such operations for ever, with a warning in each run, until a person answers for them one by one.
Nobody needs to: create adopts what exists, and what was being changed differs from the state and is changed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from pulumi.automation import Deployment

from supernode.bringup.provision.session import Session, unlocked

Export = Mapping[str, Any]


def open_ends(export: Export, designed: Collection[str]) -> tuple[list[Any], list[str]]:
    """Return the operations that stay open, and the names of those that are settled. Pure.

    What was being created, is designed and is not in the state was left out of this `up`: it stays open.
    """
    deployment = export.get("deployment") or {}
    held = {row["urn"] for row in deployment.get("resources") or ()}
    stay, settled = [], []
    for row in deployment.get("pending_operations") or ():
        urn = str(row["resource"]["urn"])
        name = urn.rpartition("::")[2]
        if row["type"] == "creating" and urn not in held and name in designed:
            stay.append(row)
        else:
            settled.append(name)
    return stay, settled


def settle(
    session: Session, exports: Mapping[str, Export], designed: Collection[str], tell: Callable[[str], None]
) -> None:
    """Strike the settled operations off the state of each stack, after an `up` of all of them that did not fail.

    Args:
        session: the environment's.
        exports: what `pulumi stack export` says of each stack.
        designed: the names of machines and switches.
        tell: told which were settled.
    """
    for stack, export in exports.items():
        stay, settled = open_ends(export, designed)
        if not settled:
            continue
        deployment = json.loads(json.dumps(export["deployment"]))
        deployment["pending_operations"] = stay
        with session.explained(stack):
            made = Deployment(version=export["version"], deployment=deployment)
            unlocked(session, stack, partial(session.workspace().import_stack, stack, made), tell)
        tell(f"stack {stack}: what a killed run had begun is done and struck off: {', '.join(sorted(set(settled)))}")
