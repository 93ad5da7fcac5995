from __future__ import annotations

from pathlib import Path

import pytest
from bmc_bench import ARGUMENTS, SEED, make_iso


@pytest.fixture(scope="session")
def deploy_iso(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("iso")
    return make_iso(folder / "deploy.iso", folder / "tree", ARGUMENTS, SEED)
