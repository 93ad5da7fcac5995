"""The deploy step of a simulated machine: what the medium's init does on metal, with the same reports.

Contracts, section 5, has the rules.

What differs: the machine's first system does not run, so the lab fetches in its place, each image once for all its
machines, and an overlay on the image stands for the written disk.
"""

from __future__ import annotations

import asyncio
import fnmatch
import functools
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from supernode.errors import CouldNotRun
from supernode.lab.chassis import MediaInfo
from supernode.lab.disks import SEED_FOLDER, File
from supernode.lab.fetch import CHUNK, FetchFailed, fetch, post

log = logging.getLogger(__name__)
SEED = ("meta-data", "user-data", "network-config")
Say = Callable[[str], None]
Install = Callable[[Path, Mapping[str, File]], None]


@dataclass(frozen=True)
class Hardware:
    """What the deploy step finds in the machine.

    Attributes:
        management_mac: of the port on the management network.
        disks: name under /dev/disk/by-id -> size in bytes.
    """

    management_mac: str
    disks: Mapping[str, int]


@dataclass(frozen=True)
class Pace:
    """Waits and tries of the deploy step, as in its init.

    Attributes:
        report_tries, report_s: of the first report.
        write_tries, write_s: of fetching and writing.
        stay_s: how long a machine that failed stays as it is before it restarts.
    """

    report_tries: int = 10
    report_s: float = 3.0
    write_tries: int = 3
    write_s: float = 5.0
    stay_s: float = 300.0


class ImageStore:
    """Golden images by digest, each fetched once however many machines ask.

    Args:
        folder: takes `<digest>.raw`.
        space: the network namespace of the machines' site; the lab's own where not given.
    """

    def __init__(self, folder: Path, space: str = "") -> None:
        self._folder, self.space = folder, space
        self._fetching: dict[str, asyncio.Task[None]] = {}

    async def get(self, url: str, digest: str, ca_pem: str) -> Path:
        """Return the raw image; its digest was verified when it was fetched.

        Raises:
            CouldNotRun: it cannot be fetched or unpacked, or is another one than the digest says.
        """
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise CouldNotRun("supernode.digest", "is no SHA-256 in hex")
        raw = self._folder / f"{digest}.raw"
        if not raw.is_file():
            if digest not in self._fetching:
                work = asyncio.create_task(self._fetch(url, digest, ca_pem, raw))
                self._fetching[digest] = work
                work.add_done_callback(functools.partial(self._fetched, digest))
            # Shielded: the power of one machine that waits may be cut, the others go on waiting.
            await asyncio.shield(self._fetching[digest])
        return raw

    def _fetched(self, digest: str, work: asyncio.Task[None]) -> None:
        del self._fetching[digest]
        if not work.cancelled():
            work.exception()  # looked at, for nobody may be waiting any more

    async def _fetch(self, url: str, digest: str, ca_pem: str, raw: Path) -> None:
        packed, unpacked = raw.with_suffix(".zst"), raw.with_suffix(".new")
        try:
            await fetch(url, packed, ca_pem, space=self.space)
            await _unpack(packed, unpacked)
            found = await asyncio.to_thread(_digest, unpacked)
            if found != digest:
                raise CouldNotRun(url, f"the image is {found}, not {digest}")
            unpacked.replace(raw)
        finally:
            packed.unlink(missing_ok=True)
            unpacked.unlink(missing_ok=True)


async def _unpack(packed: Path, unpacked: Path) -> None:
    if shutil.which("zstd") is None:
        raise CouldNotRun("zstd", "not installed", "install the packages in tools/debian-packages.txt")
    process = await asyncio.create_subprocess_exec(
        "zstd", "-q", "-d", "-f", "--sparse", str(packed), "-o", str(unpacked), stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    if process.returncode != 0:
        raise CouldNotRun(packed.name, f"cannot be unpacked: {errors.decode(errors='replace').strip()}")


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()


class _Failed(Exception):
    """The step cannot go on; `phase` as the init names it."""

    def __init__(self, phase: str, reason: str) -> None:
        self.phase, self.reason = phase, reason
        super().__init__(reason)


async def deploy(
    media: MediaInfo, found: Hardware, images: ImageStore, install: Install, say: Say, pace: Pace | None = None
) -> None:
    """Do a medium's deploy step; returns when the machine restarts, written or not.

    Args:
        media: what the ISO says.
        found: the machine that it runs on.
        images: where the image comes from, once for all.
        install: writes image and files (paths from the root, without a slash in front) to the disk; called in a thread.
        say: takes a line for the console.
        pace: waits and tries; None takes the init's own.
    """
    step = _Step(media, found, images, install, lambda line: say(f"supernode: {line}"), pace or Pace())
    try:
        await step.run()
    except _Failed as failure:
        await step.fail(failure)


@dataclass
class _Step:
    media: MediaInfo
    found: Hardware
    images: ImageStore
    install: Install
    say: Say
    pace: Pace
    enrolled: bool = False

    async def run(self) -> None:
        self.say(f"deploy of {self.media.image_digest}")
        self._network()
        await self._enrol()
        disk = self._disk()
        self.say(f"writing {disk}")
        await self._tell("progress", f"writing {disk}")
        image = await self._image()
        # The store verified the digest; on metal this is where the disk is read back.
        self.say(f"verifying {disk}")
        await self._tell("progress", f"verifying {disk}")
        try:
            await asyncio.to_thread(self.install, image, files(self.media))
        except (CouldNotRun, OSError) as error:
            raise _Failed("seed", str(error)) from error
        await self._tell("ok", f"written to {disk}")
        self.say("done, restarting")

    async def fail(self, failure: _Failed) -> None:
        self.say(f"FAILED in phase {failure.phase}: {failure.reason}")
        await self._tell("failed", f"{failure.phase}: {failure.reason}")
        self.say(f"restarting in {self.pace.stay_s:g} s")
        await asyncio.sleep(self.pace.stay_s)

    def _network(self) -> None:
        port = self.media.kernel_arguments.get("supernode.port", "")
        mac, _, rest = port.partition(",")
        if mac.lower() != self.found.management_mac.lower():
            self.say(f"ports here: {self.found.management_mac}")
            raise _Failed("network", f"no port with the address {port}")
        self.say(f"the management port ({mac}) has {rest.partition(',')[0]}")

    async def _enrol(self) -> None:
        """Ask the site before anything is touched: a medium whose token is dead writes nothing."""
        reason = ""
        for attempt in range(self.pace.report_tries):
            if attempt:
                await asyncio.sleep(self.pace.report_s)
            reason = await self._report("started", "")
            if not reason:
                return
            self.say(reason)
        raise _Failed("enrol", f"the site does not take the report: {reason}")

    def _disk(self) -> str:
        wanted = self.media.disk.removeprefix("/dev/disk/by-id/")
        names = [name for name in self.found.disks if fnmatch.fnmatchcase(name, wanted)]
        if len(names) != 1:
            seen = " ".join(self.found.disks) or "none"
            raise _Failed("disk", f"{len(names)} disks answer to {wanted}; seen: {seen}")
        size = self.media.kernel_arguments.get("supernode.size", "")
        if not size.isdigit():
            raise _Failed("start", "a supernode.* argument is missing")
        if self.found.disks[names[0]] < int(size):
            raise _Failed("disk", f"{names[0]} is smaller than the image")
        return names[0]

    async def _image(self) -> Path:
        for attempt in range(self.pace.write_tries):
            try:
                return await self.images.get(self.media.image_url, self.media.image_digest, self.media.ca_pem)
            except CouldNotRun as error:
                if attempt + 1 == self.pace.write_tries:
                    raise _Failed("write", str(error)) from error
                self.say(f"write failed, again: {error}")
                await asyncio.sleep(self.pace.write_s)
        raise _Failed("write", "not tried")

    async def _tell(self, state: str, detail: str) -> None:
        """Report; the step goes on when the site does not take it."""
        reason = await self._report(state, detail)
        if reason:
            self.say(reason)

    async def _report(self, state: str, detail: str) -> str:
        """Send a report; returns why it was not taken, or nothing."""
        document = {
            "phase": "deploy",
            "state": state,
            "detail": detail[:500],
            "host_keys": [],
            "image": self.media.image_digest,
        }
        body = json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {self.media.token}"}
        try:
            await post(self.media.report_url, body, self.media.ca_pem, headers, self.images.space)
        except FetchFailed as failure:
            return str(failure)
        return ""


def files(media: MediaInfo) -> Mapping[str, File]:
    """Return what the deploy step puts on the root partition besides the image, by path from the root."""
    seed = {f"{SEED_FOLDER}/{name}": File(media.seed[name]) for name in SEED if name in media.seed}
    return {
        **seed,
        "etc/supernode/image": File(f"{media.image_digest}\n"),
        "etc/supernode/token": File(f"{media.token}\n", 0o600),
        "etc/supernode/report.json": File(json.dumps({"url": media.report_url}) + "\n"),
        "etc/supernode/ca.pem": File(media.ca_pem),
    }
