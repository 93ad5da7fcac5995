"""Before T0: what can be seen to be wrong without touching anything. Looking and judging are apart.

seen.py       what was seen: frozen records, no verdict in them
bmcs.py switches.py servers.py here.py    looking: each returns records, within its own short patience
judging.py    from the Design and what was seen to findings: pure
run.py        looks at everything at once, and judges
"""

from __future__ import annotations

from supernode.bringup.live.run import check

__all__ = ["check"]
