"""What a sheet says, row by row, with the lines it says it on."""

from __future__ import annotations

from dataclasses import dataclass

from supernode.errors import SupernodeError


@dataclass(frozen=True)
class Row:
    """One cable as the sheet has it: names as written, blank cells of merged ones filled in.

    Attributes:
        lines: where it stands, from 1; two in a .topo file, where each switch tells of the cable.
        length_m: None where the sheet says none.
    """

    lines: tuple[int, ...]
    a_device: str
    a_port: str
    b_device: str
    b_port: str
    cable: str = ""
    length_m: float | None = None


class Unreadable(SupernodeError):
    """A sheet or a map of columns that cannot be read; each problem with its line, 0 for none."""

    exit_code = 2

    def __init__(self, problems: list[tuple[int, str]], hint: str = "") -> None:
        self.problems, self.hint = tuple(problems), hint
        super().__init__("; ".join(what for _, what in problems))
