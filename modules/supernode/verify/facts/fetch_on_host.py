"""Runs on a host with Debian's python3 alone: fetches pages of its own services, until they say nothing is pending.

    python3 -c <this text> SECONDS PENDING URL...

One JSON document: {"at": the host's clock, "pages": {url: text}, "errors": {url: why}}. PENDING is a regular
expression; as long as a page matches it, or does not come at all, it is fetched again, for so many seconds.
"""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.request

MOST = 8 << 20


def fetch(url: str) -> str:
    """Return one page; no proxy of the environment is asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        text: str = answer.read(MOST).decode()
    return text


def main() -> None:
    """Fetch until all is settled, or the time is over."""
    limit_s, pending, urls = float(sys.argv[1]), re.compile(sys.argv[2]), sys.argv[3:]
    until = time.monotonic() + limit_s
    while True:
        pages: dict[str, str] = {}
        errors: dict[str, str] = {}
        for url in urls:
            try:
                pages[url] = fetch(url)
            except (OSError, ValueError) as error:
                errors[url] = str(error)
        if time.monotonic() > until or not (errors or any(pending.search(text) for text in pages.values())):
            break
        time.sleep(1)
    sys.stdout.write(json.dumps({"at": time.time(), "pages": pages, "errors": errors}) + "\n")


if __name__ == "__main__":
    main()
