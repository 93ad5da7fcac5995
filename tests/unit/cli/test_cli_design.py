"""What `supernode design` shows of a site on one screen."""

import json

from typer.testing import CliRunner

from supernode.cli.main import app


def test_a_tunnel_is_told_with_its_gateways_and_what_passes():
    done = CliRunner().invoke(app, ["design", "lab-hybrid"])
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())  # as wide as the terminal is
    assert "tunnel branch MTU 1340 over a WAN of 1400, UDP port 51820" in text
    assert "gw-home of home: behind address translation; lets pass 198.19.0.0/24" in text
    assert "gw-branch of branch: 198.19.6.10; lets pass 198.19.2.0/23 stacks" in text
    (tunnel,) = [row for row in whole("lab-hybrid") if row["type"] == "tunnel"]
    assert [row["name"] for row in tunnel["gateways"]] == ["gw-home", "gw-branch"]


def test_a_site_of_its_own_has_none():
    assert "tunnel" not in CliRunner().invoke(app, ["design", "lab"]).stdout
    rows = whole("lab")
    assert {row["type"] for row in rows} == {"design", "host", "switch", "link", "cooling"}
    assert sum(row["type"] == "link" for row in rows) == 9 * 8 + 16


def whole(name):
    done = CliRunner().invoke(app, ["design", name, "--json", "--full"])
    assert done.exit_code == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_full_without_json_is_refused():
    assert CliRunner().invoke(app, ["design", "lab", "--full"]).exit_code == 2
