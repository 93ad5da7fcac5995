"""What a controller tells its machine's firmware, written where OVMF keeps it: a boot option and what TLS trusts."""

from __future__ import annotations

import ssl
import struct
import uuid
from pathlib import Path

GLOBAL = uuid.UUID("8be4df61-93ca-11d2-aa0d-00e098032b8c")  # EFI_GLOBAL_VARIABLE
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")  # EFI_CERT_X509_GUID
STORE = uuid.UUID("aaf32c78-947b-439a-a180-2e144ec37792")  # gEfiAuthenticatedVariableGuid
LASTING = 0x7  # non-volatile, boot service, runtime
ADDED = 0x3F  # the variable's header and data are valid


def boot_next_from(template: Path, target: Path, uri: str) -> None:
    """Copy an empty variable store and make one boot from a URI the next one, as BootSourceOverride Once does."""
    image = bytearray(template.read_bytes())
    at = image.index(STORE.bytes_le) + 28  # the header of the store, then its variables
    for name, data in (("Boot0042", _option("HTTP boot", uri)), ("BootNext", struct.pack("<H", 0x42))):
        record = _variable(name, data)
        assert image[at : at + len(record)] == b"\xff" * len(record), "the store is not empty"
        image[at : at + len(record)] = record
        at += len(record)
    target.write_bytes(image)


def _variable(name: str, data: bytes) -> bytes:
    """Return one AUTHENTICATED_VARIABLE_HEADER with name and data, padded as the store is."""
    text = (name + "\0").encode("utf-16-le")
    head = struct.pack("<HBBIQ16sIII", 0x55AA, ADDED, 0, LASTING, 0, bytes(16), 0, len(text), len(data))
    record = head + GLOBAL.bytes_le + text + data
    return record + b"\xff" * (-len(record) % 4)


def _option(title: str, uri: str) -> bytes:
    """Return an EFI_LOAD_OPTION whose path is the short form of a URI: any network port will do."""
    node = struct.pack("<BBH", 3, 24, 4 + len(uri)) + uri.encode()
    path = node + struct.pack("<BBH", 0x7F, 0xFF, 4)
    return struct.pack("<IH", 1, len(path)) + (title + "\0").encode("utf-16-le") + path


def trust(pem: str) -> bytes:
    """Return the signature list that OVMF takes from fw_cfg etc/edk2/https/cacerts."""
    der = ssl.PEM_cert_to_DER_cert(pem)
    entry = uuid.uuid5(uuid.NAMESPACE_URL, "supernode").bytes_le + der
    return X509.bytes_le + struct.pack("<III", 28 + len(entry), 0, len(entry)) + entry
