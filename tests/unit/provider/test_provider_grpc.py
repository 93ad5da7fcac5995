"""The plugin over real gRPC, as the engine drives it: in this process, and as the process that the engine starts."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from pulumi.runtime import proto
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2
from rack import IMAGE, NAME, PASSWORD, SLOT, URN, rack

from supernode.plan import machine as plan
from supernode.provider import schema, server
from supernode.provider.machine import MachineResource
from supernode.provider.progress import EngineLog
from supernode.provider.service import SupernodeProvider
from supernode.provider.switch_config import SwitchConfigResource

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # how the wire spells a value that is not known yet


def struct(values):
    return ParseDict(values, struct_pb2.Struct())


def plain(message):
    return MessageToDict(message)


class Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self):
        self.lines = []

    async def Log(self, request, context):  # noqa: N802
        self.lines.append((request.severity, request.message, request.urn))
        return empty_pb2.Empty()


@asynccontextmanager
async def plugin(stand):
    """Serve the provider and an engine that takes its log; yield a stub, the engine."""
    engine = Engine()
    engine_server = grpc.aio.server()
    engine_pb2_grpc.add_EngineServicer_to_server(engine, engine_server)
    address = f"127.0.0.1:{engine_server.add_insecure_port('127.0.0.1:0')}"
    await engine_server.start()
    resources = {
        schema.MACHINE: MachineResource(plan.decide, stand.resource._patience),
        schema.SWITCH_CONFIG: SwitchConfigResource(),
    }
    provider = SupernodeProvider(resources, EngineLog(address))
    running, port = await server.start(provider, address)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        variables = {"supernode:config:folder": str(stand.folder)}
        await stub.Configure(proto.ConfigureRequest(variables=variables, acceptSecrets=True))
        yield stub, engine
    await provider.stop()
    await running.stop(0)
    await engine_server.stop(0)


def drive(tmp_path, scenario, *, debug=False, **changes):
    async def go():
        async with rack(tmp_path, **changes) as stand, plugin(stand) as (stub, engine):
            await scenario(stand, stub, engine)

    asyncio.run(go(), debug=debug)


async def checked(stub, inputs):
    answer = await stub.Check(proto.CheckRequest(urn=URN, news=struct(inputs)))
    assert not answer.failures
    return answer.inputs


def test_the_life_of_a_machine(tmp_path):
    async def scenario(stand, stub, engine):
        inputs = await checked(stub, stand.inputs)
        preview = await stub.Create(proto.CreateRequest(urn=URN, properties=inputs, preview=True))
        assert preview.properties["status"] == UNKNOWN
        assert preview.properties["name"] == NAME
        assert stand.bmc.state.log == []

        made = await stub.Create(proto.CreateRequest(urn=URN, properties=inputs))
        assert made.id == SLOT
        assert made.properties["status"] == "ready"
        assert made.properties["installedImage"] == IMAGE
        said = [message for _, message, urn in engine.lines if urn == URN]
        assert any(m.startswith("deploy: ") for m in said)

        same = await stub.Diff(proto.DiffRequest(urn=URN, id=SLOT, olds=made.properties, news=inputs))
        assert same.changes == proto.DiffResponse.DIFF_NONE
        assert not same.detailedDiff

        await stand.machine.power_off(hard=True)
        read = await stub.Read(proto.ReadRequest(urn=URN, id=SLOT, properties=made.properties, inputs=inputs))
        assert read.properties["powerState"] == "Off"
        assert read.inputs["power"] == "Off"
        drift = await stub.Diff(proto.DiffRequest(urn=URN, id=SLOT, olds=read.properties, news=inputs))
        assert drift.changes == proto.DiffResponse.DIFF_SOME
        assert dict(drift.detailedDiff)["power"].kind == proto.PropertyDiff.UPDATE
        assert drift.hasDetailedDiff
        assert not drift.replaces

        mended = await stub.Update(proto.UpdateRequest(urn=URN, id=SLOT, olds=read.properties, news=inputs))
        assert mended.properties["powerState"] == "On"
        await stub.Delete(proto.DeleteRequest(urn=URN, id=SLOT, properties=mended.properties))
        assert stand.machine.power_state() == "On"
        assert PASSWORD not in json.dumps(plain(mended.properties)) + str(engine.lines)

    drive(tmp_path, scenario)


def test_the_process_starts_without_the_design_and_the_models_of_the_documents():
    """One starts with each engine run; half of its start-up time went there."""
    heavy = ("numpy", "pydantic", "supernode.design", "supernode.spec")
    code = (
        "import sys\nfrom supernode.provider import server\nserver.build(None)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_another_slot_is_a_replacement(tmp_path):
    async def scenario(stand, stub, engine):
        inputs = await checked(stub, stand.inputs)
        old = struct({**plain(inputs), "status": "ready"})
        moved = struct({**plain(inputs), "slot": "r09u09"})
        diff = await stub.Diff(proto.DiffRequest(urn=URN, id=SLOT, olds=old, news=moved))
        assert list(diff.replaces) == ["slot"]
        assert diff.deleteBeforeReplace

    drive(tmp_path, scenario)


def test_back_from_quarantine_is_an_update(tmp_path):
    """The outputs say nothing of it: going into quarantine was no change, so only the old inputs know."""

    async def scenario(stand, stub, engine):
        inputs = await checked(stub, stand.inputs)
        old = struct({**plain(inputs), "status": "ready"})
        before = struct({**plain(inputs), "state": "quarantined"})
        request = proto.DiffRequest(urn=URN, id=SLOT, olds=old, news=inputs, old_inputs=before)
        assert (await stub.Diff(request)).changes == proto.DiffResponse.DIFF_SOME
        gone = proto.DeleteRequest(urn=URN, id=SLOT, properties=old, old_inputs=before)
        await stub.Delete(gone)
        assert stand.bmc.access.sessions() == []
        assert stand.bmc.state.log == []

    drive(tmp_path, scenario)


def test_check_names_every_problem_at_once_and_no_secret(tmp_path):
    async def scenario(stand, stub, engine):
        bmc = {**stand.inputs["bmc"], "password": "hunter2", "address": "bmc.example"}
        wrong = {**stand.inputs, "bmc": bmc, "image": "latest", "power": "on", "typo": 1, "identity": {}, "sshUser": ""}
        answer = await stub.Check(proto.CheckRequest(urn=URN, news=struct(wrong)))
        found = {f.property: f.reason for f in answer.failures}
        assert set(found) == {"bmc.password", "bmc.address", "image", "power", "typo", "identity", "sshUser"}
        assert "hunter2" not in str(found)
        assert "supernode assign" in found["identity"]

    drive(tmp_path, scenario)


def test_unknown_values_pass_the_check(tmp_path):
    async def scenario(stand, stub, engine):
        answer = await stub.Check(proto.CheckRequest(urn=URN, news=struct({**stand.inputs, "image": UNKNOWN})))
        assert not answer.failures

    drive(tmp_path, scenario)


def test_strict_keeps_what_there_is(tmp_path):
    async def scenario(stand, stub, engine):
        inputs = await checked(stub, {**stand.inputs, "firmware": {"BIOS": "9"}, "bios": {}, "strict": True})
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Create(proto.CreateRequest(urn=URN, properties=inputs))
        assert "BIOS: baseline 9, found 2.1.3" in caught.value.details()
        assert "Traceback" not in caught.value.details()
        trailer = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
        status = status_pb2.Status.FromString(trailer)
        detail = provider_pb2.ErrorResourceInitFailed()
        assert status.details[0].Unpack(detail)
        assert detail.id == SLOT
        assert detail.properties["phase"] == "firmware"
        assert list(detail.reasons) == [caught.value.details()]

    drive(tmp_path, scenario)


def test_a_warning_reaches_the_engine_before_the_answer(tmp_path):
    async def scenario(stand, stub, engine):
        inputs = await checked(stub, {**stand.inputs, "firmware": {"BIOS": "9"}, "bios": {}})
        made = await stub.Create(proto.CreateRequest(urn=URN, properties=inputs))
        assert made.properties["status"] == "failed"
        warnings = [m for s, m, _ in engine.lines if s == proto.engine_pb2.LogSeverity.WARNING]
        assert [w.partition(": ")[2].split()[0] for w in warnings] == ["failed"]

    drive(tmp_path, scenario)


def test_cancel_answers_with_how_far_it_came(tmp_path):
    async def scenario(stand, stub, engine):
        stand.host.mute = True
        inputs = await checked(stub, {**stand.inputs, "bios": {}})
        making = asyncio.ensure_future(stub.Create(proto.CreateRequest(urn=URN, properties=inputs)))
        async with asyncio.timeout(10):
            while stand.host.boots == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await stub.Cancel(empty_pb2.Empty())
        made = await asyncio.wait_for(making, 5)
        assert (made.properties["status"], made.properties["phase"]) == ("failed", "deploy")
        assert made.properties["reason"] == "cancelled"
        assert stand.bmc.access.sessions() == []

    drive(tmp_path, scenario)


def slow_steps(tmp_path, caplog, before=lambda: None):
    """Deploy a machine under asyncio's debug mode, which names every step of the loop over slow_callback_duration."""

    async def scenario(stand, stub, engine):
        inputs = await checked(stub, stand.inputs)
        asyncio.get_running_loop().slow_callback_duration = 0.15
        before()
        caplog.clear()
        made = await stub.Create(proto.CreateRequest(urn=URN, properties=inputs))
        assert made.properties["status"] == "ready"

    with caplog.at_level(logging.WARNING, logger="asyncio"):
        drive(tmp_path, scenario, debug=True)
    return [r.getMessage() for r in caplog.records if r.name == "asyncio" and "took" in r.getMessage()]


def test_nothing_blocks_the_event_loop(tmp_path, caplog):
    # What blocks does so every time; a machine that is busy with other things stalls the loop now and then.
    attempts = []
    for number in range(3):
        (folder := tmp_path / str(number)).mkdir()
        attempts.append(slow_steps(folder, caplog))
        if not attempts[-1]:
            break
    assert attempts[-1] == [], attempts


def test_a_blocking_call_would_be_seen(tmp_path, caplog, monkeypatch):
    def blocking(*_):
        time.sleep(0.3)
        return []

    assert slow_steps(tmp_path, caplog, lambda: monkeypatch.setattr("supernode.provider.identity.mismatches", blocking))


def test_schema_and_handshake(tmp_path):
    async def scenario(stand, stub, engine):
        served = json.loads((await stub.GetSchema(proto.GetSchemaRequest())).schema)
        assert set(served["resources"]) == {schema.MACHINE, schema.SWITCH_CONFIG, schema.TUNNEL}
        for resource in served["resources"].values():
            assert set(resource["requiredInputs"]) <= set(resource["inputProperties"]) <= set(resource["properties"])
        shaken = await stub.Handshake(proto.ProviderHandshakeRequest(engine_address="x"))
        assert not shaken.accept_secrets
        await stub.Attach(proto.PluginAttach(address="127.0.0.1:1"))

    drive(tmp_path, scenario)


@pytest.mark.parametrize(
    "config", [{"reinstall": "r01u05"}, {"plan": "yes"}, {"until": "soon"}, {"powerOffOnDelete": "maybe"}]
)
def test_wrong_configuration_is_a_check_failure(tmp_path, config):
    async def scenario(stand, stub, engine):
        urn = "urn:pulumi:lab::supernode::pulumi:providers:supernode::default"
        answer = await stub.CheckConfig(proto.CheckRequest(urn=urn, news=struct(config)))
        assert [f.property for f in answer.failures] == list(config)
        diff = await stub.DiffConfig(proto.DiffRequest(urn=urn, olds=struct({}), news=struct(config)))
        assert diff.changes == proto.DiffResponse.DIFF_SOME
        assert not diff.replaces

    drive(tmp_path, scenario)


STARTER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "from supernode.provider.server import main; main()", sys.argv[1]],
                         stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline().strip(), flush=True)
time.sleep(60)
"""


def started(address):
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER, address], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    pid, port = process.stdout.readline().split()
    return process, int(pid), int(port)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_gone(pid, seconds):
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.1)
    return not alive(pid)


def test_the_plugin_exits_when_its_engine_is_killed():
    process, pid, port = started("")
    try:
        assert port > 0
        assert alive(pid)
        process.send_signal(signal.SIGKILL)
        process.wait(5)
        assert wait_gone(pid, 8)
    finally:
        process.kill()


def test_the_plugin_exits_when_the_engine_s_address_is_dead():
    process, pid, _ = started("127.0.0.1:1")
    try:
        assert wait_gone(pid, 15)
    finally:
        process.kill()
