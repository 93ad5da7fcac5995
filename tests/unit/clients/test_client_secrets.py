"""Secrets by reference: three schemes, and never the secret in a message."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from aiohttp import web
from loopback_tls import authority

from supernode.clients import secrets
from supernode.errors import CouldNotRun

SECRET = "correct horse"


def resolve(ref, base):
    return secrets.resolve_now(ref, base)


def test_file(tmp_path):
    path = tmp_path / "password"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    assert resolve("file:password", tmp_path) == SECRET
    assert resolve(f"file:{path}", tmp_path / "elsewhere") == SECRET


def test_a_file_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "password"
    path.write_text(SECRET)
    path.chmod(0o640)
    with pytest.raises(CouldNotRun) as caught:
        resolve("file:password", tmp_path)
    assert caught.value.hint == f"chmod 600 {path}"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("ref", ["file:absent", "exec:/no/such/program", "exec:false", "exec:true", "vault:kv/x"])
def test_what_cannot_be_had_names_the_reference(ref, tmp_path):
    with pytest.raises(CouldNotRun) as caught:
        resolve(ref, tmp_path)
    assert caught.value.where == ref


def test_exec_takes_the_first_line_and_no_shell(tmp_path):
    assert resolve("exec:printf 'correct horse\\nmore'", tmp_path) == SECRET
    assert resolve("exec:echo $HOME", tmp_path) == "$HOME"


def test_exec_does_not_wait_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "EXEC_LIMIT_S", 0.2)
    with pytest.raises(CouldNotRun, match="gave no answer"):
        resolve("exec:sleep 30", tmp_path)


@pytest.mark.parametrize("ref", ["hunter2", "", "file:", "https://x/y"])
def test_a_bare_value_is_refused_and_not_repeated(ref, tmp_path):
    with pytest.raises(CouldNotRun) as caught:
        resolve(ref, tmp_path)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in secrets.describe(ref)


@pytest.mark.parametrize("ref", ["file:secrets/bmc/r01u05", "file: secrets/bmc/r01u05"])
def test_a_stored_file_is_private_whole_and_never_written_over(ref, tmp_path):
    asyncio.run(secrets.store(ref, SECRET, tmp_path))
    assert resolve(ref, tmp_path) == SECRET
    assert [stat.S_IMODE((tmp_path / p).stat().st_mode) for p in ("secrets", "secrets/bmc")] == [0o700, 0o700]
    assert stat.S_IMODE((tmp_path / "secrets/bmc/r01u05").stat().st_mode) == 0o600
    with pytest.raises(CouldNotRun, match="there already") as caught:
        asyncio.run(secrets.store(ref, "another", tmp_path))
    assert "another" not in str(caught.value)
    assert resolve(ref, tmp_path) == SECRET
    assert [p.name for p in (tmp_path / "secrets/bmc").iterdir()] == ["r01u05"]


def test_a_stored_file_is_on_disk_with_its_name_before_store_returns(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(secrets.os, "fsync", lambda handle: done.append(stat.S_ISDIR(os.fstat(handle).st_mode)))
    linked = os.link
    monkeypatch.setattr(secrets.os, "link", lambda *names: (done.append("named"), linked(*names)))
    asyncio.run(secrets.store("file:bmc/x", SECRET, tmp_path))
    assert done == [True, False, "named", True]  # the new folder's name, the file, the file's name


@pytest.mark.parametrize("ref", ["exec:pass bmc", "hunter2", "vault:kv/x"])
def test_what_cannot_take_a_secret_says_so_and_not_the_secret(ref, tmp_path):
    with pytest.raises(CouldNotRun) as caught:
        asyncio.run(secrets.store(ref, SECRET, tmp_path))
    assert SECRET not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_written_names_the_reference(tmp_path):
    (tmp_path / "bmc").write_text("a file where a folder is wanted")
    with pytest.raises(CouldNotRun) as caught:
        asyncio.run(secrets.store("file:bmc/x", SECRET, tmp_path))
    assert caught.value.where == "file:bmc/x"
    assert SECRET not in str(caught.value)


def test_what_was_never_stored_is_told_from_what_cannot_be_read(tmp_path):
    with pytest.raises(secrets.Missing):
        resolve("file:absent", tmp_path)
    (tmp_path / "open").write_text(SECRET)
    with pytest.raises(CouldNotRun) as caught:
        resolve("file:open", tmp_path)
    assert not isinstance(caught.value, secrets.Missing)


class Vault:
    """A KV version 2 engine (Vault HTTP API, "Read secret version", "Create/Update secret")."""

    def __init__(self):
        self.kept = {"site/bmc": (1, {"password": SECRET})}
        self.rival = 0  # so many writes find that somebody else wrote just before
        self.bodies = []

    async def handle(self, request):
        if request.headers.get("X-Vault-Token") != "s.token":
            return web.json_response({"errors": ["permission denied"]}, status=403)
        if not request.path.startswith("/v1/kv/data/"):
            why = f"no handler for route {request.path}"
            return web.json_response({"errors": [why]}, status=404)
        path = request.path.removeprefix("/v1/kv/data/")
        body = await request.json() if request.method == "POST" else {}
        version, data = self.kept.get(path, (0, {}))
        if request.method == "GET":
            metadata = {"version": version}
            if not version:
                return web.json_response({"errors": []}, status=404)
            status = 200 if data is not None else 404  # its last version was deleted
            return web.json_response({"data": {"data": data, "metadata": metadata}}, status=status)
        self.bodies.append(body)
        if self.rival:
            self.rival -= 1
            version, data = self.kept[path] = (version + 1, {**(data or {}), f"rival{self.rival}": "x"})
        if body["options"]["cas"] != version:
            why = "check-and-set parameter did not match the current version"
            return web.json_response({"errors": [why]}, status=400)
        self.kept[path] = (version + 1, body["data"])
        return web.json_response({"data": {"version": version + 1}})


def with_vault(work, tmp_path, monkeypatch, *, served=None, token="s.token", ca=True, scheme="https"):  # noqa: S107 - of a test
    context = authority(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".vault-token").write_text(token)
    (home / ".vault-token").chmod(0o600)
    monkeypatch.setenv("HOME", str(home))
    if ca:
        monkeypatch.setenv("VAULT_CACERT", str(tmp_path / "cert.pem"))
    else:
        monkeypatch.delenv("VAULT_CACERT", raising=False)

    async def go():
        runner = web.ServerRunner(web.Server((served or Vault()).handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        monkeypatch.setenv("VAULT_ADDR", f"{scheme}://127.0.0.1:{runner.addresses[0][1]}")
        try:
            return await work()
        finally:
            await runner.cleanup()

    return asyncio.run(go())


def ask_vault(ref, tmp_path, monkeypatch, **how):
    return with_vault(lambda: secrets.resolve(ref, tmp_path), tmp_path, monkeypatch, **how)


def test_vault(tmp_path, monkeypatch):
    assert ask_vault("vault:kv/site/bmc#password", tmp_path, monkeypatch) == SECRET


@pytest.mark.parametrize(
    ("ref", "how", "says"),
    [
        ("vault:kv/site/bmc#user", {}, "no key 'user'"),
        ("vault:kv/site/none#password", {}, "answers 404"),
        ("vault:nowhere/site/bmc#password", {}, "answers 404"),
        ("vault:kv/site/bmc#password", {"token": "stale"}, "answers 403"),
        ("vault:kv/site/bmc#password", {"ca": False}, "Certificate"),
        ("vault:kv/site/bmc#password", {"scheme": "http"}, "https"),
    ],
)
def test_vault_refusals(ref, how, says, tmp_path, monkeypatch):
    with pytest.raises(CouldNotRun, match=says) as caught:
        ask_vault(ref, tmp_path, monkeypatch, **how)
    assert SECRET not in f"{caught.value}{caught.value.hint}"
    assert "s.token" not in str(caught.value)
    assert isinstance(caught.value, secrets.Missing) == (not how and "nowhere" not in ref)


def store_in(vault, tmp_path, monkeypatch, *slots):
    async def work():
        await asyncio.gather(*(secrets.store(f"vault:kv/site/bmc#{slot}", f"new-{slot}", tmp_path) for slot in slots))

    with_vault(work, tmp_path, monkeypatch, served=vault)


def test_the_vault_takes_many_keys_of_one_secret_at_once(tmp_path, monkeypatch):
    vault = Vault()
    slots = [f"r01u{n:02}" for n in range(6)]
    store_in(vault, tmp_path, monkeypatch, *slots)
    assert vault.kept["site/bmc"][1] == {"password": SECRET, **{slot: f"new-{slot}" for slot in slots}}


def test_what_others_write_to_the_same_secret_stays(tmp_path, monkeypatch):
    vault = Vault()
    vault.rival = 2
    store_in(vault, tmp_path, monkeypatch, "r01u05")
    assert vault.kept["site/bmc"][1] == {"password": SECRET, "rival1": "x", "rival0": "x", "r01u05": "new-r01u05"}
    assert [body["options"]["cas"] for body in vault.bodies] == [1, 2, 3]


@pytest.mark.parametrize("before", [None, (4, None)])
def test_a_secret_that_never_was_and_one_that_was_deleted_are_begun_anew(before, tmp_path, monkeypatch):
    vault = Vault()
    vault.kept = {"site/bmc": before} if before else {}
    store_in(vault, tmp_path, monkeypatch, "r01u05")
    assert vault.kept["site/bmc"] == ((before or (0,))[0] + 1, {"r01u05": "new-r01u05"})


def test_the_vault_s_secret_is_not_written_over(tmp_path, monkeypatch):
    vault = Vault()
    with pytest.raises(CouldNotRun, match="there already") as caught:
        store_in(vault, tmp_path, monkeypatch, "password")
    assert "new-password" not in str(caught.value)
    assert vault.bodies == []


def test_exec_leaves_no_process_when_nobody_waits_for_it_any_more(tmp_path):
    async def go():
        asking = asyncio.create_task(secrets.resolve("exec:sh -c 'echo $$ > pid; exec sleep 30'", tmp_path))
        for _ in range(500):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
                break
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(go())
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
