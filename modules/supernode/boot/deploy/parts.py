"""The parts of the deploy system that do not change from machine to machine: kernel, tools, drivers.

All come from the root file system of the golden image, so that the pins of the image hold here too and the digest of a
medium does not depend on what the operator's machine has installed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from supernode.boot import tool
from supernode.errors import CouldNotRun

TOOLS = ("usr/bin/busybox", "usr/bin/curl", "usr/bin/zstd")

# Ports and disks of servers; what the chosen kernel's package lacks, or has built in, is left out. No driver of a
# drive: firmware and boot loader read the medium, and all that is on it is in memory before the kernel starts.
DRIVERS = (
    "virtio_pci", "virtio_net", "virtio_blk", "virtio_scsi", "nvme", "ahci", "ata_piix", "sd_mod",
    "megaraid_sas", "mpt3sas", "mpi3mr", "smartpqi", "vmd",
    "e1000e", "igb", "igc", "ixgbe", "i40e", "ice", "bnxt_en", "tg3", "mlx5_core", "ena", "gve",
    "ext4", "crc32c_generic", "crc32c_intel",
)  # fmt: skip

_FOLDERS = (
    "bin",
    "dev",
    "etc",
    "lib",
    "lib64",
    "medium",
    "proc",
    "sbin",
    "sys",
    "target",
    "tmp",
    "usr/bin",
    "usr/sbin",
)


def write(root: Path, folder: Path, epoch: int) -> None:
    """Write `vmlinuz` and `tools.cpio.zst` into `folder` from a root file system.

    Raises:
        CouldNotRun: the root has no kernel or lacks one of TOOLS.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kernel = next(iter(sorted((root / "boot").glob("vmlinuz-*"))), None)
    if kernel is None:
        raise CouldNotRun("golden image", "holds no kernel", "software.kernel names a linux-image package")
    shutil.copyfile(kernel, folder / "vmlinuz")
    tree = folder / "tree"
    for name in _FOLDERS:
        (tree / name).mkdir(parents=True, exist_ok=True)
    _copy_tools(root, tree)
    _copy_drivers(root, tree, kernel.name.removeprefix("vmlinuz-"))
    pack(tree, folder / "tools.cpio", epoch)
    tool.run(["zstd", "-q", "-12", "--rm", folder / "tools.cpio", "-o", folder / "tools.cpio.zst"])
    shutil.rmtree(tree)


def _copy_tools(root: Path, tree: Path) -> None:
    missing = [name for name in TOOLS if not (root / name).is_file()]
    if missing:
        raise CouldNotRun("golden image", f"lacks {', '.join(missing)}")
    libraries = {library for name in TOOLS for library in _libraries(root, f"/{name}")}
    for name in sorted({f"/{name}" for name in TOOLS} | libraries):
        target = tree / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Links are followed inside the root: an absolute one followed outside would bring the operator's own file.
        inside = tool.run(["chroot", root, "readlink", "-f", name]).decode().strip()
        shutil.copy2(root / inside.lstrip("/"), target)
    for applet in tool.run(["chroot", root, "/usr/bin/busybox", "--list"]).decode().split():
        if applet != "busybox":
            (tree / "bin" / applet).symlink_to("/usr/bin/busybox")


def _libraries(root: Path, program: str) -> list[str]:
    """Return the absolute paths that the loader would open for a program inside the root; none for a static one."""
    asked = tool.run(["chroot", root, "/bin/sh", "-c", 'ldd "$1" 2>/dev/null || true', "ldd", program]).decode()
    words = (line.split("=>")[-1].split() for line in asked.splitlines())
    return [parts[0] for parts in words if parts and parts[0].startswith("/")]


def _copy_drivers(root: Path, tree: Path, release: str) -> None:
    source = root / "lib/modules" / release
    target = tree / "lib/modules" / release
    dep = (source / "modules.dep").read_text(encoding="utf-8")
    files = closure(DRIVERS, dep)
    for name in files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)
    aliases = (source / "modules.alias").read_text(encoding="utf-8")
    (target / "modules.dep").write_text(keep_files(dep, files), encoding="utf-8")
    (target / "modules.alias").write_text(keep_aliases(aliases, files), encoding="utf-8")
    shutil.copy2(source / "modules.builtin", target / "modules.builtin")


def keep_files(dep: str, files: Iterable[str]) -> str:
    """Return the lines of modules.dep for these files."""
    kept = set(files)
    return "".join(f"{line}\n" for line in dep.splitlines() if line.partition(":")[0] in kept)


def keep_aliases(aliases: str, files: Iterable[str]) -> str:
    """Return the lines of modules.alias for the modules in these files."""
    kept = {_module(file) for file in files}
    return "".join(f"{line}\n" for line in aliases.splitlines() if line.split()[-1:] and line.split()[-1] in kept)


def _module(file: str) -> str:
    return Path(file).name.split(".")[0].replace("-", "_")


def closure(wanted: Iterable[str], dep: str) -> list[str]:
    """Return the files of modules and of all they need, by a kernel's modules.dep; unknown names are left out."""
    needs: dict[str, list[str]] = {}
    by_name: dict[str, str] = {}
    for line in dep.splitlines():
        file, _, rest = line.partition(":")
        needs[file] = rest.split()
        by_name[_module(file)] = file
    found = {by_name[name] for name in wanted if name in by_name}
    for file in tuple(found):
        found.update(needs[file])  # modules.dep lists what is needed indirectly, too
    return sorted(found)


def pack(tree: Path, archive: Path, epoch: int) -> None:
    """Write a folder as a newc archive whose bytes follow from names, modes and contents alone."""
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    for name in names:
        os.utime(tree / name, (epoch, epoch), follow_symlinks=False)
    listed = "".join(f"{name}\0" for name in names).encode()
    data = tool.run(
        ["cpio", "--quiet", "--null", "--create", "--format=newc", "--reproducible", "--owner=0:0"],
        stdin=listed,
        folder=tree,
    )
    archive.write_bytes(data)
