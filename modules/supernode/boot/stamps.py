"""Times in a file system image, made to follow from its contents: the same packages give the same bytes on any day.

mke2fs copies access and change times of the folder that it is given, and those are the time of the build.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np

_SUPERBLOCK = 1024
_TIMES = (0x08, 0x0C, 0x90)  # access, change, creation: what a build sets; the time of modification is the files' own
_FRACTIONS = (0x84, 0x88, 0x8C, 0x94)  # nanoseconds of change, modification, access, creation
_INODE_BYTES = 256


def newest(folder: Path, before: float) -> int:
    """Return the newest modification time below a folder that is older than `before`: that of its newest package."""
    stamps = (path.lstat().st_mtime for path in folder.rglob("*"))
    return int(max((stamp for stamp in stamps if stamp < before), default=0))


def clamp(folder: Path, latest: int) -> None:
    """Set what was modified after `latest`, which is what the build itself wrote, to `latest`.

    Older times stay: compiled Python names the time of its source and is void when that changes.
    """
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.lstat().st_mtime > latest:
            os.utime(path, (latest, latest), follow_symlinks=False)
    os.utime(folder, (latest, latest))


def settle(image: Path, stamp: int) -> None:
    """Set the build's times of every used inode of an ext4 image without metadata checksums.

    Raises:
        ValueError: no ext4 image, inodes of another size than 256, or checksums that this would break.
    """
    with image.open("r+b") as stream:
        stream.seek(_SUPERBLOCK)
        block = stream.read(1024)
        magic, inode_size = struct.unpack_from("<H", block, 0x38)[0], struct.unpack_from("<H", block, 0x58)[0]
        incompatible, readonly = struct.unpack_from("<I", block, 0x60)[0], struct.unpack_from("<I", block, 0x64)[0]
        if magic != 0xEF53 or inode_size != _INODE_BYTES or readonly & 0x400:
            raise ValueError(f"{image}: not an ext4 image that times can be set in")
        descriptor = struct.unpack_from("<H", block, 0xFE)[0] if incompatible & 0x80 else 32
        size = 1024 << struct.unpack_from("<I", block, 0x18)[0]
        blocks, per_group = struct.unpack_from("<I", block, 0x04)[0], struct.unpack_from("<I", block, 0x20)[0]
        inodes = struct.unpack_from("<I", block, 0x28)[0]
        table = size if size > 1024 else 2048
        for group in range(-(-blocks // per_group)):
            stream.seek(table + group * descriptor)
            low = struct.unpack_from("<I", stream.read(descriptor), 0x08)[0]
            stream.seek(low * size)
            rows = np.frombuffer(stream.read(inodes * _INODE_BYTES), np.uint8).reshape(-1, _INODE_BYTES).copy()
            _settle_rows(rows, stamp)
            stream.seek(low * size)
            stream.write(rows.tobytes())


def _settle_rows(rows: np.ndarray[tuple[int, int], np.dtype[np.uint8]], stamp: int) -> None:
    used = rows[:, 0:2].any(axis=1)  # a mode of zero: never used
    for at in _TIMES:
        rows[used, at : at + 4] = np.frombuffer(struct.pack("<I", stamp), np.uint8)
    for at in _FRACTIONS:
        rows[used, at : at + 4] = 0
