"""Downloads: whole or not at all, trusted or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bmc_bench import eventually, site

from supernode.lab.fetch import FetchFailed, fetch, post


def test_a_file_arrives_whole_and_private(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with site(tmp_path / "site") as served:
            (served.folder / "x").write_bytes(b"x" * 3_000_000)
            assert await fetch(f"{served.base}/x", tmp_path / "into/x", served.ca) == 3_000_000
            assert (tmp_path / "into/x").stat().st_mode & 0o777 == 0o600
            assert await fetch(f"{served.base}/x", tmp_path / "into/x", None) == 3_000_000

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "ca", "limit", "why"),
    [
        ("/absent", "its own", 100, "status"),
        ("/x", "its own", 100, "length"),
        ("/x", "another's", 10_000, "tls"),
        ("/x", "", 10_000, "tls"),
        ("/x", "noise", 10_000, "tls"),
        ("/x y", "its own", 10_000, "connect"),
    ],
)
def test_what_fails_says_why_and_leaves_nothing(tmp_path: Path, path: str, ca: str, limit: int, why: str) -> None:
    async def scenario() -> None:
        async with site(tmp_path / "site") as served, site(tmp_path / "other") as other:
            (served.folder / "x").write_bytes(b"x" * 5000)
            trusted = {"its own": served.ca, "another's": other.ca}.get(ca, ca)
            with pytest.raises(FetchFailed) as failed:
                await fetch(served.base + path, tmp_path / "into/x", trusted, limit)
            assert failed.value.why == why
            assert list((tmp_path / "into").iterdir()) == []

    asyncio.run(scenario())


def test_an_answer_that_breaks_off_is_no_file(tmp_path: Path) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(broken, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(FetchFailed):
                await fetch(f"http://127.0.0.1:{port}/", tmp_path / "x", None)

    asyncio.run(scenario())
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_is_cancelled_ends_and_leaves_nothing(tmp_path: Path) -> None:
    sent = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent.set()
        except ConnectionError:
            writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(endless, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            download = asyncio.create_task(fetch(f"http://127.0.0.1:{port}/", tmp_path / "x", None))
            await sent.wait()
            await eventually(lambda: list(tmp_path.iterdir()))
            download.cancel()
            await eventually(lambda: not list(tmp_path.iterdir()))
            assert download.cancelled()

    asyncio.run(scenario())


def test_a_report_is_taken_or_its_refusal_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with site(tmp_path / "site") as served:
            await post(f"{served.base}/r", b"{}", served.ca, {"Authorization": "Bearer one-time"})
            with pytest.raises(FetchFailed, match="403"):
                await post(f"{served.base}/r", b"{}", served.ca, {"Authorization": "Bearer used"})
            with pytest.raises(FetchFailed, match="not trusted"):
                await post(f"{served.base}/r", b"{}", "", {})
            assert len(served.reports) == 1

    asyncio.run(scenario())
