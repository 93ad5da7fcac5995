"""FRR's own parser reads every configuration that the design renders."""

import shutil
import subprocess

import pytest

from .sites import lab

VTYSH = shutil.which("vtysh")


def parsed(tmp_path, text):
    path = tmp_path / "frr.conf"
    path.write_text(text)
    return subprocess.run([VTYSH, "-C", "-f", path], capture_output=True, text=True)


@pytest.mark.skipif(VTYSH is None, reason="FRR is not installed (tools/debian-packages.txt has it)")
@pytest.mark.parametrize("switch", ["su01-leaf0", "su01-leaf7", "spine01"])
def test_frr_reads_the_configuration(tmp_path, switch):
    done = parsed(tmp_path, lab().switch_files(switch)[0].content)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.skipif(VTYSH is None, reason="FRR is not installed (tools/debian-packages.txt has it)")
def test_frr_sees_a_word_that_it_does_not_know(tmp_path):
    wrong = lab().switch_files("spine01")[0].content.replace("remote-as external", "remote-as outside")
    assert parsed(tmp_path, wrong).returncode != 0
