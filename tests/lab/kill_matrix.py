"""Kills of a run in a lab that stays up: what is killed, when, and what must be true after the next run."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lab_site

RUN_S = 420
GONE_S = 45  # a killed run's engine ends in order, so some of its processes outlive it for as long as that takes
NEW_MACHINES = (
    "import sys; from supernode.cli import inputs, lab_up\nfolder, _ = inputs.find(sys.argv[1]); lab_up._start(folder)"
)


@dataclass(frozen=True)
class Kill:
    """One of the matrix; the seed says how long after its moment it comes, so that one that failed can be repeated."""

    what: str
    when: str
    seed: int

    def __str__(self) -> str:
        return f"{self.what} in {self.when}, seed {self.seed}"

    @property
    def delay_s(self) -> float:
        most = {"write": 0.0, "lock": 0.4}.get(self.when, 1.5)
        return random.Random(f"{self.what} {self.when} {self.seed}").uniform(0.0, most)


@dataclass(frozen=True)
class Outcome:
    kill: Kill
    hit: int
    converged: bool
    seconds: float
    left: tuple[str, ...]
    missing: tuple[str, ...]
    said: str

    @property
    def good(self) -> bool:
        return bool(self.hit) and self.converged and not (self.left or self.missing)


@dataclass
class Process:
    pid: int
    parent: int
    words: str
    carries: str


def processes() -> Iterator[Process]:
    """Yield what lives, with the id of the run that it carries."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            environ = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if fields[0] not in "ZX":
            mark = next((row[14:].decode() for row in environ if row.startswith(b"SUPERNODE_RUN=")), "")
            yield Process(int(entry.name), int(fields[1]), words, mark)


class Run:
    """A bring-up that is watched until its moment and then killed."""

    def __init__(self, site: lab_site.Site) -> None:
        self.site = site
        self.before = set(self._folders())
        self.log = (site.root / "killed.log").open("ab")
        self.process = subprocess.Popen(
            [lab_site.SUPERNODE, "bringup", site.name, "--yes"],
            cwd=site.root,
            env=site.environ(),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
        )

    def _folders(self) -> list[Path]:
        return sorted((self.site.root / "runs" / self.site.name).glob("*"))

    @property
    def folder(self) -> Path | None:
        return next((path for path in self._folders() if path not in self.before), None)

    @property
    def id(self) -> str:
        return self.folder.name if self.folder else ""

    def events(self) -> list[dict]:
        try:
            lines = (self.folder / "events.jsonl").read_text().splitlines() if self.folder else []
        except OSError:
            return []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def wait_for(self, moment: Callable[[Run], bool], look_s: float) -> bool:
        """Wait for the moment; False when the run ended before it."""
        until = time.monotonic() + RUN_S
        while self.process.poll() is None and time.monotonic() < until:
            if moment(self):
                return True
            time.sleep(look_s)
        return False

    def below(self) -> list[Process]:
        """Return the run's processes: what it started, and what carries its id."""
        rows = list(processes())
        tree, found = {self.process.pid}, True
        while found:
            found = {row.pid for row in rows if row.parent in tree} - tree
            tree |= found
        return [row for row in rows if row.pid in tree or (self.id and row.carries == self.id)]

    def carrying(self) -> list[str]:
        return [f"{row.pid} {row.words[:90]}" for row in processes() if self.id and row.carries == self.id]

    def end(self) -> None:
        """Wait for the end of what is left of it; kill it after a while, which is then a failure of its own."""
        try:
            self.process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def creating(run: Run) -> bool:
    """A machine is at work for a create: its boot was asked for, or its system is being written."""
    return any(e["stage"] == "provision" and e["phase"] in ("boot", "deploy") and e["host"] for e in run.events())


def locked(run: Run) -> bool:
    """The engine holds the stack's lock, and has begun no machine."""
    locks = (run.site.root / ".supernode" / "pulumi").glob(f".pulumi/locks/**/{run.site.name}/*.json")
    return any(path.is_file() for path in locks)


def configuring(run: Run) -> bool:
    return any(e["stage"] == "configure" and e["host"] for e in run.events())


def verifying(run: Run) -> bool:
    return any(e["stage"] == "verify" for e in run.events())


def measured(run: Run) -> bool:
    return any(e["stage"] == "verify" and "round 2" in e["phase"] and e["state"] == "ok" for e in run.events())


def writing(run: Run) -> bool:
    """The temporary file beside machines.yml is there: the next thing is that it takes its name."""
    return any(path.name.startswith(".machines.yml.") for path in run.site.folder.iterdir())


MOMENTS = {"create": creating, "lock": locked, "ansible": configuring, "verify": verifying, "write": writing}
PROGRAMS = {
    "pulumi": re.compile(r"^\S*/pulumi .*\bup\b"),
    "provider": re.compile(r"pulumi-resource-supernode"),
    "ansible": re.compile(r"bin/ansible-playbook "),
}


def strike(run: Run, what: str) -> int:
    """Kill, as by `kill -9`; returns how many processes were hit."""
    if what == "supernode":
        return _kill([run.process.pid]) if run.process.poll() is None else 0  # a zombie takes a signal, too
    if what != "tree":
        for _ in range(100):  # at its moment the program may be about to start
            rows = [row for row in run.below() if PROGRAMS[what].search(row.words) and "guard.py" not in row.words]
            if rows or run.process.poll() is not None:
                break
            time.sleep(0.05)
        return _kill([row.pid for row in rows])
    hit = 0
    for _ in range(20):  # until none was started meanwhile
        rows = run.below()
        if not rows:
            break
        hit += _kill([row.pid for row in rows])
        run.process.poll()
    return hit


def _kill(pids: list[int]) -> int:
    hit = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            hit += 1
        except ProcessLookupError:
            continue
    return hit


def make(name: str, octet: int) -> lab_site.Site:
    return lab_site.make(name, octet, **{"count: 8": "count: 2", "spares: 1": "spares: 0"})


def renew(site: lab_site.Site) -> None:
    """Put new machines in place: what is there is not what any state knows, and their disks are empty."""
    site.supernode("lab", "stop", site.name, timeout=120)
    done = site.call(str(lab_site.SUPERNODE.with_name("python")), "-c", NEW_MACHINES, site.name, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    site.supernode("allocate", site.name)
    site.supernode("assign", site.name, "--sheet", str(site.folder / "delivery"))


def ready(site: lab_site.Site, kill: Kill) -> None:
    """Make the lab such that the run comes to the kill's moment."""
    machines = site.folder / "machines.yml"
    if kill.when == "create" or not machines.exists():
        renew(site)
    elif kill.when == "write":  # a run that changes no machine's state writes nothing
        machines.write_text(machines.read_text().replace("state: in_service", "state: new"))


def play(site: lab_site.Site, kill: Kill) -> Outcome:
    """Do one kill, and the run after it."""
    ready(site, kill)
    run = Run(site)
    hit = 0
    if kill.when == "write":
        run.wait_for(measured, 0.05)
    if run.wait_for(MOMENTS[kill.when], 0.0002 if kill.when == "write" else 0.05):
        time.sleep(kill.delay_s)
        hit = strike(run, kill.what)
    run.end()
    began = time.monotonic()
    done = site.call(str(lab_site.SUPERNODE), "bringup", site.name, "--yes", timeout=RUN_S)
    seconds = time.monotonic() - began
    while (left := run.carrying()) and time.monotonic() < began + seconds + GONE_S:
        time.sleep(0.5)
    converged = done.returncode == 0 and in_service(site)
    return Outcome(kill, hit, converged, seconds, tuple(left), missing(site), _tail(done))


def _tail(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout[-3000:] + done.stderr[-6000:]


def in_service(site: lab_site.Site) -> bool:
    return (site.folder / "machines.yml").read_text().count("state: in_service") == len(designed(site)[0])


def designed(site: lab_site.Site) -> tuple[set[str], set[str]]:
    """Return the designed hosts and switches."""
    site.supernode("design", site.name, "--out", str(site.root / "design"))
    rows = {name: (site.root / "design" / name).read_text().splitlines()[1:] for name in ("bmc.csv", "switches.csv")}
    hosts, switches = ({line.split(",")[1] for line in rows[name]} for name in ("bmc.csv", "switches.csv"))
    return hosts, switches


def missing(site: lab_site.Site) -> tuple[str, ...]:
    """Return the machines and switches that the engine's own export does not hold, and what it left pending."""
    shell = f'eval "$({lab_site.SUPERNODE} shell {site.name} --print)"; pulumi stack export -s {site.name}'
    done = site.call("sh", "-ec", shell, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    deployment = json.loads(done.stdout)["deployment"]
    held = {row["urn"].rpartition("::")[2] for row in deployment["resources"]}
    hosts, switches = designed(site)
    pending = [f"pending {row['type']}" for row in deployment.get("pending_operations") or ()]
    return (*sorted((hosts | switches) - held), *pending)


def table(outcomes: list[Outcome]) -> str:
    """Write the outcomes, one a line, and how they count by what and when."""
    rows = [("what", "when", "seed", "hit", "converged", "seconds", "left", "missing")]
    for row in outcomes:
        kill, converged = row.kill, "yes" if row.converged else "NO"
        rows.append(
            (kill.what, kill.when, kill.seed, row.hit, converged, round(row.seconds), len(row.left), len(row.missing))
        )
    good = sum(row.good for row in outcomes)
    lines = ["  ".join(f"{cell!s:<9}" for cell in row).rstrip() for row in rows]
    return "\n".join([*lines, f"{good} of {len(outcomes)} kills: converged, nothing missing, nothing left", ""])
