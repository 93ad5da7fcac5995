"""UEFI HTTP boot against firmware: OVMF loads the deploy medium over TLS from the boot server that it trusts.

QEMU without KVM. The firmware is told what a controller would tell it: the address, and the certificate to trust.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ovmf_vars import boot_next_from, trust
from test_boot_qemu import MAC, SERVE, Guest, Station, record, station  # noqa: F401 - station is a fixture

from supernode.boot import enrolment, facts, media, tls
from supernode.workspace import EnvironmentFolder

pytestmark = [pytest.mark.qemu, pytest.mark.timeout(900)]
LIMIT_S = 300.0


class Netbooted(Guest):
    """A virtual machine with an empty disk, no drive, and firmware that was told what to load and whom to trust."""

    def __init__(self, folder: Path, uri: str, ca: str) -> None:
        self.disk, self.console = folder / "disk.raw", folder / "console.log"
        with self.disk.open("wb") as stream:
            stream.truncate(4 << 30)
        boot_next_from(Path("/usr/share/OVMF/OVMF_VARS_4M.fd"), folder / "vars.fd", uri)
        (folder / "cacerts").write_bytes(trust(ca))
        network = f"user,id=n,net=198.18.30.0/23,host={SERVE},dns=198.18.31.252,dhcpstart=198.18.31.200"
        self.process = subprocess.Popen(
            [
                "qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none",
                "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
                "-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
                "-drive", f"if=pflash,format=raw,unit=1,file={folder / 'vars.fd'}",
                "-drive", f"if=none,id=disk,format=raw,cache=unsafe,file={self.disk}",
                "-device", "virtio-blk-pci,drive=disk,serial=system0",
                "-netdev", network, "-device", f"virtio-net-pci,netdev=n,mac={MAC},romfile=",
                "-device", "virtio-rng-pci",
                "-fw_cfg", f"name=etc/edk2/https/cacerts,file={folder / 'cacerts'}",
                "-serial", f"file:{self.console}",
            ],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


def address(station: Station) -> str:  # noqa: F811
    base = media.base_url(station.design.environment)
    return f"{base}/boot/gpu-001/{facts.read(station.folder).isos['gpu-001']}.iso"


def test_firmware_boots_the_medium_over_tls(station: Station, tmp_path: Path) -> None:  # noqa: F811
    enrolment.arm(station.folder.state, "gpu-001")
    ca = tls.ensure(station.folder, SERVE).ca.read_text(encoding="utf-8")
    machine = Netbooted(tmp_path, address(station), ca)
    try:
        machine.wait_for(r"supernode: writing vda", LIMIT_S)
        assert record(station)["phase"] == "deploy"
        assert not enrolment.armed(station.folder.state, "gpu-001")  # it was the firmware that fetched the medium
    finally:
        machine.stop()


def test_firmware_takes_nothing_from_a_server_that_it_does_not_trust(station: Station, tmp_path: Path) -> None:  # noqa: F811
    enrolment.arm(station.folder.state, "gpu-001")
    other = EnvironmentFolder("other", tmp_path / "inventories" / "other", tmp_path)
    other.folder.mkdir(parents=True)
    machine = Netbooted(tmp_path, address(station), tls.ensure(other, SERVE).ca.read_text(encoding="utf-8"))
    try:
        machine.wait_for(r"Error: Could not retrieve NBP file size", LIMIT_S)
    finally:
        machine.stop()
    assert enrolment.armed(station.folder.state, "gpu-001")
    enrolment.disarm(station.folder.state, "gpu-001")
