"""Tests in the lab need root, and leave nothing behind."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import lab_site


@pytest.fixture(scope="session", autouse=True)
def _root():
    if os.geteuid() != 0:
        pytest.fail("the lab needs root: run `make lab-test`")


@pytest.fixture(scope="session")
def cluster():
    """Nine hosts in service without a fault; whoever uses it leaves it so."""
    site = lab_site.make("day", 96)
    try:
        site.supernode("lab", "up", site.name, timeout=1200)
        yield site
    finally:
        lab_site.forget(site)


def pytest_collection_modifyitems(items):
    """Let who shares the lab that stays up come last: other tests look at what is left on the machine."""
    items.sort(key=lambda item: "cluster" in getattr(item, "fixturenames", ()))
