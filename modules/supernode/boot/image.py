"""The golden image: one raw disk for every machine of an environment, built once from exact versions."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from supernode.boot import cache as store
from supernode.boot import disk, grub, pins, rootfs, stamps, tool
from supernode.boot.cache import Progress
from supernode.boot.deploy import parts
from supernode.boot.disk import Partition
from supernode.boot.software import Software
from supernode.errors import CouldNotRun

_FORMAT = 2


@dataclass(frozen=True)
class ImageRef:
    """A built image.

    Attributes:
        digest: SHA-256 (hex) of the raw image: what a machine reports and what is compared.
        path: image.raw, sparse; image.raw.zst, packages.lock and image.json lie beside it.
        size: bytes of the raw image.
        root_partition: where the ext4 root lies in it, in bytes; the lab mounts it read-only.
        deploy_digest: SHA-256 (hex) over the parts of the deploy system, which lie in `deploy/` beside the image.
    """

    digest: str
    path: Path
    size: int
    root_partition: Partition
    deploy_digest: str = ""

    @property
    def compressed(self) -> Path:
        """The zstd file that machines fetch."""
        return self.path.with_name("image.raw.zst")

    @property
    def lock(self) -> Path:
        """The exact version of every package in it, as `package=version` lines."""
        return self.path.with_name("packages.lock")


def inputs_digest(software: Software) -> str:
    """Return the digest of all that decides the image; pure but for reading our own package data."""
    inputs = rootfs.inputs(software)
    inputs["format"] = str(_FORMAT).encode()
    inputs["deploy"] = repr((parts.TOOLS, parts.DRIVERS)).encode()
    inputs["grub"] = grub.disk_config(disk.Identifiers.of("").filesystem, disk.Identifiers.of("").root).encode()
    return store.digest_of(inputs)


def find(software: Software, cache: Path) -> ImageRef | None:
    """Return the image when it is built already."""
    folder = cache / "image" / inputs_digest(software)
    return _read(folder) if folder.is_dir() else None


def ensure(software: Software, cache: Path | None = None, progress: Progress = store.silent) -> ImageRef:
    """Return the image of a software selection, building it (1 to 2 minutes, as root) when the cache has none.

    A pinned version that the archive no longer carries is replaced by the one it has, and a progress line says so, for
    an archive forgets a version with each update; with SUPERNODE_PINS=exact that is an error instead.

    Raises:
        CouldNotRun: not root, a tool is missing, the archive cannot be reached, or pins do not hold and must.
    """
    digest = inputs_digest(software)
    folder = store.place(
        cache or store.default(), "image", digest, lambda work: _build(software, digest, work, progress)
    )
    return _read(folder)


def _build(software: Software, digest: str, work: Path, progress: Progress) -> None:
    root, raw = work / "root", work / "image.raw"
    root.mkdir()
    begin = time.time()
    versions = rootfs.build(software, root, progress)
    _hold_to_pins(software, versions, progress)
    progress("image: writing the disk")
    stamp = stamps.newest(root, begin)
    stamps.clamp(root, stamp)
    partition = disk.write(root, raw, disk.Identifiers.of(digest), stamp)
    progress("image: collecting the deploy system's parts")
    parts.write(root, work / "deploy", rootfs.EPOCH)
    shutil.rmtree(root)
    progress("image: compressing")
    tool.run(["zstd", "-q", "-T0", "-6", raw, "-o", f"{raw}.zst"])
    (work / "packages.lock").write_text(pins.format_lock(versions), encoding="utf-8")
    record = {
        "digest": store.file_digest(raw),
        "size": raw.stat().st_size,
        "root_partition": {"offset": partition.offset, "size": partition.size},
        "suite": software.suite,
        "kernel": software.kernel,
        "inputs": digest,
        "deploy": store.digest_of({path.name: path.read_bytes() for path in (work / "deploy").iterdir()}),
    }
    (work / "image.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    progress(f"image: {record['digest'][:12]}, {raw.stat().st_size >> 20} MiB")  # type: ignore[index]


def _hold_to_pins(software: Software, versions: dict[str, str], progress: Progress) -> None:
    moved = pins.drift(pins.parse(pins.text(software.suite)), versions)
    lines = [f"{name} {wanted} -> {got}" for name, (wanted, got) in moved.items()]
    if lines and os.environ.get("SUPERNODE_PINS") == "exact":
        hint = "take the new versions into the pins, or build from a mirror that keeps old ones"
        raise CouldNotRun("golden image", f"the archive has other versions than pinned: {', '.join(lines)}", hint)
    for line in lines:
        progress(f"image: no longer in the archive as pinned: {line}")


def _read(folder: Path) -> ImageRef:
    record = json.loads((folder / "image.json").read_text(encoding="utf-8"))
    where = record["root_partition"]
    return ImageRef(
        record["digest"],
        folder / "image.raw",
        record["size"],
        Partition(where["offset"], where["size"]),
        record["deploy"],
    )
