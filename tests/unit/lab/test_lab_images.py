"""An image is mounted once, however many machines are deployed at the same moment."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from supernode.lab import disks


def test_machines_that_deploy_side_by_side_share_one_mount(tmp_path, monkeypatch):
    mounted: list[str] = []

    def slow_mount(*arguments: str) -> None:
        time.sleep(0.05)
        mounted.append(arguments[-1])

    monkeypatch.setattr(disks, "mount", slow_mount)
    monkeypatch.setattr(disks, "read_table", lambda _image: SimpleNamespace(offset=0, size=1))
    monkeypatch.setattr(Path, "is_mount", lambda self: str(self) in mounted)
    images = disks.Images(tmp_path)
    with ThreadPoolExecutor(9) as pool:
        lowers = set(pool.map(images.lower, [tmp_path / "image.raw"] * 9))
    assert len(lowers) == len(mounted) == 1
