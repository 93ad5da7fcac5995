"""A machine's own report, read from the server that it reported to (docs/contracts.md, section 5)."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from supernode.clients.exchange import printable
from supernode.errors import CouldNotRun

FAILED = {"failed", "error"}


@dataclass(frozen=True)
class Enrolment:
    """What a machine last said of itself.

    Attributes:
        phase: "deploy" or "firstboot".
        state: as reported; one of FAILED when the phase went wrong.
        host_keys: its public keys in authorized_keys form.
        image: digest of the image that it wrote; empty when it does not say.
        at: when the server took the report, in seconds since the epoch; 0 when it does not say.
    """

    phase: str
    state: str
    detail: str
    host_keys: tuple[str, ...]
    image: str
    at: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the machine reported a failure."""
        return self.state.lower() in FAILED

    @property
    def complete(self) -> bool:
        """Whether the first boot is over and the host's keys are known."""
        return self.phase == "firstboot" and self.state == "ok" and bool(self.host_keys)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Enrolment:
        """Read the record's JSON."""
        keys = tuple(" ".join(str(k).split()[:2]) for k in document.get("host_keys") or ())
        phase, state, detail, image = (str(document.get(k) or "") for k in ("phase", "state", "detail", "image"))
        return cls(phase, state, printable(detail), keys, image, float(document.get("at") or 0))


async def fetch(url: str, context: ssl.SSLContext, limit_s: float = 10.0) -> Enrolment | None:
    """Fetch the record at `url`; None when the machine has not reported yet.

    Raises:
        CouldNotRun: the server does not answer, its certificate does not verify, or it answers something else.
    """
    limit = aiohttp.ClientTimeout(total=limit_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(url, ssl=context, allow_redirects=False) as answer,
        ):
            if answer.status == 404:
                return None
            if answer.status != 200:
                raise CouldNotRun(url, f"answers {answer.status}", "is `supernode serve` running for this environment?")
            return Enrolment.of(await answer.json(content_type=None))
    except (aiohttp.ClientError, TimeoutError, ValueError, AttributeError) as error:
        hint = "is `supernode serve` running, and is media.ca its CA?"
        raise CouldNotRun(url, f"gives no record: {type(error).__name__}: {error}", hint) from error
