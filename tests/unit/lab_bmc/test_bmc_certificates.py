"""The lab's BMC authority: what it makes, and when it makes it again."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from bmc_bench import bench
from cryptography import x509

from supernode.lab.bmc import certificates
from supernode.lab.bmc.certificates import Authority


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_certificate_names_its_address_and_its_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    authority.issue(tmp_path / "r01u01", "bmc-r01u01", "198.18.2.11")
    made = load(tmp_path / "r01u01/bmc.pem")
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("198.18.2.11")]
    made.verify_directly_issued_by(load(authority.certificate))
    for key in (tmp_path / "ca/ca.key", tmp_path / "r01u01/bmc.key"):
        assert key.stat().st_mode & 0o777 == 0o600


def test_what_is_there_and_fits_is_kept(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    for _ in range(2):
        authority.issue(tmp_path / "b", "b", "198.18.2.11")
    before = (tmp_path / "b/bmc.pem").read_bytes(), authority.certificate.read_bytes()
    Authority(tmp_path / "ca").issue(tmp_path / "b", "b", "198.18.2.11")
    assert before == ((tmp_path / "b/bmc.pem").read_bytes(), authority.certificate.read_bytes())


@pytest.mark.parametrize("cause", ["address", "authority", "age"])
def test_what_does_not_fit_is_made_again(tmp_path: Path, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path / "ca")
    if cause == "age":
        monkeypatch.setattr(certificates, "LIFE", timedelta(days=20))
    authority.issue(tmp_path / "b", "b", "198.18.2.11")
    before = (tmp_path / "b/bmc.pem").read_bytes()
    monkeypatch.undo()
    if cause == "authority":
        for each in (tmp_path / "ca").iterdir():
            each.unlink()
    authority.issue(tmp_path / "b", "b", "198.18.2.12" if cause == "address" else "198.18.2.11")
    assert (tmp_path / "b/bmc.pem").read_bytes() != before
    load(tmp_path / "b/bmc.pem").verify_directly_issued_by(load(authority.certificate))


def test_a_client_trusts_it_by_the_authority_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "one") as b:
            host, port = b.fleet.address("r01u01")
            good = ssl.create_default_context(cafile=str(b.fleet.authority.certificate))
            _, writer = await asyncio.open_connection(host, port, ssl=good)
            writer.close()
            another = Authority(tmp_path / "another")
            another.ensure()
            for context in (ssl.create_default_context(cafile=str(another.certificate)), ssl.create_default_context()):
                with pytest.raises(ssl.SSLCertVerificationError):
                    await asyncio.open_connection(host, port, ssl=context)

    asyncio.run(scenario())
