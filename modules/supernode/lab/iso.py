"""Read a deploy ISO as firmware and boot loader do: its menu and the files beside it (contracts, section 5)."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from supernode.errors import CouldNotRun
from supernode.lab.chassis import MediaInfo

GRUB_CFG = "/boot/grub/grub.cfg"
NEEDED = ("image", "digest", "disk", "report")


async def read(path: Path) -> MediaInfo:
    """Read kernel arguments and seed out of an ISO.

    Raises:
        CouldNotRun: no ISO 9660 image, no boot menu in it, xorriso missing, or an argument of the deploy step missing.
    """
    folder = Path(tempfile.mkdtemp(prefix="supernode-iso-"))
    try:
        await _extract(path, folder)
        return await asyncio.to_thread(_info, path, folder)
    finally:
        await asyncio.to_thread(_remove, folder)


async def _extract(path: Path, folder: Path) -> None:
    if shutil.which("xorriso") is None:
        raise CouldNotRun("xorriso", "not installed", "install the packages in tools/debian-packages.txt")
    # -no_rc: the operator's own xorriso settings stay out.
    arguments = ["-no_rc", "-osirrox", "on", "-indev", str(path)]
    for source in (GRUB_CFG, "/seed"):
        arguments += ["-extract", source, str(folder / Path(source).name)]
    process = await asyncio.create_subprocess_exec(
        "xorriso", *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    if process.returncode != 0:
        lines = [line for line in errors.decode(errors="replace").splitlines() if "FAILURE" in line or "FATAL" in line]
        raise CouldNotRun(path.name, f"not a deploy ISO ({'; '.join(lines) or 'xorriso failed'})")


def _remove(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)  # folders come out of an ISO read-only
    shutil.rmtree(folder, ignore_errors=True)


def _info(path: Path, folder: Path) -> MediaInfo:
    arguments = kernel_arguments((folder / "grub.cfg").read_text(encoding="utf-8"))
    files = {entry.name: entry.read_text(encoding="utf-8") for entry in (folder / "seed").iterdir() if entry.is_file()}
    values = {name: arguments.get(f"supernode.{name}", "") for name in NEEDED}
    missing = sorted(f"supernode.{name}" for name, value in values.items() if not value)
    missing += sorted(f"/seed/{name}" for name in ("ca.pem", "token") if name not in files)
    if missing:
        raise CouldNotRun(path.name, f"the deploy ISO lacks {', '.join(missing)}")
    return MediaInfo(
        kernel_arguments=arguments,
        image_url=values["image"],
        image_digest=values["digest"],
        report_url=values["report"],
        disk=values["disk"],
        seed={name: text for name, text in files.items() if name not in ("ca.pem", "token")},
        ca_pem=files["ca.pem"],
        token=files["token"].strip(),
    )


def kernel_arguments(grub_cfg: str) -> Mapping[str, str]:
    """Return the arguments of the first `linux` line, which is the default entry's; a flag maps to "".

    Raises:
        CouldNotRun: the menu has no `linux` line.
    """
    for line in grub_cfg.splitlines():
        words = line.split(maxsplit=2)
        if words and words[0] in ("linux", "linuxefi"):
            pairs = (word.partition("=") for word in shlex.split(words[2] if len(words) > 2 else ""))
            return {name: value for name, _, value in pairs}
    raise CouldNotRun(GRUB_CFG, "no linux line in the boot menu")
