"""The virtual drive and UEFI's HTTP boot: images loaded over the network, with TLS as the client set it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from supernode.lab import iso
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.state import Medium, State
from supernode.lab.chassis import MediaInfo
from supernode.lab.fetch import FetchFailed, fetch

LIMIT_BYTES = 4 << 30


class Media:
    """One BMC's drive.

    Args:
        folder: takes the image's copy.
    """

    def __init__(self, state: State, folder: Path) -> None:
        self._state, self._folder = state, folder
        self._gate = asyncio.Lock()

    async def insert(self, uri: str, write_protected: bool = True) -> None:
        """Load an image into the drive.

        Raises:
            RedfishError: the drive is not empty, the image cannot be loaded, or TLS is to be verified and cannot be.
        """
        if self._gate.locked() or self._state.medium is not None:
            raise RedfishError("ResourceInUse")
        async with self._gate:
            path = self._folder / f"media-{uuid.uuid4().hex[:8]}.iso"
            trusted = self.trusted("media") if self._state.verify_media_certificate else None
            await self._load(uri, path, trusted)
            self._state.medium = Medium(uri, path.name, write_protected)

    def eject(self) -> None:
        """Empty the drive; nothing happens when it is empty."""
        if self._state.medium is not None:
            (self._folder / self._state.medium.file).unlink(missing_ok=True)
            self._state.medium = None

    async def read(self) -> MediaInfo:
        """Read what is in the drive.

        Raises:
            CouldNotRun: it is no deploy ISO.
        """
        if self._state.medium is None:
            raise ValueError("the drive is empty")
        return await iso.read(self._folder / self._state.medium.file)

    async def http_boot(self, uri: str) -> MediaInfo:
        """Load and read an image as UEFI's HTTP boot does: https always verified, against the enrolled certificates.

        Raises:
            CouldNotRun: it cannot be loaded, or is no deploy ISO.
        """
        path = self._folder / f"http-boot-{uuid.uuid4().hex[:8]}.iso"
        try:
            await fetch(uri, path, self.trusted("boot"), LIMIT_BYTES)
            return await iso.read(path)
        finally:
            path.unlink(missing_ok=True)

    def trusted(self, place: str) -> str:
        """Return the PEM of all certificates that a place ("media", "boot") trusts."""
        return "\n".join(self._state.certificates[place].values())

    async def _load(self, uri: str, path: Path, trusted: str | None) -> None:
        if trusted == "" and uri.lower().startswith("https:"):
            raise RedfishError(
                "CouldNotEstablishConnection", f"{uri}: VerifyCertificate is set and no certificate was uploaded"
            )
        try:
            await fetch(uri, path, trusted, LIMIT_BYTES)
        except FetchFailed as failure:
            if failure.why == "address":
                raise RedfishError("ActionParameterValueNotInList", uri, "Image", "InsertMedia") from failure
            raise RedfishError("CouldNotEstablishConnection", str(failure)) from failure


def add_certificate(certificates: dict[str, str], pem: str) -> str:
    """Take a PEM certificate; returns its id.

    Raises:
        RedfishError: no certificate, more than one, or one that is there already.
    """
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise RedfishError("PropertyValueFormatError", "…", "CertificateString") from error
    if len(found) != 1:
        raise RedfishError("PropertyValueFormatError", f"{len(found)} certificates", "CertificateString")
    digest = found[0].fingerprint(hashes.SHA256())
    if any(
        x509.load_pem_x509_certificate(t.encode()).fingerprint(hashes.SHA256()) == digest for t in certificates.values()
    ):
        raise RedfishError("ResourceAlreadyExists", "Certificate", "fingerprint", digest.hex())
    number = max((int(each) for each in certificates), default=0) + 1
    certificates[str(number)] = pem
    return str(number)


def describe_certificate(pem: str) -> Mapping[str, object]:
    """Return the properties of Redfish's Certificate resource."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return {
        "CertificateString": pem,
        "CertificateType": "PEM",
        "Issuer": {"CommonName": _common_name(certificate.issuer)},
        "Subject": {"CommonName": _common_name(certificate.subject)},
        "ValidNotBefore": certificate.not_valid_before_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "ValidNotAfter": certificate.not_valid_after_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "SerialNumber": certificate.serial_number.to_bytes(20).hex(":"),
        "Fingerprint": certificate.fingerprint(hashes.SHA256()).hex(":"),
        "FingerprintHashAlgorithm": "TPM_ALG_SHA256",
    }


def _common_name(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""
