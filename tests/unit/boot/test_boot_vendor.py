"""What the site's mirror takes from a vendor: real apt, a really signed repository, and keys that did not sign it."""

from __future__ import annotations

import contextlib
import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from supernode.boot import mirror
from supernode.boot.vendor import Vendor
from supernode.errors import CouldNotRun
from supernode.lab.vendor import repository

PINNED = f"{repository.PACKAGE}={repository.VERSION}-{repository.REVISION}"
INSTALLED = "Package: python3\nStatus: install ok installed\nVersion: 3.11.2\nArchitecture: amd64\n\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vendor")
    repository.build(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def image(tmp_path):
    """An image that has python3, and a distribution's archive that is empty."""
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "dpkg-status").write_text(INSTALLED)
    (folder / "sources.list").write_text("")
    (folder / "lock").write_text("python3=3.11.2\n")
    return SimpleNamespace(path=folder / "image", lock=folder / "lock")


def vendor(served, key: str | None = None, package: str = PINNED) -> Vendor:
    folder, url = served
    text = (folder / repository.KEY).read_text() if key is None else key
    return Vendor("gpu_driver.source", url, folder / repository.KEY, text, "./", (), (package,))


def built(image, tmp_path, made: Vendor):
    work = tmp_path / "mirror"
    work.mkdir()
    software = SimpleNamespace(suite="none", kernel="", packages=made.packages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "127.0.0.1")
        mirror._build(software, image, work, [made])
    return work


def test_a_package_that_the_vendor_signed_is_in_the_mirror(served, image, tmp_path):
    work = built(image, tmp_path, vendor(served))
    assert [path.name for path in work.glob("*.deb")] == [f"{PINNED.replace('=', '_')}_all.deb"]
    assert f"Version: {repository.VERSION}-1" in (work / "Packages").read_text()


def test_a_repository_that_another_key_signed_is_refused(served, image, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    repository.build(other)
    with pytest.raises(CouldNotRun, match=r"not signed|NO_PUBKEY"):
        built(image, tmp_path, vendor(served, (other / repository.KEY).read_text()))


def test_an_index_that_was_changed_after_it_was_signed_is_refused(served, image, tmp_path):
    folder, _ = served
    index = folder / "Packages"
    kept = index.read_text()
    try:
        index.write_text(kept.replace("Section: admin", "Section: wrong"))
        with pytest.raises(CouldNotRun, match="apt-get"):
            built(image, tmp_path, vendor(served))
    finally:
        index.write_text(kept)


def test_only_the_pinned_version_will_do(served, image, tmp_path):
    with pytest.raises(CouldNotRun, match="was not found"):
        built(image, tmp_path, vendor(served, package=f"{repository.PACKAGE}=550.90.07-1"))


def test_a_key_that_is_not_there_is_asked_for(served, image, tmp_path):
    with pytest.raises(CouldNotRun, match=r"the key of gpu_driver\.source is not there"):
        built(image, tmp_path, vendor(served, key=""))


def test_another_key_is_another_mirror_and_no_vendor_leaves_it_as_it_was(served, image):
    software = SimpleNamespace(suite="none", packages=(PINNED,))
    digests = {mirror._digest(software, image, v) for v in ([], [vendor(served)], [vendor(served, key="other")])}
    assert len(digests) == 3


def test_nothing_of_the_key_is_left_behind(served):
    with contextlib.suppress(FileNotFoundError):
        assert not [path for path in served[0].iterdir() if "secret" in path.name or path.suffix == ".key"]
    assert {path.suffix for path in served[0].iterdir()} == {"", ".gpg", ".asc", ".deb"}
