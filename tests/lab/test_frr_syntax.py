"""FRR's own parser, that of the lab's switches, reads every configuration that the design renders."""

import subprocess

import pytest

from supernode import design, packaged, spec
from supernode.boot import cache
from supernode.lab import nos

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def designed():
    folder = packaged.root() / "inventories" / "lab"
    texts = {name: (folder / f"{name}.yml").read_text() for name in ("environment", "allocation")}
    return design.build(spec.read(texts))


def parsed(folder, text):
    (folder / "frr.conf").write_text(text)
    inside = 'mount --bind "$1" "$2/mnt" && exec chroot "$2" vtysh -C -f /mnt/frr.conf'
    argv = ["unshare", "--mount", "sh", "-c", inside, "sh", folder, nos.ensure(cache.default(), print)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("switch", ["su01-leaf0", "su01-leaf7", "spine01"])
def test_frr_reads_the_configuration(designed, tmp_path, switch):
    done = parsed(tmp_path, designed.switch_files(switch)[0].content)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_frr_sees_a_word_that_it_does_not_know(designed, tmp_path):
    wrong = designed.switch_files("spine01")[0].content.replace("remote-as external", "remote-as outside")
    assert parsed(tmp_path, wrong).returncode != 0
