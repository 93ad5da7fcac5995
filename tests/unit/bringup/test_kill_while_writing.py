"""A process that dies while a document is written: a reader sees the old text or the new, and the rest is swept."""

import os
import tempfile
from pathlib import Path

import pytest

from supernode import workspace
from supernode.workspace import EnvironmentFolder

OLD, NEW = "schema: 1\nslots: {}\n", "schema: 1\nslots:\n" + "".join(f"  r{n:03}: {{state: new}}\n" for n in range(900))
DIES = 9

# Each is a step between two calls of the system, as write_atomically makes them; "after" dies once the call was made.
STEPS = [
    (tempfile, "mkstemp", "before"),
    (tempfile, "mkstemp", "after"),
    (os, "fsync", "before"),
    (os, "fsync", "after"),
    (os, "fchmod", "before"),
    (os, "fchmod", "after"),
    (Path, "replace", "before"),
    (Path, "replace", "after"),
]


def die_at(place, name, when, work):
    """Do the work in a child that is gone at the step, as by SIGKILL: nothing is flushed, no handler runs."""
    pid = os.fork()
    if pid == 0:
        real = getattr(place, name)

        def step(*args, **options):
            if when == "before":
                os._exit(DIES)
            real(*args, **options)
            os._exit(DIES)

        setattr(place, name, step)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def folder(tmp_path):
    made = EnvironmentFolder("lab", tmp_path / "inventories" / "lab", tmp_path)
    made.write("machines", OLD)
    return made


@pytest.mark.parametrize(("place", "name", "when"), STEPS, ids=[f"{when} {name}" for _, name, when in STEPS])
def test_a_reader_sees_the_old_text_or_the_new(folder, place, name, when):
    assert die_at(place, name, when, lambda: folder.write("machines", NEW)) == DIES
    assert folder.texts()["machines"] == (NEW if (name, when) == ("replace", "after") else OLD)

    folder.write("machines", NEW)
    assert folder.texts() == {"machines": NEW}
    editor = folder.folder / ".machines.yml.swp"
    editor.write_text("of an editor")
    folder.sweep()
    assert {path.name for path in folder.folder.iterdir()} == {"machines.yml", editor.name}


def test_killed_in_the_middle_of_the_text_itself(folder):
    """The one step that is no call of ours: the kernel takes the text in pieces."""

    def half():
        real = os.fdopen

        def fdopen(handle, *args, **options):
            stream = real(handle, *args, **options)
            stream.write = lambda text: (os.write(handle, text[: len(text) // 2].encode()), os._exit(DIES))
            return stream

        workspace.os.fdopen = fdopen
        folder.write("machines", NEW)

    assert die_at(os, "sync", "before", half) == DIES
    assert folder.texts()["machines"] == OLD
    folder.sweep()
    assert [path.name for path in folder.folder.iterdir()] == ["machines.yml"]
