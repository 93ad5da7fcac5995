"""The site's own CA and the certificate of `supernode serve`.

    secrets/serve-ca.{pem,key}                 the CA that media, seeds, hosts and the provider trust; made once
    .supernode/<env>/serve/leaf.{pem,key}      what the server shows; made anew when the CA or the address changes or
                                               the year is nearly over

Keys are mode 0600, and RSA: UEFI firmware that boots over HTTPS may know no elliptic curves (OVMF 2022.11 offers RSA
and DHE suites alone). Certificates begin in 2020: a machine whose clock lost its battery still has to verify them.
"""

from __future__ import annotations

import datetime
import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from supernode.boot import cache as store
from supernode.boot import kept
from supernode.boot.media import SiteTrust
from supernode.workspace import EnvironmentFolder, give, write_atomically

_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_KEY_BITS = 2048
_CA_FOR = datetime.timedelta(days=3650)
_LEAF_FOR = datetime.timedelta(days=397)
_RENEW_BEFORE = datetime.timedelta(days=30)
_LOST = (
    "put serve-ca.key and serve-ca.pem back from a copy, both of them. If they are lost: `supernode serve {name} "
    "--new-ca`; machines in service reach no package mirror then, until they are installed anew or get the new "
    "serve-ca.pem as /etc/supernode/ca.pem"
)


@dataclass(frozen=True)
class Identity:
    """Where the CA's certificate and the server's own pair lie."""

    ca: Path
    certificate: Path
    key: Path


def ensure(folder: EnvironmentFolder, address: str, *, anew: bool = False) -> Identity:
    """Return the identity of a server at `address`, making what is missing or does not fit.

    Args:
        folder: the environment.
        address: the IP address that clients connect to.
        anew: a person knows that the CA is lost and has one made all the same; one that is there stays.

    Raises:
        CouldNotRun: the CA is gone, and machines in service trust it alone.
    """
    own, ca_key = folder.state / "serve", folder.secrets / "serve-ca.key"
    own.mkdir(parents=True, exist_ok=True, mode=0o700)
    identity = Identity(folder.secrets / "serve-ca.pem", own / "leaf.pem", own / "leaf.key")
    with store.lock(own / "tls.lock"):
        missing = [path for path in (ca_key, identity.ca) if not path.is_file()]
        if missing:
            if not anew:
                kept.refuse_anew(folder, missing[0], "trust that CA alone", _LOST.format(name=folder.name))
            _make_ca(folder.name, identity.ca, ca_key)
            for path in (identity.ca, ca_key):
                give(path, folder.folder)
        if not _fits(identity, address):
            _make_leaf(identity, ca_key, address)
    return identity


def trust(folder: EnvironmentFolder, identity: Identity) -> SiteTrust:
    """Return what the site's media rest on; their secret comes from the CA's key, and the key not from the secret."""
    key = (folder.secrets / "serve-ca.key").read_bytes()
    secret = hmac.digest(key, b"supernode: addresses of media", "sha256").hex()
    return SiteTrust(identity.ca.read_text(encoding="utf-8"), secret)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _fits(identity: Identity, address: str) -> bool:
    if not (identity.certificate.is_file() and identity.key.is_file()):
        return False
    leaf = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
    ca = x509.load_pem_x509_certificate(identity.ca.read_bytes())
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    fits = ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress) and _signed(leaf, ca)
    return fits and leaf.not_valid_after_utc - _now() > _RENEW_BEFORE


def _signed(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _make_ca(name: str, certificate: Path, private: Path) -> None:
    key = rsa.generate_private_key(65537, _KEY_BITS)
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"supernode {name} {x509.random_serial_number():x}"[:64])]
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_now() + _CA_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    _write_key(private, key)
    _write_certificate(certificate, builder.sign(key, hashes.SHA256()))


def _make_leaf(identity: Identity, ca_key: Path, address: str) -> None:
    ca = x509.load_pem_x509_certificate(identity.ca.read_bytes())
    signer = serialization.load_pem_private_key(ca_key.read_bytes(), None)
    if not isinstance(signer, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):  # older CAs are of the second kind
        raise TypeError(f"{ca_key} is neither an RSA nor an elliptic-curve key")
    key = rsa.generate_private_key(65537, _KEY_BITS)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_now() + _LEAF_FOR)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    _write_key(identity.key, key)
    _write_certificate(identity.certificate, builder.sign(signer, hashes.SHA256()))


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=not signs,  # for the RSA suites
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: rsa.RSAPrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_atomically(path, pem.decode(), mode=0o600)


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    write_atomically(path, certificate.public_bytes(serialization.Encoding.PEM).decode())
