"""Tests in the lab need root, and leave nothing behind."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def _root():
    if os.geteuid() != 0:
        pytest.fail("the lab needs root: run `make lab-test`")
