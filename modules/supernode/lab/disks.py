"""Disks: an overlay on a read-only system. What a machine wrote is in the upper half; erasing it empties the disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from supernode import workspace
from supernode.errors import CouldNotRun

ROOT_TYPES = ("4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", "0FC63DAF-8483-4772-8E79-3D69D8477DE4")  # x86-64 root, Linux data
SEED_FOLDER = "var/lib/cloud/seed/nocloud"
SECTOR = 512


@dataclass(frozen=True)
class Partition:
    """Where a partition lies in an image, in bytes."""

    offset: int
    size: int


def root_partition(table: Mapping[str, object]) -> Partition:
    """Find the root partition in what `sfdisk -J` prints: by its type, else the largest.

    Raises:
        ValueError: the table has no partition.
    """
    body = table["partitiontable"]
    if not isinstance(body, dict) or not body.get("partitions"):
        raise ValueError("no partition in the table")
    sector = int(body.get("sectorsize", SECTOR))
    parts = body["partitions"]
    typed = [part for wanted in ROOT_TYPES for part in parts if str(part.get("type", "")).upper() == wanted]
    chosen = typed[0] if typed else max(parts, key=lambda part: int(part["size"]))
    return Partition(int(chosen["start"]) * sector, int(chosen["size"]) * sector)


def read_table(image: Path) -> Partition:
    """Read an image's partition table.

    Raises:
        CouldNotRun: it has none that sfdisk understands.
    """
    done = subprocess.run(["sfdisk", "--json", str(image)], capture_output=True, text=True, check=False)
    try:
        if done.returncode != 0:
            raise ValueError(done.stderr.strip())
        return root_partition(json.loads(done.stdout))
    except (ValueError, KeyError) as error:
        raise CouldNotRun(str(image), f"is no disk image with a partition table ({error})") from error


def mount(*arguments: str) -> None:
    """Run mount.

    Raises:
        CouldNotRun: with what mount said.
    """
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CouldNotRun(arguments[-1], f"cannot be mounted: {' '.join(done.stderr.split())}")


def unmount(target: Path) -> None:
    """Unmount what is mounted at a folder, if anything; what is still in use goes when its last user does."""
    for _ in range(20):
        if not target.is_mount():
            return
        if subprocess.run(["umount", str(target)], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.01)
    subprocess.run(["umount", "--lazy", str(target)], capture_output=True, check=False)


class Images:
    """Golden images whose root partition is mounted read-only, each once however many disks stand on it.

    Args:
        folder: takes the mount points; they vanish with the lab's mount namespace.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = threading.Lock()  # machines deploy side by side, each in a thread

    def lower(self, image: Path) -> Path:
        """Return the folder with the root file system of an image, mounted on the first call."""
        target = self._folder / image.name
        with self._one_at_a_time:
            if not target.is_mount():
                target.mkdir(parents=True, exist_ok=True)
                part = read_table(image)
                options = f"ro,noload,loop,offset={part.offset},sizelimit={part.size}"
                mount("-t", "ext4", "-o", options, str(image), str(target))
        return target


@dataclass(frozen=True)
class File:
    """A file to write, whole."""

    text: str
    mode: int = 0o644

    def write(self, path: Path) -> None:
        """Write it, with the folders above it; never with more rights than its mode, not even for a moment."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self.mode)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(self.text)
        path.chmod(self.mode)


@dataclass(frozen=True)
class Disk:
    """The disk of one machine or switch.

    Attributes:
        folder: holds upper/, work/ and source (the path of what it stands on).
    """

    folder: Path

    @property
    def upper(self) -> Path:
        """All that was written since the disk was."""
        return self.folder / "upper"

    @property
    def _source(self) -> Path:
        return self.folder / "source"

    def written(self) -> bool:
        """Tell whether the disk holds a system."""
        return self._source.is_file()

    def source(self) -> Path:
        """Return the image or folder that the disk was written from."""
        return Path(self._source.read_text(encoding="utf-8"))

    def erase(self) -> None:
        """Empty the disk."""
        self._source.unlink(missing_ok=True)  # first: a kill in between leaves an empty disk, never half a system
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, source: Path, lower: Path, target: Path, files: Mapping[str, File]) -> None:
        """Write a system onto the disk.

        Args:
            source: what `source` returns later: a golden image or a folder.
            lower: the folder that holds the source's files.
            target: where the disk is mounted for the while.
            files: what to put upon it, by path from the root.
        """
        self.erase()
        (self.folder / "work").mkdir(parents=True)
        self.upper.mkdir()
        if files:  # through the mount, so that a folder that is there keeps its owner and mode
            self.attach(lower, target)
            try:
                for name, file in files.items():
                    file.write(target / name)
            finally:
                unmount(target)
        workspace.write_atomically(self._source, str(source))

    def attach(self, lower: Path, target: Path) -> None:
        """Mount the disk at a folder."""
        unmount(target)
        target.mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={lower},upperdir={self.upper},workdir={self.folder / 'work'}"
        mount("-t", "overlay", "-o", options, "overlay", str(target))
