"""Steps of the end-to-end test: a leak and a frozen cooling unit are named, and the alert reaches a webhook."""

from __future__ import annotations

import http.server
import json
import threading
import time
from urllib.parse import urlsplit

import yaml

LEAK, FROZEN = ("leak", "cdu2:manifold"), ("freeze-cdu", "cdu1")
PATIENCE_S = 90


class Receiver:
    """Listens where the environment's webhook points, beside the boot server, and keeps the alerts that come."""

    def __init__(self, site) -> None:
        url = urlsplit(yaml.safe_load((site.folder / "environment.yml").read_text())["watch"]["webhook"])
        self.alerts: list[dict] = []
        kept = self.alerts

        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                kept.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self._server = http.server.ThreadingHTTPServer((url.hostname, url.port), Hook)

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_how) -> None:
        self._server.shutdown()
        self._server.server_close()

    def heard(self, name: str, **labels: str) -> bool:
        wanted = {"alertname": name, **labels}.items()
        return any(row["status"] == "firing" and wanted <= row["labels"].items() for row in self.alerts)


def spoil(site) -> None:
    """Let one unit leak and the other freeze, and wait until somebody was told of both."""
    with Receiver(site) as receiver:
        for fault in (LEAK, FROZEN):
            site.supernode("lab", "fault", site.name, *fault)
        until = time.monotonic() + PATIENCE_S
        wanted = (("CoolantLeak", {"cdu": "cdu2", "detector": "manifold"}), ("CoolingUnitFrozen", {"cdu": "cdu1"}))
        while not all(receiver.heard(name, **labels) for name, labels in wanted):
            assert time.monotonic() < until, receiver.alerts
            time.sleep(0.5)


def named(findings) -> None:
    """Both are failures by their own names, and no unit's fault hides the other's."""
    found = {row["place"]: row for row in findings if row["check"] == "cooling"}
    assert {place: row["verdict"] for place, row in found.items()} == {"cdu1": "fail", "cdu2": "fail"}
    assert found["cdu2"]["cause"] == "cdu2: leak detected by manifold (critical)"
    assert found["cdu1"]["cause"].startswith("cdu1: is frozen: it answers, and its values stay those of")
    watched = [row for row in findings if row["check"] == "watch"]
    assert {row["verdict"] for row in watched} == {"pass"}, watched
    alerts = next(row for row in watched if row["place"] == "alerts")
    assert "CoolantLeak: cdu2: leak detector manifold says critical" in alerts["found"]


def mend(site) -> None:
    for fault in (LEAK, FROZEN):
        site.supernode("lab", "fault", site.name, *fault, "--clear")
