"""A raw GPT disk image of two partitions, an EFI system partition with GRUB and an ext4 root, from a folder.

The bytes follow from the folder's contents and the identifiers alone: fixed UUIDs, fixed times, no journal of the
builder.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from supernode.boot import grub, stamps, tool

_MIB = 1 << 20
_ESP_MIB = 36  # the smallest FAT32, which every firmware reads; some read no FAT12 or FAT16
_ROOT_SPARE_MIB = 64  # for what first boot writes before the partition is grown to the disk
_JOURNAL_MIB = 16
_BLOCK = 4096

# mke2fs takes a folder's entries as the file system lists them, and a disk's order follows a secret of that disk. In
# memory it is the order of creation, so the tree is laid out there by name first.
_IN_ORDER = """
folder=$1; shift
mount -t tmpfs -o mode=755,size=90% tmpfs /mnt
tar -C "$folder" --sort=name --numeric-owner --xattrs --xattrs-include='*' --one-file-system -cf - . |
    tar -C /mnt --numeric-owner --xattrs --xattrs-include='*' -xpf -
exec "$@"
"""

ROOT_LABEL = "supernode-root"


@dataclass(frozen=True)
class Partition:
    """Where a partition lies in the image, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Identifiers:
    """The UUIDs of an image, all from one name, so that the same inputs give the same bytes."""

    disk: uuid.UUID
    esp: uuid.UUID
    root: uuid.UUID
    filesystem: uuid.UUID

    @classmethod
    def of(cls, name: str) -> Identifiers:
        """Derive them from a name such as the digest of the inputs."""
        base = uuid.uuid5(uuid.NAMESPACE_OID, name)
        return cls(*(uuid.uuid5(base, part) for part in ("disk", "esp", "root", "filesystem")))


def write(folder: Path, raw: Path, ids: Identifiers, epoch: int) -> Partition:
    """Write the image of a root file system to `raw`, sparse.

    Returns:
        Where the root partition lies.
    """
    work = raw.with_suffix(".parts")
    work.mkdir()
    esp, root = work / "esp", work / "root"
    _write_esp(esp, ids, epoch)
    _write_root(folder, root, ids, epoch)
    first = _MIB + _ESP_MIB * _MIB
    size = root.stat().st_size
    with raw.open("wb") as stream:
        stream.truncate(first + size + _MIB)
    _write_table(raw, ids, size)
    for part, offset in ((esp, _MIB), (root, first)):
        _copy_sparse(part, raw, offset)
        part.unlink()
    work.rmdir()
    return Partition(first, size)


def _write_table(raw: Path, ids: Identifiers, root_size: int) -> None:
    script = (
        f"label: gpt\nlabel-id: {str(ids.disk).upper()}\n"
        f"start=1MiB, size={_ESP_MIB}MiB, type=uefi, uuid={str(ids.esp).upper()}, name=esp\n"
        f"size={root_size // 512}, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, uuid={str(ids.root).upper()}, name=root\n"
    )
    tool.run(["sfdisk", "--quiet", raw], stdin=script.encode())


def _write_esp(path: Path, ids: Identifiers, epoch: int) -> None:
    with path.open("wb") as stream:
        stream.truncate(_ESP_MIB * _MIB)
    serial = f"{ids.esp.int & 0xFFFFFFFF:08x}"
    tool.run(["mkfs.vfat", "-F", "32", "-s", "1", "--invariant", "-i", serial, "-n", "ESP", path])
    loader, config = path.with_name("BOOTX64.EFI"), path.with_name("grub.cfg")
    grub.write_loader(loader, ("part_gpt", "fat", "ext2"))
    config.write_text(grub.disk_config(ids.filesystem, ids.root), encoding="utf-8")
    for name in (loader, config):
        os.utime(name, (epoch, epoch))
    env = {"SOURCE_DATE_EPOCH": str(epoch), "TZ": "UTC"}
    tool.run(["mmd", "-i", path, "::/EFI", "::/EFI/BOOT"], env=env)
    tool.run(["mcopy", "-m", "-i", path, loader, config, "::/EFI/BOOT/"], env=env)
    loader.unlink()
    config.unlink()


def _write_root(folder: Path, path: Path, ids: Identifiers, epoch: int) -> None:
    used, entries = _measure(folder)
    wanted = (used + entries * 320 + (_ROOT_SPARE_MIB + _JOURNAL_MIB) * _MIB) * 21 // 20
    blocks = -(-wanted // _MIB) * _MIB // _BLOCK
    make = [
        "mke2fs", "-q", "-F", "-t", "ext4", "-b", str(_BLOCK), "-I", "256", "-m", "1",
        "-N", str(max(2 * entries, blocks // 4)),
        "-J", f"size={_JOURNAL_MIB}", "-L", ROOT_LABEL, "-U", str(ids.filesystem),
        "-O", "^metadata_csum,^metadata_csum_seed,^orphan_file",
        "-E", f"hash_seed={ids.filesystem},root_owner=0:0,lazy_itable_init=0,nodiscard",
        "-d", "/mnt", str(path), str(blocks),
    ]  # fmt: skip
    fixed = {"E2FSPROGS_FAKE_TIME": str(epoch), "E2FSCK_TIME": str(epoch)}
    tool.run(["unshare", "--mount", "sh", "-euc", _IN_ORDER, "sh", folder, *make], env=fixed)
    stamps.settle(path, epoch)
    tool.run(["tune2fs", "-O", "metadata_csum", path], env=fixed)
    # Full directories have no room for a checksum until they are rebuilt (-D); 1 says that this was done.
    tool.run(["e2fsck", "-f", "-y", "-D", path], env=fixed, accept=(0, 1))
    tool.run(["e2fsck", "-f", "-n", path], env=fixed)


def _measure(folder: Path) -> tuple[int, int]:
    """Return the bytes in whole blocks, and the number of entries, below a folder."""
    used = entries = 0
    for path in folder.rglob("*"):
        entries += 1
        size = path.lstat().st_size
        used += -(-size // _BLOCK) * _BLOCK
    return used, entries


def _copy_sparse(source: Path, target: Path, offset: int) -> None:
    """Copy a part into the image; blocks of zeros stay holes."""
    zeros = bytes(_MIB)
    with source.open("rb") as reader, target.open("r+b") as writer:
        writer.seek(offset)
        while chunk := reader.read(_MIB):
            if chunk == zeros[: len(chunk)]:
                writer.seek(len(chunk), 1)
            else:
                writer.write(chunk)
