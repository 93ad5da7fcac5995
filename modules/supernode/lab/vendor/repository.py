"""The vendor's Debian repository: built and signed once for all labs, with a key that is gone when it is signed.

What other packages there are to come have another key, as their contents have another digest: a site's mirror that was
built from the old ones is not taken for theirs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from supernode.errors import CouldNotRun

VERSION, REVISION, CUDA = "570.133.20", "1", "12.8"
PACKAGE, KEY = "nvidia-driver-lab", "nvidia.asc"
_FORMAT = 1
_EPOCH = "1767225600"  # 2026-01-01, as the golden image's
# name in the package -> name of our data, mode
_FILES: Mapping[str, tuple[str, int]] = {
    "usr/bin/nvidia-smi": ("nvidia-smi", 0o755),
    "lib/systemd/system/nvidia-persistenced.service": ("nvidia-persistenced.service", 0o644),
}
_CONTROL = f"""Package: {PACKAGE}
Version: {VERSION}-{REVISION}
Architecture: all
Maintainer: The supernode lab <lab@supernode.invalid>
Section: admin
Priority: optional
Depends: python3
Description: stands for the vendor's driver in a simulated datacentre
 No software of the vendor's: an nvidia-smi that prints, in the documented forms,
 what the lab's machine shows on its PCI bus, and the unit that keeps it initialised.
"""


def ensure(cache: Path, say: Callable[[str], None]) -> Path:
    """Return the folder of the signed repository, built when the cache has none; its public key lies in it.

    Raises:
        CouldNotRun: dpkg-deb or gpg is missing or failed.
    """
    folder = cache / "vendor" / digest()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        say("building the vendor's repository (once)")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build.") as scratch:
            work = Path(scratch) / "repository"
            work.mkdir(mode=0o755)
            build(work)
            try:
                work.rename(folder)
            except OSError:  # another lab was faster
                if not folder.is_dir():
                    raise
    return folder


def digest() -> str:
    """Return the fingerprint of all that the repository is made from."""
    data = "\0".join((str(_FORMAT), _CONTROL, *(f"{name}{mode}{text}" for name, (text, mode) in contents().items())))
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def contents() -> Mapping[str, tuple[str, int]]:
    """Return the package's files: text and mode by name."""
    folder = resources.files("supernode.lab.vendor") / "data"
    return {
        name: ((folder / source).read_text("utf-8").replace("@VERSION@", VERSION).replace("@CUDA@", CUDA), mode)
        for name, (source, mode) in _FILES.items()
    }


def build(work: Path) -> None:
    """Make the package, its index and the signature.

    Raises:
        CouldNotRun: dpkg-deb or gpg is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="deb.") as scratch:
        tree = Path(scratch) / "tree"
        for name, (text, mode) in {**contents(), "DEBIAN/control": (_CONTROL, 0o644)}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            path.write_text(text, encoding="utf-8")
            path.chmod(mode)
        for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        deb = work / f"{PACKAGE}_{VERSION}-{REVISION}_all.deb"
        _run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(deb)])
    (work / "Packages").write_text(_stanza(deb), encoding="utf-8")
    (work / "Release").write_text(_release(work / "Packages"), encoding="utf-8")
    with _signer() as gpg:
        (work / KEY).write_bytes(_run([*gpg, "--armor", "--export"]))
        _run([*gpg, "--armor", "--detach-sign", "--output", str(work / "Release.gpg"), str(work / "Release")])


def _stanza(deb: Path) -> str:
    data = deb.read_bytes()
    return f"{_CONTROL}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"


def _release(index: Path) -> str:
    data = index.read_bytes()
    lines = ("Origin: supernode lab", "Label: vendor", "Date: Thu, 01 Jan 2026 00:00:00 UTC", "SHA256:")
    return "\n".join((*lines, f" {hashlib.sha256(data).hexdigest()} {len(data)} {index.name}")) + "\n"


@contextmanager
def _signer() -> Iterator[list[str]]:
    """Give gpg with a new key, in a folder that goes away with it; a short one, for its agent's socket."""
    home = tempfile.mkdtemp(prefix="gpg.", dir="/tmp")
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    try:
        _run([*gpg, "--quick-gen-key", "Vendor of the supernode lab", "ed25519", "sign", "never"])
        yield gpg
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], capture_output=True, check=False)
        shutil.rmtree(home, ignore_errors=True)


def _run(command: list[str]) -> bytes:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}
    try:
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
    except FileNotFoundError as error:
        raise CouldNotRun(command[0], "is not installed", "`supernode lab doctor` lists what the lab needs") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise CouldNotRun(command[0], f"ended with {done.returncode}: {' | '.join(said)}")
    return done.stdout
