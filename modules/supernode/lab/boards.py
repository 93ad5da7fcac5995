"""What a device's own /sys shows of its hardware: the labels (SMBIOS), and a server's NICs by PCI address.

A folder on disk, bound read-only into the machine at /run/board; the first process of the machine, which stands for its
firmware, lays it over /sys and becomes the system's init. The list of netdevs under a PCI address follows renames.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from supernode import catalog
from supernode.catalog import ServerKind, SwitchKind
from supernode.lab.artefacts import Server, Switch
from supernode.lab.chassis import Identity
from supernode.lab.wiring import Port

INSIDE = Path("/run/board")
FIRMWARE = f"""#!/bin/sh
# What firmware and the bus scan would have put into /sys. Ports come and go, and an overlay keeps a stale handle of one
# that was away: where they are listed, the kernel's own folders lie on top.
if [ -r /run/adapter/environment ]; then set -a; . /run/adapter/environment; set +a; fi
mkdir -p /run/ports/class /run/ports/virtual
mount --bind /sys/class/net /run/ports/class
mount --bind /sys/devices/virtual/net /run/ports/virtual
mount -t overlay -o ro,lowerdir={INSIDE}/class:/sys/class board /sys/class
mount -t overlay -o ro,lowerdir={INSIDE}/virtual:/sys/devices/virtual board /sys/devices/virtual
[ -d /sys/bus/pci/devices ] || mount -t overlay -o ro,lowerdir={INSIDE}/bus:/sys/bus board /sys/bus
mount --bind {INSIDE}/pci /sys/bus/pci/devices
mount --bind /run/ports/class /sys/class/net
mount --bind /run/ports/virtual /sys/devices/virtual/net
umount /run/ports/class /run/ports/virtual
exec /lib/systemd/systemd --show-status=true
"""
# pci.ids: 15b3:1021 is NVIDIA's ConnectX-7, in a Gen5 x16 slot as on the machines that lab kinds stand for; 8086:1533
# is Intel's I210.
_NIC = {
    "class": "0x020000",
    "vendor": "0x15b3",
    "device": "0x1021",
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}
_MANAGEMENT = {
    "class": "0x020000",
    "vendor": "0x8086",
    "device": "0x1533",
    "current_link_speed": "2.5 GT/s PCIe",
    "current_link_width": "1",
}
# A 3D controller (PCI class 03.02), as accelerators without a display are.
_GPU = {
    "class": "0x030200",
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}
_UPPER_SOCKET_BUS = 0x80


@dataclass(frozen=True)
class BoardFolder:
    """The simulated part of one device's /sys.

    Attributes:
        folder: where it lies on the lab's machine.
        ports: a server's ports; those of a switch are no devices of its bus.
    """

    folder: Path
    ports: tuple[Port, ...]

    @property
    def binds(self) -> tuple[str, ...]:
        """The nspawn argument that shows it to the machine."""
        return (f"--bind-ro={self.folder}:{INSIDE}",)

    @property
    def command(self) -> tuple[str, ...]:
        """The machine's first process."""
        return ("/bin/sh", str(INSIDE / "firmware"))

    def make(self, server: Server, identity: Identity) -> None:
        """Write a server's folder anew, with every port under its first name."""
        kind = catalog.server(server.kind)
        labels = {**_labels(kind, identity), "bios_version": str(kind.firmware.get("BIOS", ""))}
        self._write(labels, () if "ethernet" in kind.links else tuple(nic.pci for nic in kind.nics))
        for index in range(len(kind.gpu_pci)):
            self.plug_gpu(kind, index)
        for nic in kind.nics:
            place = self.folder / "pci" / nic.pci
            if nic.hca and place.is_dir():
                (place / "infiniband" / nic.hca).mkdir(parents=True)

    def plug_gpu(self, kind: ServerKind, index: int) -> None:
        """Have an accelerator on the bus."""
        vendor, _, device = kind.gpu_id.partition(":")
        values = {**_GPU, "vendor": f"0x{vendor}", "device": f"0x{device}"}
        _values(self.folder / "pci" / kind.gpu_pci[index], {**values, "numa_node": _node(kind.gpu_pci[index])})

    def lose_gpu(self, kind: ServerKind, index: int) -> None:
        """Take an accelerator off the bus, at once and for the next boots."""
        shutil.rmtree(self.folder / "pci" / kind.gpu_pci[index], ignore_errors=True)

    def make_switch(self, switch: Switch, identity: Identity) -> None:
        """Write a switch's folder anew: its labels."""
        self._write(_labels(catalog.switch(switch.kind), identity))

    def make_gateway(self, identity: Identity) -> None:
        """Write a gateway's folder anew: its labels."""
        self._write(_labels(_Appliance("Supernode lab", "gateway"), identity))

    def _write(self, values: Mapping[str, str], adapters: Sequence[str] = ()) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        labels = self.folder / "virtual" / "dmi" / "id"
        _values(labels, values)
        for name in ("product_serial", "board_serial", "chassis_serial", "product_uuid"):
            (labels / name).chmod(0o400)  # as the kernel has it: root's only
        (self.folder / "class" / "dmi").mkdir(parents=True)
        (self.folder / "class" / "dmi" / "id").symlink_to("../../devices/virtual/dmi/id")
        (self.folder / "bus" / "pci" / "devices").mkdir(parents=True)
        (self.folder / "pci").mkdir()
        for port in self._on_bus():
            _values(self.folder / "pci" / port.pci, {**_device(port)})
        for pci in adapters:
            _values(self.folder / "pci" / pci, {**_NIC, "class": "0x020700", "numa_node": _node(pci)})
        if adapters:
            _values(self.folder / "class" / "infiniband_mad", {"abi_version": "5"})  # what ib_umad says of itself
        (self.folder / "firmware").write_text(FIRMWARE, encoding="utf-8")
        self.follow({port.index: port.name for port in self.ports})

    def follow(self, names: Mapping[int, str]) -> None:
        """List each port under the name that its link has now; a link that is gone is listed nowhere."""
        for port in self._on_bus():
            self.renamed(port.index, names.get(port.index, ""))

    def renamed(self, index: int, name: str) -> None:
        """List one port under another name."""
        port = next((port for port in self._on_bus() if port.index == index), None)
        if port is None:
            return
        folder = self.folder / "pci" / port.pci / "net"
        folder.mkdir(exist_ok=True)
        if name and not (folder / name).is_symlink():
            (folder / name).symlink_to(f"/sys/class/net/{name}")
        for other in folder.iterdir():
            if other.name != name:
                with contextlib.suppress(FileNotFoundError):
                    other.unlink()

    def _on_bus(self) -> Iterable[Port]:
        return (port for port in self.ports if port.pci)


def _device(port: Port) -> dict[str, str]:
    values = dict(_MANAGEMENT if port.designed == "management" else _NIC)
    values["numa_node"] = _node(port.pci)
    return values


def _node(address: str) -> str:
    """Return the socket that a bus hangs on."""
    return str(int(int(address.split(":")[1], 16) >= _UPPER_SOCKET_BUS))


@dataclass(frozen=True)
class _Appliance:
    vendor: str
    model: str


def _labels(kind: ServerKind | SwitchKind | _Appliance, identity: Identity) -> dict[str, str]:
    return {
        "sys_vendor": kind.vendor,
        "board_vendor": kind.vendor,
        "chassis_vendor": kind.vendor,
        "product_name": kind.model,
        "board_name": kind.model,
        "product_serial": identity.system_serial,
        "board_serial": identity.board_serial,
        "chassis_serial": identity.chassis_serial,
        "product_uuid": identity.uuid,
        "chassis_type": "23",
    }


def _values(folder: Path, values: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name).write_text(value + "\n", encoding="utf-8")
