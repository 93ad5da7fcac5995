"""The stacks with the real engine; machines and switches are echoes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supernode.bringup import provision
from supernode.engine import running
from supernode.errors import CouldNotRun
from supernode.records import State

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]


def pulumi(site, *words, check=True):
    """Run plain pulumi, as a person does in the shell that `supernode shell` starts."""
    result = subprocess.run(
        ["pulumi", *words, "--non-interactive"],
        cwd=site.project,
        env=site.variables(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def children_of(site):
    """Return the processes that work for this site: each has the echo provider's world in its environment."""
    mark = f"ECHO_WORLD={site.world}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def test_three_stacks_come_up_preview_clean_and_growing_moves_nothing(site):
    design = site.describe(hosts=2, limit=5)
    assert design.stacks() == ("lab", "lab-su1", "lab-su1-2")
    outputs = site.up(design)
    names = {h.name for h in design.hosts} | {s.name for s in design.switches}
    assert set(outputs.devices) == names
    assert {d.state for d in outputs.devices.values()} == {"ready"}
    assert outputs.design == design.digest
    assert sorted(site.journal()) == sorted(f"create {name}" for name in names)
    assert site.preview(design, refresh=False) == []

    grown = site.describe(hosts=3, limit=5)
    assert grown.stacks() == (*design.stacks(), "lab-su1-3")
    assert all(grown.host(h.name).stack == h.stack for h in design.hosts)
    site.up(grown)
    done = site.journal()
    assert not [line for line in done if line.startswith("delete")]
    assert [line for line in done if line.startswith("create")] == ["create gpu-003"]


def test_a_late_machine_is_no_error_drift_is_seen_and_mended(site):
    design = site.describe()
    logs = [["INFO", "bios: 2 attributes are pending"], ["WARNING", "late: deploy: no report after 600 s"]]
    site.find("gpu-002", status="late", phase="deploy", reason="no report after 600 s", log=logs)
    outputs = site.up(design)
    assert (outputs.devices["gpu-002"].state, outputs.devices["gpu-002"].phase) == ("late", "deploy")
    assert outputs.devices["gpu-001"].host_keys == ("ssh-ed25519 ECHO",)
    told = [(e.host, e.phase, e.state, e.detail) for e in site.events if e.host == "gpu-002"]
    assert told[0][1:3] == ("create", State.STARTED)
    assert ("gpu-002", "bios", State.PROGRESS, "2 attributes are pending") in told
    assert told[-1] == ("gpu-002", "deploy", State.LATE, "no report after 600 s")

    site.find("gpu-002")
    site.find("gpu-001", power="Off")
    site.journal()
    rows = {(r.op, r.resource): r.detail for r in site.preview(design)}
    assert rows["drift", "gpu-001"] == "power: On -> Off"
    assert rows["update", "gpu-001"] == "power: Off -> On"
    assert {line.split()[0] for line in site.journal()} == {"read"}

    site.find("gpu-001")
    assert "unchanged" in pulumi(site, "preview", "-s", "lab", "--refresh=false").stdout
    site.find("gpu-001", power="Off")
    refreshed = pulumi(site, "refresh", "--yes", "-s", "lab")
    assert "1 updated" in refreshed.stdout
    site.find("gpu-001")
    site.journal()
    assert "1 updated" in pulumi(site, "up", "--yes", "-s", "lab").stdout
    assert "update gpu-001" in site.journal()


def test_every_machine_of_a_stack_is_worked_on_at_once_and_one_that_fails_stops_no_other(site):
    design = site.describe(hosts=6)
    for host in design.hosts:
        site.find(host.name, sleep=2)
    for switch in design.switches:
        site.find(switch.name, sleep=2)
    site.find("gpu-003", fail="the BMC says no")
    began = time.monotonic()
    with pytest.raises(CouldNotRun, match=r"gpu-003: .*the BMC says no"):
        site.up(design)
    outputs = provision.outputs(site.folder, directory=site.project)
    assert set(outputs.devices) == {d.name for d in (*design.hosts, *design.switches)} - {"gpu-003"}
    starts = [e.at for e in site.events if e.state is State.STARTED]
    ends = [e.at for e in site.events if e.state is State.CHANGED]
    assert len(starts) == 16
    assert max(starts) < min(ends), f"not all {len(starts)} were at work at once, in {time.monotonic() - began:.0f} s"


def test_a_quarantined_slots_ports_are_shut_before_any_machine_is_touched_in_another_stack(site):
    site.up(site.describe(hosts=2, spares=1, limit=5))
    site.journal()
    design = site.bind({"gpu-001": "quarantined", "gpu-003": "in_service"})
    site.up(design)
    done = [line.split() for line in site.journal() if line.startswith("update")]
    fenced = [at for at, (_, name) in enumerate(done) if "leaf" in name]
    machines = [at for at, (_, name) in enumerate(done) if name.startswith("gpu")]
    assert len(fenced) == 8
    assert machines
    assert max(fenced) < min(machines), done


@pytest.mark.parametrize("verb", ["up", "refresh", "destroy", "forget"])
def test_a_killed_engine_leaves_no_process_and_whatever_comes_next_goes_on(site, verb):
    design = site.describe()
    site.find("gpu-001", sleep=60)
    session = site.session()
    provision.prepare_stack(session, "lab")
    run = subprocess.Popen(
        ["pulumi", "up", "--yes", "--skip-preview", "-s", "lab", "--non-interactive"],
        cwd=site.project,
        env=site.variables(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = site.world / "journal"
    wait_for(lambda: journal.exists() and "create gpu-001" in journal.read_text())
    assert any("supernode.engine.host" in command for command in children_of(site).values())
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_for(lambda: not children_of(site), seconds=15)
    # As an engine that writes sidecars leaves one when it is killed while it writes.
    next((site.root / ".supernode" / "pulumi").rglob("lab.json")).with_name("lab.json.attrs").touch()

    site.find("gpu-001")
    hear = {"on_event": site.events.append, "directory": site.project}
    if verb == "refresh":
        provision.refresh(site.folder, design, **hear)
    if verb == "destroy":
        assert provision.destroy(site.folder, **hear) == ["lab"]
    if verb == "forget":
        assert provision.forget(site.folder, directory=site.project) == ["lab"]
    cleared = [e.detail for e in site.events if "its lock is taken away" in e.detail]
    outputs = site.up(design)
    assert {d.state for d in outputs.devices.values()} == {"ready"}
    cleared += [e.detail for e in site.events if "its lock is taken away" in e.detail]
    assert verb == "forget" or f"locked by process {run.pid} of " in cleared[0]
    exported = json.loads(pulumi(site, "stack", "export", "-s", "lab").stdout)["deployment"]
    assert not exported.get("pending_operations")


def start_up(site):
    """Start an `up` of its own, whose create of gpu-001 takes a while, and wait until that is at work."""
    site.describe()
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "from pathlib import Path\n"
        "from supernode import design, spec\n"
        "from supernode.bringup import provision\n"
        "from supernode.workspace import EnvironmentFolder\n"
        f"root = Path({str(site.root)!r})\n"
        "folder = EnvironmentFolder('lab', root / 'inventories' / 'lab', root)\n"
        "made = design.build(spec.read(folder.texts()))\n"
        "provision.up(folder, made, lambda event: None, directory=root / 'project')\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    journal = site.world / "journal"
    wait_for(lambda: journal.exists() and "create gpu-001" in journal.read_text())
    return run


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_interrupted_or_killed_ends_its_engine_in_order_and_leaves_no_lock(site, how):
    site.find("gpu-001", sleep=5)
    run = start_up(site)
    run.send_signal(how)
    told = []
    running.wait(running.place(site.folder), 60, told.append)
    assert [line.partition(" (process ")[0] for line in told] == ["waiting for the engine of stack lab"]
    _, said = run.communicate(timeout=60)
    assert not children_of(site)
    assert ("KeyboardInterrupt" in said) is (how == signal.SIGINT)
    locks = list((site.root / ".supernode" / "pulumi").rglob("locks/**/*.json"))
    assert locks == []
    assert "gpu-001" in provision.outputs(site.folder, directory=site.project).devices


def test_a_second_ctrl_c_cuts_the_engine_off_and_the_next_run_makes_it_whole(site):
    site.find("gpu-001", sleep=60)
    run = start_up(site)
    run.send_signal(signal.SIGINT)
    time.sleep(1)
    assert run.poll() is None  # it waits for the create
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=30)
    assert "KeyboardInterrupt" in said
    wait_for(lambda: not children_of(site), seconds=30)

    site.find("gpu-001")
    outputs = site.up(site.bind({}))
    assert {d.state for d in outputs.devices.values()} == {"ready"}


def test_a_wrong_passphrase_says_file_stack_and_way_out(site):
    design = site.describe()
    provision.prepare_stack(site.session(), "lab")
    passphrase = site.root / ".supernode" / "passphrase"
    passphrase.write_text("another\n")
    with pytest.raises(CouldNotRun) as error:
        site.up(design)
    assert error.value.where == str(passphrase)
    assert "stack lab" in error.value.what
    assert "change-secrets-provider" in error.value.hint
    # The last way out that the hint names.
    (site.project / "stacks" / "Pulumi.lab.yaml").unlink()
    assert set(site.up(design).devices) == {d.name for d in (*design.hosts, *design.switches)}


@pytest.mark.parametrize("lost", ["passphrase", "passphrase and state"])
def test_a_passphrase_that_is_gone_is_made_anew_and_nothing_is_made_twice(site, lost):
    design = site.describe()
    site.up(design)
    pulumi(site, "config", "set", "supernode:powerOffOnDelete", "true", "-s", "lab")
    site.journal()
    old = (site.root / ".supernode" / "passphrase").read_text()
    (site.root / ".supernode" / "passphrase").unlink()
    if "state" in lost:
        shutil.rmtree(site.root / ".supernode" / "pulumi")
    outputs = site.up(design)
    assert set(outputs.devices) == {d.name for d in (*design.hosts, *design.switches)}
    made = [line for line in site.journal() if line.startswith("create")]
    assert len(made) == (len(outputs.devices) if "state" in lost else 0)
    assert any("stack lab: its passphrase is gone" in event.detail for event in site.events)
    assert (site.root / ".supernode" / "passphrase").read_text() != old
    # What a person had set is kept, and plain pulumi works with the new one.
    assert (
        json.loads(pulumi(site, "config", "-s", "lab", "--json").stdout)["supernode:powerOffOnDelete"]["value"]
        == "true"
    )
    pulumi(site, "preview", "--expect-no-changes", "-s", "lab")


def test_a_look_at_some_machines_writes_what_it_finds_of_those_alone(site):
    design = site.describe(hosts=2, limit=5)
    site.up(design)
    for name in ("gpu-001", "gpu-002"):
        site.find(name, power="Off", powerState="Off")
    rows = provision.refresh(site.folder, design, site.events.append, only=["gpu-002"], directory=site.project)
    assert [(row.resource, row.op) for row in rows] == [("gpu-002", "drift")]
    found = provision.outputs(site.folder, directory=site.project).devices
    assert {name: found[name].power for name in ("gpu-001", "gpu-002")} == {"gpu-001": "", "gpu-002": "Off"}


def test_a_look_names_who_does_not_answer_and_starts_no_other_stacks_engine(site):
    """The proof of a fence and of a spare rests on this: no answer leaves the state as it was, and is told."""
    design = site.describe(hosts=2, limit=5)
    site.up(design)
    site.journal()
    said = "cannot be read: no login within 60 s"
    site.find("su01-leaf0", log=[["WARNING", f"su01-leaf0: {said}"]])
    until = time.time() + 90
    look = {"only": ["su01-leaf0", "su01-leaf1"], "until": until, "directory": site.project}
    rows = provision.refresh(site.folder, design, site.events.append, **look)
    assert [(row.resource, row.op, row.detail) for row in rows] == [("su01-leaf0", "warning", said)]
    assert sorted(site.journal()) == ["read su01-leaf0", "read su01-leaf1"]
    assert json.loads((site.world / "config.json").read_text())["SUPERNODE_UNTIL"] == str(int(until))
    assert provision.outputs(site.folder, directory=site.project).devices["su01-leaf0"].state == "ready"


def test_without_what_boot_prepares_the_program_says_what_to_run(site):
    design = site.describe()
    (site.folder.state / "boot.json").unlink()
    with pytest.raises(CouldNotRun, match="supernode image lab") as error:
        site.preview(design, refresh=False)
    assert "Traceback" not in str(error.value)


def test_a_confirmation_lives_for_one_run(site):
    design = site.describe()
    site.up(design, reinstall=("r01u01",), plan_hash="ab" * 32)
    seen = json.loads((site.world / "config.json").read_text())
    assert json.loads(seen["supernode:config:reinstall"]) == ["r01u01"]
    assert seen["supernode:config:plan"] == "ab" * 32
    assert 0 < int(seen["supernode:config:until"]) - time.time() <= design.environment.budgets.provision_s
    assert seen["SUPERNODE_UNTIL"] == seen["supernode:config:until"]  # a machine's deadline ends there, too
    assert seen["supernode:config:folder"] == "inventories/lab"
    assert set(json.loads(pulumi(site, "config", "-s", "lab", "--json").stdout)) == {"supernode:folder"}


def test_destroy_takes_the_last_stack_first_and_forgets_them(site):
    design = site.describe(hosts=2, limit=5)
    site.up(design)
    site.journal()
    gone = provision.destroy(site.folder, site.events.append, directory=site.project)
    assert gone == sorted(design.stacks(), reverse=True)
    done = [line.split()[1] for line in site.journal() if line.startswith("delete")]
    assert [design.stacks().index(_stack(design, name)) for name in done] == sorted(
        [design.stacks().index(_stack(design, name)) for name in done], reverse=True
    )
    assert provision.outputs(site.folder, directory=site.project).devices == {}


def _stack(design, name):
    return (design.switch(name) if "leaf" in name or "spine" in name else design.host(name)).stack


def test_plain_pulumi_takes_a_lost_machine_back_into_the_state_and_destroys(site):
    design = site.describe()
    site.up(design)
    urn = "urn:pulumi:lab::supernode::supernode:cluster:Supernode$supernode:index:Machine::gpu-001"
    parent = "supernode=urn:pulumi:lab::supernode::supernode:cluster:Supernode::supernode"
    inputs = json.loads(pulumi(site, "stack", "export", "-s", "lab").stdout)["deployment"]["resources"]
    found = next(r["inputs"] for r in inputs if r["urn"] == urn)
    site.find("gpu-001", **{key: value for key, value in found.items() if key != "name"})
    pulumi(site, "state", "delete", urn, "--yes", "-s", "lab")
    site.journal()
    slot = design.host("gpu-001").slot
    options = ["--parent", parent, "--generate-code=false", "--protect=false", "--yes", "-s", "lab"]
    pulumi(site, "import", "supernode:index:Machine", "gpu-001", slot, *options)
    assert "create" not in {line.split()[0] for line in site.journal()}
    assert [r for r in site.preview(design, refresh=False) if r.op == "create"] == []
    pulumi(site, "destroy", "--yes", "-s", "lab")
    assert sorted(line for line in site.journal() if "gpu" in line) == ["delete gpu-001", "delete gpu-002"]


def test_a_fence_touches_the_switches_of_quarantined_slots_alone_and_the_stack_follows_later(site):
    site.up(site.describe(hosts=2, spares=1))
    site.journal()
    design = site.bind({"gpu-001": "quarantined", "gpu-002": "in_service"})
    outputs = provision.fence(site.folder, design, site.events.append, directory=site.project)
    assert sorted(site.journal()) == [f"update su01-leaf{rail}" for rail in range(8)]
    assert outputs.devices["gpu-001"].state == "ready"  # not asked: it is never contacted
    site.up(design)
    assert sorted(site.journal()) == ["update gpu-001", "update gpu-002"]
    assert site.preview(design, refresh=False) == []


def test_who_is_left_is_not_touched_and_the_others_go_on(site):
    design = site.describe(hosts=3, limit=5)
    assert len({host.stack for host in design.hosts}) > 1
    site.find("gpu-002", status="late", phase="deploy", reason="no report")
    site.up(design)
    site.journal()
    changed = site.bind({"gpu-001": "in_service", "gpu-002": "drained", "gpu-003": "in_service"})
    outputs = site.up(changed, leave=["gpu-002", "gpu-003"])
    assert site.journal() == ["update gpu-001"]
    assert outputs.devices["gpu-002"].state == "late"
    assert outputs.design == changed.digest
