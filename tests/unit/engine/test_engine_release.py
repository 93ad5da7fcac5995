"""The download, against a server of this machine: what is served, what is refused, what a slow one costs."""

import datetime
import hashlib
import http.server
import io
import ipaddress
import socket
import ssl
import tarfile
import threading
import time
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from engine_scripts import VERSION

from supernode import engine
from supernode.engine import cache, release
from supernode.errors import CouldNotRun


def archive(names=cache.FILES, extra=()):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in [*(f"pulumi/{n}" for n in names), *extra]:
            content = f"#!/bin/sh\necho v{VERSION} {name}\n".encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def serve(tmp_path):
    """Serve a release from a folder; returns a function that starts a server and gives its address."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    servers = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    def start(content=None, checksum=None, context=None):
        name = release.archive_name(VERSION)
        content = archive() if content is None else content
        (folder / name).write_bytes(content)
        digest = checksum or hashlib.sha256(content).hexdigest()
        (folder / f"pulumi-{VERSION}-checksums.txt").write_text(f"{'0' * 64}  other.tar.gz\n{digest}  {name}\n")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_mirror_is_downloaded_and_placed(machine, serve, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", serve() + "/")
    lines = []
    found = engine.ensure(lines.append)
    assert found.source == "mirror"
    assert found.path.read_text().endswith("pulumi/pulumi\n")
    assert {p.name: p.stat().st_mode & 0o777 for p in found.path.parent.iterdir()} == dict.fromkeys(cache.FILES, 0o755)
    assert any("MiB" in line for line in lines)


def fetch(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    release.fetch(VERSION, folder, lambda _line: None)
    return folder


def test_an_archive_other_than_its_checksum_is_refused_before_it_is_unpacked(machine, serve, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", serve(checksum="a" * 64))
    with pytest.raises(release.ReleaseUnavailableError, match="checksum file says aaaa"):
        fetch(machine)
    assert list((machine / "bin").iterdir()) == []


def test_a_checksum_file_without_our_archive_is_refused(machine, serve, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", serve())
    monkeypatch.setattr(release, "archive_name", lambda _version: "pulumi-other.tar.gz")
    with pytest.raises(release.ReleaseUnavailableError, match="does not name pulumi-other"):
        fetch(machine)


def test_nothing_in_the_archive_chooses_where_it_lands(machine, serve, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", serve(archive(extra=["../../pulumi-evil", "/pulumi/../../evil"])))
    folder = fetch(machine)
    assert {p.name for p in folder.iterdir()} == set(cache.FILES)
    assert not list(machine.glob("*evil*"))


def test_a_release_without_its_language_host_is_not_placed(machine, serve, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", serve(archive(names=["pulumi"])))
    with pytest.raises(CouldNotRun):
        engine.ensure(lambda _line: None)
    assert cache.placed(VERSION) is None


def test_a_server_that_says_nothing_is_left_after_the_limit(machine, monkeypatch):
    silent = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(release, "CONNECT_S", 0.3)
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", f"http://127.0.0.1:{silent.getsockname()[1]}")
    began = time.monotonic()
    with pytest.raises(release.ReleaseUnavailableError, match="timed out"):
        fetch(machine)
    assert time.monotonic() - began < 3
    silent.close()


def test_a_resolver_that_never_answers_is_left_after_the_limit(machine, monkeypatch):
    monkeypatch.setattr(release, "CONNECT_S", 0.3)
    monkeypatch.setattr(release.socket, "getaddrinfo", lambda *_: time.sleep(10))
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", "https://mirror.invalid")
    began = time.monotonic()
    with pytest.raises(release.ReleaseUnavailableError, match="not found within"):
        fetch(machine)
    assert time.monotonic() - began < 3


def test_the_limit_on_connecting_is_five_seconds():
    assert release.CONNECT_S == 5.0


@pytest.mark.parametrize("address", ["http://198.18.0.1/x", "http://mirror.example/x", "ftp://127.0.0.1/x"])
def test_a_mirror_in_plain_text_elsewhere_is_wrong_input_and_not_passed_over(machine, monkeypatch, address):
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", address)
    with pytest.raises(CouldNotRun, match="SUPERNODE_ENGINE_MIRROR"):
        engine.ensure(lambda _line: None)


def certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mirror")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "mirror.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


def test_tls_is_verified(machine, serve, monkeypatch):
    pem = certificate(machine)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", serve(context=context))
    with pytest.raises(release.ReleaseUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch(machine)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    assert {p.name for p in fetch(machine).iterdir()} == set(cache.FILES)
