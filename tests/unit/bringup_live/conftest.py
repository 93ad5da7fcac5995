"""The lab's BMC and the clients' SSH server stand here for what is looked at."""

import sys
from pathlib import Path

for name in ("lab_bmc", "clients"):
    sys.path.insert(0, str(Path(__file__).parents[1] / name))
