"""`supernode cabling check`: exit codes, text and JSON, and errors that name file and line."""

import json

import pytest
from typer.testing import CliRunner

from supernode.cli.main import app


def run(*words):
    return CliRunner().invoke(app, ["cabling", "check", "lab", *map(str, words)])


@pytest.fixture
def sheet(tmp_path):
    assert CliRunner().invoke(app, ["design", "lab", "--out", str(tmp_path / "out")]).exit_code == 0
    return tmp_path / "out" / "cabling.csv"


def test_the_designs_own_sheet_is_right(sheet):
    done = run(sheet)
    assert done.exit_code == 0
    assert done.stdout == "88 rows, 88 of 88 designed cables as designed, 0 differences\n"


def test_two_exchanged_cables_are_told_with_their_lines(sheet):
    lines = sheet.read_text().splitlines()
    one, two = lines[1].replace(",swp1,", ",swp2,"), lines[9].replace(",swp2,", ",swp1,")
    sheet.write_text("\n".join([lines[0], one, *lines[2:9], two, *lines[10:]]))
    done = run(sheet)
    assert done.exit_code == 1
    assert done.stdout.startswith(f"{sheet}:2: swapped: cables C00001 (from gpu-001:rail0) and C00009")
    assert "(also line 10)\n    exchange the two plugs at su01-leaf0:swp2 and su01-leaf0:swp1\n" in done.stdout
    found = json.loads(run(sheet, "--json").stdout)
    assert [(row["kind"], row["lines"]) for row in found["differences"]] == [("swapped", [2, 10])]
    assert (found["agreeing"], found["designed"]) == (86, 88)


def test_a_sheet_that_is_none_ends_with_2_and_its_line(tmp_path):
    (tmp_path / "x.csv").write_text("rack,port\nr01,1\n")
    done = run(tmp_path / "x.csv")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {tmp_path / 'x.csv'}:1: none of the first 50 lines has the headings")
    assert "hint: name the sheet's headings" in done.stderr
    assert run(tmp_path / "absent.csv").exit_code == 2


def test_a_wrong_map_ends_with_2(tmp_path, sheet):
    (tmp_path / "map.yml").write_text("columns: {a_device: A, z_port: Z}\n")
    done = run(sheet, "--map", tmp_path / "map.yml")
    assert done.exit_code == 2
    assert f"error: {tmp_path / 'map.yml'}: columns.z_port is none of" in done.stderr
    (tmp_path / "map.yml").write_text("columns: [\n")
    assert run(sheet, "--map", tmp_path / "map.yml").exit_code == 2


def test_bytes_of_any_kind_are_no_traceback(tmp_path):
    for number, data in enumerate((b"", b"\x00\x01\xff" * 50, b'"' * 99, b"\xff\xfe\x00", b"a,b\r\r\n\n")):
        (tmp_path / f"{number}.csv").write_bytes(data)
        done = run(tmp_path / f"{number}.csv")
        assert done.exit_code == 2, (data, done.output)
        assert done.stderr.startswith("error: ")
