"""A survey of controllers: what they can do, a tree without secrets, and the same answer from the tree replayed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
from pathlib import Path

import aiohttp
import pytest
from bmc_bench import PASSWORD, V1, bench

from supernode import catalog
from supernode.bringup.survey import controllers, keeping, operations, run, scrub
from supernode.bringup.survey import tree as trees
from supernode.bringup.survey.conclude import conclude
from supernode.bringup.survey.look import BmcAccess, Looker, Walked
from supernode.bringup.survey.observed import Observations
from supernode.cli import surveyed
from supernode.cli.output import emit
from supernode.clients import redfish
from supernode.clients.redfish import RedfishError
from supernode.errors import WrongInput
from supernode.lab.bmc import replay
from supernode.lab.bmc.certificates import Authority
from supernode.lab.bmc.state import Medium

SUPERNODE = str(Path(sys.executable).with_name("supernode"))
KIND = catalog.server("lab-gpu8")


def say(_place, _what):
    pass


def host_of(b):
    return "{}:{}".format(*b.fleet.address("r01u01"))


def access(b, folder, **more):
    (folder / "password").write_text(PASSWORD + "\n")
    (folder / "password").chmod(0o600)
    return BmcAccess(
        host_of(b), "admin", f"file:{folder}/password", ca=b.fleet.authority.certificate.read_text(), **more
    )


async def command(*words, cwd):
    process = await asyncio.create_subprocess_exec(
        SUPERNODE, "survey", *words, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "SUPERNODE_ROOT": str(cwd)},
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, out.decode(), err.decode()


def test_one_controller_says_what_it_can_do_and_nothing_but_get_is_sent(tmp_path):
    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            found = await run.of_controllers([access(b, tmp_path)], tmp_path, "site", say, whole=False)
            return found, b.bmc.chassis.identity, b.bmc.access.sessions()

    found, identity, sessions = asyncio.run(go())
    ((seen, rows),) = found.controllers
    assert (seen.placement.slot, seen.vendor, seen.model, seen.gpus) == ("r01u01", "Supernode", "Lab GPU8", 8)
    assert seen.identity["system_serial"] == identity.system_serial
    assert seen.identity["bmc_mac"] == identity.bmc_mac
    told = {row.name: row for row in rows}
    for name in (
        "power on", "power off", "restart", "boot once", "UEFI HTTP boot", "virtual media", "media over HTTPS",
        "media server verified", "change BIOS attributes", "firmware inventory", "firmware update", "accounts", "logs",
    ):  # fmt: skip
        assert told[name].supported == "yes", (name, told[name])
    assert "ForceOff" in told["power"].how
    assert "OnReset" in told["change BIOS attributes"].how
    assert found.counts.keys() == {"GET"}
    assert sessions == []
    assert [row.cause for row in found.findings] == []
    assert found.conclusion.machines.slots["r01u01"].identity.bmc_fingerprint == seen.fingerprint


def test_what_a_tree_does_not_offer_is_told_as_no_and_what_it_does_not_say_as_unknown():
    tree = {
        V1: {"Systems": {"@odata.id": f"{V1}/Systems"}},
        f"{V1}/Systems": {"Members": [{"@odata.id": f"{V1}/Systems/1"}]},
        f"{V1}/Systems/1": {
            "Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideTarget@Redfish.AllowableValues": ["Pxe"]},
            "Actions": {"#ComputerSystem.Reset": {"target": f"{V1}/Systems/1/Actions/ComputerSystem.Reset"}},
        },
    }
    told = {row.name: row.supported for row in operations.of(tree)}
    assert told["power"] == "yes"
    assert told["power on"] == told["restart"] == "unknown"
    assert told["UEFI HTTP boot"] == told["virtual media"] == told["firmware update"] == "no"
    assert told["boot once"] == "unknown"


def test_boards_inside_a_server_are_not_the_server():
    tree = {
        V1: {"Vendor": "NVIDIA", "Systems": {"@odata.id": f"{V1}/Systems"}},
        f"{V1}/Systems": {"Members": [{"@odata.id": f"{V1}/Systems/HGX_0"}, {"@odata.id": f"{V1}/Systems/DGX"}]},
        f"{V1}/Systems/HGX_0": {"Id": "HGX_0", "SystemType": "Physical"},
        f"{V1}/Systems/DGX": {"Id": "DGX", "SystemType": "Physical", "PowerState": "On"},
    }
    assert trees.system(tree)[0] == f"{V1}/Systems/DGX"


def test_a_refused_password_is_sent_once(tmp_path):
    """An account locks after a few failures, and a survey must not lock one."""

    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            wrong = access(b, tmp_path)
            (tmp_path / "password").write_text("not-the-password\n")
            looker = Looker(tmp_path)
            seen, _ = await looker.controller(wrong)
            return seen, [row.status for _, row in looker.told]

    seen, statuses = asyncio.run(go())
    assert "401" in seen.why
    assert statuses.count(401) == 1


def test_a_controller_with_another_certificate_than_the_pinned_one_gets_no_password(tmp_path):
    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            looker = Looker(tmp_path)
            seen, _ = await looker.controller(access(b, tmp_path, pin="0" * 64))
            return seen, looker.told

    seen, told = asyncio.run(go())
    assert "another certificate" in seen.why
    assert told == []


SECRETS = {
    "password": "hunter2-hunter2", "token": "tok-99887766", "session": "sess-445566", "licence": "LIC-AAAA-BBBB",
    "community": "public-not-so", "userinfo": "u5er-p4ss", "query": "sig-1f2e3d", "bios": "b10s-admin",
    "oem": "oem-value-77", "task": "task-payload-x", "entry": "password-set-to-zzz", "own": PASSWORD,
}  # fmt: skip
KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIGplanted0123456789abcdef"
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQplanted\n-----END EC PRIVATE KEY-----"


RULES = {"MinPasswordLength": 8, "AccountLockoutThreshold": 5}


def planted():
    login = base64.b64encode(f"admin:{SECRETS['own']}".encode()).decode()
    return {
        V1: {"Oem": {"Acme": {"AdminPassword": SECRETS["password"], "Motd": f"root is {SECRETS['own']}"}}},
        f"{V1}/SessionService": {"SessionTimeout": 600, "Sessions": {"@odata.id": f"{V1}/SessionService/Sessions"}},
        f"{V1}/SessionService/Sessions": {
            "Members": [{"@odata.id": f"{V1}/SessionService/Sessions/{SECRETS['session']}"}],
            "Members@odata.count": 1,
        },
        f"{V1}/SessionService/Sessions/{SECRETS['session']}": {"Id": SECRETS["session"]},
        f"{V1}/AccountService": {**RULES, "ServiceAccountToken": SECRETS["token"]},
        f"{V1}/TaskService/Tasks": {"Members": [{"Payload": {"JsonBody": SECRETS["task"]}}]},
        f"{V1}/Managers/1/LogServices/Log/Entries": {"Members": [{"Message": SECRETS["entry"]}]},
        f"{V1}/Managers/1": {
            "License": {"LicenseKey": SECRETS["licence"]},
            "SNMP": {"CommunityStrings": [{"Name": "x", "CommunityString": SECRETS["community"]}]},
            "SSHHostKeys": [f"ssh-ed25519 {KEY} root@bmc"],
            "Motd": f"ssh-ed25519 {KEY}",
            "Blob": PEM,
            "Auth": f"Basic {login}",
            "Image": f"https://admin:{SECRETS['userinfo']}@files.example/x.iso?sig={SECRETS['query']}",
            "Oem": {"Acme": {"Values": [{"Name": "ApiToken", "Value": SECRETS["oem"]}]}},
        },
        f"{V1}/Systems/1/Bios": {
            "Attributes": {"AdminPassword": SECRETS["bios"], "BootMode": "Uefi", "UserPassword": ""}
        },
    }  # fmt: skip


@pytest.mark.parametrize("secret", [*SECRETS.values(), KEY, "MHcCAQplanted"])
def test_no_planted_secret_is_kept(secret):
    assert secret in json.dumps(planted())
    assert secret not in json.dumps(scrub.tree(planted(), (SECRETS["own"],)))


def test_what_a_client_reads_is_kept():
    kept = scrub.tree(planted(), (SECRETS["own"],))
    assert (
        kept[f"{V1}/AccountService"] | {"MinPasswordLength": 8, "AccountLockoutThreshold": 5}
        == kept[f"{V1}/AccountService"]
    )
    assert kept[f"{V1}/SessionService/Sessions"] == {"Members": [], "Members@odata.count": 1}
    assert kept[f"{V1}/SessionService"]["Sessions"] == {"@odata.id": f"{V1}/SessionService/Sessions"}
    assert kept[f"{V1}/Systems/1/Bios"]["Attributes"]["BootMode"] == "Uefi"
    assert kept[f"{V1}/Systems/1/Bios"]["Attributes"]["UserPassword"] == ""
    assert kept[f"{V1}/Managers/1"]["Image"].startswith("https://***@files.example/x.iso")


def test_a_saved_tree_replayed_gives_the_same_answer_and_can_only_be_read(tmp_path):
    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            b.bmc.state.medium = Medium(
                f"https://u:{SECRETS['userinfo']}@files.example/x.iso?t={SECRETS['query']}", "x"
            )
            b.bmc.state.asset_tag = f"tag {PASSWORD}"
            access(b, tmp_path)
            words = (host_of(b), "--password", f"file:{tmp_path}/password", "--json")
            more = ("--ca", str(b.fleet.authority.certificate), "--save", str(tmp_path / "tree"))
            first = await command(*words, *more, "--out", str(tmp_path / "out"), cwd=tmp_path)
        authority = Authority(tmp_path / "again")
        context = authority.issue(tmp_path / "server", "replay", "127.0.0.1")
        answers = replay.Replay(replay.read(tmp_path / "tree"), "admin", PASSWORD)
        runner, port = await replay.serve(answers, "127.0.0.1", 0, context)
        try:
            words = (f"127.0.0.1:{port}", "--password", f"file:{tmp_path}/password", "--json")
            again = await command(*words, "--ca", str(authority.certificate), cwd=tmp_path)
            client = ssl.create_default_context(cafile=str(authority.certificate))
            connector = aiohttp.TCPConnector(ssl=client)
            async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as http:
                login = {"Authorization": aiohttp.encode_basic_auth("admin", PASSWORD)}
                reset = f"{V1}/Systems/1/Actions/ComputerSystem.Reset"
                tries = [("PATCH", f"{V1}/Systems/1", login), ("POST", reset, login), ("GET", f"{V1}/Systems/1", {}),
                         ("GET", f"{V1}/Nothing", login), ("GET", f"{V1}/", {})]  # fmt: skip
                statuses = []
                for method, path, headers in tries:
                    async with http.request(method, path, headers=headers) as reply:
                        statuses.append(reply.status)
        finally:
            await runner.cleanup()
        return first, again, statuses

    (status, text, err), (status_again, text_again, _), statuses = asyncio.run(go())
    assert (status, status_again) == (0, 0), err
    one, other = json.loads(text)["controllers"][0], json.loads(text_again)["controllers"][0]
    for own in ("address", "fingerprint", "clock_offset_s"):
        assert one.pop(own) is not None
        other.pop(own)
    assert one == other
    assert len(one["operations"]) > 20
    assert statuses == [405, 501, 401, 404, 200]
    files = [path for path in (tmp_path / "tree").rglob("*") if path.is_file()]
    assert (tmp_path / "tree/redfish/v1/Systems/1/index.json") in files
    for secret in (PASSWORD, SECRETS["userinfo"], SECRETS["query"]):
        assert [path for path in files if secret in path.read_text()] == []
    assert json.loads(text)["lacking"]
    assert "r01u01" in (tmp_path / "out/machines.yml").read_text()
    assert PASSWORD not in (tmp_path / "out/environment.yml").read_text() + text + err


def test_without_trust_the_fingerprint_is_shown_and_no_password_is_sent(tmp_path):
    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            access(b, tmp_path)
            words = (host_of(b), "--password", f"file:{tmp_path}/password", "--json")
            asked = await command(*words, cwd=tmp_path)
            shown = asked[2].partition("shows ")[2].split()[0]
            return asked, await command(*words, "--fingerprint", shown, cwd=tmp_path), b.bmc.access._failures

    asked, confirmed, failures = asyncio.run(go())
    assert asked[0] == 2
    assert "no password was sent" in asked[2]
    assert confirmed[0] == 0, confirmed[2]
    assert failures == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["10.0.0.1", "--fingerprint", "0" * 64], "--password: is missing"),
        (["10.0.0.1", "--fingerprint", "0" * 64, "--password", "hunter2"], "is no reference"),
        (["10.0.0.1", "10.0.0.2", "--fingerprint", "0" * 64], "is of one controller, 2 are named"),
        (["10.0.0.1", "racks.csv"], "is no controller's address"),
        (["@missing"], "cannot be read"),
        (["missing.csv"], "cannot be read"),
        (["nowhere"], "no such environment"),
    ],
    ids=str,
)
def test_wrong_input_is_told_and_nothing_is_sent(tmp_path, words, said):
    status, _, err = asyncio.run(command(*words, cwd=tmp_path))
    assert status == 2
    assert said in err
    assert "hunter2" not in err


def test_a_proposal_is_not_written_over_documents(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/machines.yml").write_text("mine\n")
    sheet = tmp_path / "racks.csv"
    sheet.write_text("Rack,U,Serial\nR1,1,SN42A\n")
    status, _, err = asyncio.run(command(str(sheet), "--out", str(tmp_path / "out"), cwd=tmp_path))
    assert (status, (tmp_path / "out/machines.yml").read_text()) == (2, "mine\n")
    assert "holds machines.yml already" in err
    status, _, _ = asyncio.run(command(str(sheet), "--out", str(tmp_path / "out"), "--force", cwd=tmp_path))
    assert status == 0
    assert "SN42A" in (tmp_path / "out/machines.yml").read_text()


def test_a_resource_that_is_named_and_not_given_is_left_out_and_a_walk_ends():
    """Some BMCs name what they do not have, and some name for ever more."""
    from collections import Counter

    asked = Counter()

    async def get(path):
        asked[path] += 1
        if path == f"{V1}/Systems":
            raise RedfishError("x", "gone", 404)
        if path == f"{V1}/":
            return {name: {"@odata.id": f"{V1}/{name}"} for name in ("Systems", "Chassis")}
        return {"Members": [{"@odata.id": f"{path}/{n}"} for n in (1, 2)]}

    walked = Walked()
    asyncio.run(walked.walk(get, whole=False))
    found = walked.found
    assert f"{V1}/Systems" not in found
    assert f"{V1}/Chassis/1" in found
    assert len(found) <= 600
    assert set(asked.values()) == {1}


def test_a_resource_that_is_there_and_cannot_be_had_is_listed_not_taken_for_absent(tmp_path):
    """A busy BMC that keeps its chassis to itself is not one that does not say where it stands."""

    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            walked = Walked()

            async def get(path):
                if path.startswith(f"{V1}/Chassis/"):
                    raise RedfishError("10.0.0.1", f"GET {path} answers 503", 503)
                return await b.client.read(path)

            await walked.walk(get, whole=False)
            return walked

    walked = asyncio.run(go())
    seen = controllers.read("10.0.0.1", "f" * 64, walked.found, 0.0, walked.unread)
    assert list(seen.unread) == [f"{V1}/Chassis/1"]
    found = conclude(Observations((seen,)))
    told = [(row.check, row.verdict) for row in found.findings if row.check in ("reach", "place")]
    assert told == [("reach", "unknown")]


def test_a_collection_in_pages_is_read_and_replayed_whole(tmp_path):
    """Some BMCs list fifty members at a time."""
    pages = {
        V1: {"Systems": {"@odata.id": f"{V1}/Systems"}},
        f"{V1}/Systems": {"Members": [], "Members@odata.nextLink": f"{V1}/Systems?$skip=1"},
        f"{V1}/Systems?$skip=1": {"Members": [{"@odata.id": f"{V1}/Systems/1"}]},
        f"{V1}/Systems/1": {"Id": "1", "PowerState": "On"},
    }

    async def get(path):
        return pages[path.rstrip("/")]

    async def go():
        walked = Walked()
        await walked.walk(get, whole=True)
        keeping.write_tree(tmp_path / "tree", scrub.tree(walked.found))
        authority = Authority(tmp_path / "ca")
        answers = replay.Replay(replay.read(tmp_path / "tree"), "admin", PASSWORD)
        context = authority.issue(tmp_path / "server", "replay", "127.0.0.1")
        runner, port = await replay.serve(answers, "127.0.0.1", 0, context)
        try:
            (tmp_path / "password").write_text(PASSWORD)
            (tmp_path / "password").chmod(0o600)
            ca = authority.certificate.read_text()
            again = BmcAccess(f"127.0.0.1:{port}", "admin", f"file:{tmp_path}/password", ca=ca)
            return walked.found, await Looker(tmp_path).controller(again)
        finally:
            await runner.cleanup()

    found, (seen, tree) = asyncio.run(go())
    assert trees.system(found)[1]["PowerState"] == "On"
    assert (seen.why, seen.power) == ("", "On")
    assert tree == pages


def test_a_path_that_would_leave_the_folder_is_refused(tmp_path):
    with pytest.raises(WrongInput):
        keeping.write_tree(tmp_path / "tree", {f"{V1}/../../../etc": {}})
    assert not (tmp_path / "etc").exists()


def test_a_list_with_fingerprints_and_a_sheet_are_looked_at_over_the_wire(tmp_path):
    """Two BMCs: by a list that pins each, and by a sheet that has a serial number and a place wrong."""

    async def go():
        async with bench(tmp_path / "bmc", ("r01u01", "r01u09"), kind=KIND) as b:
            access(b, tmp_path)
            hosts = {slot: "{}:{}".format(*b.fleet.address(slot)) for slot in b.bmcs}
            pins = {slot: await redfish.fingerprint(host) for slot, host in hosts.items()}
            (tmp_path / "list").write_text("".join(f"{hosts[slot]} {pins[slot]}\n" for slot in hosts))
            login = ("--password", f"file:{tmp_path}/password", "--json")
            listed = await command(f"@{tmp_path}/list", *login, "--save", str(tmp_path / "trees"), cwd=tmp_path)
            serial = b.bmc.chassis.identity.system_serial
            rows = f"R01,1,{serial},{hosts['r01u01']}\nR01,8,SN42B,{hosts['r01u09']}\n"
            (tmp_path / "racks.csv").write_text(f"Rack,Unit,S/N,BMC IP\n{rows}")
            ca = ("--ca", str(b.fleet.authority.certificate))
            return hosts, listed, await command(str(tmp_path / "racks.csv"), *login, *ca, cwd=tmp_path)

    hosts, listed, sheeted = asyncio.run(go())
    assert listed[0] == 0, listed[2]
    assert [row["slot"] for row in json.loads(listed[1])["controllers"]] == ["r01u01", "r01u09"]
    kept = {path.name for path in (tmp_path / "trees").iterdir()}
    assert kept == {host.replace(":", "_") for host in hosts.values()}
    assert sheeted[0] == 1, sheeted[2]
    told = [row["cause"] for row in json.loads(sheeted[1])["findings"]]
    assert len(told) == 2
    assert told[0].startswith("line 3: the sheet says system_serial SN42B, the controller SN")
    assert told[1] == "line 3: the sheet says place r01u08, the controller r01u09"


def odd(tmp_path, monkeypatch, spoil):
    async def go():
        async with bench(tmp_path / "bmc", kind=KIND) as b:
            walk = Walked.walk

            async def spoilt(self, get, *, whole):
                await walk(self, get, whole=whole)
                spoil(self.found)

            monkeypatch.setattr(Walked, "walk", spoilt)
            return await run.of_controllers([access(b, tmp_path)], tmp_path, "site", say, whole=False)

    return asyncio.run(go())


def test_one_that_answers_in_another_shape_does_not_end_the_survey(tmp_path, monkeypatch):
    def spoil(tree):
        for path in tree:
            tree[path] = {**tree[path], "Status": "OK"}

    ((seen, _),) = odd(tmp_path, monkeypatch, spoil).controllers
    assert "not shaped as Redfish says" in seen.why


def test_what_a_controller_calls_itself_is_no_markup(tmp_path, monkeypatch, capsys):
    def spoil(tree):
        for path in tree:
            tree[path] = {**tree[path], "Model": "X [/red] [bold]Y"}

    found = odd(tmp_path, monkeypatch, spoil)
    emit(None, as_json=False, text=lambda: surveyed.text(found, proposed=True))
    assert "X [/red] [bold]Y" in " ".join(capsys.readouterr().out.split())


def test_actions_of_another_shape_do_not_end_the_survey_either(tmp_path, monkeypatch):
    def spoil(tree):
        for path in tree:
            tree[path] = {**tree[path], "Actions": "x"}

    ((seen, rows),) = odd(tmp_path, monkeypatch, spoil).controllers
    assert (seen.why, rows) == ("", ())
