"""The root file system of the golden image: Debian by mmdebstrap, then ours on top."""

from __future__ import annotations

import os
import shlex
import shutil
from importlib import resources
from pathlib import Path

from supernode.boot import pins, tool
from supernode.boot.cache import Progress
from supernode.boot.software import Software
from supernode.errors import CouldNotRun

EPOCH = 1767225600  # 2026-01-01: what tools that honour SOURCE_DATE_EPOCH write instead of the time of the build

_PACKAGES = (
    "systemd-sysv", "udev", "dbus", "kmod", "zstd",
    "openssh-server", "sudo", "python3", "python3-apt", "ca-certificates",
    "iproute2", "e2fsprogs", "fdisk", "busybox-static", "curl",
)  # fmt: skip

# Units that cost a boot time and serve no purpose on a machine that is rebuilt, not upgraded, and that has no desktop.
_MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "systemd-networkd-wait-online.service", "systemd-firstboot.service", "systemd-pcrphase.service",
    "systemd-pcrphase-sysinit.service", "systemd-pcrphase-initrd.service", "rescue-ssh.target", "ssh.socket",
)  # fmt: skip

_WANTED = {
    "multi-user.target.wants": (
        ("systemd-networkd.service", "/lib/systemd/system/systemd-networkd.service"),
        ("supernode-firstboot.service", "/etc/systemd/system/supernode-firstboot.service"),
        ("supernode-enrol.service", "/etc/systemd/system/supernode-enrol.service"),
        ("supernode-trust.service", "/etc/systemd/system/supernode-trust.service"),
    ),
    "sockets.target.wants": (("systemd-networkd.socket", "/lib/systemd/system/systemd-networkd.socket"),),
}

# Never in an image: what identifies one machine, what a run of apt leaves, and the addresses of the builder's mirrors.
_REMOVED = (
    "etc/ssh/ssh_host_*", "etc/machine-id", "var/lib/dbus/machine-id", "var/lib/systemd/random-seed",
    "etc/apt/sources.list", "etc/apt/sources.list.d/*", "etc/apt/preferences.d/supernode",
    "var/lib/apt/lists/*", "var/cache/apt/*", "var/cache/debconf/*-old", "var/cache/ldconfig/aux-cache",
    "var/lib/dpkg/*-old", "var/log/*", "etc/hostname", "etc/resolv.conf", "etc/apt/apt.conf.d/99mmdebstrap",
    "etc/*-", "vmlinuz*", "initrd.img*", "tmp/*", "run/*",
)  # fmt: skip

_NO_DOCS = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*")


def inputs(software: Software) -> dict[str, bytes]:
    """Return all that decides what the root file system holds, by name, for the cache's digest."""
    parts = {
        "suite": software.suite.encode(),
        "kernel": software.kernel.encode(),
        "pins": pins.text(software.suite).encode(),
        "recipe": repr((EPOCH, _PACKAGES, _MASKED, _WANTED, _REMOVED, _NO_DOCS)).encode(),
    }
    for source, target, mode in _own_files():
        parts[f"file {target} {mode:o}"] = source.read_bytes()
    return parts


def build(software: Software, folder: Path, progress: Progress) -> dict[str, str]:
    """Fill an empty folder with the root file system; `dpkg-status` and `sources.list` are written beside it.

    Returns:
        The version of every package in it.

    Raises:
        CouldNotRun: not root, a package or a tool is missing.
    """
    if os.geteuid() != 0:
        raise CouldNotRun(
            "golden image", "can only be built as root", "run `sudo supernode image <env>` once; the cache keeps it"
        )
    staged = folder.with_name(f"{folder.name}.own")
    _stage(staged, software)
    progress(f"image: installing {software.suite} with {software.kernel} (about a minute)")
    try:
        tool.run(_mmdebstrap(software, folder, staged), env={"SOURCE_DATE_EPOCH": str(EPOCH)}, hint=_hint(software))
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    versions = installed(folder)
    # What the mirror is computed from later: the installed packages, and the archive that this build came from.
    shutil.copyfile(folder / "var/lib/dpkg/status", folder.with_name("dpkg-status"))
    shutil.copyfile(folder / "etc/apt/sources.list", folder.with_name("sources.list"))
    _finish(folder)
    return versions


def installed(root: Path) -> dict[str, str]:
    """Return {package: version} of a root file system."""
    asked = tool.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package}=${Version}\n"])
    return pins.parse(asked.decode())


def _hint(software: Software) -> str:
    return f"is software.kernel {software.kernel!r} a package of {software.suite}, and does `apt-get update` work here?"


def _mmdebstrap(software: Software, folder: Path, staged: Path) -> list[str | Path]:
    preferences = shlex.quote(str(staged / "preferences"))
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in _NO_DOCS]
    return [
        "mmdebstrap", "--variant=apt", "--format=directory", '--aptopt=Acquire::Languages "none"', *excluded,
        f"--include={','.join((*_PACKAGES, software.kernel))}",
        f'--setup-hook=mkdir -p "$1/etc/apt/preferences.d" && cp {preferences} "$1/etc/apt/preferences.d/supernode"',
        f"--essential-hook=sync-in {shlex.quote(str(staged / 'tree'))} /",
        software.suite, folder,
    ]  # fmt: skip


def _own_files() -> list[tuple[Path, str, int]]:
    """Return (source, path in the image, mode) of what we add."""
    here = Path(str(resources.files("supernode.boot")))
    tree = here / "tree"
    found = [
        (path, str(path.relative_to(tree)), 0o755 if "hooks" in path.parts else 0o644)
        for path in sorted(tree.rglob("*"))
        if path.is_file()
    ]
    found += [(here / "host" / name, f"usr/lib/supernode/{name}", 0o644) for name in ("firstboot.py", "enrol.py")]
    return found


def _stage(staged: Path, software: Software) -> None:
    """Lay our files out as root's own, whoever owns the checkout, and write the apt preferences beside."""
    shutil.rmtree(staged, ignore_errors=True)
    for source, target, mode in _own_files():
        place = staged / "tree" / target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read_bytes())
        place.chmod(mode)
    wanted = pins.preferences(pins.parse(pins.text(software.suite)))
    (staged / "preferences").write_text(wanted, encoding="utf-8")


def _finish(root: Path) -> None:
    """Take out what belongs to one machine or to this build, mask and enable units."""
    for pattern in _REMOVED:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (root / "etc/machine-id").write_text("")  # empty: made at boot; a missing one would run every preset again
    (root / "var/lib/dbus").mkdir(exist_ok=True)
    (root / "var/lib/dbus/machine-id").symlink_to("/etc/machine-id")
    for folder, mode in (("var/log/journal", 0o2755), ("var/lib/supernode", 0o755), ("etc/supernode", 0o755)):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder).chmod(mode)
    units = root / "etc/systemd/system"
    for unit in _MASKED:
        _link(units / unit, "/dev/null")
    for target, wanted in _WANTED.items():
        for name, where in wanted:
            _link(units / target / name, where)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
