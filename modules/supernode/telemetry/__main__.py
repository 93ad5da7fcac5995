"""`supernode-cooling SETTINGS`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from supernode.errors import SupernodeError
from supernode.telemetry import settings
from supernode.telemetry.serve import Agent


def main(arguments: list[str]) -> int:
    """Run the agent; 2 where it was called wrongly, 3 where it cannot run."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    if len(arguments) != 1:
        logging.error("usage: supernode-cooling SETTINGS")
        return 2
    try:
        asyncio.run(Agent(settings.read(Path(arguments[0]))).run())
    except SupernodeError as error:
        logging.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
