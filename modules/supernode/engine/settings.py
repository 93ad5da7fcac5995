"""What an engine is started with: where state lies, how its secrets are locked, and that it fetches nothing."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from pathlib import Path

from supernode import workspace
from supernode.engine.acquire import Engine, find
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

_PASSPHRASE = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")
_WRONG_PASSPHRASE = re.compile(
    r"incorrect passphrase|passphrase must be set|could not create secrets manager.*passphrase", re.I | re.S
)


def environment(folder: EnvironmentFolder, engine: Engine | None = None) -> dict[str, str]:
    """Return the variables to lay over the process's own before an engine starts, from here or from a person's shell.

    State goes to `<root>/.supernode/pulumi`, and a passphrase file is made on first use (mode 0600); a backend or
    passphrase that the process's environment names stays, as does a PULUMI_HOME.

    Args:
        folder: the environment whose stacks are meant; every environment of a project shares state and passphrase.
        engine: None: the one `find` sees; without any, PATH stays as it is.
    """
    settings = {
        "PULUMI_BACKEND_URL": os.environ.get("PULUMI_BACKEND_URL") or _own_backend(folder.root),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "SUPERNODE_ROOT": str(folder.root),
        "SUPERNODE_PYTHON": sys.executable,
    }
    if not any(os.environ.get(name) for name in _PASSPHRASE):
        settings["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_passphrase_file(folder.root))
    engine = engine or find()
    if engine is not None:
        settings["PATH"] = f"{engine.path.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return settings


def _own_backend(root: Path) -> str:
    """Return the URL of the state on disk, without the sidecar files that the engine's library would lay beside it.

    A state takes its name in one step, its sidecar (`.attrs`: a content type, nothing else) is written in place: an
    engine that was killed there leaves half of one, and no engine reads that state again ("failed to load checkpoint").
    So none are written, and half ones of former times are removed: without a sidecar a state is whole.
    """
    state = root / ".supernode" / "pulumi"
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    for sidecar in state.rglob("*.attrs"):
        try:
            json.loads(sidecar.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            sidecar.unlink(missing_ok=True)
    return f"file://{state}?metadata=skip"


def _passphrase_file(root: Path) -> Path:
    path = root / ".supernode" / "passphrase"
    if not path.exists():
        workspace.write_once(path, secrets.token_urlsafe(32) + "\n", mode=0o600)
    return path


def renew_passphrase(folder: EnvironmentFolder, stacks: Path) -> list[str]:
    """Make a passphrase in place of one that is gone, and let the stacks that it locked take the new one.

    What a stack's file keeps of a passphrase (its salt) fits that one alone; without it the engine makes another. The
    state holds no secret. A file with an encrypted value, which only a person can have put there, stays as it is.

    Args:
        folder: an environment of the project.
        stacks: the folder of the project's stack files.

    Returns:
        The stacks whose old passphrase is given up.
    """
    path = folder.root / ".supernode" / "passphrase"
    if path.exists() or any(os.environ.get(name) for name in _PASSPHRASE):
        return []
    freed = []
    for file in sorted(stacks.glob("Pulumi.*.yaml")):
        text = file.read_text(encoding="utf-8")
        kept = re.sub(r"^encryptionsalt:.*\n?", "", text, flags=re.M)
        if kept != text and not re.search(r"^\s+secure:", text, flags=re.M):
            workspace.write_atomically(file, kept)
            freed.append(file.name.removeprefix("Pulumi.").removesuffix(".yaml"))
    _passphrase_file(folder.root)
    return freed


def wrong_passphrase(output: str, stack: str, settings: dict[str, str]) -> CouldNotRun | None:
    """Turn the engine's complaint about a passphrase into one that says which file, which stack and how to re-key.

    Returns None when the complaint is another.
    """
    if not _WRONG_PASSPHRASE.search(output):
        return None
    merged = {**os.environ, **settings}
    file = merged.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    where = file if file and not os.environ.get("PULUMI_CONFIG_PASSPHRASE") else "PULUMI_CONFIG_PASSPHRASE"
    return CouldNotRun(
        where,
        f"this passphrase does not open the state of stack {stack}",
        "put back the passphrase that the stack was made with. To re-key, with the old one in a file OLD: "
        "PULUMI_CONFIG_PASSPHRASE_FILE=OLD supernode shell ENVIRONMENT, in it "
        f"pulumi stack change-secrets-provider passphrase -s {stack}, and write the new one to {where}. "
        f"If the old one is lost: the state holds no secret, and without stacks/Pulumi.{stack}.yaml the engine takes "
        "the new one",
    )
