"""Looking, at servers on loopback: what is seen of good ones and bad ones, and that nothing is changed."""

import asyncio
import dataclasses
import socket
import struct
import threading
import time
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Interface

import pytest
from bmc_bench import PASSWORD, bench
from ssh_server import line, new_key, serving

from supernode import design, packaged, spec
from supernode.bringup.live import bmcs, here, servers, switches, units
from supernode.bringup.live.seen import Login, Port
from supernode.clients.redfish import Patience
from supernode.workspace import EnvironmentFolder

LAB = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
QUICK = Patience(answer_s=2, tries=2, first_s=0.01, longest_s=0.02)


@pytest.fixture(scope="module")
def lab():
    return design.build(spec.read({"environment": LAB}))


def account(folder, name, text):
    (folder / name).write_text(text)
    (folder / name).chmod(0o600)
    return bmcs.Account("admin", f"file:{name}")


def look_at(tmp_path, lab, own, factory=None, *, trusted=True, patience=QUICK, before=None, limit_s=10.0):
    """Look at one controller of the lab's kind; also return it, to see what the look left there."""

    async def scenario():
        async with bench(tmp_path / "bench") as b:
            host, port = b.fleet.address("r01u01")
            row = dataclasses.replace(lab.host("gpu-001"), bmc=f"{host}:{port}")
            ca = b.fleet.authority.certificate.read_text()
            if before is not None:
                before(b)
            if not trusted:
                ca = None
                row = dataclasses.replace(row, identity=row.identity.model_copy(update={"bmc_fingerprint": "0" * 64}))
            seen = await bmcs.look(row, bmcs.Accounts(own, factory), ca, tmp_path, patience, limit_s)
            assert b.bmc.access.sessions() == []
            return seen, b.bmc

    return asyncio.run(scenario())


def test_a_good_controller(tmp_path, lab):
    seen, bmc = look_at(tmp_path, lab, account(tmp_path, "own", PASSWORD))
    identity = bmc.chassis.identity
    assert (seen.login, seen.said) == (Login.IN, "")
    assert (seen.identity["system_serial"], seen.identity["uuid"]) == (identity.system_serial, identity.uuid)
    assert abs(seen.clock_ahead_s) < 2
    assert [(drive.bytes, drive.health) for drive in seen.drives] == [(8 * 10**9, "OK")]


def test_a_clock_at_1970(tmp_path, lab):
    def stop(b):
        b.bmc.state.clock_offset_s = -time.time()

    seen, _ = look_at(tmp_path, lab, account(tmp_path, "own", PASSWORD), before=stop)
    assert seen.clock.startswith("1970-01-01")
    assert seen.clock_ahead_s < -1e9


def test_a_wrong_password_is_tried_once(tmp_path, lab):
    seen, bmc = look_at(tmp_path, lab, account(tmp_path, "own", "another"))
    assert (seen.login, seen.identity) == (Login.REFUSED, {})
    assert len(bmc.access._failures["admin"]) == 1


def test_the_factory_password_is_recognised_and_left(tmp_path, lab):
    factory = account(tmp_path, "left", PASSWORD)
    seen, _ = look_at(tmp_path, lab, account(tmp_path, "own", "ours-and-new"), factory)
    assert (seen.login, seen.identity != {}) == (Login.FACTORY, True)
    seen, _ = look_at(tmp_path, lab, bmcs.Account("admin", "file:not-there-yet"), factory)
    assert seen.login is Login.FACTORY


def test_an_account_whose_password_must_be_changed(tmp_path, lab):
    def close(b):
        b.bmc.state.accounts[0].change_required = True

    own, other = account(tmp_path, "own", PASSWORD), account(tmp_path, "other", "ours-and-new")
    assert look_at(tmp_path, lab, own, before=close)[0].login is Login.MUST_CHANGE
    assert look_at(tmp_path, lab, other, own, before=close)[0].login is Login.FACTORY_CLOSED


def test_a_certificate_that_is_not_the_pinned_one(tmp_path, lab):
    seen, _ = look_at(tmp_path, lab, account(tmp_path, "own", PASSWORD), trusted=False)
    assert seen.login is Login.UNTRUSTED
    assert "not the pinned one" in seen.said


def test_no_password_means_no_try(tmp_path, lab):
    seen, _ = look_at(tmp_path, lab, bmcs.Account("admin", "file:absent"))
    assert seen.login is Login.NOT_TRIED
    assert "file:absent: cannot be read" in seen.said


@contextmanager
def tcp(answer):
    """A server that does something with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                answer(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_a_dead_and_a_silent_controller(tmp_path, lab):
    own = bmcs.Accounts(account(tmp_path, "own", PASSWORD), None)
    row = dataclasses.replace(
        lab.host("gpu-001"), identity=lab.host("gpu-001").identity.model_copy(update={"bmc_fingerprint": "0" * 64})
    )
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    dead = asyncio.run(bmcs.look(dataclasses.replace(row, bmc=address), own, None, tmp_path, QUICK))
    assert dead.login is Login.UNREACHABLE
    held = []
    with tcp(held.append) as address:
        quiet = dataclasses.replace(row, bmc=address)
        silent = asyncio.run(bmcs.look(quiet, own, None, tmp_path, QUICK, limit_s=0.3))
    assert (silent.login, silent.said) == (Login.UNREACHABLE, "not looked through in 0.3 s")


def switch_of(lab, key):
    row = lab.switch("spine01")
    slots = {row.slot: {"identity": {"ssh_host_key": line(key)}}}
    import yaml

    return design.build(spec.read({"environment": LAB, "machines": yaml.safe_dump({"schema": 1, "slots": slots})}))


@pytest.mark.parametrize("right", [True, False])
def test_a_switch_is_logged_in_to_under_its_key_alone(lab, right):
    private, user_key = new_key()
    _, host_key = new_key()
    computed = switch_of(lab, host_key if right else new_key()[1])
    row = dataclasses.replace(computed.switch("spine01"), management=IPv4Interface("127.0.0.1/8"))
    heard = []

    def answer(command, _stdin):
        heard.append(command)
        return 0, "sonic\n", ""

    here_is = {"spine01": row}
    stand_in = SwitchDesign(computed, here_is)
    with serving(host_key, user_key, answer) as server:
        seen = asyncio.run(switches.look(stand_in, row, None, private, server.port))
    if right:
        assert (seen.hostname, seen.error, heard) == ("sonic", "", ["hostname"])
    else:
        assert (heard, "another host key" in seen.error) == ([], True)


class SwitchDesign:
    """A design whose switch stands on loopback."""

    def __init__(self, computed, rows):
        self._computed, self._rows = computed, rows

    def __getattr__(self, name):
        return getattr(self._computed, name)

    def switch(self, name):
        return self._rows[name]


def test_a_switch_without_a_key_of_ours_or_of_its_own(lab):
    private, _ = new_key()
    row = lab.switch("spine01")
    assert "no key yet" in asyncio.run(switches.look(lab, row, None, "")).error
    assert "no host key is pinned" in asyncio.run(switches.look(lab, row, None, private)).error


@contextmanager
def udp(answer):
    """A server that answers each datagram by a function; None stays silent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(10)

        def serve():
            while True:
                try:
                    data, peer = listening.recvfrom(2048)
                except OSError:
                    return
                if (reply := answer(data)) is not None:
                    listening.sendto(reply, peer)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def clock(ahead=0.0, leap=0, stratum=2, origin=None):
    def answer(data):
        now = time.time() + ahead + 2208988800
        stamp = struct.pack("!II", int(now), int(now % 1 * 2**32))
        head = bytes([leap << 6 | 4 << 3 | 4, stratum]) + bytes(22)
        return head + (origin or data[40:48]) + stamp + stamp

    return answer


def test_time_servers():
    with udp(clock(ahead=12.0)) as port:
        seen = asyncio.run(servers.time_of("127.0.0.1", port))
    assert (seen.error, seen.stratum, seen.unsynchronised) == ("", 2, False)
    assert abs(seen.ahead_s - 12.0) < 1
    with udp(clock(leap=3, stratum=0)) as port:
        assert asyncio.run(servers.time_of("127.0.0.1", port)).unsynchronised


@pytest.mark.parametrize("answer", [lambda data: None, clock(origin=bytes(8)), lambda data: b"short"])
def test_a_time_server_that_gives_none(answer, monkeypatch):
    monkeypatch.setattr(servers, "LIMIT_S", 0.1)
    with udp(answer) as port:
        assert asyncio.run(servers.time_of("127.0.0.1", port)).error == "no answer in 2 times 0.1 s"


def test_a_time_server_that_is_not_there():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert asyncio.run(servers.time_of("127.0.0.1", port)).error == "Connection refused"


def zone(**records):
    def answer(data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        found = records.get(".".join(labels).replace(".", "_").replace("-", "_"))
        rows = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + IPv4Address(address).packed for address in found or ()
        )
        alias = b"\xc0\x0c" + struct.pack("!HHIH", 5, 1, 60, 4) + b"\x01x\xc0\x0c" if found else b""
        count = len(found or ()) + (1 if found else 0)
        flags = 0x8180 | (0 if found else 3)
        return data[:2] + struct.pack("!HHHHH", flags, 1, count, 0, 0) + data[12:] + alias + rows

    return answer


def test_name_servers(monkeypatch):
    monkeypatch.setattr(servers, "LIMIT_S", 0.2)
    with udp(zone(ntp_site=["10.0.0.9", "10.0.0.8"])) as port:
        known = asyncio.run(servers.addresses_of("ntp.site", "127.0.0.1", port))
        strange = asyncio.run(servers.addresses_of("no-such.site", "127.0.0.1", port))
    assert known.addresses == ("10.0.0.9", "10.0.0.8")
    assert (strange.addresses, strange.error) == ((), "")
    with udp(lambda data: data[:2] + b"\x81\x82" + bytes(8)) as port:
        assert asyncio.run(servers.addresses_of("ntp.site", "127.0.0.1", port)).error == "answers with error 2"
    with udp(lambda data: data[:2] + b"\x81\x80\0\1\0\1" + bytes(4)) as port:
        assert "no DNS message" in asyncio.run(servers.addresses_of("ntp.site", "127.0.0.1", port)).error


def designed_at(address, port):
    text = LAB.replace("serve: {address: 198.18.31.253, port: 8443}", f"serve: {{address: {address}, port: {port}}}")
    assert text != LAB
    return design.build(spec.read({"environment": text}))


def test_the_boot_servers_place(tmp_path):
    place = tmp_path / "inventories" / "lab"
    place.mkdir(parents=True)
    folder = EnvironmentFolder("lab", place, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert here.look(folder, designed_at("127.0.0.1", port), tmp_path).port is Port.OTHER
    free = here.look(folder, designed_at("127.0.0.1", port), tmp_path)
    assert (free.port, free.image, free.packages) == (Port.FREE, False, None)
    assert all(number > 0 for number in free.free_bytes.values())
    assert here.look(folder, designed_at("203.0.113.77", 8443), tmp_path).port is Port.ELSEWHERE
    assert not (place / "secrets").exists()  # looking makes no key


def test_one_that_answers_in_another_shape_is_said_and_not_raised(tmp_path, lab, monkeypatch):
    async def another(*_):
        return {"Links": "none"}["Links"].get("ManagedBy")

    monkeypatch.setattr(bmcs.machines, "find", another)
    seen, _ = look_at(tmp_path, lab, account(tmp_path, "own", PASSWORD))
    assert "not shaped as Redfish says" in seen.said


@pytest.mark.parametrize("runs", [True, False], ids=["measuring", "frozen"])
def test_a_cooling_unit_is_asked_as_the_interlock_asks_it(tmp_path, runs):
    from supernode.lab.artefacts import CoolingUnit
    from supernode.lab.cooling.hall import Hall
    from supernode.lab.factory import Factory

    async def scenario():
        row = CoolingUnit("cdu1", "lab-cdu-modbus", "127.0.0.1", 0, ("r01",), "")
        hall = Hall([row], tmp_path, Factory(tmp_path), lambda _rack: 1e4)
        await hall.open()
        ageing = asyncio.create_task(hall.run()) if runs else None
        text = f"""cooling:
  units: [{{name: cdu1, kind: lab-cdu-modbus, address: 198.18.2.201, port: {hall._fronts["cdu1"].port}, racks: [r01]}}]
  interlock: {{max_age_s: 2}}
"""
        built = design.build(spec.read({"environment": LAB + text}))
        unit = dataclasses.replace(built.cooling[0], address="127.0.0.1")
        try:
            return await units.look(built, unit, tmp_path)
        finally:
            if ageing:
                ageing.cancel()
            await hall.close()

    found = asyncio.run(scenario())
    assert (found.name, found.racks) == ("cdu1", ("r01",))
    assert found.said == () if runs else found.said[0].startswith("cdu1 is stale: ")
