"""The language host beside an engine that we built: what the engine asks of `runtime: python` to preview and update.

Upstream's host cannot be had as a Go module, so this one serves the calls of `LanguageRuntime` that running a program
needs. It writes no SDK and converts no program: those calls answer "unimplemented", as the engine then says.
Started by the engine as `pulumi-language-python [flags] <engine address>`; the first line on stdout is the port.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

# The program's runner ends with this code once it has shown the error itself: the engine then adds none of its own.
_ALREADY_REPORTED = 32
# A program that takes no notice of SIGTERM gets this long.
_GRACE_S = 5.0
_WATCH_S = 0.5
_MESSAGE_LIMIT = 400 * 1024 * 1024


def interpreter(info: Any) -> Path:
    """Choose the Python for a program: the `virtualenv` option of Pulumi.yaml, from its folder; else the host's own.

    Raises:
        FileNotFoundError: the option names a folder without a Python.
    """
    options = dict(info.options) if info.HasField("options") else {}
    folder = options.get("virtualenv")
    if not folder:
        return Path(sys.executable)
    python = Path(info.root_directory, str(folder), "bin", "python")
    if not python.exists():
        raise FileNotFoundError(f"Pulumi.yaml names the virtual environment {folder}, but {python} does not exist")
    return python


def command(request: Any, engine_address: str, runner: Path) -> list[str]:
    """Build the command line that runs the program of a `RunRequest`."""
    return [
        str(interpreter(request.info)),
        "-u",
        str(runner),
        *("--monitor", request.monitor_address),
        *("--engine", engine_address),
        *("--project", request.project),
        *("--root_directory", request.info.root_directory),
        *("--stack", request.stack),
        *("--pwd", request.pwd),
        *("--parallel", str(max(request.parallel, 1))),
        *("--dry_run", "true" if request.dryRun else "false"),
        *("--organization", request.organization),
        request.info.entry_point or ".",
        *request.args,
    ]


def program_environment(request: Any) -> dict[str, str]:
    """Return the environment of the program: ours, the stack's configuration, its virtual environment first on PATH."""
    python = interpreter(request.info)
    return {
        **os.environ,
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        "VIRTUAL_ENV": str(python.parent.parent),
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


@dataclass
class Host(language_pb2_grpc.LanguageRuntimeServicer):
    """Serves one engine; holds the programs that run, so that they end with it."""

    engine_address: str
    runner: Path
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)

    def Handshake(self, request: Any, context: Any) -> Any:
        """Take the engine's address again: one that attached to us gives it only here."""
        self.engine_address = request.engine_address or self.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """Say our version."""
        return plugin_pb2.PluginInfo(version=importlib.metadata.version("supernode"))

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:
        """Name no package: our provider's place stands in Pulumi.yaml, and nothing is ever downloaded."""
        return language_pb2.GetRequiredPackagesResponse()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:
        """Answer the older form of the same question."""
        return language_pb2.GetRequiredPluginsResponse()

    def About(self, request: Any, context: Any) -> Any:
        """Say which Python runs the program."""
        python = _or_abort(context, request.info)
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=False, timeout=30).stdout
        return language_pb2.AboutResponse(executable=str(python), version=version.removeprefix("Python ").strip())

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:
        """List the distributions of the program's environment; `pulumi about` prints them."""
        found = importlib.metadata.distributions(path=_site_packages(_or_abort(context, request.info)))
        rows = sorted({(d.metadata["Name"], d.version) for d in found})
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=name, version=version) for name, version in rows]
        )

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:
        """Install nothing: the environment that holds supernode itself already holds all that its stacks import."""
        python = _or_abort(context, request.info)
        text = f"{python.parent.parent} holds what the program needs; nothing to install\n"
        yield language_pb2.InstallDependenciesResponse(stdout=text.encode())

    def Run(self, request: Any, context: Any) -> Any:
        """Run the program to its end; what it prints goes to the engine through our own stdout and stderr."""
        try:
            program = subprocess.Popen(
                command(request, self.engine_address, self.runner),
                env=program_environment(request),
                cwd=request.pwd or None,
                start_new_session=True,  # Ctrl-C is the engine's to hear: the program would answer it with a traceback
            )
        except OSError as error:
            return language_pb2.RunResponse(error=str(error))
        self.running.add(program)
        try:
            code = program.wait()
        finally:
            self.running.discard(program)
        if code == _ALREADY_REPORTED:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program exited with code {code}" if code else "")

    def Cancel(self, request: Any, context: Any) -> Any:
        """Leave the programs to the engine: it lets the work in flight end, then ends their connection, and they end.

        Ended here, a program would be an error of its own beside the interrupt, and which of the two comes first would
        decide how the engine goes on.
        """
        return empty_pb2.Empty()

    def stop_programs(self) -> None:
        """End every program: SIGTERM, then SIGKILL for one that stays."""
        programs = list(self.running)
        for program in programs:
            with contextlib.suppress(ProcessLookupError):
                program.terminate()
        deadline = time.monotonic() + _GRACE_S
        for program in programs:
            try:
                program.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                program.kill()


def _or_abort(context: Any, info: Any) -> Path:
    try:
        return interpreter(info)
    except FileNotFoundError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        raise


def _site_packages(python: Path) -> list[str]:
    if python == Path(sys.executable):
        return sys.path
    return [str(p) for p in sorted(python.parent.parent.glob("lib/python*/site-packages"))]


def _watch_parent(host: Host, parent: int) -> None:
    """End with the engine: killed outright, it sends no signal, and only the change of our parent tells."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    host.stop_programs()
    os._exit(0)


def main(arguments: list[str] | None = None) -> None:
    """Serve until the engine says stop (SIGINT or SIGTERM, without a word) or dies."""
    parent = os.getppid()
    words = [a for a in (sys.argv[1:] if arguments is None else arguments) if not a.startswith("-")]
    runner = Path(os.environ["SUPERNODE_ENGINE_BIN"], "pulumi-language-python-exec")
    host = Host(engine_address=words[-1] if words else "", runner=runner)
    options = [("grpc.max_receive_message_length", _MESSAGE_LIMIT), ("grpc.max_send_message_length", _MESSAGE_LIMIT)]
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=options)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    stop = threading.Event()

    def quiet(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, quiet)
    signal.signal(signal.SIGTERM, quiet)
    threading.Thread(target=_watch_parent, args=(host, parent), daemon=True).start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    stop.wait()
    host.stop_programs()
    server.stop(grace=0.5).wait()


if __name__ == "__main__":
    main()
