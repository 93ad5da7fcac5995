"""The SSH server of the clients' tests serves here, too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "clients"))
