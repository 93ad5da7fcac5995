"""What most say, and who says otherwise: one fault must not bend what a whole cluster shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Vote(Generic[T]):
    """The value that most places show.

    Attributes:
        count, total: how many show it, of how many that show any.
        others: (place, value) of the rest.
    """

    value: T
    count: int
    total: int
    others: tuple[tuple[str, T], ...] = ()

    @property
    def sure(self) -> bool:
        """More than half agree."""
        return 2 * self.count > self.total

    @property
    def how(self) -> str:
        """Say it in a few words."""
        return f"{self.count} of {self.total}"


def vote(rows: Iterable[tuple[str, T]]) -> Vote[T] | None:
    """Count what places show; None where none shows anything. Of two that are as frequent, the one met first wins."""
    listed = list(rows)
    if not listed:
        return None
    value, count = Counter(value for _, value in listed).most_common(1)[0]
    return Vote(value, count, len(listed), tuple(row for row in listed if row[1] != value))
