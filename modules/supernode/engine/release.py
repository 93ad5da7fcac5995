"""The official release, or a site's mirror of it: download, compare with the checksum file, unpack."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import os
import platform
import shutil
import socket
import tarfile
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from supernode.engine.cache import FILES
from supernode.errors import CouldNotRun

OFFICIAL = "https://get.pulumi.com/releases/sdk"
CONNECT_S = 5.0
_READ_S = 60.0
_CHUNK = 1 << 20
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class ReleaseUnavailableError(Exception):
    """No release can be had from there; the text says why, for a person."""


def mirror() -> str | None:
    """Return the site's mirror, SUPERNODE_ENGINE_MIRROR: the folder that holds the archives and their checksum file."""
    return os.environ.get("SUPERNODE_ENGINE_MIRROR") or None


def base() -> str:
    """Return the address of the folder that releases come from."""
    return (mirror() or OFFICIAL).rstrip("/")


def archive_name(version: str) -> str:
    """Return the release's file name for this machine, e.g. "pulumi-v3.274.1-linux-x64.tar.gz".

    Raises:
        ReleaseUnavailableError: no release is made for this kind of machine.
    """
    machine = _MACHINES.get(platform.machine().lower())
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    if machine is None or system is None:
        raise ReleaseUnavailableError(f"no release is made for {platform.system()} on {platform.machine()}")
    return f"pulumi-v{version}-{system}-{machine}.tar.gz"


def fetch(version: str, folder: Path, progress: Callable[[str], None]) -> None:
    """Put the release's programs into `folder`.

    Raises:
        ReleaseUnavailableError: not reachable within 5 s, not there, or not what its checksum file says.
        CouldNotRun: the mirror's address is none that can be trusted.
    """
    name = archive_name(version)
    source = base()
    _check_mirror(source)
    try:
        wanted = _checksum(_read(f"{source}/pulumi-{version}-checksums.txt"), name)
        with tempfile.TemporaryFile(dir=folder.parent) as archive:
            found = _download(f"{source}/{name}", archive, progress)
            if found != wanted:
                raise ReleaseUnavailableError(f"{source}/{name} has SHA-256 {found}, its checksum file says {wanted}")
            archive.seek(0)
            _unpack(archive, folder)
    except (OSError, http.client.HTTPException, tarfile.TarError) as error:
        reason = getattr(error, "reason", None) or error
        raise ReleaseUnavailableError(f"{source}: {reason}") from error


def _check_mirror(address: str) -> None:
    if not _is_safe(address):
        hint = "give an https:// or file:// address, or http:// on this machine"
        raise CouldNotRun("SUPERNODE_ENGINE_MIRROR", f"{address} is not a mirror that can be trusted", hint)


def _is_safe(address: str) -> bool:
    """Tell a source that nobody on the way can change: whoever changes an archive changes its checksum too."""
    parts = urllib.parse.urlsplit(address)
    return parts.scheme in {"https", "file"} or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from TLS to plain text."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not _is_safe(newurl):
            raise ReleaseUnavailableError(f"{req.full_url} leads to {newurl}, in plain text")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_name(url: str) -> None:
    """Look the host up within the limit: a resolver that does not answer has limits of its own, of half a minute."""
    parts = urllib.parse.urlsplit(url)
    if parts.hostname is None or parts.scheme in urllib.request.getproxies():
        return  # a file, or a proxy that looks it up
    answer: list[object] = []

    def look_up() -> None:
        try:
            answer.append(socket.getaddrinfo(parts.hostname, None))
        except OSError as error:
            answer.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(CONNECT_S)
    if not answer:
        raise ReleaseUnavailableError(f"{url}: its name was not found within {CONNECT_S:g} s")


def _open(url: str) -> Any:
    _check_name(url)
    response = urllib.request.build_opener(_SameScheme).open(url, timeout=CONNECT_S)
    # The limit on connecting is short, so that an air-gapped machine goes on at once; a slow mirror may take its time.
    sock = getattr(getattr(getattr(response, "fp", None), "raw", None), "_sock", None)
    if sock is not None:
        sock.settimeout(_READ_S)
    return response


def _read(url: str) -> str:
    with _open(url) as response:
        return str(response.read(_CHUNK).decode("utf-8", "replace"))


def _checksum(text: str, name: str) -> str:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].lstrip("*") == name:
            return words[0].lower()
    raise ReleaseUnavailableError(f"the checksum file does not name {name}")


def _download(url: str, target: IO[bytes], progress: Callable[[str], None]) -> str:
    digest, done, shown = hashlib.sha256(), 0, -1
    with _open(url) as response:
        total = int(response.headers.get("Content-Length") or 0)
        while chunk := response.read(_CHUNK):
            digest.update(chunk)
            target.write(chunk)
            done += len(chunk)
            if done // (10 * _CHUNK) != shown:
                shown = done // (10 * _CHUNK)
                progress(f"engine: {done >> 20} of {total >> 20 or '?'} MiB from {url}")
    return digest.hexdigest()


def _unpack(archive: IO[bytes], folder: Path) -> None:
    """Take the plain files that we need, by name: nothing in the archive chooses where it lands."""
    with tarfile.open(fileobj=archive, mode="r:gz") as tar:
        for member in tar:
            name = Path(member.name).name
            if member.isfile() and name in FILES:
                content = tar.extractfile(member)
                if content is None:
                    continue
                with content, (folder / name).open("wb") as target:
                    shutil.copyfileobj(content, target, _CHUNK)
                (folder / name).chmod(0o755)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise ReleaseUnavailableError(f"the archive lacks {', '.join(missing)}")
