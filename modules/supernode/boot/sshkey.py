"""The operator's key for an environment's machines: .supernode/<env>/ssh/id_ed25519, made on first use, mode 0600."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from supernode.boot import cache as store
from supernode.workspace import write_atomically


def ensure(folder: Path) -> str:
    """Return the public key ("ssh-ed25519 AAAA… supernode"), making the pair when there is none."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    private = folder / "id_ed25519"
    with store.lock(folder / "key.lock"):
        if not private.is_file():
            made = ed25519.Ed25519PrivateKey.generate()
            text = made.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            ).decode()
            write_atomically(private, text, mode=0o600)
        key = serialization.load_ssh_private_key(private.read_bytes(), None)
        encoded = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        public = f"{encoded.decode()} supernode"
        if not (folder / "id_ed25519.pub").is_file():
            write_atomically(folder / "id_ed25519.pub", f"{public}\n")
    return public
