"""A connection that only looks: what reads is run, what could change anything is refused before it is sent."""

import asyncio

import pytest
from ssh_server import line, new_key, serving

from supernode.clients import looking, ssh

READS = [
    ["hostname"],
    ["hostname", "-f"],
    ["ip", "-j", "-s", "addr", "show"],
    ["sudo", "-n", "lldpcli", "-f", "json0", "show", "neighbors"],
    ["cat", "/etc/os-release", "/etc/hosts"],
    ["sudo", "-n", "cat", "/sys/class/dmi/id/product_serial"],
    ["ls", "-1", "/sys/bus/pci/devices/0000:18:00.0/net"],
    ["sudo", "-n", "vtysh", "-c", "show running-config"],
]
WRITES = [
    ["sudo", "-n", "reboot"],
    ["hostname", "other"],
    ["ip", "link", "set", "rail0", "down"],
    ["ip", "-j", "-s", "addr", "show", ";", "reboot"],
    ["sudo", "-n", "vtysh", "-c", "show running-config", "-c", "configure terminal"],
    ["sudo", "-n", "vtysh", "-c", "configure terminal"],
    ["sudo", "-n", "lldpcli", "configure", "system", "hostname", "x"],
    ["sudo", "-n", "cat", "/etc/shadow"],
    ["sudo", "-n", "tee", "/etc/hosts"],
    ["cat"],
    ["cat", "-"],
    ["cat", "etc/hosts"],
    ["cat", "/dev/watchdog"],
    ["cat", "/proc/kmsg"],
    ["cat", "/etc/../dev/watchdog"],
    ["ls", "-1", "/sys/.."],
    ["grep", "-H", "-s", ".", "/sys/../etc/shadow"],
    ["systemctl", "restart", "lldpd"],
    ["systemctl", "is-active", "--now"],
    ["python3", "-c", "print(1)"],
    ["sh", "-c", "hostname"],
    ["grep", "-H", "-s", ".", "/etc/shadow"],
    ["grep", "-H", "-s", ".", "--exclude-from=/etc/shadow"],
    ["apt-mark", "hold", "frr"],
    "hostname",
    "cat /etc/hosts; reboot",
    [],
]


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_what_reads_is_on_the_list(command):
    assert looking.admitted(command)


@pytest.mark.parametrize("command", WRITES, ids=str)
def test_what_writes_is_not(command):
    assert not looking.admitted(command)


@pytest.fixture
def host():
    """What a server was asked to run, and a way to connect to it."""
    (text, user), (_, key) = new_key(), new_key()
    heard = []

    def answer(command, stdin):
        heard.append(command)
        return 0, "answer", ""

    async def with_session(work, port, look):
        async with ssh.connect("127.0.0.1", "admin", text, [line(key)], port=port, look=look) as session:
            return await work(session)

    with serving(key, user, answer) as server:
        yield heard, lambda work, look=True: asyncio.run(with_session(work, server.port, look))


def test_a_read_runs_and_is_kept(host):
    heard, connected = host

    async def work(session):
        await session.run(["hostname", "-f"])
        return session.exchanges

    kept = connected(work)
    assert heard == ["hostname -f"]
    assert [(row.method, row.path, row.status) for row in kept] == [("RUN", "hostname -f", 0)]


@pytest.mark.parametrize("command", WRITES, ids=str)
def test_a_write_is_refused_before_it_is_sent(host, command):
    heard, connected = host
    with pytest.raises(ssh.LookOnly):
        connected(lambda session: session.run(command))
    assert heard == []


def test_input_and_files_are_refused_before_they_are_sent(host):
    heard, connected = host
    with pytest.raises(ssh.LookOnly):
        connected(lambda session: session.run(["cat", "/etc/hosts"], stdin=b"x"))
    with pytest.raises(ssh.LookOnly):
        connected(lambda session: session.put("/etc/motd", "x"))
    assert heard == []


def test_an_ordinary_connection_runs_them_all(host):
    heard, connected = host
    connected(lambda session: session.run(["sudo", "-n", "reboot"]), look=False)
    assert heard == ["sudo -n reboot"]
