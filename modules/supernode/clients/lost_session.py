"""Which session a login made whose answer was lost: it would hold one of a BMC's few until it lapses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from supernode.clients.answer import Json


def candidates(sessions: Mapping[str, Json], ours: str, account: str, within_s: float) -> list[str]:
    """Pick the sessions of our account that were made in the seconds up to the making of ours, by the BMC's clock."""
    made = {path: _moment(document.get("CreatedTime")) for path, document in sessions.items()}
    mine = made.get(ours)
    if mine is None:
        return []
    return [
        path
        for path, at in made.items()
        if path != ours
        and at is not None
        and timedelta(0) <= mine - at <= timedelta(seconds=within_s)
        and sessions[path].get("UserName") == account
        and sessions[path].get("ClientOriginIPAddress") == sessions[ours].get("ClientOriginIPAddress")
    ]


def _moment(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
