"""What a survey leaves on disk: proposed documents, saved trees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supernode.errors import WrongInput
from supernode.workspace import write_atomically

INDEX = "index.json"


def refuse_overwriting(folder: Path, names: tuple[str, ...], *, force: bool) -> None:
    """Say before anything is looked at that documents lie there already.

    Raises:
        WrongInput: with what lies there.
    """
    there = [name for name in names if (folder / f"{name}.yml").exists()]
    if there and not force:
        what = f"holds {', '.join(f'{name}.yml' for name in there)} already"
        raise WrongInput(str(folder), what, "name another folder, or overwrite with --force")


def write_documents(folder: Path, documents: Mapping[str, str]) -> tuple[Path, ...]:
    """Write documents; return where."""
    paths = {folder / f"{name}.yml": text for name, text in documents.items()}
    for path, text in paths.items():
        write_atomically(path, text)
    return tuple(paths)


def write_tree(folder: Path, tree: Mapping[str, Any]) -> int:
    """Write a scrubbed tree in the layout of the DMTF's mockups; return how many resources it has.

    Raises:
        WrongInput: the folder holds a tree already, or a path would leave the folder.
    """
    if (folder / "redfish").exists():
        raise WrongInput(str(folder), "holds a saved tree already", "name another folder")
    for path, document in tree.items():
        parts = [part for part in path.split("/") if part]
        if ".." in parts or "\0" in path:
            raise WrongInput(path, "is no path of a resource", "the BMC names it")
        write_atomically(folder.joinpath(*parts, INDEX), json.dumps(document, indent=2) + "\n")
    return len(tree)


def folder_of(address: str) -> str:
    """Return what the folder of one of several controllers is called."""
    return address.replace(":", "_")
