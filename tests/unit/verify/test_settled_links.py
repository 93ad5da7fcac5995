"""The facts script waits for a subnet's manager, for a moment."""

import sys

from supernode.verify.facts import on_host

# Each call prints one line more of the script's own life: the link comes up at the third look.
LOOK = """
import pathlib
seen = pathlib.Path({path!r})
looks = int(seen.read_text()) + 1 if seen.exists() else 1
seen.write_text(str(looks))
print("==( 4X 53.125 Gbps", "Active/" if looks > 2 else "Initialize/", "LinkUp)==>")
"""


def looks(tmp_path, patience_s):
    seen = tmp_path / "looks"
    answer = on_host.settled([sys.executable, "-c", LOOK.format(path=str(seen))], patience_s)
    return answer["out"], int(seen.read_text())


def test_a_link_that_comes_up_is_waited_for(tmp_path):
    out, count = looks(tmp_path, 30)
    assert "Active/" in out
    assert count == 3


def test_one_that_does_not_is_shown_as_it_is(tmp_path):
    out, count = looks(tmp_path, 0)
    assert "Initialize/" in out
    assert count == 1
