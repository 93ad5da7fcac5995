"""What can go wrong, as types.

    SupernodeError
    ├── Refusal       wrong input: nothing was touched                      exit 2
    └── CouldNotRun   the machine, the network or a tool stood in the way   exit 3

A pure stage knows a document and a path inside it, never a line: `spec.locate` turns the path into file:line when the
cli prints.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a document that a person or a tool wrote.

    Attributes:
        path: keys and indexes from the document's root, e.g. ("pools", 0, "count").
        what: one sentence, no full stop, with the offending value.
        hint: how to mend it, or None where the sentence says it.
        document: "environment", "allocation" or "machines".
    """

    path: Path
    what: str
    hint: str | None = None
    document: str = "environment"


class SupernodeError(Exception):
    """Anything supernode reports to a person without a traceback."""

    exit_code = 3


class Refusal(SupernodeError):
    """Wrong input; carries every problem found at once."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(p.what for p in self.problems))


class CouldNotRun(SupernodeError):
    """Something outside the input stood in the way.

    Args:
        where: the file, host, address or tool concerned.
        what: one sentence, no full stop.
        hint: how to mend it.
    """

    def __init__(self, where: str, what: str, hint: str | None = None) -> None:
        self.where, self.what, self.hint = where, what, hint
        super().__init__(f"{where}: {what}")


class WrongInput(CouldNotRun):
    """A name, option or file that the person gave is wrong; nothing was touched."""

    exit_code = 2
