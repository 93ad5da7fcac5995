"""The roles that configure hosts: what each gives to a host, what it installs there, and whom it concerns.

A role is one row here, one folder under playbooks/roles and one play over the group `role_<name>`. The order is that of
playbooks/site.yml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from supernode.design import collectives, cooling_agent, gpu_driver, infiniband, render, scheduler, watching
from supernode.design.rows import Host, Placed, RenderedFile

if TYPE_CHECKING:
    from supernode.design.model import Design

FIRST = "base_system"  # it installs the packages of all


def _everybody(_design: Design, _host: Host) -> bool:
    return True


def _routed(design: Design, host: Host) -> bool:
    # Ports that are the accelerators' own are none of the kernel's.
    return not design.environment.fabric.infiniband and host.su > 0 and not design.server_kind(host).own_ports


def _nothing(_design: Design, _host: Host) -> Mapping[str, Any]:
    return {}


def _no_packages(_design: Design) -> Sequence[str]:
    return ()


def _transaction(design: Design, host: Host) -> Mapping[str, Any]:
    """Return what the first role installs for all of a host, and whose files have to be there before."""
    mine = [role for role in of(design, host) if role.packages(design)]
    ahead = [role.name for role in mine if role.name != FIRST]
    return {f"{FIRST}_packages": list(_union(design, mine)), f"{FIRST}_ahead": ahead}


def _no_secrets(_design: Design, _host: Host) -> Sequence[Placed]:
    return ()


@dataclass(frozen=True)
class Role:
    """One role.

    Attributes:
        files: the files that it places on a host: the variable `<role>_files`.
        packages: what it needs, as apt arguments. The site's mirror holds all of it, and the first role installs it.
        applies: whom it concerns.
        variables: what else it is told, each key beginning with its name.
        placed: what no variable may carry, a secret above all: `bringup.placing` puts it on the host before the plays.
    """

    name: str
    files: Callable[[Design, Host], Sequence[RenderedFile]]
    packages: Callable[[Design], Sequence[str]] = _no_packages
    applies: Callable[[Design, Host], bool] = _everybody
    variables: Callable[[Design, Host], Mapping[str, Any]] = _nothing
    placed: Callable[[Design, Host], Sequence[Placed]] = _no_secrets


ROLES = (
    Role(FIRST, render.base_system, lambda design: design.environment.software.packages, variables=_transaction),
    Role("time_synced", render.time_synced),
    Role("rails", render.rails, applies=_routed),
    Role("infiniband", infiniband.adapter_files, infiniband.adapter_packages, infiniband.concerns),
    Role("subnet_manager", infiniband.manager_files, infiniband.manager_packages, infiniband.manages),
    Role(
        "gpu_driver",
        gpu_driver.files,
        gpu_driver.packages,
        applies=gpu_driver.applies,
        variables=gpu_driver.variables,
    ),
    Role("collectives", collectives.files, applies=collectives.applies),
    Role(
        scheduler.CONTROLLER,
        scheduler.controller_files,
        scheduler.controller_packages,
        applies=scheduler.is_controller,
        placed=scheduler.key,
    ),
    Role(
        scheduler.NODE,
        scheduler.node_files,
        scheduler.node_packages,
        applies=scheduler.is_node,
        placed=scheduler.key,
    ),
    Role(
        "node_exporter",
        watching.node_exporter,
        lambda design: ("prometheus-node-exporter",) if design.environment.watch else (),
        lambda design, _host: design.environment.watch is not None,
    ),
    Role(
        cooling_agent.ROLE,
        cooling_agent.files,
        cooling_agent.packages,
        cooling_agent.applies,
        placed=cooling_agent.placed,
    ),
    Role(
        "watch",
        watching.watch,
        lambda design: ("prometheus", "prometheus-alertmanager") if design.environment.watch else (),
        lambda design, host: watching.service_host(design) == host,
        placed=watching.placed,
    ),
)


def of(design: Design, host: Host) -> Iterator[Role]:
    """Yield the roles that concern a host, in the order of the play."""
    return (role for role in ROLES if role.applies(design, host))


def files(design: Design, host: Host) -> tuple[RenderedFile, ...]:
    """Return the files of all roles of a host."""
    return tuple(file for role in of(design, host) for file in role.files(design, host))


def placed(design: Design, host: Host) -> tuple[Placed, ...]:
    """Return what is put on a host over ssh, for all its roles."""
    return tuple(row for role in of(design, host) for row in role.placed(design, host))


def packages(design: Design) -> tuple[str, ...]:
    """Return what any host of an environment installs, each once, in the order of the roles."""
    return _union(design, ROLES)


def _union(design: Design, some: Iterable[Role]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for role in some for name in role.packages(design)))


def variables(design: Design, host: Host) -> dict[str, Any]:
    """Return the variables of every role of a host.

    Raises:
        KeyError: a rendered file names another role than its own, so nothing would place it.
    """
    found: dict[str, Any] = {}
    for role in of(design, host):
        placed = role.files(design, host)
        strangers = [file.path for file in placed if file.role != role.name]
        if strangers:
            raise KeyError(f"role {role.name} renders {', '.join(strangers)} for another")
        found[f"{role.name}_files"] = [
            {"path": file.path, "content": file.content, "mode": file.mode, "owner": file.owner} for file in placed
        ]
        found |= role.variables(design, host)
    return found
