"""The agent's Debian package: whole, the same bytes each time, and nothing in it that a host cannot run."""

import ast
import subprocess
import sys

import pytest

from supernode import carried
from supernode.boot import own

DEBIAN = {"aiohttp", "yaml"}  # what the package depends on


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    deb = own.cooling(folder)
    subprocess.run(["dpkg-deb", "-x", deb, folder / "root"], check=True)
    return deb, folder / "root"


def test_the_same_content_makes_the_same_package(unpacked, tmp_path):
    deb, _ = unpacked
    again = own.build(["chrony", f"{carried.AGENT}={carried.version()}"], tmp_path)
    assert [path.name for path in again] == [deb.name]
    assert again[0].read_bytes() == deb.read_bytes()
    assert own.build(["chrony"], tmp_path) == []


def test_the_version_follows_the_content(monkeypatch):
    before = carried.version()
    more = (*carried.files(), carried.Carried("supernode/telemetry/more.py", b""))
    monkeypatch.setattr(carried, "files", lambda: more)
    assert carried.version.__wrapped__() != before


def test_the_version_follows_the_unit_and_what_runs_at_installation(monkeypatch, unpacked):
    deb, root = unpacked
    names = [file.path for file in carried.packaging()]
    assert names == ["supernode-cooling.postinst", "supernode-cooling.service"]
    script = subprocess.run(["dpkg-deb", "-I", deb, "postinst"], capture_output=True, check=True).stdout
    unit = (root / "lib/systemd/system/supernode-cooling.service").read_bytes()
    assert [script, unit] == [file.data for file in carried.packaging()]
    before = carried.version()
    monkeypatch.setattr(carried, "packaging", lambda: ())
    assert carried.version.__wrapped__() != before


def test_every_import_of_ours_is_carried_or_debians():
    """Also those inside functions, but for what the agent never reaches."""
    names = carried.modules()
    assert {"supernode.telemetry.poll", "supernode.clients.cdu_redfish", "supernode.clients.modbus"} <= set(names)
    theirs = {name.replace("-", "_") for name in carried.THEIRS}
    for name, source in names.items():
        for node in ast.walk(ast.parse(source)):
            roots = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            roots += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for root in {each.split(".")[0] for each in roots} - {"supernode", "__future__"}:
                assert root in sys.stdlib_module_names | theirs | DEBIAN, f"{name} imports {root}"
    assert not [name for name in names if name.split(".")[1:2] in (["design"], ["bringup"], ["lab"], ["cli"])]


def test_it_runs_from_its_own_folder_alone(unpacked):
    """With nothing of ours in the import path but the package; what Debian gives stands beside, as on a host."""
    import aiohttp

    _, root = unpacked
    beside = str(__import__("pathlib").Path(aiohttp.__file__).parents[1])
    program = (root / "usr/bin/supernode-cooling").read_text().replace("/usr/lib", str(root / "usr/lib"))
    assert program.startswith("#!/usr/bin/python3 -I\n")
    hidden = f"import sys; sys.path.append({beside!r})\n"
    check = f"import supernode.telemetry as t; assert t.__file__.startswith({str(root)!r}), t.__file__\n"
    lines = program.replace("import sys\n", hidden, 1).replace("sys.exit(", f"{check}sys.exit(")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", lines, "/nowhere.json"], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "/nowhere.json: cannot be read: No such file or directory" in done.stderr


def test_the_unit_is_hardened(unpacked):
    _, root = unpacked
    unit = (root / "lib/systemd/system/supernode-cooling.service").read_text()
    for line in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="):
        assert line in unit.splitlines()
    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=true",
            "--threshold=20",
            root / "lib/systemd/system/supernode-cooling.service",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
