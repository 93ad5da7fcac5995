"""Our own account on a controller: where it is, how long its password may be, and giving it another one.

After DSP0266, "Password change required handling": an account whose password must be changed may read and patch itself
and nothing else, and the refusal names its address.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from supernode.clients.redfish import ROOT, Ambiguous, Redfish, RedfishError
from supernode.errors import CouldNotRun

SERVICE = "/redfish/v1/AccountService"
# What nearly every controller takes (IPMI 2.0 keeps 20 bytes), and 120 bits: for one that does not say.
LENGTH = 20
LONGEST = 128  # whatever it asks for


async def own(client: Redfish) -> str:
    """Return the path of the account that the client is logged in with.

    Raises:
        CouldNotRun: the controller lists no account of this name.
    """
    if not client.account:
        try:
            return await _listed(client)
        except RedfishError:
            if not client.account:  # else it just told
                raise
    return client.account


async def _listed(client: Redfish) -> str:
    root = await client.get(ROOT)
    service = await client.get(_link(root, "AccountService") or SERVICE)
    for account in await client.members(_link(service, "Accounts") or f"{SERVICE}/Accounts"):
        if account.get("UserName") == client.username:
            return str(account["@odata.id"])
    raise CouldNotRun(client.address, f"lists no account {client.username!r}, which it let in")


def _link(resource: Mapping[str, object], name: str) -> str:
    held = resource.get(name)
    return str(held.get("@odata.id") or "") if isinstance(held, Mapping) else ""


async def length(client: Redfish) -> int:
    """Return how long a new password should be: LENGTH, or as near to it as the controller's own limits let it be."""
    try:
        service = await client.get(SERVICE)
    except RedfishError:  # it may not be read before the password is changed
        return LENGTH
    least, most = (service.get(f"{name}PasswordLength") for name in ("Min", "Max"))
    shortest = least if isinstance(least, int) else 0
    longest = most if isinstance(most, int) and most > 0 else LENGTH
    # Shorter than 8 is no password at all; a controller that wants it is refused.
    return min(max(shortest, min(LENGTH, longest), 8), LONGEST)


def make_password(length: int) -> str:
    """Return a random password that also meets the usual rules: three kinds of characters, none thrice in a row."""
    made = ""
    while not _varied(made):
        made = secrets.token_urlsafe(length)[:length]
    return made


def _varied(text: str) -> bool:
    kinds = all(any(kind(c) for c in text) for kind in (str.isupper, str.islower, str.isdigit))
    thrice = any(a == b == c for a, b, c in zip(text, text[1:], text[2:], strict=False))
    return kinds and text[0].isalnum() and not thrice


async def set_password(client: Redfish, account: str, username: str, password: str) -> str:
    """Give an account another password, and another name where it has another; sent once.

    Whether it holds, only a login can tell: an answer may be lost, and some controllers answer 400 to what they did.

    Returns:
        what the controller said against it; "" for nothing.
    """
    client.conceal(password)
    body = {"Password": password} if username == client.username else {"UserName": username, "Password": password}
    try:
        await client.get(account)  # for its ETag
        await client.patch(account, body, once=True)
    except (RedfishError, Ambiguous) as error:
        return error.what
    return ""
