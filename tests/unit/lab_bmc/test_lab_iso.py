"""Reading a deploy ISO."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest
from bmc_bench import ARGUMENTS, SEED, make_iso

from supernode.boot import iso as boot_iso
from supernode.errors import CouldNotRun
from supernode.lab import iso


def test_it_is_read_whole_and_nothing_is_left_behind(
    deploy_iso: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    media = asyncio.run(iso.read(deploy_iso))
    assert media.image_url == "https://198.18.31.253:8443/images/a.raw.zst"
    assert media.report_url == "https://198.18.31.253:8443/report/gpu-001"
    assert media.disk == "/dev/disk/by-id/virtio-*"  # quotes are the menu's, not the argument's
    assert media.kernel_arguments["console"] == "ttyS0,115200"
    assert media.kernel_arguments["quiet"] == ""
    assert media.seed == {name: SEED[name] for name in ("meta-data", "user-data", "network-config")}
    assert media.ca_pem == SEED["ca.pem"]
    assert media.token == "one-time"
    assert list(tmp_path.iterdir()) == []


def test_what_the_product_builds_is_read(tmp_path: Path) -> None:
    for name in ("vmlinuz", "initrd.img", "efi.img"):
        (tmp_path / name).write_bytes(b"\0" * 4096)
    arguments = boot_iso.Arguments(
        image="https://198.18.31.253:8443/images/a.raw.zst",
        digest="ab" * 32,
        size=1 << 20,
        disk="/dev/disk/by-id/virtio-*",
        report="https://198.18.31.253:8443/report/gpu-001",
        port="02:00:00:00:00:01,198.18.0.11/23,198.18.0.1",
    )
    seed = {name: SEED[name] for name in boot_iso.SEED}
    boot_iso.build(boot_iso.Base("any", tmp_path), seed, SEED["ca.pem"], "one-time", arguments, tmp_path / "d.iso")
    media = asyncio.run(iso.read(tmp_path / "d.iso"))
    found = {name: media.kernel_arguments[f"supernode.{name}"] for name in asdict(arguments)}
    assert found == {name: str(value) for name, value in asdict(arguments).items()}
    assert (media.seed, media.ca_pem, media.token) == (seed, SEED["ca.pem"], "one-time")


def test_files_that_are_no_deploy_iso_are_refused(tmp_path: Path) -> None:
    (tmp_path / "noise.iso").write_bytes(b"\xff" * 100_000)
    (tmp_path / "empty.iso").write_bytes(b"")
    (tmp_path / "tree/seed").mkdir(parents=True)
    for name in ("noise.iso", "empty.iso", "absent.iso"):
        with pytest.raises(CouldNotRun, match="not a deploy ISO"):
            asyncio.run(iso.read(tmp_path / name))


@pytest.mark.parametrize("lacking", ["supernode.image", "supernode.digest", "supernode.disk", "supernode.report"])
def test_a_missing_argument_is_named(tmp_path: Path, lacking: str) -> None:
    path = make_iso(tmp_path / "x.iso", tmp_path / "tree", ARGUMENTS.replace(f"{lacking}=", "other="), SEED)
    with pytest.raises(CouldNotRun, match=f"lacks {lacking}$"):
        asyncio.run(iso.read(path))


def test_a_seed_without_token_or_ca_is_refused(tmp_path: Path) -> None:
    path = make_iso(tmp_path / "x.iso", tmp_path / "tree", ARGUMENTS, {"meta-data": "{}"})
    with pytest.raises(CouldNotRun, match=r"lacks /seed/ca.pem, /seed/token$"):
        asyncio.run(iso.read(path))


def test_a_menu_without_a_kernel_is_refused() -> None:
    with pytest.raises(CouldNotRun, match="no linux line"):
        iso.kernel_arguments("set timeout=0\n# linux /boot/vmlinuz x=y\n")
    assert iso.kernel_arguments("  linux\t/boot/vmlinuz a=1 b='x y' a=2\n") == {"a": "2", "b": "x y"}
    assert iso.kernel_arguments("linux /boot/vmlinuz") == {}
