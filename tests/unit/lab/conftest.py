import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import lab_sample

from supernode.lab import artefacts


@pytest.fixture
def sample(tmp_path):
    return artefacts.read(lab_sample.write(tmp_path / "artefacts"))
