"""The language host as the engine sees it: a process that prints a port, serves gRPC, and ends without a word."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

# Stands for the SDK's program runner: it writes down how it was started and does as $PROGRAM says.
RUNNER = """
import json, os, sys, time
with open(os.environ["SAW"], "w") as stream:
    json.dump({"argv": sys.argv, "cwd": os.getcwd(), "pid": os.getpid(), "env": dict(os.environ)}, stream)
exec(os.environ.get("PROGRAM", ""))
"""


@pytest.fixture
def host(tmp_path):
    """Start hosts; each is (process, stub)."""
    started = []
    (tmp_path / "pulumi-language-python-exec").write_text(RUNNER)

    def start(program="", wrapper=()):
        environment = {
            **os.environ,
            "SUPERNODE_ENGINE_BIN": str(tmp_path),
            "SAW": str(tmp_path / "saw"),
            "PROGRAM": program,
        }
        command = [*wrapper, sys.executable, "-m", "supernode.engine.host", "127.0.0.1:4711"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        started.append(process)
        port = int(process.stdout.readline())
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        return process, language_pb2_grpc.LanguageRuntimeStub(channel)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def request(folder, **options):
    values = struct_pb2.Struct()
    values.update(options)
    info = language_pb2.ProgramInfo(
        root_directory=str(folder), program_directory=str(folder), entry_point=".", options=values
    )
    return language_pb2.RunRequest(
        project="supernode",
        stack="lab",
        pwd=str(folder),
        dryRun=True,
        parallel=19,
        monitor_address="127.0.0.1:1",
        organization="organization",
        config={"supernode:folder": "inventories/lab"},
        configSecretKeys=["supernode:x"],
        info=info,
    )


def saw(tmp_path):
    return json.loads((tmp_path / "saw").read_text())


def wait_for(condition, seconds=15.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def test_a_program_is_run_with_the_engines_addresses_and_the_stacks_configuration(host, tmp_path):
    _, stub = host()
    answer = stub.Run(request(tmp_path), timeout=30)
    assert (answer.error, answer.bail) == ("", False)
    found = saw(tmp_path)
    arguments = dict(zip(found["argv"][1:-1:2], found["argv"][2:-1:2], strict=True))
    assert arguments["--monitor"] == "127.0.0.1:1"
    assert arguments["--engine"] == "127.0.0.1:4711"
    assert (arguments["--stack"], arguments["--dry_run"], arguments["--parallel"]) == ("lab", "true", "19")
    assert found["argv"][-1] == "."
    assert found["cwd"] == str(tmp_path)
    assert json.loads(found["env"]["PULUMI_CONFIG"]) == {"supernode:folder": "inventories/lab"}
    assert json.loads(found["env"]["PULUMI_CONFIG_SECRET_KEYS"]) == ["supernode:x"]


@pytest.mark.parametrize(
    ("program", "error", "bail"),
    [("sys.exit(32)", "", True), ("sys.exit(3)", "the program exited with code 3", False), ("", "", False)],
)
def test_exit_codes(host, tmp_path, program, error, bail):
    _, stub = host(program)
    answer = stub.Run(request(tmp_path), timeout=30)
    assert (answer.error, answer.bail) == (error, bail)


def test_the_program_runs_in_the_projects_virtual_environment(host, tmp_path):
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    _, stub = host()
    assert stub.Run(request(tmp_path, virtualenv="venv"), timeout=30).error == ""
    assert saw(tmp_path)["env"]["VIRTUAL_ENV"] == str(tmp_path / "venv")
    assert saw(tmp_path)["env"]["PATH"].startswith(f"{tmp_path}/venv/bin:")


def test_a_missing_virtual_environment_is_said_and_nothing_runs(host, tmp_path):
    _, stub = host()
    answer = stub.Run(request(tmp_path, virtualenv="nowhere"), timeout=30)
    assert "nowhere" in answer.error
    assert not (tmp_path / "saw").exists()


def test_what_the_engine_asks_besides_is_answered(host, tmp_path):
    _, stub = host()
    info = request(tmp_path).info
    assert stub.Handshake(language_pb2.LanguageHandshakeRequest(engine_address="127.0.0.1:9"), timeout=10) is not None
    assert stub.GetPluginInfo(empty_pb2.Empty(), timeout=10).version
    assert list(stub.GetRequiredPackages(language_pb2.GetRequiredPackagesRequest(info=info), timeout=10).packages) == []
    about = stub.About(language_pb2.AboutRequest(info=info), timeout=30)
    assert about.version == ".".join(map(str, sys.version_info[:3]))
    listed = stub.GetProgramDependencies(language_pb2.GetProgramDependenciesRequest(info=info), timeout=30)
    assert "pulumi" in {d.name for d in listed.dependencies}
    said = b"".join(r.stdout for r in stub.InstallDependencies(language_pb2.InstallDependenciesRequest(info=info)))
    assert b"nothing to install" in said
    stub.Run(request(tmp_path), timeout=30)
    assert "127.0.0.1:9" in saw(tmp_path)["argv"]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_word_and_takes_its_program_along(host, tmp_path, signal_number):
    process, stub = host("time.sleep(60)")
    running = stub.Run.future(request(tmp_path))  # noqa: F841 - a call that nobody holds is cancelled
    wait_for(lambda: (tmp_path / "saw").exists() and (tmp_path / "saw").read_text().endswith("}"))
    process.send_signal(signal_number)
    out, err = process.communicate(timeout=15)
    assert (process.returncode, out, err) == (0, "", "")
    wait_for(lambda: not alive(saw(tmp_path)["pid"]))


def test_cancel_leaves_the_program_to_the_engine(host, tmp_path):
    process, stub = host("time.sleep(1)")
    running = stub.Run.future(request(tmp_path))
    wait_for(lambda: (tmp_path / "saw").exists() and (tmp_path / "saw").read_text().endswith("}"))
    stub.Cancel(empty_pb2.Empty(), timeout=15)
    assert running.result(timeout=30).error == ""
    assert process.poll() is None


def test_it_ends_with_an_engine_that_was_killed_outright(host, tmp_path):
    # The shell stands for the engine: the host is its child, and SIGKILL gives it no time to say anything.
    engine = ("sh", "-c", f'"$@" & echo $! >"{tmp_path}/host"; wait', "engine")
    process, stub = host("time.sleep(60)", engine)
    running = stub.Run.future(request(tmp_path))  # noqa: F841 - a call that nobody holds is cancelled
    wait_for(lambda: (tmp_path / "saw").exists() and (tmp_path / "saw").read_text().endswith("}"))
    child = int((tmp_path / "host").read_text())
    assert alive(child)
    process.kill()
    wait_for(lambda: not alive(child))
    wait_for(lambda: not alive(saw(tmp_path)["pid"]))


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" not in status.read_text()
