"""The operator's key for an environment's machines: secrets/ssh_id_ed25519, made on first use, mode 0600."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from supernode.boot import cache as store
from supernode.boot import kept
from supernode.workspace import EnvironmentFolder, give, write_atomically


def ensure(folder: EnvironmentFolder) -> str:
    """Return the public key ("ssh-ed25519 AAAA… supernode"), making the pair when there is none.

    Raises:
        CouldNotRun: there is none, and machines in service accept the lost one alone.
    """
    private = folder.ssh_key_file
    public = private.with_name(f"{private.name}.pub")
    lock = folder.state / "key.lock"
    with store.lock(lock):
        give(lock, folder.folder)
        if not private.is_file():
            kept.refuse_anew(folder, private, "accept no other", _LOST.format(key=private))
            _make(folder, private)
        key = serialization.load_ssh_private_key(private.read_bytes(), None)
        encoded = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        text = f"{encoded.decode()} supernode"
        if not public.is_file():
            write_atomically(public, f"{text}\n")
            give(public, folder.folder)
    return text


_LOST = (
    "put it back from a copy. If it is lost: make one (ssh-keygen -t ed25519 -N '' -f {key}), and place its .pub in "
    "authorized_keys of the machines by another way in; or have them installed anew, by --reinstall"
)


def _make(folder: EnvironmentFolder, private: Path) -> None:
    made = ed25519.Ed25519PrivateKey.generate()
    text = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    ).decode()
    write_atomically(private, text, mode=0o600)
    give(private, folder.folder)
