"""The pump itself, two processes over loopback: what it counts is what was offered, and it says who did not answer."""

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from supernode.units import MbitPerS
from supernode.verify.facts import device, flows


def start(request: dict) -> subprocess.Popen[str]:
    argv = shlex.split(device.command("pump_on_host", request))
    assert argv[0] == "python3"
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def flow(**other) -> flows.Flow:
    row = {
        "key": "a:rail0>b:rail0",
        "source": ("a", "rail0"),
        "target": ("b", "rail0"),
        "source_address": "127.0.0.1",
        "target_address": "127.0.0.1",
        "cables": (("C00001", "up"), ("C00002", "down")),
        "rate": MbitPerS(10),
        "mtu": 9000,
    }
    return flows.Flow(**{**row, **other})


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(flows, "WARM_S", 0.2)
    monkeypatch.setattr(flows, "WINDOWS", 1)
    monkeypatch.setattr(flows, "CONNECT_S", 3)


def test_a_flow_is_measured_between_two_processes(short):
    row = flow()
    asked = flows.requests([row], 0.9)
    jobs = {name: start(request) for name, request in asked.items()}
    outputs = {name: job.communicate(timeout=30)[0] for name, job in jobs.items()}
    measured = flows.parse([row], outputs, 0.5)[0]
    assert measured.rate is not None
    assert 5 < measured.rate < 12


def test_a_partner_that_is_not_there_is_said_and_no_rate_is_made_up(short):
    row = flow()
    job = start(flows.requests([row], 0.9)["a"])
    outputs = {"a": job.communicate(timeout=30)[0], "b": ""}
    measured = flows.parse([row], outputs, 0.9)[0]
    assert (measured.rate, measured.why) == (None, "Connection refused")


def test_an_address_that_is_not_ours_fails_alone(short):
    row = flow(source_address="192.0.2.77")
    job = start(flows.requests([row], 0.9)["a"])
    failed = json.loads(job.communicate(timeout=30)[0])["failed"]
    assert "Cannot assign requested address" in failed[row.key]


def answers(received: list[float], offered: list[float]) -> dict[str, str]:
    key = flow().key
    as_bytes = [[int(rate * 1e6 / 8) for rate in rates] for rates in (received, offered)]
    return {
        "a": json.dumps({"served": {}, "offered": {key: as_bytes[1]}, "failed": {}}),
        "b": json.dumps({"served": {key: as_bytes[0]}, "offered": {}, "failed": {}}),
    }


def test_the_median_window_counts():
    measured = flows.parse([flow()], answers([9.5, 0.1, 9.4, 9.5, 9.6], [9.5] * 5), 0.9)[0]
    assert measured.rate == pytest.approx(9.5)


def test_a_cable_that_loses_is_slow():
    measured = flows.parse([flow()], answers([3.0] * 5, [9.5] * 5), 0.9)[0]
    assert measured.rate == pytest.approx(3.0)


def test_a_sender_that_could_not_keep_its_pace_says_nothing_about_the_cable():
    measured = flows.parse([flow()], answers([3.0] * 5, [3.0] * 5), 0.9)[0]
    assert (measured.rate, measured.why) == (None, "the sender managed only 3 Mbit/s")


def test_the_offer_lies_between_the_floor_and_what_would_queue():
    assert flows.offer(0.9) == pytest.approx(0.95)
    assert flows.offer(0.99) == pytest.approx(0.985)


def test_it_ends_when_whoever_asked_is_gone_and_not_for_want_of_an_asker():
    request = flows.requests([flow()], 0.9)["b"]
    argv = shlex.split(device.command("pump_on_host", {**request, "connect_s": 3600}))
    left = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wait_until_it_listens()
    assert left.poll() is None
    left.stdin.close()
    assert left.wait(20) == 0
    alone = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    wait_until_it_listens()
    with pytest.raises(subprocess.TimeoutExpired):
        alone.wait(0.2)
    alone.kill()
    alone.wait()


def wait_until_it_listens():
    end = time.monotonic() + 20
    while f"0100007F:{flows.PORT:04X} " not in Path("/proc/net/udp").read_text():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)
