"""Every secret that an environment knows: what a bundle is searched for before it is written.

Nothing is listed by hand: references are found wherever environment.yml holds one, files by the folders that exist to
hold secrets, variables by their names, one-time tokens by the hashes that the boot server keeps.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from supernode import spec
from supernode.clients import secrets, vault
from supernode.clients.needles import is_secret_variable, needles
from supernode.design import Design
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

_PUBLIC = {".pub", ".pem", ".csv", ".lock", ".crt", ".json"}
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)
_AT_ONCE = 16


@dataclass(frozen=True)
class Secrets:
    """What is looked for.

    Attributes:
        forms: for each reference, file or variable, the byte strings that betray it; never shown.
        unknown: what could not be looked for, with the reason: a vault that does not answer, a secret too short.
    """

    forms: Mapping[str, tuple[bytes, ...]]
    unknown: Mapping[str, str]

    def named_in(self, data: bytes) -> list[str]:
        """Name the secrets that stand in these bytes."""
        return [name for name, forms in self.forms.items() if any(form in data for form in forms)]


def known(folder: EnvironmentFolder, design: Design | None) -> Secrets:
    """Resolve every reference and read every file of secrets.

    Args:
        folder: the environment.
        design: None when the documents make none: then no reference of theirs is known, and that is said.
    """
    found, unknown = asyncio.run(_resolved(folder, references(design))) if design else ({}, dict(_NO_DESIGN))
    files = dict(_files(folder))
    unknown |= {name: "cannot be read as text" for name, text in files.items() if text is None}
    found |= {name: text for name, text in files.items() if text} | dict(_variables())
    forms = {name: needles(secret) for name, secret in found.items()}
    unknown |= {name: "too short to look for" for name, each in forms.items() if not each}
    return Secrets({name: each for name, each in forms.items() if each}, unknown)


_NO_DESIGN = {"environment.yml": "makes no design, so its references are not known"}


def references(design: Design) -> list[str]:
    """Return every reference in environment.yml, `{slot}` filled in for each slot of a host."""
    found: dict[str, None] = {}
    for text in spec.references(design.environment):
        slots = [host.slot for host in design.hosts if not host.cloud] if "{slot}" in text else [""]
        found |= dict.fromkeys(text.replace("{slot}", slot) for slot in slots)
    return list(found)


async def _resolved(folder: EnvironmentFolder, refs: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(ref: str) -> str | CouldNotRun:
        async with gate:
            try:
                return await secrets.resolve(ref, folder.folder)
            except CouldNotRun as error:
                return error

    answers = dict(zip(refs, await asyncio.gather(*map(one, refs)), strict=True))
    # A file that is not there holds nothing that could have leaked; a vault that does not answer may.
    unknown = {r: a.what for r, a in answers.items() if isinstance(a, CouldNotRun) and not _absent(folder, r)}
    return {r: a for r, a in answers.items() if isinstance(a, str)}, unknown


def _absent(folder: EnvironmentFolder, ref: str) -> bool:
    scheme, _, rest = ref.partition(":")
    return scheme == "file" and not (folder.folder / Path(rest.strip()).expanduser()).exists()


def _files(folder: EnvironmentFolder) -> Iterator[tuple[str, str | None]]:
    """Read what lies in places that are meant for secrets; None for what cannot be read.

    What is public by its name may hold a private key all the same, as a certificate's file may.
    """
    state = folder.state
    passphrase = os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    places = [state.parent / "passphrase", *([Path(passphrase)] if passphrase else [])]
    places += (state / "serve").glob("*.key")
    places += [path for place in (folder.secrets, folder.folder / "delivery") for path in sorted(place.rglob("*"))]
    places.append(vault.TOKEN_FILE.expanduser())
    for path in dict.fromkeys(places):
        if path.is_file():
            text = _text(path)
            if path.suffix in _PUBLIC:
                text = "\n".join(_PRIVATE.findall(text or ""))
            if text != "":
                yield os.path.relpath(path, folder.root), text


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _variables() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        if is_secret_variable(name) and value:
            yield f"${name}", value
