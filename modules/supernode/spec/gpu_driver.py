"""The accelerators' driver: its version, its packages by exact version, and the vendor's repository they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec.parts import Document, Plain

if TYPE_CHECKING:
    from supernode.spec.environment import Environment


class Source(Document):
    """A vendor's Debian repository; nothing but the packages that are named is taken from it.

    `key` is the file, relative to the environment's folder, with the public key that signs it (armoured). `suite` ends
    with "/" where the repository is flat; any other has components.
    """

    url: Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9._~/-]*)?$")]
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]+$")]
    suite: Annotated[str, Field(pattern=r"^[A-Za-z0-9./_-]+$")] = "./"
    components: tuple[Plain, ...] = ()


class GpuDriver(Document):
    """What hosts with accelerators of NVIDIA's run; every package of the vendor's by its exact version (name=version).

    `version` is what the driver says of itself; `persistence` is the unit that keeps it initialised.
    """

    version: Annotated[str, Field(pattern=r"^\d+(\.\d+)+$")]
    packages: Annotated[tuple[Plain, ...], Field(min_length=1)]
    source: Source
    persistence: Plain = "nvidia-persistenced.service"


def consistency(env: Environment) -> Iterator[Problem]:
    """Check that the pins are exact and of this driver, and that some pool is there for it."""
    if env.gpu_driver is None:
        return
    place: Path = ("gpu_driver",)
    yield from _pins(env.gpu_driver, place)
    flat = env.gpu_driver.source.suite.endswith("/")
    if flat == bool(env.gpu_driver.source.components):
        what = "a flat repository has no components" if flat else "a suite that does not end with / has components"
        yield Problem((*place, "source", "suite"), what, "suite: ./ alone, or suite: bookworm, components: [main]")
    known = all(pool.kind in catalog.server_kinds() for pool in env.pools)
    if known and not any(catalog.server(pool.kind).gpu_vendor == "nvidia" for pool in env.pools):
        what = "no pool has accelerators that this driver is for (NVIDIA's)"
        yield Problem(place, what, "leave the section out; `supernode kinds` lists what a kind has")


def _pins(driver: GpuDriver, place: Path) -> Iterator[Problem]:
    for index, package in enumerate(driver.packages):
        name, _, version = package.partition("=")
        if not version:
            what = f"package {name} has no version: a driver's packages are pinned exactly"
            yield Problem((*place, "packages", index), what, f"write {name}=<version>, as the vendor's index has it")
    versions = [package.partition("=")[2] for package in driver.packages]
    if all(versions) and not any(driver.version in version for version in versions):
        what = f"no package is of driver {driver.version}: {', '.join(driver.packages)}"
        yield Problem((*place, "version"), what, "the version and the packages' belong together")
