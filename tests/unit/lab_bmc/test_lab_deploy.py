"""The deploy step: what it reports, what it puts on the disk, and where it stops."""

from __future__ import annotations

import asyncio
import hashlib
import re
import subprocess
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from bmc_bench import Site, eventually, site

from supernode.lab.chassis import MediaInfo
from supernode.lab.deploy import Hardware, ImageStore, Pace, deploy
from supernode.lab.disks import File

IMAGE = b"a golden image" * 5000
PACKED = subprocess.run(["zstd", "-q", "-c"], input=IMAGE, capture_output=True, check=True).stdout
DIGEST = hashlib.sha256(IMAGE).hexdigest()
MAC = "02:00:00:00:00:01"
FOUND = Hardware(MAC, {"virtio-r01u01": 8 << 30, "nvme-other": 1 << 30})
PACE = Pace(report_tries=2, report_s=0.01, write_tries=2, write_s=0.01, stay_s=0.05)


@dataclass
class Run:
    served: Site
    folder: Path
    media: MediaInfo
    installed: list[tuple[Path, Mapping[str, File]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def install(self, image: Path, files: Mapping[str, File]) -> None:
        assert image.read_bytes() == IMAGE
        self.installed.append((image, files))

    async def go(
        self, media: MediaInfo | None = None, found: Hardware = FOUND, store: ImageStore | None = None
    ) -> None:
        images = store or ImageStore(self.folder)
        await deploy(media or self.media, found, images, self.install, self.lines.append, PACE)

    @property
    def states(self) -> list[str]:
        return [report["state"] for report in self.served.reports]

    @property
    def failure(self) -> str:
        assert self.installed == []
        return str(self.served.reports[-1]["detail"])


@asynccontextmanager
async def run(tmp_path: Path) -> Any:
    async with site(tmp_path / "site") as served:
        (served.folder / "images").mkdir()
        packed = served.folder / "images" / f"{DIGEST}.raw.zst"
        packed.write_bytes(PACKED)
        arguments = {"supernode.port": f"{MAC},198.18.0.11/23,198.18.0.1", "supernode.size": str(len(IMAGE))}
        media = MediaInfo(
            kernel_arguments=arguments,
            image_url=f"{served.base}/images/{DIGEST}.raw.zst",
            image_digest=DIGEST,
            report_url=f"{served.base}/report/gpu-001",
            disk="/dev/disk/by-id/virtio-*",
            seed={"meta-data": "m", "user-data": "u", "network-config": "n"},
            ca_pem=served.ca,
            token="one-time",
        )
        yield Run(served, tmp_path / "store", media)


def test_it_reports_as_the_init_does_and_writes_what_the_contract_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:
            await r.go()
            assert r.states == ["started", "progress", "progress", "ok"]
            assert r.served.reports[-1] == {
                "phase": "deploy",
                "state": "ok",
                "detail": "written to virtio-r01u01",
                "host_keys": [],
                "image": DIGEST,
            }
            ((_, files),) = r.installed
            assert {name: (each.text, each.mode) for name, each in files.items()} == {
                "var/lib/cloud/seed/nocloud/meta-data": ("m", 0o644),
                "var/lib/cloud/seed/nocloud/user-data": ("u", 0o644),
                "var/lib/cloud/seed/nocloud/network-config": ("n", 0o644),
                "etc/supernode/image": (f"{DIGEST}\n", 0o644),
                "etc/supernode/token": ("one-time\n", 0o600),
                "etc/supernode/report.json": (f'{{"url": "{r.media.report_url}"}}\n', 0o644),
                "etc/supernode/ca.pem": (r.served.ca, 0o644),
            }
            assert r.lines[-1] == "supernode: done, restarting"
            assert "one-time" not in "".join(r.lines)

    asyncio.run(scenario())


def test_the_init_of_the_real_medium_does_the_same() -> None:
    """Both follow one contract and neither can import the other: their texts are held against each other."""
    init = (resources.files("supernode.boot") / "deploy" / "init").read_text()
    main = init[init.index("main() {") :]
    told = re.findall(r"\breport (started|progress|ok) \"([^\"$]*)", init[init.index("enrol() {") :])
    assert "PHASE=enrol; enrol ||" in main
    assert told == [("started", ""), ("progress", "writing "), ("progress", "verifying "), ("ok", "written to ")]
    phases = re.findall(r"PHASE=(\w+)", main)
    assert {"network", "enrol", "disk", "write", "seed"} <= set(phases)
    assert phases.index("enrol") < phases.index("disk") < phases.index("write")
    for name in ("token", "ca.pem", "image", "report.json"):
        assert re.search(rf">{re.escape(name)}\b", init), name
    assert "for name in meta-data user-data network-config" in init
    assert "STAY=300" in init
    assert Pace() == Pace(report_tries=10, report_s=3.0, write_tries=3, write_s=5.0, stay_s=300.0)


def test_a_dead_token_writes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:
            r.served.token = "used up"
            await r.go()
            assert r.installed == []
            assert not any("GET" in line for line in r.served.asked)
            assert any("FAILED in phase enrol" in line for line in r.lines)
            assert r.lines[-1] == "supernode: restarting in 0.05 s"

    asyncio.run(scenario())


def test_an_image_of_another_digest_is_not_written_and_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:
            wrong = "0" * 64
            await r.go(replace(r.media, image_digest=wrong))
            assert r.states == ["started", "progress", "failed"]
            assert r.failure.startswith("write: ")
            assert f"the image is {DIGEST}, not {wrong}" in r.failure
            assert list(r.folder.iterdir()) == []
            assert sum("GET" in line for line in r.served.asked) == 2  # tried again

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "found", "reason"),
    [
        ({"image_url": "/images/absent.raw.zst"}, FOUND, "write: "),
        ({"disk": "/dev/disk/by-id/sas-*"}, FOUND, "disk: 0 disks answer to sas-*; seen: virtio-r01u01 nvme-other"),
        ({"disk": "/dev/disk/by-id/*"}, FOUND, "disk: 2 disks answer to *"),
        ({}, Hardware(MAC, {"virtio-small": 10}), "disk: virtio-small is smaller than the image"),
        ({}, Hardware(MAC, {}), "disk: 0 disks answer to virtio-*; seen: none"),
        ({}, Hardware("02:00:00:00:00:99", FOUND.disks), f"network: no port with the address {MAC}"),
        ({"image_digest": "../../etc/passwd"}, FOUND, "write: supernode.digest: is no SHA-256"),
    ],
)
def test_a_machine_that_does_not_fit_says_so(
    tmp_path: Path, change: dict[str, str], found: Hardware, reason: str
) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:
            if "image_url" in change:
                change["image_url"] = r.served.base + change["image_url"]
            await r.go(replace(r.media, **change), found)
            assert r.states[-1] == "failed"
            assert r.failure.startswith(reason)

    asyncio.run(scenario())


def test_a_site_of_another_authority_is_not_talked_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r, site(tmp_path / "other") as other:
            await r.go(replace(r.media, ca_pem=other.ca))
            assert r.served.asked == []
            assert any("not trusted" in line for line in r.lines)
            await r.go(replace(r.media, ca_pem=""))
            assert r.served.asked == []
            assert r.installed == []

    asyncio.run(scenario())


def test_many_machines_fetch_one_image_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:
            store = ImageStore(r.folder)
            await asyncio.gather(*(r.go(store=store) for _ in range(6)))
            assert len(r.installed) == 6
            assert sum("GET" in line for line in r.served.asked) == 1
            await r.go(store=ImageStore(r.folder))  # a daemon started again
            assert sum("GET" in line for line in r.served.asked) == 1
            assert [path.name for path in r.folder.iterdir()] == [f"{DIGEST}.raw"]

    asyncio.run(scenario())


def test_a_power_cut_of_one_machine_leaves_the_fetch_to_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:
            store = ImageStore(r.folder)
            first = asyncio.create_task(r.go(store=store))
            second = asyncio.create_task(r.go(store=store))
            await eventually(lambda: store._fetching)
            first.cancel()
            await second
            assert first.cancelled()
            assert len(r.installed) == 1
            assert sum("GET" in line for line in r.served.asked) == 1

    asyncio.run(scenario())


def test_what_the_disk_refuses_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run(tmp_path) as r:

            def full(image: Path, files: Mapping[str, File]) -> None:
                raise OSError(28, "No space left on device")

            await deploy(r.media, FOUND, ImageStore(r.folder), full, r.lines.append, PACE)
            assert r.states[-1] == "failed"
            assert "No space left" in r.failure

    asyncio.run(scenario())
