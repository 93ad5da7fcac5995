"""What the stack program has to know of boot: digests and a path, written before the engine runs and read inside it.

.supernode/<env>/boot.json    {"schema", "design", "image", "ca", "isos": {host: digest}, "serve_ca", "ssh_public_key"}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from supernode.boot import media, sshkey, tls
from supernode.boot.image import ImageRef
from supernode.boot.iso import Base
from supernode.design import Design
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder, write_atomically

_SCHEMA = 1


@dataclass(frozen=True)
class Facts:
    """What was prepared.

    Attributes:
        design: digest of the Design that the media belong to.
        image: digest of the golden image.
        ca: the server's CA certificate, relative to the environment's folder: the same in every checkout.
        isos: digest of each machine's medium, by host name; empty for a quarantined slot without a machine.
        serve_ca, ssh_public_key: the CA's certificate and the operator's public key, as text: what rented hosts, which
            boot from no medium, are told.
    """

    design: str
    image: str
    ca: str
    isos: Mapping[str, str]
    serve_ca: str = ""
    ssh_public_key: str = ""


def write(folder: EnvironmentFolder, design: Design, image: ImageRef, base: Base) -> Facts:
    """Compute the facts of a Design and keep them; makes the server's CA and the operator's key when there are none.

    Raises:
        Refusal: hosts whose slot has no machine bound to it.
        CouldNotRun: one of the two is gone, and machines in service know it.
    """
    identity = tls.ensure(folder, str(design.environment.site.serve.address))
    key = sshkey.ensure(folder)
    trust = tls.trust(folder, identity)
    planned = media.plan(design, image, base.digest, trust, key)
    booted = [host.name for host in design.hosts if not host.cloud]
    isos = {name: planned[name].digest if name in planned else "" for name in booted}
    ca = os.path.relpath(identity.ca, folder.folder)
    facts = Facts(design.digest, image.digest, ca, isos, trust.ca, key)
    write_atomically(_path(folder), json.dumps({"schema": _SCHEMA, **asdict(facts)}, indent=2) + "\n")
    return facts


def read(folder: EnvironmentFolder) -> Facts:
    """Read what `write` kept.

    Raises:
        CouldNotRun: nothing was prepared yet, or by another version.
    """
    path = _path(folder)
    hint = f"run `supernode bringup {folder.name}`, or `supernode image {folder.name}` alone"
    if not path.is_file():
        raise CouldNotRun(str(path), "boot has prepared nothing for this environment yet", hint)
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.pop("schema", None) != _SCHEMA:
        raise CouldNotRun(str(path), "was written by another version", hint)
    return Facts(**document)


def _path(folder: EnvironmentFolder) -> Path:
    return folder.state / "boot.json"
