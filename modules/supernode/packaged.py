"""Where the files that belong to the package lie: beside the checkout's root, or inside the wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """Return the folder that holds templates/, playbooks/, stacks/, tests/rollout/ and Pulumi.yaml.

    In a checkout that is the repository's root; in an installed wheel it is the package's own data folder.
    """
    data = _PACKAGE / "_data"
    return data if data.is_dir() else _PACKAGE.parent.parent
