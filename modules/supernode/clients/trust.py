"""Whom to trust behind an address: a certificate that the site's CA signed, exactly the pinned one, or both.

Nothing is sent before the certificate was found good: aiohttp looks at it between the handshake and the first request.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from dataclasses import dataclass

import aiohttp

from supernode.errors import CouldNotRun

LIMIT_S = 15.0
_PIN = re.compile(r"[0-9a-f]{64}")


class Untrusted(CouldNotRun):
    """The BMC's certificate does not verify against the site's CA or is not the pinned one, or there is neither."""


@dataclass(frozen=True)
class Trust:
    """What a certificate must be.

    Attributes:
        context: verifies it against a CA, and the address against its names; None where only the pin counts.
        pin: SHA-256 of the certificate (DER) in hexadecimal; "" for none.
    """

    context: ssl.SSLContext | None
    pin: str

    def connector(self, connections: int) -> aiohttp.TCPConnector:
        """Return a connector that checks the pin; `verifying` adds the CA, request by request."""
        pinned = aiohttp.Fingerprint(bytes.fromhex(self.pin)) if self.pin else None
        return aiohttp.TCPConnector(ssl=pinned or self.verifying, limit=connections, keepalive_timeout=30)

    @property
    def verifying(self) -> ssl.SSLContext | aiohttp.Fingerprint:
        """What each request is given."""
        return self.context or aiohttp.Fingerprint(bytes.fromhex(self.pin))


def tls(ca: str | None) -> ssl.SSLContext:
    """Return a verifying context for a CA given as PEM text; None means the system's own store.

    Raises:
        CouldNotRun: the text holds no certificate.
    """
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        raise CouldNotRun("ca", f"holds no usable certificate: {error}") from error


def trust(address: str, ca: ssl.SSLContext | str | None, pin: str) -> Trust:
    """Return what the certificate behind an address must be.

    Raises:
        Untrusted: neither a CA nor a pin is known.
        CouldNotRun: a CA or a pin that is none.
    """
    if pin and not _PIN.fullmatch(pin):
        raise CouldNotRun(address, f"{pin[:80]!r} is no fingerprint of a certificate", "SHA-256, 64 hexadecimal digits")
    if not pin and ca is None:
        hint = (
            f"`supernode survey {address}` prints its certificate's fingerprint, and `supernode assign ENVIRONMENT "
            "SLOT --bmc-fingerprint F` pins it; or give bmc.ca in environment.yml"
        )
        raise Untrusted(address, "neither a CA nor a fingerprint says what its certificate should be", hint)
    return Trust(tls(ca) if isinstance(ca, str) else ca, pin)


def changed(address: str, error: aiohttp.ServerFingerprintMismatch) -> Untrusted:
    """Say that another certificate was shown than the pinned one, with both fingerprints."""
    what = f"its certificate is not the pinned one: pinned {error.expected.hex()}, shown {error.got.hex()}"
    hint = (
        "was it renewed, or the controller exchanged? See for yourself, then pin the new one: "
        "`supernode assign ENVIRONMENT SLOT --bmc-fingerprint F`; else somebody stands in between"
    )
    return Untrusted(address, what, hint)


async def fingerprint(address: str) -> str:
    """Return the SHA-256 of the certificate shown at `host` or `host:port`, in hexadecimal; nothing is sent, no secret.

    What it returns proves nothing yet: somebody who can tell (a sheet, the machine's own screen) has to agree.

    Raises:
        CouldNotRun: nobody answers there, or not with TLS.
    """
    host, port = _split(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(LIMIT_S):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, TimeoutError) as error:
        why = "no answer" if isinstance(error, TimeoutError) else str(error)
        raise CouldNotRun(address, f"shows no certificate: {why}") from error
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    return hashlib.sha256(shown).hexdigest()


def _split(address: str) -> tuple[str, int]:
    """Take host and port apart: `10.0.0.1`, `10.0.0.1:443`, `[fd00::1]:443`, `fd00::1`."""
    if address.count(":") > 1 and not address.startswith("["):
        return address, 443
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        return address.strip("[]"), 443
    return host.strip("[]"), int(port)
