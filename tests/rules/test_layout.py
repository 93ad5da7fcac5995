"""The shape of the tree, as rules: sizes, names, and what may not be named at all."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "modules" / "supernode"
FUNCTION_LINES, FILE_LINES = 60, 500
# A file or function that may be longer, each with its reason.
LONGER: dict[str, str] = {}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "base", "util", "helper", "misc"}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def python_files() -> list[Path]:
    return [p for p in tracked() if p.suffix == ".py" and (PACKAGE in p.parents or ROOT / "stacks" in p.parents)]


def too_long(path: Path, text: str) -> list[str]:
    where = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    found = [f"{where}: {len(text.splitlines())} lines"] if len(text.splitlines()) > FILE_LINES else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                found.append(f"{where}:{node.lineno} {node.name}: {lines} lines")
    return [line for line in found if line.split(":")[0] not in LONGER]


def test_functions_and_files_stay_short():
    assert [line for path in python_files() for line in too_long(path, path.read_text())] == []


def test_a_long_function_would_be_seen():
    text = "def f():\n" + "    x = 1\n" * 70
    assert too_long(Path("sample.py"), text) == ["sample.py:1 f: 71 lines"]


def test_no_module_is_named_after_nothing():
    assert [p for p in python_files() if p.stem in FORBIDDEN_NAMES or p.parent.name in FORBIDDEN_NAMES] == []


def test_only_the_cli_prints():
    printing = re.compile(r"^\s*print\(|sys\.exit\(", re.MULTILINE)
    allowed = {
        "cli",
        "engine",
        "provider",
        "lab",
        "boot",
        "telemetry",
    }  # all but cli: programs of their own, whose stdout is a protocol or a log
    offenders = [
        p.relative_to(ROOT).as_posix()
        for p in python_files()
        if PACKAGE in p.parents and p.relative_to(PACKAGE).parts[0] not in allowed and printing.search(p.read_text())
    ]
    assert offenders == []


@pytest.mark.parametrize(
    "word", ["/work" + "/", "/ro" + "ot/", "deb.debian" + ".org", "pypi" + ".org", "proxy.golang" + ".org"]
)
def test_nothing_of_this_machine_or_a_registry_is_named(word):
    text = [p for p in tracked() if p.name not in {"uv.lock", "go.sum", "LICENSE"}]
    offenders = [p.relative_to(ROOT).as_posix() for p in text if word in p.read_text(encoding="utf-8", errors="ignore")]
    assert offenders == []


def test_the_stack_program_stays_small():
    assert len((ROOT / "stacks" / "__main__.py").read_text().splitlines()) < 40


def test_test_modules_have_names_of_their_own():
    """Pytest keeps modules by base name; the rollout checks also run inside a process that has loaded others."""
    names = [p.name for p in tracked() if p.name.startswith("test_") and p.suffix == ".py"]
    assert sorted(n for n in set(names) if names.count(n) > 1) == []


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("inventories/site/delivery/bmc-factory/r01u05", True),
        ("inventories/lab/delivery/machines.csv", True),
        ("inventories/lab/machines.yml", True),
        ("inventories/site/machines.yml", False),
        ("inventories/site/allocation.yml", False),
    ],
)
def test_a_delivery_is_never_committed(path, ignored):
    """It holds the BMCs' password; a real site's bound machines and allocation, though, are documents."""
    done = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=ROOT, check=False)
    assert done.returncode == (0 if ignored else 1)


def test_the_markers_name_targets_that_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"\(make ([a-z-]+)\)", (ROOT / "pyproject.toml").read_text())
    assert named
    assert set(named) <= set(targets)
