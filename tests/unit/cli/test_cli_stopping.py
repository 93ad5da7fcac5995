"""A verb that is told to stop ends in order: what it confirmed for one run is taken back."""

import contextlib
import os
import shlex
import shutil
import signal
import threading

import pytest
import typer
from typer.testing import CliRunner

from supernode import packaged
from supernode.bringup.run import Bringup
from supernode.cli import main
from supernode.cli.output import INTERRUPTED, errors_end_the_process


@pytest.fixture(autouse=True)
def _signals_as_at_a_terminal():
    """Under nohup, and in a shell's background, the test's own process ignores some of them."""
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_being_told_to_stop_runs_what_must_run_and_ends_with_130(number, capsys):
    before, done = signal.getsignal(number), []

    def verb():
        with errors_end_the_process():
            try:
                os.kill(os.getpid(), number)
                signal.pause()
            finally:
                done.append("taken back")

    with pytest.raises(SystemExit) as ended:
        verb()
    assert (ended.value.code, done) == (INTERRUPTED, ["taken back"])
    assert capsys.readouterr().err == "interrupted\n"
    assert signal.getsignal(number) is before


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with errors_end_the_process():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_signals_are_left_alone():
    trouble = []

    def work():
        try:
            with errors_end_the_process():
                pass
        except ValueError as error:
            trouble.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert trouble == []


def test_a_second_terminals_word_is_no_second_ctrl_c_and_a_third_ctrl_c_ends_it_at_once():
    pid = os.fork()
    if pid == 0:
        try:
            with errors_end_the_process():
                for _ in range(2):
                    with contextlib.suppress(KeyboardInterrupt):
                        os.kill(os.getpid(), signal.SIGINT)
                    os.kill(os.getpid(), signal.SIGHUP)
                    os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGINT)
        finally:
            os._exit(9)  # a third one that runs what a first one runs
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == INTERRUPTED


def answer(monkeypatch, text=None):
    """Ask a question in a verb; without an answer Ctrl-C comes."""
    app = typer.Typer()

    @app.command()
    def verb():
        with errors_end_the_process():
            if text is None:
                monkeypatch.setattr("builtins.input", interrupt)
            typer.confirm("run this plan?", abort=True, err=True)

    return CliRunner().invoke(app, input=text or "").exit_code


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_no_and_ctrl_c_at_a_question_are_an_interrupt_and_no_findings(monkeypatch):
    assert answer(monkeypatch, "n\n") == INTERRUPTED
    assert answer(monkeypatch) == INTERRUPTED
    assert answer(monkeypatch, "y\n") == 0


@pytest.mark.parametrize("folder", ["sites/lab", "my sites/lab"])
def test_the_command_that_resumes_names_the_environment_as_it_was_given(folder, tmp_path, monkeypatch):
    shutil.copytree(packaged.root() / "inventories" / "lab", tmp_path / folder)
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Bringup, "run", stopped)
    assert CliRunner().invoke(main.app, ["allocate", folder]).exit_code == 0
    done = CliRunner().invoke(main.app, ["bringup", folder, "--only", "verify", "--yes"])
    assert done.exit_code == INTERRUPTED
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("resume: ")]
    assert shlex.split(said) == ["resume:", "supernode", "bringup", folder, "--only", "verify"]
