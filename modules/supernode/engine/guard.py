"""Runs one engine command for supernode, and interrupts it once when supernode dies: `python guard.py COMMAND…`.

The kernel's parent-death signal is no use here: a process with threads that is killed outright dies thread by thread,
each death may send the signal anew, and the engine takes a second interrupt as an order to drop what it is doing.
"""

import os
import signal
import subprocess
import sys
from types import FrameType

_LOOK_S = 0.5


def main() -> int:
    """Run the command to its end and return its exit code; each interrupt is passed on once."""
    parent = os.getppid()
    command = subprocess.Popen(sys.argv[1:])

    def pass_on(_signal: int, _frame: FrameType | None) -> None:
        command.send_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, pass_on)
    signal.signal(signal.SIGTERM, pass_on)
    told = False
    while True:
        try:
            code = command.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if not told and os.getppid() != parent:
                told = True
                command.send_signal(signal.SIGINT)
        else:
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
