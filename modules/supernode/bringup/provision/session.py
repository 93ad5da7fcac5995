"""One environment's stacks, ready to be worked on: the engine, its settings, the project, the stacks' configuration."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml
from pulumi.automation import ConfigValue, EngineEvent, LocalWorkspace, Stack
from pulumi.automation.errors import CommandError, ConcurrentUpdateError

from supernode import engine as engines
from supernode import packaged, workspace
from supernode.bringup.provision import events, locks
from supernode.bringup.provision.command import Command, explain
from supernode.engine import running
from supernode.workspace import EnvironmentFolder

PROVIDER = "pulumi-resource-supernode"
Result = TypeVar("Result")


def belongs(stack: str, environment: str) -> bool:
    """Tell whether a stack is an environment's: `<env>`, `<env>-su<N>`, `<env>-su<N>-<n>` or `<env>-fabric<n>`."""
    return re.fullmatch(re.escape(environment) + r"(-su\d+(-\d+)?|-fabric\d+)?", stack) is not None


def project(folder: EnvironmentFolder) -> Path:
    """Return the folder of the Pulumi project: the checkout, or a copy beside the state where supernode is a wheel.

    The copy is written anew each time: it names the environment that runs now, and the provider in it.
    """
    source = packaged.root()
    if source == folder.root and (source / ".venv" / "bin" / PROVIDER).exists():
        return source
    target = folder.root / ".supernode" / "program"
    (target / "stacks").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "stacks" / "__main__.py", target / "stacks" / "__main__.py")
    document = yaml.safe_load((source / "Pulumi.yaml").read_text(encoding="utf-8"))
    document["runtime"]["options"]["virtualenv"] = sys.prefix
    for provider in document["plugins"]["providers"]:
        provider["path"] = str(Path(sys.prefix, "bin"))
    workspace.write_atomically(target / "Pulumi.yaml", yaml.safe_dump(document, sort_keys=False))
    return target


@dataclass
class Session:
    """What all stacks of an environment share while they are worked on.

    Attributes:
        directory: the folder that holds Pulumi.yaml.
        settings: variables laid over the process's own when the engine starts.
        progress: told one line at a time.
    """

    folder: EnvironmentFolder
    directory: Path
    settings: dict[str, str]
    command: Command
    progress: Callable[[str], None] = lambda _line: None

    @classmethod
    def open(cls, folder: EnvironmentFolder, progress: Callable[[str], None], directory: Path | None = None) -> Session:
        """Find, fetch or build an engine, and make the project's folder.

        Args:
            folder: the environment.
            progress: told one line at a time, for a build takes minutes.
            directory: a project's folder other than supernode's own, for tests of one.
        """
        engine = engines.ensure(progress)
        place = directory or project(folder)
        for stack in engines.renew_passphrase(folder, place / "stacks"):
            progress(f"stack {stack}: its passphrase is gone; its state, which holds no secret, takes a new one")
        settings = engines.environment(folder, engine)
        return cls(folder, place, settings, Command(engine, running.place(folder)), progress)

    def workspace(self) -> LocalWorkspace:
        """Return the Automation API's view of the project."""
        return LocalWorkspace(
            work_dir=str(self.directory),
            env_vars=self.settings,
            secrets_provider=os.environ.get("SUPERNODE_SECRETS_PROVIDER"),
            pulumi_command=self.command,
        )

    def existing(self) -> list[str]:
        """List the environment's stacks that the backend knows."""
        with self.explained(self.folder.name):
            names = [summary.name for summary in self.workspace().list_stacks()]
        return sorted(name for name in names if belongs(name, self.folder.name))

    def select(self, name: str) -> Stack:
        """Select a stack, and make it when there is none."""
        with self.explained(name):
            return Stack.create_or_select(name, self.workspace())

    @contextmanager
    def explained(self, stack: str, said: Sequence[str] = ()) -> Iterator[None]:
        """Turn the engine's failures into ours; `said` may still grow inside."""
        try:
            yield
        except CommandError as error:
            raise explain(error, stack, self.folder.name, self.settings, list(said)) from error


CONFIRMATION = ("supernode:reinstall", "supernode:plan", "supernode:until")


def prepare_stack(
    session: Session, name: str, reinstall: Sequence[str] = (), plan: str = "", until: float = 0.0
) -> Stack:
    """Select a stack and write its configuration: where the environment lies, and what a person confirmed.

    A confirmation is only kept together with the plan's hash, and only until the next call without one.

    Args:
        session: the environment's.
        name: the stack.
        reinstall: slots that a person confirmed.
        plan: the hash of the plan that was shown.
        until: seconds since the epoch; past that the confirmation holds no more, should nobody take it back.
    """
    stack = session.select(name)
    config = {"supernode:folder": ConfigValue(_place(session.folder))}
    if reinstall and plan:
        config["supernode:reinstall"] = ConfigValue(json.dumps(sorted(reinstall)))
        config["supernode:plan"] = ConfigValue(plan)
        config["supernode:until"] = ConfigValue(str(int(until)))
    with session.explained(name):
        present = stack.get_all_config()
        stale = [key for key in CONFIRMATION if key in present and key not in config]
        if stale:
            stack.remove_all_config(stale)
        if any(present.get(key) is None or present[key].value != value.value for key, value in config.items()):
            stack.set_all_config(config)
    return stack


def _place(folder: EnvironmentFolder) -> str:
    """Write the environment's folder from the project's root where it lies below it, so that two checkouts agree."""
    return str(folder.folder.relative_to(folder.root) if folder.folder.is_relative_to(folder.root) else folder.folder)


@dataclass
class Listener:
    """Hears one stack's engine events and keeps what went wrong.

    Attributes:
        hear: called with each event; the Automation API swallows what it raises, so that is kept and raised later.
    """

    hear: Callable[[EngineEvent], None]
    errors: list[str] = field(default_factory=list)
    broken: list[Exception] = field(default_factory=list)

    def __call__(self, event: EngineEvent) -> None:
        """Take one event."""
        error = events.error_of(event)
        if error is not None:
            self.errors.append(error)
        try:
            self.hear(event)
        except Exception as failure:
            self.broken.append(failure)

    def raise_broken(self) -> None:
        """Raise the first error of the person's own code that listened."""
        if self.broken:
            raise self.broken[0]


def unlocked(session: Session, name: str, work: Callable[[], Result], tell: Callable[[str], None]) -> Result:
    """Do the work; the locks that dead processes of this machine left are named and taken away, and it is done again.

    Args:
        session: the environment's.
        name: the stack that the work locks.
        work: what is done; once more after a lock was taken away.
        tell: told which lock, and of whom.
    """
    try:
        return work()
    except ConcurrentUpdateError as error:
        found = locks.read(str(error))
        records = running.records(session.command.records)
        shared = not session.settings["PULUMI_BACKEND_URL"].startswith("file:")
        if not found or not all(locks.stale(lock, records, shared=shared) for lock in found):
            raise
        for lock in found:
            tell(f"stack {name} was locked by {lock}, which is dead; its lock is taken away")
        Stack.select(name, session.workspace()).cancel()
        return work()
