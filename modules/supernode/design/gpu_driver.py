"""What the driver's role gives to a host with accelerators: packages by exact version, and what keeps them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supernode.design import render
from supernode.design.model import Design
from supernode.design.rows import Host, RenderedFile


def applies(design: Design, host: Host) -> bool:
    """Tell whether a host has accelerators that the driver of this environment is for."""
    return design.environment.gpu_driver is not None and design.server_kind(host).gpu_vendor == "nvidia"


def files(design: Design, _host: Host) -> Sequence[RenderedFile]:
    """Return what keeps the pinned versions, whoever asks apt for others, and the kernel's own driver away."""
    pins = [package.partition("=")[::2] for package in packages(design)]
    return (
        _file("/etc/apt/preferences.d/60-supernode-gpu-driver", "gpu_driver/preferences.j2", pins=pins),
        _file("/etc/modprobe.d/60-supernode-gpu-driver.conf", "gpu_driver/modprobe.conf.j2"),
    )


def packages(design: Design) -> Sequence[str]:
    """Return the vendor's packages, `name=version`."""
    return design.environment.gpu_driver.packages if design.environment.gpu_driver else ()


def variables(design: Design, _host: Host) -> Mapping[str, Any]:
    """Return the unit that keeps the accelerators initialised."""
    driver = design.environment.gpu_driver
    return {"gpu_driver_persistence": driver.persistence} if driver else {}


def _file(path: str, template: str, **values: Any) -> RenderedFile:
    return RenderedFile(path, render.text(template, **values), role="gpu_driver")
