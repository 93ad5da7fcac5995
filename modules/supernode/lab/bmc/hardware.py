"""What a BMC must know of its server's kind; `supernode.catalog.ServerKind` fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class BiosAttribute(Protocol):
    """One setting.

    `type` is Enumeration, Integer, Boolean or String in any case; `values` are what an enumeration may
    be, or (low, high) of an integer.
    """

    @property
    def type(self) -> str: ...  # noqa: D102 - see the class
    @property
    def default(self) -> Any: ...  # noqa: D102
    @property
    def values(self) -> Collection[Any]: ...  # noqa: D102


class Disk(Protocol):
    """The disk of a kind of the catalogue."""

    @property
    def size_gb(self) -> int: ...  # noqa: D102 - see catalog.Disk


class Kind(Protocol):
    """A server kind of the catalogue."""

    @property
    def name(self) -> str: ...  # noqa: D102 - see catalog.ServerKind
    @property
    def vendor(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def disk(self) -> Disk: ...  # noqa: D102
    @property
    def gpus(self) -> int: ...  # noqa: D102
    @property
    def gpu(self) -> str: ...  # noqa: D102
    @property
    def power_w(self) -> float | None: ...  # noqa: D102
    @property
    def bios(self) -> Mapping[str, BiosAttribute]: ...  # noqa: D102
    @property
    def firmware(self) -> Mapping[str, str]: ...  # noqa: D102


@dataclass(frozen=True)
class Habits:
    """How this BMC behaves where real ones differ.

    Attributes:
        sessions: how many may stand at once (iDRAC 8; OpenBMC 64).
        session_limit_status: the answer to one more: 503 as the Base registry says, 400 as some iDRACs answer.
        if_match: resources that refuse a PATCH without If-Match (AMI's BMCs do so on settings), as path prefixes.
        tasks: changes that become a task (202) instead of being done when the answer comes: some of `kinds.REQUESTS`.
        password_change: the first account must change its password before anything else.
        manager_reset_s: how long the BMC is silent when it is reset.
        lockout_after: failed logins in a row that lock an account; 0 never does.
        lockout_s: how long it stays locked.
    """

    sessions: int = 8
    session_limit_status: int = 503
    if_match: tuple[str, ...] = ("/redfish/v1/Systems/1/Bios/Settings", "/redfish/v1/AccountService/Accounts/")
    tasks: tuple[str, ...] = ()
    password_change: bool = False
    manager_reset_s: float = 5.0
    lockout_after: int = 5
    lockout_s: float = 30.0
