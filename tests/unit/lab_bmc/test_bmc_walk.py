"""Every resource can be reached from the root, answers, and has the shape that the DMTF's schemas require."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from bmc_bench import INSERT, SYSTEM, V1, bench, site

from supernode import catalog
from supernode.lab.bmc.resources import root

# Types whose schema has no Status.
NO_STATUS = {
    "ActionInfo", "Assembly", "AttributeRegistry", "Bios", "Certificate", "LogEntry", "ManagerAccount",
    "MessageRegistryFile", "Role", "ServiceRoot", "Session", "Task",
}  # fmt: skip


def references(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for name, value in document.items():
            if name in ("@odata.id", "target", "@Redfish.ActionInfo", "Uri") and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(document, list):
        for value in document:
            yield from references(value)


async def walk(client: Any) -> tuple[dict[str, Any], set[str]]:
    pages: dict[str, Any] = {}
    targets: set[str] = set()
    queue = [f"{V1}/"]
    while queue:
        path = queue.pop()
        if path in pages or path in targets:
            continue
        if "/Actions/" in path:
            targets.add(path)
            continue
        answer = await client.get(path)
        assert answer.status == 200, (path, answer)
        pages[path] = answer.body
        queue += [each.partition("#")[0] for each in references(answer.body)]
    return pages, targets


async def filled(b: Any, served: Any) -> None:
    """Have one of everything that comes and goes: session, certificates, medium, task, log entry, POST codes."""
    assert (
        await b.client.post(
            f"{V1}/SessionService/Sessions", {"UserName": "admin", "Password": "delivered-with-the-machine"}
        )
    ).status == 201
    for place in (f"{V1}/Managers/1/VirtualMedia/Cd", f"{SYSTEM}/Boot"):
        assert (await b.client.post(f"{place}/Certificates", {"CertificateString": served.ca})).status == 201
    (served.folder / "x.iso").write_bytes(b"anything")
    assert (await b.client.post(INSERT, {"Image": f"{served.base}/x.iso"})).status == 204
    action = f"{V1}/UpdateService/Actions/UpdateService.SimpleUpdate"
    assert (await b.client.post(action, {"ImageURI": f"{served.base}/missing"})).status == 202
    await b.client.reset("On")
    await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "SetupEntered")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], set[str]]:
    async def scenario() -> tuple[dict[str, Any], set[str]]:
        folder = tmp_path_factory.mktemp("walk")
        async with bench(folder / "bmc", kind=catalog.server("lab-gpu8")) as b, site(folder / "site") as served:
            await filled(b, served)
            return await walk(b.client)

    return asyncio.run(scenario())


def test_every_link_answers_and_the_tree_is_whole(tree: tuple[dict[str, Any], set[str]]) -> None:
    pages, targets = tree
    assert {f"{SYSTEM}/Bios/Settings", f"{V1}/Chassis/1/Assembly", f"{V1}/TaskService/Tasks/1"} <= set(pages)
    assert f"{SYSTEM}/LogServices/SEL/Entries/1" in pages
    assert f"{SYSTEM}/LogServices/HostLogger/Entries/0" in pages
    assert f"{V1}/Managers/1/VirtualMedia/Cd/Certificates/1" in pages
    assert any(path.startswith(f"{SYSTEM}/LogServices/PostCodes/Entries/B1-") for path in pages)
    assert len(pages) > 60
    assert INSERT in targets
    assert len(targets) == 7


def test_every_page_has_what_its_schema_requires(tree: tuple[dict[str, Any], set[str]]) -> None:
    for path, page in tree[0].items():
        kind = page["@odata.type"].removeprefix("#").partition(".")[0]
        if kind == "AttributeRegistry":
            assert page["Id"]
            assert page["RegistryEntries"]["Attributes"]
            continue
        assert page["@odata.id"] == path
        assert page["Name"]
        if kind.endswith("Collection"):
            assert page["Members@odata.count"] == len(page["Members"])
            continue
        assert "_" in page["@odata.type"], f"{path}: the type has no version"
        assert page["Id"] == ("RootService" if kind == "ServiceRoot" else path.rpartition("/")[2])
        if kind not in NO_STATUS:
            assert page["Status"]["Health"] in ("OK", "Warning", "Critical"), path
            assert page["Status"]["State"], path


def test_every_action_refuses_what_it_does_not_know(tmp_path: Any, tree: tuple[dict[str, Any], set[str]]) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, kind=catalog.server("lab-gpu8")) as b:
            for target in tree[1]:
                answer = await b.client.post(target, {"Nonsense": 1})
                assert answer.status == 400, target
                assert "ActionParameterUnknown" in answer.ids, target

    asyncio.run(scenario())


def test_only_the_root_is_open(tmp_path: Any, tree: tuple[dict[str, Any], set[str]]) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, kind=catalog.server("lab-gpu8")) as b:
            b.client.auth = None
            for path in [*tree[0], "/redfish/v1/NoSuchThing"]:
                wanted = 200 if path == f"{V1}/" else 401
                assert (await b.client.get(path)).status == wanted, path
            for target in tree[1]:
                assert (await b.client.post(target)).status == 401, target
            assert (await b.client.get("/redfish")).body == {"v1": "/redfish/v1/"}

    asyncio.run(scenario())


def test_what_does_not_exist_is_told_in_redfishs_form(tmp_path: Any) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            missing = await b.client.get(f"{V1}/Systems/2")
            assert (missing.status, missing.ids) == (404, ["ResourceMissingAtURI"])
            wrong = await b.client.ask("DELETE", SYSTEM)
            assert (wrong.status, wrong.ids) == (405, ["OperationNotAllowed"])
            assert wrong.headers["Allow"] == "GET, PATCH"
            head = await b.client.ask("HEAD", SYSTEM)
            assert head.status == 200
            assert head.headers["ETag"] == (await b.client.get(SYSTEM)).headers["ETag"]
            assert head.headers["OData-Version"] == "4.0"

    asyncio.run(scenario())


def test_the_metadata_names_every_type_that_occurs(tmp_path: Any, tree: tuple[dict[str, Any], set[str]]) -> None:
    async def scenario() -> tuple[str, str]:
        async with bench(tmp_path) as b, b.client.http.get(f"{b.client.base}{V1}/$metadata") as reply:
            return await reply.text(), reply.content_type

    text, content_type = asyncio.run(scenario())
    assert content_type == "application/xml"
    spaces = {each.get("Namespace") for each in ElementTree.fromstring(text).iter(f"{{{root.EDMX}}}Include")}  # noqa: S314 - our own text
    kinds = {page["@odata.type"].removeprefix("#").rpartition(".")[0] for page in tree[0].values()}
    assert {kind for kind in kinds if not kind.startswith("AttributeRegistry")} <= spaces


def test_a_body_that_is_no_object_is_refused(tmp_path: Any) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            for body in ([1], "text"):
                answer = await b.client.patch(SYSTEM, body)
                assert (answer.status, answer.ids) == (400, ["MalformedJSON"])

    asyncio.run(scenario())


def test_logs_can_be_paged(tmp_path: Any) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            for number in range(5):
                b.bmc.record(f"event {number}")
            page = await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries?$skip=1&$top=2")
            assert [entry["Message"] for entry in page["Members"]] == ["event 1", "event 2"]
            assert page["Members@odata.count"] == 5
            for wrong in ("x", "-1"):
                answer = await b.client.get(f"{SYSTEM}/LogServices/SEL/Entries?$top={wrong}")
                assert answer.ids == ["QueryParameterValueTypeError"]
            await b.client.post(f"{SYSTEM}/LogServices/SEL/Actions/LogService.ClearLog")
            b.bmc.record("after")
            entries = (await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries"))["Members"]
            assert [(entry["Id"], entry["Message"]) for entry in entries] == [("6", "after")]

    asyncio.run(scenario())
