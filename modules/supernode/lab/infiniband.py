"""An InfiniBand fabric in the lab: ibsim answers for every adapter and switch, and each server has its own adapter.

ibsim reads the exported netlist and runs in the lab's namespace. What a server has of it is hardware: the library that
stands for the adapters' driver (umad2sim) is in every process from the first on, as a driver is, and speaks to ibsim
over the management network, by a relay that has a driver's timeouts (transactions). So the subnet manager and the tools
are Debian's own, as installed, and know nothing of it.

Where to find its adapter the library asks the environment, so that is set for every login, service and sudo; a process
without it that looks for adapters waits for ever.

The library shows a program one adapter, that of rail 0; the others are in the subnet and answer there.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supernode import catalog
from supernode.errors import CouldNotRun
from supernode.lab.artefacts import Artefacts, Cable
from supernode.lab.plant import Cables, End, find
from supernode.lab.transactions import Relay

log = logging.getLogger(__name__)
# Where the adapters find the simulator, and where it is.
PORT, BEHIND = 7070, 7170
READY, READY_S = "Network simulator ready", 20.0
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
# In the order in which a process needs them.
DRIVER = ("libibumad.so.3", "libibmad.so.5", "umad2sim/libumad2sim.so")
INSIDE = "/run/adapter"
PROGRAMS: Mapping[str, str] = {"ibsim": "ibsim-utils", "ibportstate": "infiniband-diags"}
# PortInfo.LinkWidthEnabled, a bit for each width: such a port allows 1x and 4x; 2x is what two broken lanes leave.
HALF_WIDTH, ALL_WIDTHS = 16, 3
HEARD_S = 0.3  # until the simulator has read its console


@dataclass
class SubnetPlant(Cables):
    """The cables of an InfiniBand lab while it runs (see plant.CablePlant).

    Attributes:
        folder: takes the netlist, the simulator's log and what each server sees of its adapter.
        far: cable id -> the (device, port) where its b-end is plugged at present.
        narrow: ids of the cables of which half the lanes run.
        dark: the servers without power: their adapters are not there.
    """

    artefacts: Artefacts
    folder: Path
    far: dict[str, End] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)
    dark: set[str] = field(default_factory=set)
    _simulator: subprocess.Popen[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.far = {cable.cable: (cable.b_device, cable.b_port) for cable in self.artefacts.cables}

    def start(self) -> None:
        """Start the simulator, every server without power.

        Raises:
            CouldNotRun: it is not there, or refuses the netlist.
        """
        missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
        missing += ["libumad2sim0"] if not (LIBRARIES / DRIVER[-1]).exists() else []
        if missing:
            raise CouldNotRun("this machine", f"lacks {', '.join(missing)}", "install these packages")
        self.folder.mkdir(parents=True, exist_ok=True)
        netlist, said = self.folder / "fabric.net", self.folder / "ibsim.log"
        netlist.write_text(self.artefacts.netlist, encoding="utf-8")
        with said.open("w", encoding="utf-8") as output:
            self._simulator = subprocess.Popen(
                ["ibsim", "-s", "-r", "-l", str(BEHIND), str(netlist)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
        end = time.monotonic() + READY_S
        while READY not in said.read_text(encoding="utf-8", errors="replace"):
            if self._simulator.poll() is not None or time.monotonic() > end:
                raise CouldNotRun("ibsim", "does not start", f"see {said}")
            time.sleep(0.05)
        Relay(str(self.artefacts.site.gateway.ip), PORT, BEHIND).start()
        for server in self.artefacts.servers:
            self.power(server.device, on=False)

    def power(self, device: str, *, on: bool) -> None:
        """Have a server's adapters be there or not."""
        (self.dark.discard if on else self.dark.add)(device)
        for cable in self.artefacts.cables:
            if cable.a_device == device:
                self._plug(cable)

    def exchange(self, first: str, second: str) -> None:
        """Exchange the far ends of two cables; doing it again puts them back.

        Raises:
            CouldNotRun: one and the same cable.
        """
        one, two = find(self.artefacts, first), find(self.artefacts, second)
        if one == two:
            raise CouldNotRun(first, "is the same cable at both ends", "name two cables")
        for cable in (one, two):
            self._unplug(cable)
        self.far[one.cable], self.far[two.cable] = self.far[two.cable], self.far[one.cable]
        for cable in (one, two):
            self._plug(cable)

    def pull(self, target: str) -> None:
        """Pull a cable: both its ports are down."""
        cable = find(self.artefacts, target)
        self.missing.add(cable.cable)
        self._plug(cable)

    def plug(self, target: str) -> None:
        """Plug a pulled cable in where it was."""
        cable = find(self.artefacts, target)
        self.missing.discard(cable.cable)
        self._plug(cable)

    def halve(self, target: str, *, half: bool) -> None:
        """Have two of a cable's four lanes run, or all."""
        cable = find(self.artefacts, target)
        (self.narrow.add if half else self.narrow.discard)(cable.cable)
        self._allow(*self.far[cable.cable], HALF_WIDTH if half else ALL_WIDTHS)

    def slow(self, target: str, factor: float) -> None:
        """Refuse: a link of this kind runs at fewer lanes, or not at all.

        Raises:
            CouldNotRun: always.
        """
        raise CouldNotRun(
            target,
            f"is an InfiniBand cable and has no {factor:g} of its rate",
            "half-width has two of its four lanes run",
        )

    def binds(self, device: str) -> tuple[str, ...]:
        """Return the nspawn arguments that put a server's adapter into it, and write what they name."""
        place = self.folder / device
        place.mkdir(parents=True, exist_ok=True)
        for name in DRIVER:
            shutil.copyfile(LIBRARIES / name, place / Path(name).name)
        driver = " ".join(f"{INSIDE}/{Path(name).name}" for name in DRIVER)
        seen = {
            "IBSIM_SERVER_NAME": str(self.artefacts.site.gateway.ip),
            "IBSIM_SERVER_PORT": str(PORT),
            "SIM_HOST": self._node(device, "rail0"),
        }
        texts = {
            "preload": f"{driver}\n",
            "environment": "".join(f'{name}="{value}"\n' for name, value in seen.items()),
            "sudoers": f'Defaults env_keep += "{" ".join(seen)}"\n',
            "manager": "[Manager]\n" + "".join(f'DefaultEnvironment="{n}={v}"\n' for n, v in seen.items()),
        }
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
        (place / "sudoers").chmod(0o440)
        return (
            f"--bind-ro={place}:{INSIDE}",
            f"--bind-ro={place / 'preload'}:/etc/ld.so.preload",
            f"--bind-ro={place / 'environment'}:/etc/environment",
            f"--bind-ro={place / 'sudoers'}:/etc/sudoers.d/adapter",
            f"--bind-ro={place / 'manager'}:/etc/systemd/system.conf.d/adapter.conf",
        )

    def _plug(self, cable: Cable) -> None:
        """Make a cable's link what it should be now.

        The simulator ends when it is to link two ports that allow no common width, so half the lanes are taken away
        from a link that is there.
        """
        if cable.cable in self.narrow:
            self._allow(*self.far[cable.cable], ALL_WIDTHS)
        self._unplug(cable)
        if cable.cable in self.missing or cable.a_device in self.dark:
            return
        near, far = self._port(cable.a_device, cable.a_port), self._port(*self.far[cable.cable])
        self._tell(f"Link {near} {far}")
        if cable.cable in self.narrow:
            self._allow(*self.far[cable.cable], HALF_WIDTH)

    def _unplug(self, cable: Cable) -> None:
        self._tell(f"Unlink {self._port(cable.a_device, cable.a_port)}")

    def _tell(self, line: str) -> None:
        """Give the simulator's console a command."""
        if self._simulator is None or self._simulator.stdin is None:
            raise CouldNotRun("ibsim", "does not run", "start the lab again")
        self._simulator.stdin.write(line + "\n")
        self._simulator.stdin.flush()

    def _allow(self, device: str, port: str, widths: int) -> None:
        """Say at a switch's own port which widths it allows: the link follows at once, and the far port with it."""
        environ = {
            **os.environ,
            "LD_PRELOAD": str(LIBRARIES / DRIVER[-1]),
            # Never by the loopback: the simulator's socket keeps the address that it answered from for its next client.
            "IBSIM_SERVER_NAME": str(self.artefacts.site.gateway.ip),
            "IBSIM_SERVER_PORT": str(PORT),
            "SIM_HOST": device,
        }
        time.sleep(HEARD_S)
        command = ["ibportstate", "-D", "0", _number(port), "width", str(widths)]
        done = subprocess.run(
            command, env=environ, cwd=self.folder, capture_output=True, text=True, timeout=20, check=False
        )
        if done.returncode != 0:
            raise CouldNotRun(f"{device} {port}", f"cannot be set ({done.stderr.strip() or done.stdout.strip()})")

    def _port(self, device: str, port: str) -> str:
        """Write a port as the simulator's console wants it."""
        server = self.artefacts.server(device) is not None
        return f'"{self._node(device, port)}"[{1 if server else _number(port)}]'

    def _node(self, device: str, port: str) -> str:
        """Return the node of a port: a switch, or the adapter of a server's rail."""
        server = self.artefacts.server(device)
        if server is None:
            return device
        rail = int(port.removeprefix("rail"))
        return f"{device} {catalog.server(server.kind).nics[rail].hca or f'mlx5_{rail}'}"


def _number(port: str) -> str:
    return port.lstrip("p")
