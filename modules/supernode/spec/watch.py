"""The section `watch`: who scrapes every host, and whom an alert reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from supernode.errors import Problem
from supernode.spec.parts import Document, Name, Reference

if TYPE_CHECKING:
    from supernode.spec.environment import Environment


# RFC 3986, section 2: all characters of a URI. No other ends the quotes that it stands in.
_PRINTED = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")


def _plain(url: str) -> str:
    if not _PRINTED.fullmatch(url):
        raise ValueError("holds a blank, a quote or another character that an address has none of; write it as %XX")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is no http:// or https:// address")
    if parts.username or parts.password or parts.query:
        # The value is not repeated: it may hold the secret itself.
        raise ValueError("carries an account or a query; a secret has no place in this file, watch.token takes one")
    return url


class Watch(Document):
    """Prometheus and Alertmanager.

    Attributes:
        pool: that on whose first active host both run.
        webhook: the address to which alerts are posted as JSON.
        token: what the webhook wants as a bearer token, where it wants one.
    """

    pool: Name
    webhook: Annotated[str, AfterValidator(_plain), Field(max_length=512)]
    token: Reference | None = None


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what is wrong with the pool that the section names, and a token that everybody on the way could read."""
    pools = [pool.name for pool in env.pools]
    if env.watch is not None and env.watch.pool not in pools:
        what = f"the watch is to run in pool {env.watch.pool}, which does not exist"
        yield Problem(("watch", "pool"), what, f"pools: {', '.join(dict.fromkeys(pools))}")
    if env.watch is not None and env.watch.token is not None and not env.watch.webhook.lower().startswith("https:"):
        what = "the token would go to the webhook in clear text"
        yield Problem(("watch", "webhook"), what, "an address that begins with https://, or no token")
