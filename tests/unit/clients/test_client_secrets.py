"""Secrets by reference: three schemes, and never the secret in a message."""

import asyncio

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


async def vault(request):
    """Answer as a KV version 2 engine does (Vault HTTP API, "Read secret version")."""
    if request.headers.get("X-Vault-Token") != "s.token":
        return web.json_response({"errors": ["permission denied"]}, status=403)
    if request.path != "/v1/kv/data/site/bmc":
        return web.json_response({"errors": []}, status=404)
    return web.json_response({"data": {"data": {"password": SECRET}, "metadata": {"version": 1}}})


def ask_vault(ref, tmp_path, monkeypatch, *, token="s.token", ca=True, scheme="https"):  # noqa: S107 - of a test
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
        runner = web.ServerRunner(web.Server(vault))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        monkeypatch.setenv("VAULT_ADDR", f"{scheme}://127.0.0.1:{runner.addresses[0][1]}")
        try:
            return await secrets.resolve(ref, tmp_path)
        finally:
            await runner.cleanup()

    return asyncio.run(go())


def test_vault(tmp_path, monkeypatch):
    assert ask_vault("vault:kv/site/bmc#password", tmp_path, monkeypatch) == SECRET


@pytest.mark.parametrize(
    ("ref", "how", "says"),
    [
        ("vault:kv/site/bmc#user", {}, "no key 'user'"),
        ("vault:kv/site/none#password", {}, "answers 404"),
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
