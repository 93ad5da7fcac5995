"""The front door: `--help` is quick and every verb has --json and an example."""

import json
import re
import subprocess
import sys
from pathlib import Path

HEAVY = ("numpy", "pydantic", "pulumi", "ansible", "paramiko", "aiohttp", "pytest")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_help_imports_nothing_heavy():
    code = (
        "import sys, json\nsys.argv = ['supernode', '--help']\nfrom supernode.cli.main import main\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    main()\n"
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    assert json.loads(run_python(code)) == []


def commands():
    from typer.main import get_command

    from supernode.cli.main import app

    def walk(command, name):
        children = getattr(command, "commands", None)
        if children:
            for child, inner in children.items():
                yield from walk(inner, f"{name} {child}")
        else:
            yield name, command

    return list(walk(get_command(app), "supernode"))


def test_every_verb_has_json_and_an_example():
    lacking = [
        name
        for name, command in commands()
        if not any("--json" in getattr(p, "opts", ()) for p in command.params)
        or "Example: " not in (command.help or "")
    ]
    assert lacking == []


def test_every_example_names_its_own_verb():
    """An example is a command line, maybe with sudo; that of a lab's verb names the verb, too."""
    wrong = []
    for name, command in commands():
        examples = re.findall(r"Example: (.*)", command.help or "")
        wrong += [
            (name, line) for line in examples if not re.match(rf'(sudo |eval "\$\()?{name}( |$|\)|,)', line.strip("`"))
        ]
    assert wrong == []


def strange_verbs(text, known):
    """Return what a Markdown text calls as `supernode <verb>` in code, and no such verb exists."""
    code = re.findall(r"^(?: {4}|\t)(.*)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", text)
    called = [m for line in code for m in re.findall(r"(?<![\w=-])supernode ((?:lab )?[a-z][a-z-]*)", line)]
    return [verb for verb in called if verb not in known]


def test_every_verb_in_the_readme_exists():
    known = {name.removeprefix("supernode ") for name, _ in commands()}
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    assert "kinds" in known
    assert strange_verbs(text, known) == []
    sample = "`supernode show lab` and `supernode bogus`\n\n    sudo .venv/bin/supernode lab bogus lab\n"
    assert strange_verbs(sample, known) == ["lab bogus", "bogus"]
