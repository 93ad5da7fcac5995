"""What to look for when a text, a file or a process must not hold a secret: the secret itself and its usual dresses."""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse
from xml.sax.saxutils import escape

_TELLING = re.compile(r"PASSWORD|PASSPHRASE|TOKEN|SECRET|ACCESS_KEY", re.IGNORECASE)
SHORTEST = 6  # a shorter one is found in innocent places, and proves nothing where it is not


def needles(secret: str) -> tuple[bytes, ...]:
    """Return the byte strings that betray a secret; none for one that is too short to look for.

    Those are the secret as it is, as JSON (once and within a text of JSON), Python, HTML, XML and a URL write it, in
    hexadecimal, and in base64 at each of the three places that it can take within a longer text (`user:password`). Of a
    private key it is the lines that hold the private part: the first line of each kind is the same in all keys, and the
    last may be a few characters.
    """
    if "PRIVATE KEY-----" in secret:
        body = [line.strip() for line in secret.splitlines() if line.strip() and not line.startswith("-----")]
        return tuple(line.encode() for line in (body[1:-1] or body))
    raw = secret.strip().encode()
    if len(raw) < SHORTEST:
        return ()
    text = secret.strip()
    spelled = [json.dumps(text)[1:-1], json.dumps(json.dumps(text))[3:-3], repr(text)[1:-1]]
    spelled += [html.escape(text), html.escape(text, quote=False), escape(text, {'"': "&quot;"})]
    spelled += [urllib.parse.quote(raw, safe=""), urllib.parse.quote(raw), urllib.parse.quote_plus(raw)]
    forms = [raw, *(form.encode() for form in spelled)]
    forms += [raw.hex().encode(), raw.hex().upper().encode(), *_in_base64(raw)]
    return tuple(dict.fromkeys(forms))


def is_secret_variable(name: str) -> bool:
    """Tell whether an environment variable of this name holds a secret; one that names a file of it does not."""
    return _TELLING.search(name) is not None and not name.endswith("_FILE")


def _in_base64(raw: bytes) -> list[bytes]:
    """Encode at each offset within a group of three bytes, and keep the digits that no neighbour has a part in."""
    found = []
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        digits = base64.b64encode(bytes(offset) + raw)[first : (offset + len(raw)) * 8 // 6]
        found += [digits, digits.translate(bytes.maketrans(b"+/", b"-_"))]
    return found
