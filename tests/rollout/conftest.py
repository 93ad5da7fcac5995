"""One session gathers every machine once; each test asserts one finding.

pytest tests/rollout --environment lab
"""

import json
from pathlib import Path

import pytest

from supernode.errors import SupernodeError
from supernode.records import Finding, Verdict
from supernode.verify import run


def pytest_addoption(parser):
    parser.addoption("--environment", help="a folder under inventories/, or a path: what to look at")
    parser.addoption("--findings", type=Path, help="write the findings here as JSON")


def pytest_configure(config):
    plugins = [plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, run.Session)]
    if plugins:
        config.rollout = plugins[0].case
        return
    environment = config.getoption("--environment")
    if not environment:
        raise pytest.UsageError("--environment says what to look at: pytest tests/rollout --environment lab")
    try:
        config.rollout = run.load(environment)
    except SupernodeError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_generate_tests(metafunc):
    """One test for each place that the design names; no machine is asked for that."""
    marker = metafunc.definition.get_closest_marker("check")
    check = marker.args[0]
    places = metafunc.config.rollout.places(check)
    metafunc.parametrize("finding", [(check, place) for place in places], ids=places, indirect=True)


@pytest.fixture(scope="session")
def findings(pytestconfig) -> dict[tuple[str, str], Finding]:
    rows = pytestconfig.rollout.findings()
    target = pytestconfig.getoption("--findings")
    if target is not None:
        target.write_text(json.dumps([json.loads(run.write_property(row)) for row in rows], indent=1) + "\n")
    return {(row.check, row.place): row for row in rows}


@pytest.fixture
def finding(request, findings, record_property) -> Finding:
    row = findings[request.param]
    record_property("verdict", row.verdict.value)
    record_property(run.PROPERTY, run.write_property(row))
    return row


@pytest.fixture
def holds(finding):
    """Assert that a finding is a pass; advice passes, and what nobody saw does not."""

    def judge() -> None:
        if finding.verdict in (Verdict.PASS, Verdict.ADVICE):
            return
        lines = [f"{finding.verdict.value}: {finding.cause or finding.found}"]
        lines += [f"wanted {finding.wanted}", f"found {finding.found}", *finding.evidence]
        lines += [f"hint: {finding.hint}"] if finding.hint else []
        pytest.fail("\n".join(lines), pytrace=False)

    return judge
