"""Run the playbooks over every host that can be reached, by way of ansible-runner, and say what happens as Events.

ansible-runner writes its whole environment and command line to its artefacts in plain text. So it gets a private folder
that is deleted at the end, an environment of a few names, and no variable on its command line; nothing here is handed a
secret in the first place.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supernode import packaged
from supernode.bringup import inventory, inventory_source, pacing, runner_events
from supernode.bringup.ending import GUARD, Ending
from supernode.bringup.pacing import Turn
from supernode.engine import running
from supernode.errors import CouldNotRun
from supernode.records import Event, State
from supernode.workspace import EnvironmentFolder

if TYPE_CHECKING:
    from supernode.bringup.inventory import Inventory
    from supernode.design import Design
    from supernode.records import Outputs

STRATEGY = "mitogen_linear"
LOG, CHECK_LOG = "ansible.log", "ansible-check.log"
SITE = packaged.root() / "playbooks" / "site.yml"
# A run over its budget is still a run; one at this many times its budget hangs.
OVER_BUDGET = 2
# What ansible-playbook and ssh need from the operator's session; everything else stays out of their environment.
KEPT = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TERM", "TMPDIR", "SUPERNODE_ROOT", "SUPERNODE_RUN")


@dataclass(frozen=True)
class Stats:
    """What Ansible counted for one host."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0

    @property
    def good(self) -> bool:
        """Whether the host ran to its end."""
        return not (self.failed or self.unreachable)


@dataclass(frozen=True)
class Configured:
    """How a run ended.

    Attributes:
        events: all events, in the order in which they came.
        stats: by host; a host that was to be configured and is not in Ansible's own count is in none.
        ok: every host that was to be configured ran to its end.
        reason: why not, in one sentence; empty when ok.
        turn: of those in service, who was changed and who was held back.
    """

    events: tuple[Event, ...]
    stats: Mapping[str, Stats]
    ok: bool
    reason: str = ""
    turn: Turn = field(default_factory=Turn)

    @property
    def changed(self) -> int:
        """How many changes were made on all hosts together."""
        return sum(row.changed for row in self.stats.values())


NOTHING = Configured((), {}, True)


def run(
    folder: EnvironmentFolder,
    design: Design,
    outputs: Outputs,
    on_event: Callable[[Event], None],
    run_dir: Path,
) -> Configured:
    """Configure the hosts of an environment; of those in service, at most the share that one run may change.

    Those in service, and the spares with them, are asked first what would change (a check run); who needs nothing is
    done with that. All others, and whose turn it is, are then configured together.

    Args:
        folder: the environment; its key and known_hosts file are used.
        design: what is wanted.
        outputs: where the hosts are.
        on_event: called with each event as it happens.
        run_dir: where what Ansible printed is left: `ansible-check.log` of the check run, `ansible.log`.

    Raises:
        CouldNotRun: Ansible itself could not start.
        KeyboardInterrupt: Ctrl-C; Ansible was ended first.
    """
    built = inventory.build(design, outputs, folder.state, folder.ssh_key_file)
    inventory_source.pin(folder, outputs)
    left_out = tuple(_left_out(built))
    for event in left_out:
        on_event(event)
    if not built.groups[inventory.NODES]:
        return Configured(left_out, {}, False, "no host can be reached")
    done = _in_turn(folder, design, built, on_event, run_dir)
    return replace(done, events=(*left_out, *done.events))


def _in_turn(
    folder: EnvironmentFolder, design: Design, built: Inventory, on_event: Callable[[Event], None], run_dir: Path
) -> Configured:
    """Look at those in service, then configure whose turn it is and all who are not."""
    nodes = built.groups[inventory.NODES]
    deadline = time.monotonic() + design.environment.budgets.configure_s * OVER_BUDGET
    asked = pacing.to_ask(design, nodes)
    looked = _look(folder, inventory.only(built, asked), on_event, run_dir, deadline) if asked else NOTHING
    turn = pacing.turn(design, asked, looked.stats)
    held = tuple(Event(time.time(), runner_events.STAGE, host, "turn", State.SKIPPED, turn.why()) for host in turn.held)
    for event in held:
        on_event(event)
    done = NOTHING
    if todo := [host for host in nodes if host in turn.now or host not in asked]:
        done = _change(folder, inventory.only(built, todo), on_event, run_dir, deadline)
    return _together(nodes, looked, replace(done, events=(*looked.events, *held, *done.events)), turn)


def _look(
    folder: EnvironmentFolder, built: Inventory, on_event: Callable[[Event], None], run_dir: Path, deadline: float
) -> Configured:
    """Ask what would change."""

    def hear(event: Event) -> None:
        on_event(pacing.as_look(event))

    left, records = deadline - time.monotonic(), running.place(folder)
    looked = play(built, SITE, hear, run_dir, check=True, deadline_s=left, log=CHECK_LOG, records=records)
    return replace(looked, events=tuple(pacing.as_look(event) for event in looked.events))


def _change(
    folder: EnvironmentFolder, built: Inventory, on_event: Callable[[Event], None], run_dir: Path, deadline: float
) -> Configured:
    """Configure these hosts, unless the look has left no time for it."""
    left = deadline - time.monotonic()
    if left <= 0:
        return Configured((), {}, False, "not configured: the check run took all the time that this stage has")
    return play(built, SITE, on_event, run_dir, deadline_s=left, records=running.place(folder))


def _together(nodes: Sequence[str], looked: Configured, done: Configured, turn: Turn) -> Configured:
    """Put the two runs together: who was only looked at counts by that, who was held back does not count."""
    waiting = {*turn.now, *turn.held}
    stats = {host: row for host, row in looked.stats.items() if host not in waiting} | dict(done.stats)
    bad = [host for host in nodes if host not in turn.held and not (host in stats and stats[host].good)]
    reasons = [done.reason or f"not configured: {', '.join(bad)}"] if bad else []
    reasons += [f"held back: {', '.join(turn.held)}: {turn.why()}"] if turn.held else []
    return Configured(done.events, stats, not (bad or turn.held), "; ".join(reasons), turn)


def _left_out(built: Inventory) -> Iterator[Event]:
    for host in built.groups[inventory.UNAVAILABLE]:
        why = str(built.hostvars[host]["supernode_unavailable"])
        yield Event(time.time(), runner_events.STAGE, host, runner_events.STAGE, State.SKIPPED, why)


def play(
    built: Inventory,
    playbook: Path,
    on_event: Callable[[Event], None],
    run_dir: Path,
    *,
    check: bool = False,
    limit: str | None = None,
    strategy: str | None = STRATEGY,
    deadline_s: float | None = None,
    log: str = LOG,
    records: Path | None = None,
) -> Configured:
    """Run a playbook over an inventory; `run` is this with the environment's own.

    A strategy of None is Ansible's own, the linear one. What has not ended after `deadline_s` seconds is ended. What
    Ansible printed is left in `run_dir` under the name of `log`. While it works a record lies in `records`, where the
    next run looks for it.
    """
    if not built.groups[inventory.NODES]:
        return Configured((), {}, False, "no host can be reached")
    events: list[Event] = []
    counted: dict[str, Any] = {}

    def on_runner_event(raw: dict[str, Any]) -> bool:
        if raw.get("event") == "playbook_on_stats":
            counted.update(raw.get("event_data") or {})
        for event in runner_events.read(raw):
            events.append(event)
            on_event(event)
        return False  # no event files: they would be costly, and nothing reads them

    with tempfile.TemporaryDirectory(prefix="supernode-ansible-") as private:
        record = running.new(records or Path(private))
        ending = Ending(record, deadline_s)
        options = {"limit": limit, "cmdline": "--check" if check else None, "cancel_callback": ending}
        with ending.heard():
            _ansible(Path(private), built, playbook, on_runner_event, strategy, record, options)
        printed = _printed(Path(private))
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / log).write_text(printed, encoding="utf-8")
    if ending.asked:
        raise KeyboardInterrupt
    if ending.over:
        return Configured(tuple(events), {}, False, f"not ended after {deadline_s:.0f} s, so it was stopped")
    if not counted:
        why = _why(printed, limit, bool(events))
        raise CouldNotRun("ansible-playbook", why, f"the whole output is in {run_dir / log}")
    return _conclude(built, events, stats_of(counted), limit)


def stats_of(counted: Mapping[str, Any]) -> dict[str, Stats]:
    """Turn the data of Ansible's `playbook_on_stats` event, counts by host for each outcome, into a row a host."""
    names = {"ok": "ok", "changed": "changed", "failures": "failed", "dark": "unreachable", "skipped": "skipped"}
    hosts = sorted({host for name in names for host in counted.get(name) or {}})
    return {
        host: Stats(**{field: (counted.get(name) or {}).get(host, 0) for name, field in names.items()})
        for host in hosts
    }


def environment(strategy: str | None) -> dict[str, str]:
    """Return the whole environment of ansible-playbook: no name of the operator's session but the few it needs."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    found = find_spec("ansible_mitogen")
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": str(packaged.root() / "ansible.cfg"),
        # ansible-runner turns this off.
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_NOCOLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if strategy and found is not None and found.submodule_search_locations:
        folder = Path(found.submodule_search_locations[0]) / "plugins" / "strategy"
        # Ansible calls every strategy but its own deprecated, on each run; the playbooks do not depend on this one.
        own |= {
            "ANSIBLE_STRATEGY": strategy,
            "ANSIBLE_STRATEGY_PLUGINS": str(folder),
            "ANSIBLE_DEPRECATION_WARNINGS": "0",
        }
    return {**kept, **own}


def _ansible(
    private: Path,
    built: Inventory,
    playbook: Path,
    handler: Callable[[dict[str, Any]], bool],
    strategy: str | None,
    record: Path,
    options: Mapping[str, Any],
) -> None:
    from ansible_runner import interface

    runner = interface.init_runner(
        private_data_dir=str(private),
        project_dir=str(playbook.parent),
        playbook=str(playbook),
        inventory=str(_inventory_file(private, built)),
        event_handler=handler,
        quiet=True,
        settings={"pexpect_timeout": 1},
        **options,
    )
    # The runner starts from the whole environment of this process and writes all of it to a file: keep what is its own.
    ours = {name: value for name, value in runner.config.env.items() if os.environ.get(name) != value}
    runner.config.env = {**ours, **environment(strategy)}
    runner.config.command = running.guarded(
        runner.config.command, record, "ansible-playbook", *GUARD, "--scratch", str(private)
    )
    runner.run()


def _inventory_file(private: Path, built: Inventory) -> Path:
    document = private / "inventory.json"
    document.write_text(json.dumps(built.to_json()), encoding="utf-8")
    place = private / "supernode.yml"
    place.write_text(json.dumps({"plugin": "supernode", "built": str(document)}), encoding="utf-8")
    return place


def _printed(private: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(private.glob("artifacts/*/stdout")))


def _why(printed: str, limit: str | None, begun: bool) -> str:
    lines = [line.split("ERROR]:", 1)[1].strip() for line in printed.splitlines() if "ERROR]:" in line]
    if limit and any("no hosts to target" in line for line in lines):
        return f"no host matches {limit!r}"
    return lines[0] if lines else "was cut off in mid-work" if begun else "ended before the first task"


def _conclude(built: Inventory, events: list[Event], stats: dict[str, Stats], limit: str | None) -> Configured:
    """Count the hosts ourselves: Ansible goes on past the unreachable, and does not count a host it never came to."""
    wanted = set(built.groups[inventory.NODES]) if limit is None else set(stats)
    bad = sorted(host for host in wanted if host not in stats or not stats[host].good)
    return Configured(tuple(events), stats, not bad, f"not configured: {', '.join(bad)}" if bad else "")
