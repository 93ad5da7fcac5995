"""What finds a leaked secret finds one that was leaked on purpose; the real search is part of the slice's bring-up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from base64 import b64encode

import pytest
import secret_watch

pytestmark = pytest.mark.core

SECRET = "planted-" + "a1b2c3d4e5"


def shown_by(arguments, environment):
    """Run a process with these beside its own while a watch looks."""
    with secret_watch.Watch() as watch:
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()", *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
        )
        before = watch.samples
        while watch.samples < before + 3:
            time.sleep(0.02)
        child.communicate()
    return watch.found({"planted": SECRET, "absent": SECRET[::-1]})


@pytest.mark.parametrize(
    ("arguments", "environment", "place"),
    [
        (["-p", SECRET], {}, "cmdline"),
        ([b64encode(f"admin:{SECRET}".encode()).decode()], {}, "cmdline"),
        ([], {"PULUMI_CONFIG_PASSPHRASE": SECRET}, "environ"),
    ],
)
def test_a_secret_that_a_process_shows_is_found(arguments, environment, place):
    (found,) = shown_by(arguments, environment)
    assert found.startswith(f"planted in {place} of process")


@pytest.mark.parametrize(("samples", "seconds"), [(0, 0.0), (0, 60.0), (399, 60.0)])
def test_a_watch_that_hardly_looked_says_so(samples, seconds):
    """Known bad: one that got no time found nothing, and passed."""
    assert secret_watch.Watch(samples, 0.0, seconds).starved()


def test_a_watch_that_looked_often_enough_is_taken():
    assert secret_watch.Watch(400, 0.0, 60.0).starved() == ""


def test_a_watch_whose_samples_hang_is_starved(monkeypatch):
    monkeypatch.setattr(secret_watch.Watch, "sample", lambda _self: time.sleep(0.3))
    with secret_watch.Watch() as watch:
        time.sleep(0.5)
    assert watch.starved()


def test_nothing_is_found_where_nothing_is_shown():
    assert shown_by(["-p", "harmless"], {}) == []


def test_a_secret_in_a_file_is_found_also_across_two_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(secret_watch, "_CHUNK", 64)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "log").write_text("x" * 60 + SECRET)
    (tmp_path / "clean").write_text("x" * 200)
    found = secret_watch.holders(secret_watch.files(tmp_path), {"planted": SECRET, "absent": SECRET[::-1]})
    assert found == [("planted", tmp_path / "inner" / "log")]
