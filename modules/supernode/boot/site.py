"""What one environment's server knows: computed from the documents on disk, again whenever they or the image change."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from supernode import design as designing
from supernode import spec
from supernode.boot import cache as store
from supernode.boot import enrolment, image, iso, media, mirror, sshkey, tls, vendor
from supernode.boot.enrolment import Enrolment
from supernode.boot.image import ImageRef
from supernode.boot.iso import Base
from supernode.boot.media import Medium, SiteTrust
from supernode.design import Design
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder


@dataclass(frozen=True)
class Known:
    """What the documents say, and what is built for them.

    Attributes:
        mirror: the folder of the package mirror; None until it is built.
    """

    design: Design
    image: ImageRef
    base: Base
    mirror: Path | None


class Site:
    """One environment, for its server; methods block and may be called from any thread.

    Args:
        folder: the environment.
        cache: where image, deploy parts and mirror lie.
    """

    def __init__(self, folder: EnvironmentFolder, cache: Path | None = None) -> None:
        self.folder = folder
        self.enrolment = Enrolment(folder.state)
        self._cache = cache or store.default()
        self._lock = threading.Lock()
        self._texts: Mapping[str, str] = {}
        self._known: Known | None = None

    def design(self) -> Design:
        """Return the Design of the documents as they are now.

        Raises:
            Refusal: they are wrong.
        """
        return designing.build(spec.read(self.folder.texts(), name=self.folder.name))

    def known(self) -> Known:
        """Return the present state of documents and image.

        Raises:
            Refusal: the documents are wrong.
            CouldNotRun: the image is not built yet.
        """
        with self._lock:
            texts = self.folder.texts()
            if self._known is None or self._known.mirror is None or texts != self._texts:
                self._known = self._compute(texts)
                self._texts = texts
            return self._known

    def _compute(self, texts: Mapping[str, str]) -> Known:
        design = designing.build(spec.read(texts, name=self.folder.name))
        made = image.find(design.software(), self._cache)
        if made is None:
            hint = f"run `supernode image {self.folder.name}`"
            raise CouldNotRun("golden image", "is not built yet for these documents", hint)
        repository = mirror.find(design.software(), made, self._cache, vendor.of(design, self.folder.folder))
        return Known(design, made, iso.base(made, self._cache), repository.path if repository else None)

    def iso(self, host: str, digest: str) -> Path | None:
        """Return a machine's medium: made now, with a new token, when the host is armed; else the one made then.

        None when the documents make no such medium (see `offers`), or when the host is not armed and the token of its
        last medium is dead: a controller that mounts its drive again, and whoever else knows the address, gets nothing.
        """
        planned = self.medium(host)
        if planned is None or planned.digest != digest:
            return None
        path = self.folder.state / "serve" / "iso" / host / f"{digest}.iso"
        with enrolment.making(self.folder.state, host):
            if enrolment.armed(self.folder.state, host):
                for old in path.parent.glob("*.iso"):
                    old.unlink()
                token = self.enrolment.issue(host)
                iso.build(self.known().base, planned.seed, self.trust().ca, token, planned.arguments, path)
                enrolment.disarm(self.folder.state, host)  # last: what was killed on the way is made anew
            elif not (path.is_file() and self.enrolment.alive(host)):
                return None
        return path

    def offers(self, host: str, digest: str) -> bool:
        """Return whether the documents make this medium of this host, whether it can be had now or not."""
        planned = self.medium(host)
        return planned is not None and planned.digest == digest

    def admits(self, address: str) -> bool:
        """Return whether an address may have media: one of the controllers' network or the machines'."""
        environment = self.known().design.environment
        found = [environment.networks_of(pool) for pool in environment.pools]
        return any(ipaddress.ip_address(address) in row.cidr for n in found for row in (n.bmc, n.management))

    def medium(self, host: str) -> Medium | None:
        """Return what a machine's medium holds; None when the documents have no such host, or it is rented."""
        known = self.known()
        try:
            rented = known.design.host(host).cloud
        except KeyError:
            return None
        if rented:
            return None
        key = sshkey.ensure(self.folder)
        return media.medium(known.design, host, known.image, known.base.digest, self.trust(), key)

    def trust(self) -> SiteTrust:
        """Return the server's CA, and what makes the media's addresses."""
        serve = self.known().design.environment.site.serve
        return tls.trust(self.folder, tls.ensure(self.folder, str(serve.address)))
