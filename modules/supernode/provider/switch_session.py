"""A switch over SSH: its files read, placed all or none, brought into force, and taken back.

On the switch, under /var/lib/supernode: `new` (what is about to be placed), `old` (what was there before this change),
`original` (what was there before the first one), `pending` (paths that were placed and are not yet in force: an apply
that was cut off is completed by the next) and `running` (FRR's running configuration after the last apply).
"""

from __future__ import annotations

import difflib
import io
import shlex
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from supernode.clients.ssh import CommandFailed, Result, Ssh
from supernode.provider import switch_plan
from supernode.provider.switch_plan import FRR_CONF, FRR_DAEMONS, NFTABLES, RUNNING, WIREGUARD, Command, digest

STATE = "/var/lib/supernode"
LONGEST_FILE = 256 * 1024

_UNPACK = f"set -eu; rm -rf {STATE}/new; mkdir -p {STATE}/new; tar -x --no-same-owner -C {STATE}/new -f -"

_PLACE = f"""set -eu
for path in "$@"; do
  if [ ! -e "{STATE}/original$path" ] && [ ! -e "{STATE}/original$path.absent" ]; then
    mkdir -p "$(dirname "{STATE}/original$path")"
    if [ -e "$path" ]; then cp -p "$path" "{STATE}/original$path"; else : >"{STATE}/original$path.absent"; fi
  fi
  mkdir -p "$(dirname "{STATE}/old$path")" "$(dirname "$path")"
  rm -f "{STATE}/old$path"
  if [ -e "$path" ]; then cp -p "$path" "{STATE}/old$path"; fi
  cp -p "{STATE}/new$path" "$path.supernode"
  if [ -e "$path" ]; then chown --reference="$path" "$path.supernode"; fi
done
cat {STATE}/pending 2>/dev/null >{STATE}/pending.new || :
printf '%s\\n' "$@" >>{STATE}/pending.new
mv {STATE}/pending.new {STATE}/pending
sync
for path in "$@"; do mv -f "$path.supernode" "$path"; done
rm -rf {STATE}/new
"""

_BACK = f"""set -eu
for path in "$@"; do
  if [ -e "{STATE}/old$path" ]; then cp -p "{STATE}/old$path" "$path.supernode"; mv -f "$path.supernode" "$path"
  else rm -f "$path"; fi
done
"""

_RESTORE = f"""set -eu
for path in "$@"; do
  if [ -e "{STATE}/original$path" ]; then
    cp -p "{STATE}/original$path" "$path.supernode"; mv -f "$path.supernode" "$path"; rm -f "{STATE}/original$path"
  elif [ -e "{STATE}/original$path.absent" ]; then rm -f "$path" "{STATE}/original$path.absent"; fi
done
"""


class Switch:
    """One switch that was logged in to."""

    def __init__(self, ssh: Ssh) -> None:
        self._ssh = ssh

    async def root(self, script: str, *arguments: str, stdin: bytes = b"", check: bool = True) -> Result:
        """Run a script as root with positional arguments."""
        words = ["sudo", "-n", "sh", "-c", script, "sh", *arguments]
        return await self._ssh.run(words, stdin=stdin, limit_s=120, check=check)

    async def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of each file that exists."""
        script = 'for p in "$@"; do [ -f "$p" ] && sha256sum -- "$p"; done; true'
        lines = (await self.root(script, *paths)).stdout.splitlines()
        return {line[66:]: line[:64] for line in lines if len(line) > 66}

    async def modes(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the octal mode of each file that exists."""
        script = 'for p in "$@"; do [ -f "$p" ] && stat -c "%a %n" -- "$p"; done; true'
        lines = (await self.root(script, *paths)).stdout.splitlines()
        return {path: mode for mode, _, path in (line.partition(" ") for line in lines)}

    async def content(self, path: str) -> str:
        """Return a file's text, cut at LONGEST_FILE; empty when it does not exist."""
        result = await self.root('head -c "$2" -- "$1" 2>/dev/null', path, str(LONGEST_FILE), check=False)
        return result.stdout

    async def pending(self) -> list[str]:
        """Return the paths that an earlier apply placed and did not bring into force."""
        result = await self.root(f"cat {STATE}/pending 2>/dev/null", check=False)
        return list(dict.fromkeys(result.stdout.split()))

    async def running(self) -> str:
        """Return FRR's running configuration; empty when FRR does not answer."""
        result = await self.root("vtysh -c 'show running-config'", check=False)
        volatile = ("Building configuration", "Current configuration")
        lines = [line for line in result.stdout.splitlines() if not line.startswith(volatile)]
        return "\n".join(lines).strip() if result.status == 0 else ""

    async def applied(self, paths: Sequence[str]) -> dict[str, str]:
        """Return what is there: the digest of each file, and of FRR's running configuration where FRR is configured."""
        found = await self.digests(paths)
        if FRR_CONF in paths and (running := await self.running()):
            found[RUNNING] = digest(running)
        return found

    async def remember(self) -> None:
        """Keep FRR's running configuration as it is now: what drift is told by."""
        if running := await self.running():
            await self.root(f"mkdir -p {STATE}; cat >{STATE}/running", stdin=running.encode())

    async def remembered(self) -> str:
        """Return what `remember` kept; empty when there is nothing."""
        return (await self.root(f"cat {STATE}/running 2>/dev/null", check=False)).stdout

    async def drift(self) -> list[str]:
        """Say how FRR's running configuration differs from that after the last apply: lines lost (-) and new (+)."""
        before, now = (await self.remembered()).splitlines(), (await self.running()).splitlines()
        changes = difflib.unified_diff(before, now, n=0, lineterm="")
        lines = [line for line in changes if line[:2] not in ("--", "++", "@@") and line[1:].strip() != "!"]
        return lines[:20] or ["the running configuration is not the one that was applied"]

    async def upload(self, files: Sequence[Mapping[str, Any]]) -> None:
        """Bring files to the switch, beside the places where they will stand."""
        await self.root(_UNPACK, stdin=_archive(files))

    async def check(self, paths: Iterable[str]) -> None:
        """Let the programs that read uploaded files read them without applying them.

        Raises:
            CommandFailed: one does not parse; the message carries the program's last line.
        """
        readers = {
            FRR_CONF: f"command -v vtysh >/dev/null || exit 0; vtysh -C -f {STATE}/new{FRR_CONF}",
            NFTABLES: f"nft -c -f {STATE}/new{NFTABLES}",
            WIREGUARD: f"wg-quick strip {STATE}/new{WIREGUARD} >/dev/null",
        }
        given = set(paths)
        for path in readers.keys() & given:
            await self.root(readers[path])

    async def place(self, paths: Iterable[str]) -> None:
        """Put uploaded files in their places."""
        await self.root(_PLACE, *paths)

    async def enforce(self, commands: Iterable[Command]) -> None:
        """Bring placed files into force."""
        for command in commands:
            await self.root(command.line)
        await self.root(f"rm -f {STATE}/pending")

    async def back(self, paths: Sequence[str], commands: Iterable[Command]) -> None:
        """Take the last placing back."""
        await self.root(_BACK, *paths)
        await self.enforce(commands)

    async def restore(self, paths: Sequence[str], commands: Iterable[Command]) -> None:
        """Give the files back that were there before the first placing."""
        await self.root(_RESTORE, *paths)
        if FRR_CONF in paths:
            # Reloaded before any restart: FRR takes addresses back that it set, but forgets them when it is restarted.
            # What the reload cannot undo, the restart does: its status says nothing.
            for command in switch_plan.commands([FRR_CONF]):
                await self.root(command.line, check=False)
        await self.enforce(commands)
        await self.root(f"rm -rf {STATE}/new {STATE}/old {STATE}/running; find {STATE} -type d -empty -delete")

    async def missing_daemons(self, daemons: str) -> list[str]:
        """Return the daemons that /etc/frr/daemons asks for and that do not run."""
        asked = [line.split("=")[0].strip() for line in daemons.splitlines() if line.strip().endswith("=yes")]
        wanted = [name for name in asked if name == "zebra" or (name.endswith("d") and not name.startswith("#"))]
        result = await self.root("vtysh -c 'show daemons' 2>/dev/null", check=False)
        return [name for name in wanted if name not in result.stdout.split()]

    async def failed_units(self, paths: Iterable[str]) -> list[str]:
        """Return the services that the files are for and that do not run."""
        units = {"frr": FRR_DAEMONS, "lldpd": "/etc/lldpd.d/", "nftables": NFTABLES, "wg-quick@wg0": WIREGUARD}
        mine = [unit for unit, start in units.items() if any(p.startswith(start) for p in paths)]
        failed = []
        for unit in mine:
            if (await self.root(f"systemctl is-active --quiet {shlex.quote(unit)}", check=False)).status != 0:
                failed.append(unit)
        return failed


def _archive(files: Sequence[Mapping[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file in files:
            data = str(file["content"]).encode()
            entry = tarfile.TarInfo(str(file["path"]).lstrip("/"))
            entry.size, entry.mode = len(data), int(str(file["mode"]), 8)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


__all__ = ["CommandFailed", "Switch"]
