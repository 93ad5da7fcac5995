"""GRUB for UEFI, without Secure Boot: one loader file with its modules inside, and the configurations it reads."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from supernode.boot import tool

_COMMON = (
    "normal", "configfile", "linux", "search", "search_fs_uuid", "search_label", "search_fs_file", "echo", "test",
    "sleep", "reboot", "halt",
    "serial", "terminal", "terminfo", "efi_gop", "all_video", "minicmd", "regexp",
)  # fmt: skip

CONSOLE = "console=tty0 console=ttyS0,115200 loglevel=4"


def write_loader(path: Path, modules: Sequence[str], config: str = "") -> None:
    """Write a loader that runs `config`, put inside it, or else /EFI/BOOT/grub.cfg of where it was loaded from.

    From a disk that is the EFI system partition. From a medium it is the ISO, not the FAT image that the firmware read.
    """
    inside: list[str | Path] = []
    if config:
        early = path.with_suffix(".early")
        early.write_text(config, encoding="utf-8")
        inside = ["-c", early]
    tool.run(["grub-mkimage", "-O", "x86_64-efi", "-p", "/EFI/BOOT", "-o", path, *inside, *_COMMON, *modules])
    if config:
        early.unlink()


def disk_config(filesystem: uuid.UUID, partition: uuid.UUID) -> str:
    """Return the installed disk's configuration: the kernel that the root file system's own link names."""
    return f"""\
set timeout=0
serial --unit=0 --speed=115200
terminal_output console serial
search --no-floppy --fs-uuid --set=root {filesystem}
linux /boot/vmlinuz root=PARTUUID={partition} rw {CONSOLE} net.ifnames=1
initrd /boot/initrd.img
boot
"""


def medium_config(volume: str) -> str:
    """Return the configuration inside a medium's loader: go on to the menu on the medium itself."""
    return f"search --no-floppy --set=root --label {volume}\nconfigfile /boot/grub/grub.cfg\n"
