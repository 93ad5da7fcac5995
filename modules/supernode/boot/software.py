"""The part of an environment that decides what an image holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Software(Protocol):
    """`environment.software`, or anything of its shape.

    Attributes:
        suite: the Debian release, e.g. "bookworm".
        kernel: the kernel's package, e.g. "linux-image-cloud-amd64".
        packages: what hosts install from the site's mirror after they are up.
    """

    @property
    def suite(self) -> str: ...  # noqa: D102 - said above
    @property
    def kernel(self) -> str: ...  # noqa: D102
    @property
    def packages(self) -> Sequence[str]: ...  # noqa: D102
