"""Fixtures of the neighbouring folders are used here too: an SSH server, a TLS certificate, the BMC's bench."""

import sys
from pathlib import Path

import pytest

for neighbour in ("clients", "lab_bmc"):
    sys.path.insert(0, str(Path(__file__).parents[1] / neighbour))


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path, monkeypatch):
    """The boot phase leaves a mark for the boot server in the environment's state: not in this checkout's."""
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
