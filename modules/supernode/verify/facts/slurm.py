"""What the scheduler's controller says of a node, asked from the node: its key and its way there are seen, too."""

from __future__ import annotations

from supernode.clients.slurm import Node, parse
from supernode.verify.facts.raw import MISSING_PROGRAM, NotSeenError, Raw

# A node that was just started, or resumed, registers within seconds: it is given 12 s before what is there is told.
_ASK = (
    'n=0; while :; do out=$(scontrol --oneliner show node "$1" 2>&1); rc=$?; n=$((n+1)); '
    'case "$rc $out" in "0 "*SlurmdStartTime=None*|"0 "*NOT_RESPONDING*) ;; "0 "*|127*) break;; esac; '
    '[ $n -ge 12 ] && break; sleep 1; done; printf "%s\\n" "$out"; exit $rc'
)


def command(name: str) -> tuple[str, ...]:
    """Return what a node is asked."""
    return ("sh", "-c", _ASK, "sh", name)


def read(raw: Raw) -> Node:
    """Read the answer.

    Raises:
        NotSeenError: scontrol is not installed, or the controller did not answer it.
    """
    if raw.rc == MISSING_PROGRAM:
        raise NotSeenError("scontrol is not installed")
    if raw.rc != 0 and "not found" not in raw.out:
        raise NotSeenError(raw.problem)
    return parse(raw.out.strip())
