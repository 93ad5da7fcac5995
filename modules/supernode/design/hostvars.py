"""The one mapping from the Design to role variables.

Each role's `meta/argument_specs.yml` says what its variables are; tests/roles holds the two against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supernode.design import roles

if TYPE_CHECKING:
    from supernode.design import Design


def build(design: Design, host: str) -> dict[str, Any]:
    """Return the variables of every role that concerns one host.

    Raises:
        KeyError: a rendered file belongs to no role, so nothing would place it.
    """
    return roles.variables(design, design.host(host))
