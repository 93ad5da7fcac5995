"""Vendors' repositories beside the archive: what the site's mirror takes from them, and on whose word.

Of a vendor's repository nothing but the named packages is taken, each at its exact version: it can replace none of the
archive's. Its signature is checked with the key that the environment names, and no other key vouches for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from supernode.design import Design
from supernode.errors import CouldNotRun


@dataclass(frozen=True)
class Vendor:
    """One repository.

    Attributes:
        place: the path of its section in environment.yml.
        key: its signing key, armoured; empty where the file that the environment names is not there.
        packages: name=version.
    """

    place: str
    url: str
    key_file: Path
    key: str
    suite: str
    components: tuple[str, ...]
    packages: tuple[str, ...]

    def identity(self) -> str:
        """Return what decides which packages these are; the address does not, the key does."""
        return "\n".join((self.key, self.suite, *self.components, *sorted(self.packages)))


def of(design: Design, folder: Path) -> tuple[Vendor, ...]:
    """Return the vendors of an environment.

    Args:
        design: says which.
        folder: the environment's, which the keys' paths are relative to.
    """
    driver = design.environment.gpu_driver
    if driver is None:
        return ()
    path = folder / driver.source.key
    key = path.read_text(encoding="ascii", errors="replace") if path.is_file() else ""
    source = driver.source
    found = Vendor("gpu_driver.source", source.url, path, key, source.suite, source.components, driver.packages)
    return (found,)


def without_key(vendors: Sequence[Vendor]) -> CouldNotRun | None:
    """Return what stands in the way where a vendor's key is not there."""
    hint = "put the vendor's public key there (armoured); in a lab it comes with the delivery: supernode lab start"
    lacking = (vendor for vendor in vendors if not vendor.key)
    return next((CouldNotRun(str(v.key_file), f"the key of {v.place} is not there", hint) for v in lacking), None)


def admit(vendors: Sequence[Vendor], etc: Path) -> None:
    """Add the vendors to a private apt's sources and preferences.

    Raises:
        CouldNotRun: a key is not there.
    """
    if lacking := without_key(vendors):
        raise lacking
    for number, vendor in enumerate(vendors):
        key = etc / f"vendor-{number}.asc"
        key.write_text(vendor.key, encoding="ascii")
        words = ("deb", f"[signed-by={key}]", vendor.url, vendor.suite, *vendor.components)
        _append(etc / "sources.list", " ".join(words))
        _append(etc / "preferences", _preferences(vendor))


def _preferences(vendor: Vendor) -> str:
    host = urlsplit(vendor.url).hostname
    rows = [("*", f'origin "{host}"', -1)]
    rows += [(name, f"version {version}", 1001) for name, _, version in (p.partition("=") for p in vendor.packages)]
    return "\n".join(f"\nPackage: {name}\nPin: {pin}\nPin-Priority: {priority}" for name, pin, priority in rows)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(f"{text}\n")
