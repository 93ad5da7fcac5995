"""SSH: nothing is said to a host whose key is not the pinned one."""

import asyncio
import socket
import time

import pytest
from ssh_server import line, new_key, serving

from supernode.clients import ssh
from supernode.errors import CouldNotRun


@pytest.fixture
def keys():
    (user_text, user), (_, host) = new_key(), new_key()
    return user_text, user, host


def echo(command, stdin):
    if command.startswith("fail"):
        return 3, "", "it went wrong\n"
    return 0, f"{command}|{stdin.decode()}", "warned"


def run(coroutine):
    return asyncio.run(coroutine)


def test_run_returns_what_the_command_printed(keys):
    text, user, host = keys

    async def go(port):
        async with ssh.connect("127.0.0.1", "admin", text, [line(host) + " a comment"], port=port) as session:
            return await session.run(["cat", "a b"], stdin=b"in")

    with serving(host, user, echo) as server:
        assert run(go(server.port)) == ssh.Result(0, "cat 'a b'|in", "warned")


def test_another_host_key_is_refused_before_login(keys):
    text, user, host = keys
    _, other = new_key()

    async def go(port):
        async with ssh.connect("127.0.0.1", "admin", text, [line(other)], port=port):
            pass

    with serving(host, user, echo) as server:
        with pytest.raises(ssh.HostKeyMismatch) as caught:
            run(go(server.port))
        assert caught.value.presented == line(host)


def test_no_pinned_key_is_refused(keys):
    text, _, _ = keys

    async def go():
        async with ssh.connect("127.0.0.1", "admin", text, [], port=1):
            pass

    with pytest.raises(CouldNotRun, match="no host key is pinned"):
        run(go())


def test_a_refused_login_is_told_from_a_silent_host(keys):
    _, user, host = keys
    stranger, _ = new_key()

    async def go(port):
        async with ssh.connect("127.0.0.1", "admin", stranger, [line(host)], port=port):
            pass

    with serving(host, user, echo) as server, pytest.raises(ssh.LoginRefused):
        run(go(server.port))


def test_a_hung_host_ends_in_no_answer(keys):
    text, _, host = keys

    async def go(port):
        async with ssh.connect("127.0.0.1", "admin", text, [line(host)], port=port, limit_s=0.5):
            pass

    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never sends a banner
        started = time.monotonic()
        with pytest.raises(ssh.NoAnswer):
            run(go(silent.getsockname()[1]))
        assert time.monotonic() - started < 5


def test_a_failing_command_says_its_last_line(keys):
    text, user, host = keys

    async def go(port):
        async with ssh.connect("127.0.0.1", "admin", text, [line(host)], port=port) as session:
            assert (await session.run("fail", check=False)).status == 3
            await session.run("fail")

    with serving(host, user, echo) as server, pytest.raises(ssh.CommandFailed, match="status 3: it went wrong"):
        run(go(server.port))


def said(keys, handler, **options):
    text, user, host = keys

    async def go(port):
        async with ssh.connect("127.0.0.1", "admin", text, [line(host)], port=port) as session:
            return await session.run("x", **options)

    with serving(host, user, handler) as server:
        return run(go(server.port))


def test_a_command_that_keeps_printing_is_given_up_at_its_deadline(keys):
    """Known bad: each line began the limit anew, and the command was listened to for ever."""

    def chatter():
        for _ in range(100):
            yield "."
            time.sleep(0.1)

    started = time.monotonic()
    with pytest.raises(ssh.NoAnswer, match=r"no answer in 0\.6 s"):
        said(keys, lambda _c, _i: (0, chatter(), ""), limit_s=0.6)
    assert time.monotonic() - started < 4


def test_a_command_that_ends_without_a_status_in_time_is_given_up(keys):
    started = time.monotonic()
    with pytest.raises(ssh.NoAnswer):
        said(keys, lambda _c, _i: (time.sleep(3), (0, "", ""))[1], limit_s=0.5)
    assert time.monotonic() - started < 3


def test_output_without_end_is_an_error_of_its_own(keys, monkeypatch):
    monkeypatch.setattr(ssh, "OUTPUT_LIMIT", 2 << 20)
    with pytest.raises(ssh.TooMuch, match="printed more than 2 MiB"):
        said(keys, lambda _c, _i: (0, ("x" * 65536 for _ in range(1000)), ""))


def test_much_output_on_both_streams_and_much_input_arrive_whole(keys):
    """More than a channel's window on stderr, while stdout says nothing."""
    many = 3 << 20
    result = said(keys, lambda _c, given: (0, str(len(given)), "e" * many), stdin=b"i" * many)
    assert (result.stdout, len(result.stderr)) == (str(many), many)


def test_a_fingerprint_is_that_of_ssh_keygen():
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGlZ5wqEHUAEHqBSdWDPHsVjdc+Vk0VYJKLDvVvyTlMD"
    assert ssh.fingerprint(key + " a comment") == "SHA256:35LVuRfyh17VwmmAf424GGvBIwG8ZyZWVj1hsSexvi8"
    assert ssh.fingerprint("no key") == "no key"


def test_scan_shows_the_key_without_login(keys):
    _, user, host = keys
    with serving(host, user, echo) as server:
        assert run(ssh.scan("127.0.0.1", port=server.port)) == (line(host),)


def test_a_key_that_is_none_is_not_repeated():
    with pytest.raises(CouldNotRun) as caught:
        ssh.load_key("hunter2")
    assert "hunter2" not in str(caught.value)


def test_logins_to_many_hosts_do_not_block_the_loop(keys):
    """64 logins at once while the loop keeps its beat."""
    text, user, host = keys
    gaps = []

    async def beat(stop):
        last = time.monotonic()
        while not stop.is_set():
            await asyncio.sleep(0.01)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    async def one(port):
        async with ssh.connect("127.0.0.1", "admin", text, [line(host)], port=port, limit_s=30) as session:
            return await session.run("x")

    async def go(port):
        stop = asyncio.Event()
        beating = asyncio.create_task(beat(stop))
        results = await asyncio.gather(*(one(port) for _ in range(16)))
        stop.set()
        await beating
        return results

    with serving(host, user, lambda c, i: (time.sleep(0.3), (0, "done", ""))[1]) as server:
        assert {r.stdout for r in run(go(server.port))} == {"done"}
    assert sorted(gaps)[len(gaps) // 2] < 0.1
