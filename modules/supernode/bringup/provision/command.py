"""How the engine is started, stopped, and what its failures mean."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import CommandError, create_command_error
from semver import VersionInfo

from supernode.bringup.provision import locks
from supernode.engine import Engine, running, wrong_passphrase
from supernode.errors import CouldNotRun

_TAIL = 6


class Command(PulumiCommand):
    """Starts our engine, in a session of its own: an interrupt reaches it once, from us, and it then ends in order.

    A terminal would send Ctrl-C to the engine as well, and a second one makes it drop what it is doing. `engine.guard`
    sends it the same one interrupt when we are killed outright, so that no update goes on unwatched.

    Attributes:
        stopped: told to stop: no engine is started.

    Args:
        engine: the engine.
        records: where `engine.running` finds what works.
    """

    def __init__(self, engine: Engine, records: Path) -> None:
        self.command = str(engine.path)
        self.records = records
        self.version = VersionInfo.parse(engine.version)
        self.stopped = False
        self._running: set[subprocess.Popen[bytes]] = set()
        self._starting = threading.Lock()

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
    ) -> CommandResult:
        """Run to the end; raises the Automation API's CommandError when the engine says no.

        What it prints goes to files: a pipe would break when we are killed, and end the engine in mid-work.
        The callbacks get the lines at the end; what is to be heard at once comes as events.
        """
        words = [self.command, "--non-interactive", *(arg for arg in args if arg != "--non-interactive")]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            with self._starting:  # an interrupt finds an engine running, or it is not started
                if self.stopped:
                    raise CouldNotRun(_told(args), "is not started: the run was told to stop")
                process = subprocess.Popen(
                    running.guarded(words, running.new(self.records), _told(args)),
                    cwd=cwd,
                    env={**os.environ, **additional_env},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                code = process.wait()
            finally:
                self._running.discard(process)
            result = CommandResult(_lines(out, on_output), _lines(err, on_error), code)
        if code != 0:
            raise create_command_error(result)
        return result

    def interrupt(self) -> None:
        """Ask every engine that runs to end in order, and start none until `stopped` is taken back."""
        with self._starting:
            self.stopped = True
            working = list(self._running)
        for process in working:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)


def _told(args: list[str]) -> str:
    """Name an engine's work for a person: `engine of stack lab`."""
    stack = next((after for word, after in pairwise(args) if word == "--stack"), "")
    return f"engine of stack {stack}" if stack else "engine"


def _lines(stream: IO[str], each: Callable[[str], Any] | None) -> str:
    stream.seek(0)
    lines = [line.rstrip() for line in stream]
    if each is not None:
        for line in lines:
            each(line)
    return "\n".join(lines)


_NO_PLUGIN = re.compile(r"resource plugin 'pulumi-resource-(\w+)'")


def explain(
    error: CommandError, stack: str, environment: str, settings: Mapping[str, str], said: list[str]
) -> CouldNotRun:
    """Turn a failure of the engine into an error for a person.

    Args:
        error: what the Automation API raised.
        stack: the stack.
        environment: its environment, for the hint.
        settings: the variables the engine was started with.
        said: the errors among the engine's events; the most exact there is.
    """
    text = str(error)
    passphrase = wrong_passphrase(text, stack, dict(settings))
    if passphrase is not None:
        return passphrase
    if "currently locked by" in text:
        return CouldNotRun(
            f"stack {stack}",
            "another run holds it: " + "; ".join(str(lock) for lock in locks.read(text)),
            f"wait for that run; if it is gone: supernode shell {environment}, then pulumi cancel --yes -s {stack}",
        )
    plugin = _NO_PLUGIN.search(text)
    if plugin:
        name = plugin[1]
        hint = f"where it can be fetched: supernode shell {environment}, then pulumi plugin install resource {name}"
        return CouldNotRun(f"stack {stack}", f"the engine's plugin for {name} is not installed here", hint)
    lines = said or [line for line in text.splitlines() if "error" in line][-_TAIL:] or text.splitlines()[-_TAIL:]
    own = [line for line in lines if line != "update failed"]
    return CouldNotRun(f"stack {stack}", "; ".join(dict.fromkeys(own or lines)))
