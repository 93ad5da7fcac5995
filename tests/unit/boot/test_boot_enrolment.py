"""Tokens are spent once, and a machine's word is kept only with a live one."""

import json
import os
import stat

import pytest

from supernode.boot import enrolment
from supernode.boot.enrolment import Answer, Enrolment

STARTED = {"phase": "deploy", "state": "started", "detail": "", "host_keys": [], "image": "ab"}
DONE = {"phase": "firstboot", "state": "ok", "detail": "", "host_keys": ["ssh-ed25519 AAAA"], "image": "ab"}


@pytest.fixture
def site(tmp_path):
    return Enrolment(tmp_path)


def test_a_token_takes_deploy_reports_and_one_first_boot(site):
    token = site.issue("gpu-001")
    assert site.report("gpu-001", token, STARTED) is Answer.ACCEPTED
    assert site.report("gpu-001", token, {**STARTED, "state": "ok"}) is Answer.ACCEPTED
    assert site.alive("gpu-001")
    assert site.report("gpu-001", token, DONE) is Answer.ACCEPTED
    assert not site.alive("gpu-001")
    found = site.read("gpu-001")
    assert (found["phase"], found["host_keys"], found["host"]) == ("firstboot", ["ssh-ed25519 AAAA"], "gpu-001")


def test_a_spent_token_neither_deploys_nor_enrols_other_keys(site):
    token = site.issue("gpu-001")
    site.report("gpu-001", token, DONE)
    assert site.report("gpu-001", token, STARTED) is Answer.REFUSED
    assert site.report("gpu-001", token, {**DONE, "host_keys": ["ssh-ed25519 EVIL"]}) is Answer.REFUSED
    assert site.read("gpu-001")["host_keys"] == ["ssh-ed25519 AAAA"]


def test_the_same_report_again_is_refused_and_changes_nothing(site):
    token = site.issue("gpu-001")
    site.report("gpu-001", token, DONE)
    before = site.read("gpu-001")
    assert site.report("gpu-001", token, DONE) is Answer.REFUSED
    assert site.read("gpu-001") == before


def test_a_failed_first_boot_does_not_spend_the_token(site):
    token = site.issue("gpu-001")
    assert site.report("gpu-001", token, {**DONE, "state": "failed", "host_keys": []}) is Answer.ACCEPTED
    assert site.alive("gpu-001")


def test_a_new_token_ends_the_one_before(site):
    old = site.issue("gpu-001")
    new = site.issue("gpu-001")
    assert site.report("gpu-001", old, STARTED) is Answer.REFUSED
    assert site.report("gpu-001", new, STARTED) is Answer.ACCEPTED


def test_one_machines_token_is_nothing_to_another(site):
    token = site.issue("gpu-001")
    site.issue("gpu-002")
    assert site.report("gpu-002", token, STARTED) is Answer.REFUSED
    assert site.report("gpu-003", token, STARTED) is Answer.REFUSED
    assert site.read("gpu-002") is None


def test_a_token_grows_old(site, monkeypatch):
    token = site.issue("gpu-001")
    now = enrolment.time.time()
    monkeypatch.setattr(enrolment.time, "time", lambda: now + enrolment.TOKEN_FOR_S + 1)
    assert not site.alive("gpu-001")
    assert site.report("gpu-001", token, STARTED) is Answer.REFUSED


@pytest.mark.parametrize(
    "document",
    [
        None, [], {}, {**STARTED, "phase": "other"}, {**STARTED, "state": "fine"}, {**STARTED, "detail": 7},
        {**STARTED, "detail": "x" * 5000}, {**DONE, "host_keys": []}, {**DONE, "host_keys": "ssh-ed25519 AAAA"},
        {**DONE, "host_keys": ["k"] * 50}, {**DONE, "host_keys": ["garbage"]}, {**DONE, "host_keys": [""]},
        {**DONE, "host_keys": ["ssh-ed25519 AAAA\n* ssh-ed25519 EVIL"]},
    ],
)  # fmt: skip
def test_what_is_no_report_is_not_kept(site, document):
    token = site.issue("gpu-001")
    assert site.report("gpu-001", token, document) is Answer.MALFORMED
    assert site.read("gpu-001") is None


def test_the_disk_holds_no_token(site, tmp_path):
    token = site.issue("gpu-001")
    site.report("gpu-001", token, {**DONE, "extra": token})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert all(token not in path.read_text() for path in files)
    record = tmp_path / "serve/tokens/gpu-001.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert len(json.loads(record.read_text())["hash"]) == 64


def test_a_strangers_names_leave_no_file(site, tmp_path):
    for name in ("gpu-009", "anything"):
        assert site.report(name, "guess", STARTED) is Answer.REFUSED
    assert list(tmp_path.rglob("*")) == []


def test_host_keys_stay_until_the_next_first_boot_is_done(site):
    site.report("gpu-001", site.issue("gpu-001"), DONE)
    token = site.issue("gpu-001")
    for report in (STARTED, {**STARTED, "state": "ok"}, {**DONE, "state": "failed", "host_keys": ["ssh-ed25519 HALF"]}):
        assert site.report("gpu-001", token, report) is Answer.ACCEPTED
        found = site.read("gpu-001")
        assert (found["phase"], found["state"]) == (report["phase"], report["state"])
        assert found["host_keys"] == ["ssh-ed25519 AAAA"]
    site.report("gpu-001", token, {**DONE, "host_keys": ["ssh-ed25519 BBBB"]})
    assert site.read("gpu-001")["host_keys"] == ["ssh-ed25519 BBBB"]


def test_a_mark_is_private_and_grows_old(tmp_path, monkeypatch):
    assert not enrolment.armed(tmp_path, "gpu-001")
    enrolment.arm(tmp_path, "gpu-001")
    assert stat.S_IMODE((tmp_path / "serve/armed/gpu-001").stat().st_mode) == 0o600
    assert enrolment.armed(tmp_path, "gpu-001")
    assert not enrolment.armed(tmp_path, "gpu-002")
    now = enrolment.time.time()
    with monkeypatch.context() as later:
        later.setattr(enrolment.time, "time", lambda: now + enrolment.ARMED_FOR_S + 1)
        assert not enrolment.armed(tmp_path, "gpu-001")
    for _ in range(2):
        enrolment.disarm(tmp_path, "gpu-001")
    assert not enrolment.armed(tmp_path, "gpu-001")


def test_a_mark_that_root_made_can_be_taken_away_by_the_environments_owner(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, uid, gid, **_: given.update({path: uid}))
    enrolment.arm(tmp_path, "gpu-001")
    owner = tmp_path.stat().st_uid
    assert given == {tmp_path / "serve/armed": owner, tmp_path / "serve/armed/gpu-001": owner}
