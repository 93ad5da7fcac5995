"""The lab's BMC authority and the certificates that it signs, kept on disk."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from supernode import workspace

LIFE = datetime.timedelta(days=825)
RENEW_BEFORE = datetime.timedelta(days=30)


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder: `ca.pem` to hand out, `ca.key` (0600) to sign with.

    Attributes:
        folder: where both lie.
    """

    folder: Path

    @property
    def certificate(self) -> Path:
        """The authority's own certificate, which a client is given."""
        return self.folder / "ca.pem"

    def ensure(self) -> None:
        """Make key and certificate where they are missing or near their end."""
        if _fresh(self.certificate) and (self.folder / "ca.key").is_file():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("supernode lab BMC authority")
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        _write(self.folder / "ca.key", _private(key), 0o600)
        _write(self.certificate, _pem(builder.sign(key, hashes.SHA256())), 0o644)

    def issue(self, folder: Path, name: str, address: str) -> ssl.SSLContext:
        """Return a server context for one address; its certificate is made where missing or for another address.

        Args:
            folder: takes bmc.pem and bmc.key (0600).
            name: the certificate's common name.
            address: IPv4 or IPv6, which becomes the subject alternative name.
        """
        self.ensure()
        certificate, private = folder / "bmc.pem", folder / "bmc.key"
        if not (_fresh(certificate) and private.is_file() and self._fits(certificate, address)):
            self._sign(certificate, private, name, address)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, private)
        return context

    def _sign(self, certificate: Path, private: Path, name: str, address: str) -> None:
        authority = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority's key is not of the kind that this module makes")
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(name), authority.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        )
        _write(private, _private(key), 0o600)
        _write(certificate, _pem(builder.sign(signer, hashes.SHA256())), 0o644)

    def _fits(self, path: Path, address: str) -> bool:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        authority = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        try:
            certificate.verify_directly_issued_by(authority)
        except Exception:  # any failure, whatever its type, means: issue a new one
            return False
        return ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _fresh(path: Path) -> bool:
    if not path.is_file():
        return False
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.not_valid_after_utc - RENEW_BEFORE > datetime.datetime.now(datetime.UTC)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    workspace.write_atomically(path, data.decode("ascii"), mode)
