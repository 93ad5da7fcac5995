"""A secret is found in each of its dresses, and an innocent text holds none."""

import base64
import html
import json
import urllib.parse
from xml.sax.saxutils import escape

import pytest
from ssh_server import new_key

from supernode.clients.needles import is_secret_variable, needles

SECRET = 'p+ss/w"rd?&=é<\\1'
DRESSES = {
    "raw": SECRET.encode(),
    "json": json.dumps({"Password": SECRET}).encode(),
    "url": urllib.parse.urlencode({"password": SECRET}).encode(),
    "json in json": json.dumps({"output": json.dumps({"Password": SECRET})}).encode(),
    "python": repr({"password": SECRET}).encode(),
    "html": html.escape(SECRET).encode(),
    "xml": escape(SECRET).encode(),
    "path of a url": urllib.parse.quote(SECRET).encode(),
    "hexadecimal": SECRET.encode().hex().encode(),
    **{f"basic {user}": base64.b64encode(f"{user}:{SECRET}@x".encode()) for user in ("admin", "root1", "a-user1")},
    **{f"url-safe {pad}": base64.urlsafe_b64encode(b"x" * pad + SECRET.encode()) for pad in range(3)},
}


@pytest.mark.parametrize("dress", DRESSES)
def test_found(dress):
    assert any(needle in DRESSES[dress] for needle in needles(SECRET))


@pytest.mark.parametrize("dress", DRESSES)
def test_another_secret_is_not_taken_for_it(dress):
    assert not any(needle in DRESSES[dress] for needle in needles(SECRET[::-1]))


def test_a_private_key_is_known_by_its_private_part_alone():
    private, public = new_key()
    other, _ = new_key()
    assert any(needle in private.replace("\n", "\\n").encode() for needle in needles(private))
    assert not any(needle in other.encode() for needle in needles(private))
    assert not any(needle in public.get_base64().encode() for needle in needles(private))


def test_too_short_to_look_for():
    assert needles("admin") == ()


def test_which_variables_hold_secrets():
    names = ["PULUMI_CONFIG_PASSPHRASE", "VAULT_TOKEN", "AWS_SECRET_ACCESS_KEY", "bmc_password"]
    innocent = ["PULUMI_CONFIG_PASSPHRASE_FILE", "HOME", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "PATH"]
    assert [name for name in [*names, *innocent] if is_secret_variable(name)] == names
