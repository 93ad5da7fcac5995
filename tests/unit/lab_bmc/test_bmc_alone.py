"""`python -m supernode.lab.bmc`: one BMC without a lab, for whoever writes a client."""

from __future__ import annotations

import base64
import json
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path


def start(state: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "supernode.lab.bmc", "--port", "0", "--state", str(state), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_serves_until_it_is_told_to_end_and_keeps_its_password(tmp_path: Path) -> None:
    passwords = []
    for _ in range(2):
        process = start(tmp_path, "--fault", "bmc-slow,delay_s=0.01")
        try:
            assert process.stdout is not None
            url, ca, password = (process.stdout.readline().split()[-1] for _ in range(3))
            context = ssl.create_default_context(cafile=ca)
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:  # noqa: S310 - its own address
                assert json.load(answer)["Product"] == "Lab GPU8 BMC"
            passwords.append(Path(password).read_text())
            assert Path(password).stat().st_mode & 0o777 == 0o600
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.communicate()
    assert passwords[0] == passwords[1]


def test_what_it_cannot_do_is_said_in_one_line(tmp_path: Path) -> None:
    process = start(tmp_path, "--fault", "bmc-gone")
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "no fault 'bmc-gone'" in errors
    assert "Traceback" not in errors


def test_a_saved_tree_is_served_to_whoever_logs_in(tmp_path: Path) -> None:
    place = tmp_path / "tree/redfish/v1/Systems/1"
    place.mkdir(parents=True)
    (place / "index.json").write_text('{"PowerState": "On"}')
    (tmp_path / "tree/redfish/v1/index.json").write_text('{"RedfishVersion": "1.15.0"}')
    process = start(tmp_path / "state", "--replay", str(tmp_path / "tree"))
    try:
        assert process.stdout is not None
        url, ca, password = (process.stdout.readline().split()[-1] for _ in range(3))
        context = ssl.create_default_context(cafile=ca)
        login = base64.b64encode(f"admin:{Path(password).read_text().strip()}".encode()).decode()
        request = urllib.request.Request(f"{url}Systems/1", headers={"Authorization": f"Basic {login}"})  # noqa: S310
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:  # noqa: S310 - its own address
            assert json.load(answer) == {"PowerState": "On"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_folder_without_a_tree_is_refused_in_one_line(tmp_path: Path) -> None:
    process = start(tmp_path / "state", "--replay", str(tmp_path))
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "holds no saved Redfish tree" in errors
    assert "Traceback" not in errors
