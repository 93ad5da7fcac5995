"""Rented hosts in the design: places without racks, and what of an allocation does not fit the cloud's network."""

from __future__ import annotations

from collections.abc import Sequence

from supernode.errors import Problem
from supernode.spec import Environment, HostBlock


def fits(env: Environment, blocks: Sequence[HostBlock]) -> list[Problem]:
    """Return what does not fit: addresses beyond the subnet's last but one, and hosts beyond the first stack.

    The provider keeps the first four addresses and the last; what is given begins higher. One network is of one stack.
    """
    if env.cloud is None or not blocks:
        return []
    problems = []
    network, needed = env.cloud.hosts, max(block.address + block.count for block in blocks)
    if needed > network.num_addresses - 1:
        where = ("cloud", "subnet" if env.cloud.subnet else "cidr")
        what = f"{network} has {network.num_addresses} addresses, of which the last is the provider's; {needed + 1} are"
        hint = f"a /{32 - needed.bit_length()} holds them"
        problems.append(Problem(where, f"{what} needed", hint))
    if any(block.stack != env.name for block in blocks):
        what = f"the cloud's hosts do not fit into stack {env.name}, which has their network"
        problems.append(Problem(("stacks", "limit"), what, "raise the limit, or make the rented pools smaller"))
    return problems
