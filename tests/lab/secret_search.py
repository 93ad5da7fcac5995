"""After a bring-up that was watched: no secret was shown or kept, and the tokens that deployed the machines are dead.

Called by the test of the slice, whose first bring-up installs every machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lab_site
import secret_watch

from supernode.design.rows import CREDENTIALS
from supernode.lab import iso
from supernode.lab.places import Places

# What a machine of the site does that got hold of its own token, and of another's: sent to it on standard input.
ATTEMPTS = """
import json, ssl, subprocess, urllib.error, urllib.request
given = json.loads({given!r})
trust = ssl.create_default_context(cafile="/etc/supernode/ca.pem")

def ask(path, token=None, **report):
    headers = {{"Authorization": "Bearer " + token, "Content-Type": "application/json"}} if token else {{}}
    request = urllib.request.Request(given["base"] + path, json.dumps(report).encode() if report else None, headers)
    try:
        return urllib.request.urlopen(request, context=trust, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code

key = " ".join(open("/etc/ssh/ssh_host_ed25519_key.pub").read().split()[:2])
image = open("/etc/supernode/image").read().strip()
same = dict(state="ok", detail="", host_keys=[key], image=image)
mine = dict(state="ok", detail="", host_keys=["ssh-ed25519 AAAAintruder"], image="0" * 64)
print(json.dumps({{
    "second fetch": ask(given["seed"]),
    "same report again": ask(given["report"], given["own"], phase="firstboot", **same),
    "replay": ask(given["report"], given["own"], phase="firstboot", **mine),
    "replay of the deploy step": ask(given["report"], given["own"], phase="deploy", **mine),
    "token of another": ask(given["report"], given["other"], phase="firstboot", **mine),
    "journal": subprocess.run(["journalctl", "--no-pager", "--all"], capture_output=True, text=True).stdout,
}}))
"""


def tokens(site: lab_site.Site) -> dict[str, str]:
    """Return the token of each host's medium."""
    media = sorted((site.root / ".supernode" / site.name / "serve" / "iso").glob("*/*.iso"))
    return {path.parent.name: asyncio.run(iso.read(path)).token for path in media}


def planted(site: lab_site.Site) -> dict[str, str]:
    """Return every secret of an environment by the file that is meant to hold it."""
    state, folder = site.root / ".supernode", site.folder
    places = [state / "passphrase", *state.glob("*/serve/*.key")]
    places += [path for name in ("secrets", "delivery") for path in (folder / name).rglob("*") if path.is_file()]
    innocent = {".pub", ".pem", ".csv", ".lock"}
    return {str(path): path.read_text() for path in places if path.suffix not in innocent and path.stat().st_size}


def was_shown(site: lab_site.Site, watch: secret_watch.Watch) -> list[str]:
    """Name the secrets that a process showed in its environment or its command line, while the watch went on."""
    print(f"{watch.samples} samples, at most {watch.longest_s:.2f} s apart, {len(watch.seen)} texts of processes")
    assert not watch.starved()
    assert any(b"bringup" in text and site.name.encode() in text for text in watch.seen), "the run was not seen at all"
    return watch.found(planted(site) | tokens(site))


def is_kept(site: lab_site.Site) -> list[str]:
    """Name the secrets that stand where they are not meant to: state, logs, runs, seeds, disks, decrypted stacks."""
    meant, own = planted(site), tokens(site)
    assert len(meant) > 3
    assert len(own) == 10
    engine = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    disks = Places.of(site.name).folder / "slots"
    exported = site.root / "exported.json"
    exported.write_text(decrypted(site))
    found = secret_watch.holders(secret_watch.files(site.root, engine, disks), meant | own)
    allowed = [(n, p) for n, p in found if str(p) in meant or (p.suffix == ".iso" and p.parent.name == n)]
    allowed += [(n, p) for n, p in found if n in meant and str(p.parent).endswith(CREDENTIALS)]
    assert any(str(path.parent).endswith(CREDENTIALS) for _, path in found), (
        "what a service needs of secrets is placed on its host"
    )
    assert {name for name, _ in allowed} == {*meant, *own}, "the search does not even find what is where it belongs"
    return [f"{name} in {path}" for name, path in found if (name, path) not in allowed]


def decrypted(site: lab_site.Site) -> str:
    """Return all that the engine keeps, with its own secrets in clear."""
    shell = f'eval "$({lab_site.SUPERNODE} shell {site.name} --print)"; '
    done = site.call("sh", "-ec", f"{shell} pulumi stack export --show-secrets -s {site.name}", timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(json.loads(done.stdout)["deployment"]["resources"]) > 10
    return done.stdout


def still_works(site: lab_site.Site) -> list[str]:
    """Try each host's seed address and token again, from the host itself; name what is not refused as it should be."""
    own = tokens(site)
    known = json.loads((site.root / ".supernode" / site.name / "boot.json").read_text())["isos"]
    before = {host: enrolled(site, host) for host in own}
    with ThreadPoolExecutor(4) as pool:
        answers = dict(zip(own, pool.map(lambda host: attempt(site, host, own, known[host]), own), strict=True))
    replays = ("same report again", "replay", "replay of the deploy step", "token of another")
    wanted = {"second fetch": 410, **dict.fromkeys(replays, 401)}
    found = [f"{host}: {answer}" for host, answer in answers.items() if {k: answer[k] for k in wanted} != wanted]
    secrets = planted(site) | own
    journals = {host: answer.pop("journal") for host, answer in answers.items()}
    assert all("supernode" in text for text in journals.values())
    (site.root / "journals.json").write_text(json.dumps(journals))
    found += [f"{name} in a journal" for name, _ in secret_watch.holders([site.root / "journals.json"], secrets)]
    return found + [f"{host}: its record changed" for host, record in before.items() if enrolled(site, host) != record]


def enrolled(site: lab_site.Site, host: str) -> str:
    return (site.root / ".supernode" / site.name / "enrolled" / f"{host}.json").read_text()


def attempt(site: lab_site.Site, host: str, own: dict[str, str], digest: str) -> dict:
    other = next(token for name, token in own.items() if name != host)
    serve = json.loads((Places.of(site.name).artefacts / "site.json").read_text())["serve"]
    given = {
        "base": f"https://{serve['address']}:{serve['port']}",
        "seed": f"/boot/{host}/{digest}.iso",
        "report": f"/report/{host}",
        "own": own[host],
        "other": other,
    }
    script = ATTEMPTS.format(given=json.dumps(given))
    done = subprocess.run(
        [str(lab_site.SUPERNODE), "ssh", site.name, host, "sudo", "-n", "python3", "-"],
        input=script, capture_output=True, text=True, timeout=120, check=False, cwd=site.root, env=site.environ(),
    )  # fmt: skip
    assert done.returncode == 0, f"{host}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return json.loads(done.stdout)
