"""The front door: `--help` is quick and every verb has --json and an example."""

import json
import subprocess
import sys

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
        or "supernode " not in (command.help or "")
    ]
    assert lacking == []
