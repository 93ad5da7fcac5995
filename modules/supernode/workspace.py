"""Folders and documents on the operator's disk: the only place that decides where something lies.

<root>/inventories/<env>/{environment,allocation,machines}.yml   the documents
<root>/inventories/<env>/secrets/                                what nothing can compute again: keys, passwords (0700)
<root>/.supernode/<env>/                                         what a run makes again where it is gone (0700)
<root>/runs/<env>/<run id>/                                      what a run leaves behind
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from supernode import packaged
from supernode.errors import CouldNotRun, WrongInput
from supernode.records import Outputs

DOCUMENTS = ("environment", "allocation", "machines")
SSH_KEY = "ssh_id_ed25519"
# Where secrets lay below .supernode/<env> before they had a folder of their own.
_BEFORE = {
    "ssh/id_ed25519": SSH_KEY,
    "ssh/id_ed25519.pub": f"{SSH_KEY}.pub",
    "serve/ca.key": "serve-ca.key",
    "serve/ca.pem": "serve-ca.pem",
}


def root() -> Path:
    """Return the project folder.

    That is SUPERNODE_ROOT, else the nearest folder with inventories/ at or above the working folder, else that one.
    """
    named = os.environ.get("SUPERNODE_ROOT")
    if named:
        return Path(named).resolve()
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "inventories").is_dir()), here)


@dataclass(frozen=True)
class EnvironmentFolder:
    """One environment on disk.

    Attributes:
        name: the folder's name, which is also the Pulumi stack's.
        folder: the folder that holds environment.yml.
        root: the project folder, under which state and runs are kept.
    """

    name: str
    folder: Path
    root: Path

    @property
    def state(self) -> Path:
        """The folder for what a run makes again where it is gone; made with mode 0700."""
        folder = self.root / ".supernode" / self.name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    @property
    def secrets(self) -> Path:
        """The folder for what nothing can compute again, ignored by git; made with mode 0700, and kept at it.

        What lay below .supernode/<env> in former times is brought over; nothing that lies here is replaced.
        """
        folder = self.folder / "secrets"
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            give(folder, self.folder)
        tighten(folder)
        for old, new in _BEFORE.items():
            before = self.root / ".supernode" / self.name / old
            if before.is_file() and not (folder / new).exists():
                bring_over(before, folder / new)
        return folder

    @property
    def runs(self) -> Path:
        """The folder that holds one folder for each run."""
        return self.root / "runs" / self.name

    @property
    def ssh_key(self) -> str:
        """The reference to the operator's private key, from the environment's folder: the same in every checkout."""
        return f"file:secrets/{SSH_KEY}"

    @property
    def ssh_key_file(self) -> Path:
        """Where that key lies, made or not."""
        return self.secrets / SSH_KEY

    def document(self, name: str) -> Path:
        """Return the path of `environment`, `allocation` or `machines`."""
        return self.folder / f"{name}.yml"

    def texts(self) -> Mapping[str, str]:
        """Read the documents that exist, by name."""
        paths = {name: self.document(name) for name in DOCUMENTS}
        return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.is_file()}

    def write(self, name: str, text: str) -> None:
        """Replace a document whole: a reader or a kill sees the old text or the new, never half of one."""
        write_atomically(self.document(name), text)

    def sweep(self) -> None:
        """Remove what kills left beside the documents; for who holds the environment, so that nobody writes there."""
        for name in DOCUMENTS:
            for left in self.folder.glob(f".{name}.yml.{8 * '?'}"):
                left.unlink(missing_ok=True)


def find(environment: str) -> EnvironmentFolder:
    """Find an environment by name (under inventories/ or inventories/examples/) or by path.

    Raises:
        WrongInput: no folder of that name holds an environment.yml; the hint lists those that do.
    """
    base = root()
    places = [base / "inventories" / environment, base / "inventories" / "examples" / environment, Path(environment)]
    places.append(packaged.root() / "inventories" / "examples" / environment)
    for place in places:
        if (place / "environment.yml").is_file():
            return EnvironmentFolder(place.resolve().name, place.resolve(), base)
    known = sorted(p.parent.name for p in (base / "inventories").glob("**/environment.yml"))
    raise WrongInput(environment, "no such environment", f"known here: {', '.join(known) or 'none'}; a path works too")


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file by way of a temporary one beside it, synced before it takes the name."""
    _written_beside(path, text, mode).replace(path)


def write_once(path: Path, text: str, mode: int) -> None:
    """Write a file like `write_atomically` where none is; of two at once the first one's stays."""
    beside = _written_beside(path, text, mode)
    try:
        with suppress(FileExistsError):
            os.link(beside, path)  # unlike a rename it fails where the name is taken
    finally:
        beside.unlink()


def _written_beside(path: Path, text: str, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    return Path(name)


def bring_over(old: Path, new: Path) -> None:
    """Move a file with its mode and owner, also between file systems; two at once end as one."""
    with suppress(FileNotFoundError):
        found = old.stat()
        write_atomically(new, old.read_text(encoding="utf-8"), found.st_mode & 0o777)
        give(new, old)
        old.unlink()


def tighten(folder: Path) -> None:
    """Close a folder to everyone but its owner, as where a copy or a checkout made it with the usual mode.

    Raises:
        CouldNotRun: it is open to others, and not ours to close.
    """
    mode = folder.stat().st_mode & 0o7777
    if mode & 0o077:
        try:
            folder.chmod(mode & 0o700)
        except OSError as error:
            what = f"holds secrets and is open to others (mode {mode:04o}), and cannot be closed: {error.strerror}"
            raise CouldNotRun(str(folder), what, f"let its owner run `chmod 0700 {folder}`") from error


def give(path: Path, like: Path) -> None:
    """Give what root made to the owner of another file: under sudo, to whoever keeps the environment."""
    if os.geteuid() == 0:
        owner = like.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def hand_over(folder: EnvironmentFolder, since: float = 0.0) -> None:
    """Give what root wrote to whoever keeps the environment, so that every other verb needs no root.

    Args:
        folder: the environment.
        since: seconds since 1970; what was last written or made before it stays whose it is, such as a password that
            somebody keeps for root alone.
    """
    keeper = folder.folder.stat()
    if os.geteuid() != 0 or keeper.st_uid == 0:
        return
    tops = [folder.root / ".supernode", folder.root / "runs", folder.folder]
    written = chain(tops, *(top.rglob("*") for top in tops), (folder.root / "stacks").glob("Pulumi.*.yaml"))
    for path in written:
        with suppress(OSError):  # the server makes and removes files meanwhile; a shared disk may not take root's word
            found = path.lstat()
            if found.st_uid == 0 and found.st_ctime >= since:
                os.chown(path, keeper.st_uid, keeper.st_gid, follow_symlinks=False)


def outputs_file(folder: EnvironmentFolder) -> Path:
    """Return where the outputs of the last provisioning lie."""
    return folder.state / "outputs.json"


def read_outputs(folder: EnvironmentFolder) -> Outputs:
    """Read the outputs that the last provisioning left.

    Raises:
        CouldNotRun: there are none yet, or they are of another version.
    """
    path = outputs_file(folder)
    hint = f"run `supernode bringup {folder.name} --only provision`"
    try:
        return Outputs.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise CouldNotRun(str(path), "nothing was provisioned yet", hint) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CouldNotRun(str(path), f"cannot be read: {error}", hint) from error
