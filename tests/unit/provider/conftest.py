"""Fixtures of the neighbouring folders are used here too: an SSH server, a TLS certificate, the BMC's bench."""

import sys
from pathlib import Path

for neighbour in ("clients", "lab_bmc"):
    sys.path.insert(0, str(Path(__file__).parents[1] / neighbour))
