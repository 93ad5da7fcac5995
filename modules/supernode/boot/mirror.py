"""The site's package mirror: what hosts install after they are up, and its dependencies, as a flat Debian repository.

Packages that the image has already are left out. Those of our own (`boot.own`) are built here and stand beside
Debian's, so that apt itself finds what they need. The versions are the pins', as for the image; hosts verify the site's
server by TLS with the site's own CA, and the hashes in `Packages` come from the archive's signed index by way of apt.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from supernode.boot import cache as store
from supernode.boot import own, pins, rootfs, tool
from supernode.boot import vendor as vendoring
from supernode.boot.cache import Progress
from supernode.boot.image import ImageRef
from supernode.boot.software import Software
from supernode.boot.vendor import Vendor

_FORMAT = 1


@dataclass(frozen=True)
class MirrorRef:
    """A built mirror.

    Attributes:
        path: the folder: *.deb, Packages, Packages.gz, Release.
        packages: name -> version of all in it.
    """

    path: Path
    packages: dict[str, str]


def find(
    software: Software, image: ImageRef, cache: Path | None = None, vendors: Sequence[Vendor] = ()
) -> MirrorRef | None:
    """Return the mirror when it is built already."""
    folder = (cache or store.default()) / "mirror" / _digest(software, image, vendors)
    return _read(folder) if folder.is_dir() else None


def ensure(
    software: Software,
    image: ImageRef,
    cache: Path | None = None,
    progress: Progress = store.silent,
    vendors: Sequence[Vendor] = (),
) -> MirrorRef:
    """Return the mirror for a software selection on an image, downloading it (some 20 s) when the cache has none.

    Raises:
        CouldNotRun: a package does not exist in the suite, the archive or a vendor cannot be reached, a vendor's
            repository is not signed with the key that the environment names, or a tool is missing.
    """

    def make(work: Path) -> None:
        progress(f"mirror: downloading {', '.join(software.packages)} and what they need")
        _build(software, image, work, vendors)
        progress(f"mirror: {len(list(work.glob('*.deb')))} packages")

    return _read(store.place(cache or store.default(), "mirror", _digest(software, image, vendors), make))


def _digest(software: Software, image: ImageRef, vendors: Sequence[Vendor]) -> str:
    return store.digest_of(
        {
            "format": str(_FORMAT).encode(),
            "suite": software.suite.encode(),
            "packages": "\n".join(sorted(software.packages)).encode(),
            "pins": pins.text(software.suite).encode(),
            "image": image.lock.read_bytes(),
            **{f"vendor {number}": vendor.identity().encode() for number, vendor in enumerate(vendors)},
        }
    )


def _build(software: Software, image: ImageRef, work: Path, vendors: Sequence[Vendor]) -> None:
    apt = work / "apt"
    ours = own.build(software.packages, work)
    (work / "Packages").write_bytes(_index(ours))
    options = _private_apt(software, image, apt, work if ours else None)
    vendoring.admit(vendors, apt / "etc")
    where = ", ".join(("the Debian archive", *(vendor.url for vendor in vendors)))
    tool.run(
        ["apt-get", *options, "-q", "-o", "APT::Update::Error-Mode=any", "update"],
        hint=f"can this machine reach {where}?",
    )
    hint = f"is every package of software.packages one of {software.suite}?"
    tool.run(
        ["apt-get", *options, "-q", "-y", "--no-install-recommends", "--download-only", "install", *software.packages],
        hint=hint,
    )
    for deb in sorted((apt / "archives").glob("*.deb")):
        name, version, rest = deb.name.split("_", 2)
        # An epoch's colon comes encoded, and its percent sign would be encoded once more on the way to a host.
        deb.replace(work / f"{name}_{version.rpartition('%3a')[2]}_{rest}")
    shutil.rmtree(apt)
    index = _index(sorted(work.glob("*.deb")))
    (work / "Packages").write_bytes(index)
    (work / "Packages.gz").write_bytes(gzip.compress(index, mtime=rootfs.EPOCH))
    (work / "Release").write_text(_release(work, software.suite), encoding="utf-8")


def _index(debs: Sequence[Path]) -> bytes:
    return "\n".join(_stanza(deb) for deb in debs).encode()


def _private_apt(software: Software, image: ImageRef, folder: Path, beside: Path | None) -> list[str]:
    """Return options that make apt-get act for a machine of this image, and leave the operator's own apt alone.

    Args:
        software: what is wanted.
        image: what the machine has already.
        folder: where apt keeps what it knows.
        beside: a folder with packages and their index that apt takes like the archive's; it is one of ours.
    """
    for name in ("archives/partial", "lists/partial", "etc", "parts"):
        (folder / name).mkdir(parents=True)
    known = image.path.parent
    shutil.copyfile(known / "dpkg-status", folder / "status")
    sources = (known / "sources.list").read_text(encoding="utf-8")
    sources += f"deb [trusted=yes] copy:{beside} ./\n" if beside else ""
    (folder / "etc" / "sources.list").write_text(sources, encoding="utf-8")
    wanted = pins.preferences(pins.parse(pins.text(software.suite)))
    (folder / "etc" / "preferences").write_text(wanted, encoding="utf-8")
    values = {
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::State::extended_states": folder / "extended_states",
        "Dir::Cache": folder,
        "Dir::Cache::archives": folder / "archives",
        "Dir::Etc": folder / "etc",
        "Dir::Etc::sourcelist": folder / "etc" / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::Etc::preferences": folder / "etc" / "preferences",
        "Dir::Etc::preferencesparts": folder / "parts",
        "Dir::Etc::trusted": "/usr/share/keyrings/debian-archive-keyring.gpg",
        "Dir::Etc::trustedparts": folder / "parts",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Sandbox::User": "root",
        "APT::Keep-Downloaded-Packages": "true",
        "Binary::apt-get::APT::Keep-Downloaded-Packages": "true",
        "Acquire::Languages": "none",
    }
    return [part for name, value in values.items() for part in ("-o", f"{name}={value}")]


def _stanza(deb: Path) -> str:
    control = tool.run(["dpkg-deb", "-f", deb]).decode().rstrip("\n")
    data = deb.read_bytes()
    sums = f"MD5sum: {hashlib.md5(data).hexdigest()}\nSHA256: {hashlib.sha256(data).hexdigest()}"  # noqa: S324 - the format's field
    return f"{control}\nFilename: ./{deb.name}\nSize: {len(data)}\n{sums}\n"


def _release(folder: Path, suite: str) -> str:
    lines = ["Origin: supernode", f"Suite: {suite}", "Date: Thu, 01 Jan 2026 00:00:00 UTC", "SHA256:"]
    for name in ("Packages", "Packages.gz"):
        data = (folder / name).read_bytes()
        lines.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}")
    return "\n".join(lines) + "\n"


def _read(folder: Path) -> MirrorRef:
    packages: dict[str, str] = {}
    for stanza in (folder / "Packages").read_text(encoding="utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
        if "Package" in fields:
            packages[fields["Package"]] = fields["Version"]
    return MirrorRef(folder, packages)
