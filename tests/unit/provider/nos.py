"""A network operating system small enough for a unit test: real shell, tar and mv in a root of its own, stubs beside.

Needs user namespaces, no root: `unshare` maps the caller to root inside, `chroot` gives the commands their own /etc.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

STUBS = {
    "sudo": '[ "$1" = -n ] && shift\nexec "$@"\n',
    # `vtysh -C -f FILE` reads; `show running-config` shows what was last loaded; `show daemons` what runs.
    "vtysh": """
case "$*" in
  "-C -f "*) if grep -q garbage "$3"; then echo "line 1: % Unknown command: garbage" >&2; exit 2; fi ;;
  *running-config*) echo 'Building configuration...'; echo; cat /run/running ;;
  *daemons*) cat /run/daemons ;;
esac
""",
    "systemctl": """
echo "systemctl $*" >>/run/log
case "$*" in
  "restart frr")
    if grep -q poison /etc/frr/frr.conf; then echo "Job for frr.service failed." >&2; exit 1; fi
    cat /etc/frr/frr.conf >/run/running
    sed -n 's/^\\(zebra\\|[a-z]*d\\)=yes.*/\\1/p' /etc/frr/daemons | tr '\\n' ' ' >/run/daemons ;;
  "is-active --quiet frr") [ -e /run/frr-up ] ;;
esac
""",
    "sysctl": 'echo "sysctl $*" >>/run/log\n',
    "networkctl": 'echo "networkctl $*" >>/run/log\n',
}


class Nos:
    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("usr", "dev", "proc", "run", "tmp", "stubs", "var/lib", "etc/frr", "etc/lldpd.d"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        for name, text in STUBS.items():
            (root / "stubs" / name).write_text(f"#!/bin/sh\n{text}")
            (root / "stubs" / name).chmod(0o755)
        self.write("/etc/frr/daemons", "bgpd=no\n", 0o640)
        self.write("/etc/frr/frr.conf", "! factory\n", 0o640)
        self.write("/run/running", "! factory\n")
        self.write("/run/daemons", "")
        self.write("/run/frr-up", "")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        (self.root / path.lstrip("/")).write_text(text)
        (self.root / path.lstrip("/")).chmod(mode)

    def read(self, path: str) -> str | None:
        file = self.root / path.lstrip("/")
        return file.read_text() if file.exists() else None

    def mode(self, path: str) -> int:
        return (self.root / path.lstrip("/")).stat().st_mode & 0o777

    def log(self) -> list[str]:
        return (self.read("/run/log") or "").splitlines()

    def forget(self) -> None:
        self.write("/run/log", "")

    def answer(self, command: str, stdin: bytes) -> tuple[int, str, str]:
        inside = f'export PATH=/stubs:/usr/sbin:/usr/bin; mount --rbind /usr "{self.root}/usr"; '
        inside += f'mount --rbind /dev "{self.root}/dev"; exec chroot "{self.root}" /bin/sh -c "$1"'
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside, "sh", command]
        done = subprocess.run(words, input=stdin, capture_output=True, timeout=60)
        return done.returncode, done.stdout.decode(), done.stderr.decode()


def possible() -> bool:
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return subprocess.run(words, capture_output=True, env=dict(os.environ)).returncode == 0
