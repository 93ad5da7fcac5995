"""The virtual drive and UEFI's HTTP boot: images loaded over the network, with TLS as the client set it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from supernode.errors import CouldNotRun
from supernode.lab import iso
from supernode.lab.bmc.faults import Faults
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.state import Medium, State
from supernode.lab.chassis import MediaInfo
from supernode.lab.fetch import FetchFailed, fetch

LIMIT_BYTES = 4 << 30
NOT_THERE = "not-there"  # the file of a medium that has none
STRANGER = "https://198.51.100.7/rescue/tools.iso"


class Media:
    """One BMC's drive.

    Args:
        folder: takes the image's copy.
        now: the BMC's own time, which certificates must be valid at.
    """

    def __init__(self, state: State, folder: Path, faults: Faults, now: Callable[[], float]) -> None:
        self._state, self._folder, self._faults, self._now = state, folder, faults, now
        self._gate = asyncio.Lock()
        self.space = ""  # the network namespace that it loads from; the process's own where empty

    async def insert(self, uri: str, write_protected: bool = True) -> None:
        """Load an image into the drive.

        Raises:
            RedfishError: the drive is not empty, the image cannot be loaded, or TLS is to be verified and cannot be.
        """
        if self._gate.locked() or self._state.medium is not None:
            raise RedfishError("ResourceInUse")
        ignored = self._faults.get("bmc-media-ignored")
        if ignored is not None:
            self._state.medium = Medium(uri, NOT_THERE, write_protected) if ignored["shows"] == "inserted" else None
            return
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

    @property
    def types(self) -> tuple[str, ...]:
        """What the drive takes."""
        fault = self._faults.get("bmc-one-slot")
        return ("USBStick",) if fault is not None and fault["holds"] == "usb" else ("CD", "DVD")

    def occupy(self) -> None:
        """Let somebody else's image be in the drive, if that is what the fault is."""
        fault = self._faults.get("bmc-one-slot")
        if fault is not None and fault["holds"] == "stranger":
            self.eject()
            self._state.medium = Medium(STRANGER, NOT_THERE)

    def vacate(self) -> None:
        """Let the stranger take it out again."""
        if self._state.medium is not None and self._state.medium.uri == STRANGER:
            self.eject()

    async def read(self) -> MediaInfo:
        """Read what is in the drive.

        Raises:
            CouldNotRun: it is no deploy ISO.
        """
        if self._state.medium is None:
            raise ValueError("the drive is empty")
        if self._state.medium.file == NOT_THERE:
            raise CouldNotRun(self._state.medium.uri, "nothing is served from the drive")
        return await iso.read(self._folder / self._state.medium.file)

    async def http_boot(self, uri: str) -> MediaInfo:
        """Load and read an image as UEFI's HTTP boot does: https always verified, against the enrolled certificates.

        Raises:
            CouldNotRun: it cannot be loaded, or is no deploy ISO.
        """
        path = self._folder / f"http-boot-{uuid.uuid4().hex[:8]}.iso"
        try:
            await fetch(uri, path, self.trusted("boot"), LIMIT_BYTES, self.space)
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
        if trusted and uri.lower().startswith("https:") and (early := _not_yet_valid(trusted, self._now())):
            raise RedfishError("CouldNotEstablishConnection", f"{uri}: its certificate is not valid before {early}")
        try:
            await fetch(uri, path, trusted, LIMIT_BYTES, self.space)
        except FetchFailed as failure:
            if failure.why == "address":
                raise RedfishError("ActionParameterValueNotInList", uri, "Image", "InsertMedia") from failure
            raise RedfishError("CouldNotEstablishConnection", str(failure)) from failure


def _not_yet_valid(pem: str, now: float) -> str:
    """Return when the first of these certificates begins, if that is still to come; "" when it is past."""
    begins = [each.not_valid_before_utc for each in x509.load_pem_x509_certificates(pem.encode())]
    return "" if min(begins).timestamp() <= now else min(begins).strftime("%Y-%m-%dT%H:%M:%SZ")


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
