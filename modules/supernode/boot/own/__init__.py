"""Debian packages of our own, built reproducibly at prepare time from what `supernode.carried` lists."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from supernode import carried
from supernode.boot import rootfs, tool

_LIB = "usr/lib/supernode-cooling"
_PROGRAM = f"""#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "/{_LIB}")
from supernode.telemetry.__main__ import main

sys.exit(main(sys.argv[1:]))
"""
_CONTROL = """Package: {name}
Version: {version}
Architecture: all
Maintainer: The supernode project <supernode@localhost>
Section: net
Priority: optional
Depends: {depends}
Description: reads cooling units and serves what they show as metrics
 Carries the modules that it needs in the versions of the operator's environment; they are in nobody's import path.
"""


def build(packages: Iterable[str], folder: Path) -> list[Path]:
    """Build those of these packages (apt arguments) that are our own, into a folder.

    Raises:
        CouldNotRun: dpkg-deb is missing or failed.
    """
    wanted = [name for name in packages if name.partition("=")[0] == carried.AGENT]
    return [cooling(folder)] if wanted else []


def cooling(folder: Path) -> Path:
    """Build the cooling agent's package; the same content makes the same bytes."""
    version = carried.version()
    deb, tree = folder / f"{carried.AGENT}_{version}_all.deb", folder / "tree"
    ours = {file.path: file.data for file in carried.packaging()}
    control = _CONTROL.format(name=carried.AGENT, version=version, depends=", ".join(carried.DEPENDS))
    _place(tree / "DEBIAN/control", control.encode())
    _place(tree / "DEBIAN/postinst", ours[f"{carried.AGENT}.postinst"], 0o755)
    _place(tree / "usr/bin/supernode-cooling", _PROGRAM.encode(), 0o755)
    unit = f"{carried.AGENT}.service"
    _place(tree / "lib/systemd/system" / unit, ours[unit])
    for file in carried.files():
        _place(tree / _LIB / file.path, file.data)
    for path in (tree, *tree.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    environment = {"SOURCE_DATE_EPOCH": str(rootfs.EPOCH)}
    tool.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, deb], env=environment)
    shutil.rmtree(tree)
    return deb


def _place(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
