"""From a Design to each machine's medium: what it holds, what it is called, where it is served; builds nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from supernode import catalog
from supernode.boot import iso
from supernode.boot.image import ImageRef
from supernode.boot.iso import Arguments
from supernode.design import Design, seed
from supernode.errors import Problem, Refusal
from supernode.spec import Environment


@dataclass(frozen=True)
class Medium:
    """One machine's medium.

    Attributes:
        host: the designed name.
        digest: names the medium; see `iso.digest`.
        url: where `supernode serve` hands it out.
        seed: meta-data, user-data and network-config, without the token.
    """

    host: str
    digest: str
    url: str
    seed: Mapping[str, str]
    arguments: Arguments


@dataclass(frozen=True)
class SiteTrust:
    """What a site's media rest on.

    Attributes:
        ca: PEM of the server's CA.
        secret: makes their addresses ones that nobody can compute who does not have it.
    """

    ca: str
    secret: str = field(repr=False)


def base_url(environment: Environment) -> str:
    """Return where an environment's server is reached."""
    return f"https://{environment.site.serve.address}:{environment.site.serve.port}"


def plan(design: Design, image: ImageRef, base_digest: str, trust: SiteTrust, ssh_public_key: str) -> dict[str, Medium]:
    """Return every machine's medium, by host name; a quarantined slot without a known machine has none.

    Args:
        design: the Design.
        image: the golden image.
        base_digest: of what all media share.
        trust: the server's CA, and what makes addresses.
        ssh_public_key: the operator's.

    Raises:
        Refusal: hosts whose slot has no machine bound to it, all of them.
    """
    media: dict[str, Medium] = {}
    problems: list[Problem] = []
    for host in (host for host in design.hosts if not host.cloud):
        try:
            media[host.name] = medium(design, host.name, image, base_digest, trust, ssh_public_key)
        except Refusal as refusal:
            problems += refusal.problems if host.state != "quarantined" else ()
    if problems:
        raise Refusal(problems)
    return media


def medium(
    design: Design, name: str, image: ImageRef, base_digest: str, trust: SiteTrust, ssh_public_key: str
) -> Medium:
    """Return one machine's medium; arguments and errors as in `plan`."""
    texts = seed.build(design, name, image, trust.ca, ssh_public_key)
    base = base_url(design.environment)
    arguments = Arguments(
        image=f"{base}/images/{image.digest}.raw.zst",
        digest=image.digest,
        size=image.size,
        disk=_disk(design, name),
        report=f"{base}/report/{name}",
        port=iso.port_of(texts["network-config"]),
    )
    digest = iso.digest(base_digest, texts, trust.ca, arguments, trust.secret)
    return Medium(name, digest, f"{base}/boot/{name}/{digest}.iso", texts, arguments)


def _disk(design: Design, name: str) -> str:
    """Return the pattern of the disk to write: the pool's, else the machine kind's."""
    host = design.host(name)
    numbered = list(enumerate(design.environment.pools))
    index, pool = next((index, pool) for index, pool in numbered if pool.name == host.pool)
    wanted = pool.disk or catalog.server(host.kind).disk.by_id
    if not wanted:
        what = f"pool {pool.name!r} names no disk, and kind {host.kind!r} leaves it to the pool"
        hint = "write `disk: /dev/disk/by-id/<pattern that one disk of each machine matches>`"
        raise Refusal([Problem(("pools", index, "disk"), what, hint)])
    return wanted
