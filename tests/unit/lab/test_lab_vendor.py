"""The vendor of the lab's accelerators: what its nvidia-smi prints is what the samples document, read by one parser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from supernode import catalog
from supernode.lab import wiring
from supernode.lab.boards import BoardFolder
from supernode.lab.chassis import Identity
from supernode.lab.vendor import repository
from supernode.verify.facts import gpus
from supernode.verify.facts.raw import Raw

SAMPLES = Path(__file__).parents[1] / "verify" / "samples"
UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Host:
    """A machine's bus and the vendor's tool on it."""

    def __init__(self, folder: Path, server) -> None:
        self.kind = catalog.server(server.kind)
        self.board = BoardFolder(folder / "board", wiring.server_ports("lab", server))
        self.board.make(server, Identity.manufactured("lab", server.slot))
        self.state = folder / "state"
        self.tool = folder / "nvidia-smi"
        self.tool.write_text(repository.contents()["usr/bin/nvidia-smi"][0])

    def smi(self, *words: str) -> Raw:
        environment = {
            **os.environ,
            "NVIDIA_LAB_BUS": str(self.board.folder / "pci"),
            "NVIDIA_LAB_STATE": str(self.state),
        }
        done = subprocess.run(
            [sys.executable, str(self.tool), *words], capture_output=True, text=True, env=environment, check=False
        )
        return Raw(done.returncode, done.stdout, done.stderr)

    def asked(self) -> Raw:
        return self.smi(*gpus.COMMANDS["gpus"][1:])


@pytest.fixture
def host(tmp_path, sample):
    return Host(tmp_path, sample.servers[0])


def documented(name: str) -> str:
    return (SAMPLES / f"nvidia-smi-documented-{name}.txt").read_text()


def masked(text: str) -> str:
    return UUID.sub("GPU-", text)


def test_what_the_check_asks_is_answered_as_documented_word_for_word(host):
    assert host.smi("-pm", "1").out.endswith("All done.\n")
    assert masked(host.asked().out) == masked(documented("8"))
    host.board.lose_gpu(host.kind, 5)
    assert masked(host.asked().out) == masked(documented("7-of-8"))
    for number in range(8):
        host.board.lose_gpu(host.kind, number)
    answer = host.asked()
    assert (answer.out, answer.rc) == (documented("none"), 6)


def test_persistence_is_off_until_it_is_asked_for(host):
    rows, _ = gpus.table(host.asked())
    assert not any(gpu.persistent for gpu in rows)
    host.smi("-pm", "1")
    rows, _ = gpus.table(host.asked())
    assert all(gpu.persistent for gpu in rows)
    host.smi("-pm", "0")
    rows, _ = gpus.table(host.asked())
    assert not any(gpu.persistent for gpu in rows)


def test_listing_header_units_and_a_field_that_does_not_exist(host):
    assert re.fullmatch(r"GPU 0: NVIDIA H100 80GB HBM3 \(UUID: GPU-\S+\)", host.smi("-L").out.splitlines()[0])
    head, first, *_ = host.smi(
        "--query-gpu=index,memory.total,pcie.link.width.current", "--format=csv"
    ).out.splitlines()
    assert (head, first) == ("index, memory.total [MiB], pcie.link.width.current", "0, 81559 MiB, 16")
    wrong = host.smi("--query-gpu=indeks", "--format=csv")
    assert (wrong.rc, wrong.out) == (2, 'Field "indeks" is not a valid field to query.\n\n')


def test_the_table_is_as_wide_everywhere(host):
    lines = [line for line in host.smi().out.splitlines() if line.startswith(("|", "+"))]
    assert {len(line) for line in lines} == {91}
    assert sum("H100" in line for line in lines) == 8
