"""What one program on a host printed, before anybody reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MISSING_PROGRAM = 127


class NotSeenError(Exception):
    """A fact could not be observed; its text says why, and the check says unknown."""


@dataclass(frozen=True)
class Raw:
    """Exit status and both outputs of one program."""

    rc: int
    out: str
    err: str = ""

    @property
    def problem(self) -> str:
        """Say in one line why there is no output to read."""
        lines = (self.err or self.out).strip().splitlines()
        return lines[-1] if lines else f"exit status {self.rc}"

    def must(self) -> str:
        """Return the output.

        Raises:
            NotSeenError: the program failed or is not there.
        """
        if self.rc != 0:
            raise NotSeenError(self.problem)
        return self.out

    def json(self) -> Any:
        """Return the output read as JSON.

        Raises:
            NotSeenError: the program failed, or what it printed is no JSON.
        """
        try:
            return json.loads(self.must())
        except ValueError as error:
            raise NotSeenError(f"no JSON: {error}") from error


def answers(text: str) -> dict[str, Raw]:
    """Read what `on_host` printed: its last line, for a login shell may print before it.

    Raises:
        NotSeenError: no such line.
    """
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise NotSeenError("the facts script printed no answer")
    document: Mapping[str, Mapping[str, Any]] = json.loads(lines[-1])
    return {key: Raw(int(row["rc"]), str(row["out"]), str(row["err"])) for key, row in document.items()}
