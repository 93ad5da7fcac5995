"""Slurm's files from the Design."""

import pytest

from supernode import design, spec
from supernode.design import allocating, hostvars, roles, scheduler
from supernode.spec import Inputs, Machines

from .sites import large

HEAD = "  - {name: head, kind: lab-head, count: 1, spares: 1, racks: [x1]}"
SECTIONS = """
gpu_driver: {version: "1.0", packages: [nvidia-driver=1.0], source: {url: "https://mirror.example/", key: key.asc}}
scheduler: {kind: slurm, controller: head, partition: train}
"""


def built(machines=None, **wishes):
    texts = {"environment": large(pools=(HEAD,), **wishes) + SECTIONS}
    return design.build(spec.read(texts | ({"machines": machines} if machines else {})))


def file(found, host, path):
    return next(row.content for row in found.files(host) if row.path == path)


def lines(found, path, key, host="gpu-001"):
    return [line for line in file(found, host, path).splitlines() if line.startswith(key)]


def test_every_machine_of_the_cluster_gets_the_same_configuration():
    found = built()
    for path in ("slurm.conf", "gres.conf", "topology.conf", "cgroup.conf"):
        texts = {file(found, host, f"/etc/slurm/{path}") for host in ("head-001", "gpu-001", "gpu-009")}
        assert len(texts) == 1
    assert {role.name for role in roles.of(found, found.host("head-001"))} >= {"slurm_controller"}
    assert "slurm_node" not in {role.name for role in roles.of(found, found.host("head-001"))}
    assert not [key for key in hostvars.build(found, "head-002") if key.startswith("slurm")]


def test_nodes_start_down_and_stay_down_until_a_run_resumes_them():
    found = built()
    (nodes,) = lines(found, "/etc/slurm/slurm.conf", "NodeName=")
    assert nodes == (
        "NodeName=gpu-[001-009] NodeAddr=10.0.0.[11-19] Sockets=1 CoresPerSocket=1 ThreadsPerCore=1 Gres=gpu:8"
        ' State=DOWN Reason="supernode: not yet verified"'
    )
    assert lines(found, "/etc/slurm/slurm.conf", "ReturnToService=") == ["ReturnToService=0"]
    (partition,) = lines(found, "/etc/slurm/slurm.conf", "PartitionName=")
    assert partition.startswith("PartitionName=train Nodes=gpu-[001-009] ")
    assert lines(found, "/etc/slurm/slurm.conf", "SlurmctldHost=") == [
        f"SlurmctldHost=head-001({found.host('head-001').management.ip})"
    ]


def test_a_controller_that_starts_anew_knows_who_was_closed_by_whom_and_takes_partitions_from_its_file():
    found, path = built(), "/etc/systemd/system/slurmctld.service.d/60-supernode.conf"
    start = lines(found, path, "ExecStart=", "head-001")
    assert start[0] == "ExecStart="  # Debian's own is taken back first
    assert "-R" in start[1].split()
    (state,) = lines(found, "/etc/slurm/slurm.conf", "StateSaveLocation=")
    folder = state.removeprefix("StateSaveLocation=")
    (before,) = lines(found, path, "ExecStartPre=", "head-001")
    assert before.split()[2:] == [f"{folder}/part_state", f"{folder}/part_state.old"]
    assert path not in {row.path for row in found.files("gpu-001")}


def test_accelerators_are_counted_by_their_device_files():
    assert lines(built(), "/etc/slurm/gres.conf", "NodeName=") == [
        "NodeName=gpu-[001-009] Name=gpu File=/dev/nvidia[0-7]"
    ]


def test_hosts_of_one_unit_are_nearer_than_others():
    found = built(count=20, spares=0, unit=16)
    assert lines(found, "/etc/slurm/topology.conf", "SwitchName=") == [
        "SwitchName=su01 Nodes=gpu-[001-016]",
        "SwitchName=su02 Nodes=gpu-[017-020]",
        "SwitchName=spines Switches=su01,su02",
    ]


def test_who_is_parked_changes_nobodys_configuration():
    parked = "schema: 1\nslots: {r01u01: {state: quarantined, reason: burnt}}\n"
    assert file(built(), "gpu-002", "/etc/slurm/slurm.conf") == file(built(parked), "gpu-002", "/etc/slurm/slurm.conf")


def test_the_next_machine_of_the_pool_takes_the_controller_over():
    parked = "schema: 1\nslots: {x1u01: {state: quarantined, reason: burnt}, x1u03: {state: in_service}}\n"
    found = built(parked)
    assert scheduler.controller(found).name == "head-002"
    assert lines(found, "/etc/slurm/slurm.conf", "SlurmctldHost=")[0].startswith("SlurmctldHost=head-002(")


def test_a_line_ends_where_addresses_stop_counting_up():
    """A pool that grew: behind its first machines' addresses lie those of the switches."""
    small, grown = (
        spec.read({"environment": large(pools=(HEAD,), count=count, spares=0) + SECTIONS}).environment
        for count in (4, 7)
    )
    saved = allocating.extend(grown, allocating.extend(small, None))
    found = design.build(Inputs(grown, saved, Machines()))
    addresses = {host.name: str(host.management.ip) for host in found.hosts}
    nodes = [line.split()[:2] for line in lines(found, "/etc/slurm/slurm.conf", "NodeName=")]
    assert nodes == [
        ["NodeName=gpu-[001-004]", "NodeAddr=10.0.0.[11-14]"],
        ["NodeName=gpu-[005-007]", f"NodeAddr=10.0.0.[{addresses['gpu-005'][7:]}-{addresses['gpu-007'][7:]}]"],
    ]


def test_the_key_travels_by_no_variable():
    found = built()
    for host in ("head-001", "gpu-001"):
        assert [(row.name, row.source, row.unit) for row in roles.placed(found, found.host(host))] == [
            ("munge.key", "file:secrets/munge.key", "munge.service")
        ]
        assert "secrets/munge" not in str(hostvars.build(found, host))


@pytest.mark.parametrize(
    ("ordinals", "text"),
    [((1,), "gpu-001"), ((1, 2, 3), "gpu-[001-003]"), ((1, 3, 4, 9), "gpu-[001,003-004,009]")],
)
def test_hosts_are_written_as_slurm_writes_them(ordinals, text):
    found = built()
    assert scheduler.hostlist([found.host(f"gpu-{n:03d}") for n in ordinals]) == text
