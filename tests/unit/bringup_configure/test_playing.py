"""Real runs of ansible-runner, on this machine by the local connection."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from supernode.bringup import configure
from supernode.bringup.inventory import Inventory
from supernode.engine import guard, running
from supernode.errors import CouldNotRun
from supernode.records import State

HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
PLAY = "- name: Try\n  hosts: nodes\n  tasks:\n"
MIXED = (
    "{ansible.builtin.command: 'true', changed_when: true}",
    "{ansible.builtin.command: 'false', changed_when: false, ignore_errors: true}",
    "{ansible.builtin.command: env, register: said, changed_when: false}",
    "{ansible.builtin.debug: {var: said.stdout}}",
    "{ansible.builtin.debug: {var: text}}",
    "{ansible.builtin.command: 'false', when: inventory_hostname == 'two'}",
)
# Two names for this machine; a value that would break, were it taken for a template.
NODES = Inventory(
    {"nodes": ("one", "two"), "unavailable": ()},
    ("one", "two"),
    {name: {**HERE, "text": "{{ 6 * 7 }} {% x"} for name in ("one", "two")},
)


def play(folder, tasks, **options):
    book = folder / "site.yml"
    book.write_text(PLAY + "".join(f"    - {task}\n" for task in tasks))
    options = {"strategy": None, **options}
    return configure.play(NODES, book, lambda _: None, folder / "run", **options)


@pytest.fixture(scope="module", params=[None, configure.STRATEGY], ids=["linear", "mitogen"])
def mixed(request, tmp_path_factory):
    """One run of all that can be asked of one, in an environment that holds a secret."""
    folder = tmp_path_factory.mktemp("mixed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "hunter2")
        patch.setattr(tempfile, "tempdir", str(folder))
        done = play(folder, MIXED, strategy=request.param)
    return SimpleNamespace(done=done, folder=folder, printed=(folder / "run" / configure.LOG).read_text())


def states(done, host):
    return [e.state for e in done.events if e.host == host and e.state is not State.PROGRESS]


def test_each_host_is_counted_for_itself(mixed):
    done = mixed.done
    assert (done.ok, done.reason, done.changed) == (False, "not configured: two", 2)
    assert [state for state in states(done, "one") if state is not State.OK] == [
        State.CHANGED,
        State.SKIPPED,
        State.CHANGED,
    ]
    assert states(done, "two")[-2:] == [State.FAILED, State.FAILED]
    assert (done.stats["one"].good, done.stats["two"].failed) == (True, 1)


def test_a_tolerated_failure_is_no_failure(mixed):
    assert State.FAILED not in states(mixed.done, "one")


def test_what_ansible_printed_is_kept(mixed):
    assert "PLAY RECAP" in mixed.printed


def test_the_environment_of_the_operator_stays_outside(mixed):
    assert "LC_ALL=C.UTF-8" in mixed.printed
    assert "ANSIBLE_HOST_KEY_CHECKING=True" in mixed.printed
    assert "PULUMI" not in mixed.printed
    assert "hunter2" not in mixed.printed + repr(mixed.done.events)


def test_values_are_data_and_never_templates(mixed):
    assert "{{ 6 * 7 }} {% x" in mixed.printed


def test_no_private_folder_stays_behind(mixed):
    assert list(mixed.folder.glob("supernode-ansible-*")) == []


def test_a_check_run_changes_nothing(tmp_path):
    mark = tmp_path / "mark"
    done = play(tmp_path, [f"{{ansible.builtin.copy: {{content: x, dest: {mark}, mode: '0600'}}}}"], check=True)
    assert done.changed == 2
    assert not mark.exists()


def test_an_environment_without_a_host_that_can_be_reached_is_not_configured(tmp_path):
    nobody = Inventory({"nodes": (), "unavailable": ("one",)}, ("one",), {"one": {"supernode_unavailable": "late"}})
    done = configure.play(nobody, tmp_path / "site.yml", lambda _: None, tmp_path / "run")
    assert (done.ok, done.reason) == (False, "no host can be reached")


def test_a_pattern_that_matches_nobody_is_said(tmp_path):
    with pytest.raises(CouldNotRun, match="no host matches 'nobody'"):
        play(tmp_path, ["{ansible.builtin.ping: }"], limit="nobody")


def test_a_playbook_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(CouldNotRun, match=r"couldn't resolve module/action 'no\.such\.module'"):
        play(tmp_path, ["{no.such.module: }"])


def test_a_run_that_hangs_is_ended(tmp_path):
    done = play(tmp_path, ["{ansible.builtin.command: sleep 60}"], deadline_s=4)
    assert (done.ok, done.reason) == (False, "not ended after 4 s, so it was stopped")
    assert not [pid for pid in guard.descendants(os.getpid()) if "ansible" in cmdline(pid)]


def test_ctrl_c_ends_ansible_and_is_ours_again(tmp_path):
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # as at a terminal, also in the background
    timer = threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, ["{ansible.builtin.command: sleep 60}"])
    timer.join()
    assert signal.signal(signal.SIGINT, inherited) is signal.default_int_handler


ALONE = """
import sys
from pathlib import Path
from test_playing import play
folder, strategy = Path(sys.argv[1]), None if sys.argv[2] == "linear" else sys.argv[2]
play(folder, ["{ansible.builtin.command: sleep 60}"], strategy=strategy, records=folder)
"""


def carrying(run_id):
    """Return the living processes that carry a run's id."""
    mark, found = f"SUPERNODE_RUN={run_id}".encode(), set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and guard.started(int(entry.name)):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("strategy", ["linear", configure.STRATEGY])
@pytest.mark.parametrize("who", ["starter", "ansible-playbook"])
def test_a_kill_leaves_no_process_behind(tmp_path, strategy, who):
    environ = {**os.environ, "SUPERNODE_RUN": str(tmp_path), "PYTHONPATH": str(Path(__file__).parent)}
    environ["TMPDIR"] = str(tmp_path)
    starter = subprocess.Popen([sys.executable, "-c", ALONE, tmp_path, strategy], env=environ, stderr=subprocess.PIPE)
    wait_for(lambda: any("sleep\0" in cmdline(pid) for pid in carrying(tmp_path)))
    (record,) = running.records(tmp_path)
    assert record.what == "ansible-playbook"
    os.kill(starter.pid if who == "starter" else record.alive[0], signal.SIGKILL)
    wait_for(lambda: not carrying(tmp_path))
    assert running.records(tmp_path) == []
    assert who != "starter" or not list(tmp_path.glob("supernode-ansible-*"))
    said = starter.communicate(timeout=30)[1]
    assert who == "starter" or b"ansible-playbook: was cut off in mid-work" in said


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.1)
