"""What of this package, and of others, travels to hosts inside a Debian package of ours: `supernode-cooling`.

Its files are found by following imports from the agent's first module, so that none is forgotten and none goes along
that is not needed. The version names the content: whoever knows the package knows what hosts install.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources

AGENT = "supernode-cooling"
FIRST = "supernode.telemetry.__main__"
OURS = "supernode"
THEIRS = ("prometheus-client", "pymodbus")  # pure Python, in the versions of the operator's locked environment
DEPENDS = ("python3 (>= 3.11)", "python3-aiohttp", "python3-yaml")  # what Debian has, and what is compiled
_DIGITS = 12
_DATA = {"supernode.catalog": "data"}  # a module's folder of files that it reads


@dataclass(frozen=True)
class Carried:
    """One file: where it stands below the package's own folder of modules, and its bytes."""

    path: str
    data: bytes


@cache
def files() -> tuple[Carried, ...]:
    """Return every file of the agent, ours and theirs, in the order of their paths."""
    return tuple(sorted((*_ours(), *_theirs()), key=lambda file: file.path))


@cache
def version() -> str:
    """Return the Debian package's version: ours, and a digest of all that it carries."""
    digest = hashlib.sha256("\n".join(DEPENDS).encode())
    for file in (*packaging(), *files()):
        digest.update(f"{file.path}\0{len(file.data)}\0".encode() + file.data)
    return f"{metadata.version(OURS)}+{digest.hexdigest()[:_DIGITS]}"


def packaging() -> tuple[Carried, ...]:
    """Return what makes it a package and a service, the unit and what runs when it is installed, by their names."""
    folder = resources.files(OURS).joinpath("boot", "own")
    own = (entry for entry in folder.iterdir() if entry.name.startswith(f"{AGENT}."))
    return tuple(sorted((Carried(entry.name, entry.read_bytes()) for entry in own), key=lambda file: file.path))


def modules() -> dict[str, bytes]:
    """Return our modules that the agent needs, by name: those that its first one imports, and those that they do."""
    found: dict[str, bytes] = {}
    left = [FIRST]
    while left:
        name = left.pop()
        if name in found or (source := _source(name)) is None:
            continue
        found[name] = source
        left += [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]
        left += _imported(ast.parse(source))
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of ours that this one may import at run time; `from a import b` may mean the module a.b."""
    typing_only = {id(node) for block in ast.walk(tree) if _is_for_typing(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == OURS)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == OURS:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_for_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _source(name: str) -> bytes | None:
    at = resources.files(OURS).joinpath(*name.split(".")[1:])
    for place in (at.joinpath("__init__.py"), at.parent.joinpath(f"{at.name}.py") if name != OURS else at):  # type: ignore[attr-defined]
        if place.is_file():
            return bytes(place.read_bytes())
    return None


def _is_package(name: str) -> bool:
    return resources.files(OURS).joinpath(*name.split(".")[1:], "__init__.py").is_file()


def _ours() -> Iterator[Carried]:
    for name, source in modules().items():
        path = name.replace(".", "/")
        yield Carried(f"{path}/__init__.py" if _is_package(name) else f"{path}.py", source)
        if folder := _DATA.get(name):
            for entry in resources.files(name).joinpath(folder).iterdir():
                if entry.is_file():
                    yield Carried(f"{path}/{folder}/{entry.name}", entry.read_bytes())


def _theirs() -> Iterator[Carried]:
    for name in THEIRS:
        for file in metadata.files(name) or ():
            if ".." not in file.parts and _is_theirs(file.as_posix()):
                yield Carried(file.as_posix(), file.read_binary())


def _is_theirs(path: str) -> bool:
    """Tell code and licences from what an installer noted, which differs from one machine to the next."""
    return path.endswith((".py", ".dist-info/METADATA")) or ".dist-info/licenses/" in path
