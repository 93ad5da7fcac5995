"""Designs side by side."""

import json

from typer.testing import CliRunner

from supernode.cli.main import app

CHORDS, HYPERX = (f"inventories/examples/rack64-{name}" for name in ("torus-chords", "hyperx"))


def ran(*arguments):
    return CliRunner().invoke(app, ["compare", *arguments])


def test_two_topologies_of_one_rack_differ_where_they_differ():
    one, other = json.loads(ran(CHORDS, HYPERX, "--json").stdout)
    assert (one["scale_up"]["ports_per_card"], other["scale_up"]["ports_per_card"]) == (7, 9)
    assert one["scale_up"]["diameter"] == other["scale_up"]["diameter"] == 3
    assert one["scale_out"] == other["scale_out"]


def test_what_one_does_not_have_is_empty():
    done = ran("lab", CHORDS)
    assert done.exit_code == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("scale_up ports_per_card")]
    assert line.split() == ["scale_up", "ports_per_card", "7"]


def test_what_no_source_says_is_named():
    one, _ = json.loads(ran(CHORDS, HYPERX, "--json").stdout)
    assert "rack64-node" in one["power"]["unknown"]


def test_one_alone_is_refused_and_so_is_none():
    assert ran("lab").exit_code == 2
    assert ran("lab", "nowhere").exit_code == 2
