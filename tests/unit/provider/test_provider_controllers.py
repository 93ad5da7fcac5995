"""Controllers that are not the lab's: the smallest Redfish tree each, after the formats that vendors document."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from loopback_tls import authority
from rack import QUICK, SLOT, Log

from supernode.clients import redfish
from supernode.provider import guard, identity, quirks
from supernode.provider.job import CannotCarryError, Job, PhaseFailedError, RefusedError, Wanted
from supernode.provider.phases import bios, carrier, firmware, media
from supernode.provider.phases import eject as eject_phase
from supernode.provider.phases import run as phases
from supernode.provider.resource import Scene
from supernode.provider.settings import Settings
from supernode.provider.timing import Deadline

URL = "https://boot.internal/boot/gpu-001/1.iso"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"


class Tree:
    """Resources by path; PATCH merges, actions are functions."""

    def __init__(self, resources, actions=()):
        self.resources, self.actions = resources, dict(actions)
        self.sent = []

    async def handle(self, request):
        if request.path.endswith("/Sessions"):
            return web.json_response({}, status=201, headers={"X-Auth-Token": "t", "Location": "/redfish/v1/S/1"})
        body = await request.json() if request.can_read_body else {}
        if request.method in ("POST", "PATCH"):
            self.sent.append((request.path, body))
        if request.path in self.actions:
            return self.actions[request.path](self, body)
        found = self.resources.get(request.path)
        if found is None:
            return web.json_response({}, status=404)
        if request.method == "PATCH":
            found.update(body)
        return web.json_response({"@odata.id": request.path, **found})


def link(path):
    return {"@odata.id": path}


V1, ONE, OTHER = "/redfish/v1/", "/redfish/v1/Systems/1", "/redfish/v1/Systems/HGX_Baseboard_0"
MANAGER, DRIVES = "/redfish/v1/Managers/1", "/redfish/v1/Managers/1/VirtualMedia"
CD, STORE = f"{DRIVES}/CD1", f"{DRIVES}/CD1/Certificates"
INSERT, EJECT = f"{CD}/Actions/VirtualMedia.InsertMedia", f"{CD}/Actions/VirtualMedia.EjectMedia"


def tree(vendor="Any", system=None, drive=None, actions=()):
    actions_of_drive = {"#VirtualMedia.InsertMedia": {"target": INSERT}, "#VirtualMedia.EjectMedia": {"target": EJECT}}
    resources = {
        V1: {"Vendor": vendor, "Systems": link("/redfish/v1/Systems")},
        "/redfish/v1/Systems": {"Members": [link(OTHER), link(ONE)]},
        OTHER: {"Id": "HGX_Baseboard_0", "SystemType": "Physical"},
        ONE: {
            "Id": "1",
            "SystemType": "Physical",
            "PowerState": "Off",
            "Links": {"ManagedBy": [link(MANAGER)], "Chassis": []},
            **(system or {}),
        },
        MANAGER: {"Id": "1", "VirtualMedia": link(DRIVES)},
        DRIVES: {"Members": [link(CD)]},
        CD: {
            "Id": "CD1",
            "MediaTypes": ["CD", "DVD"],
            "Inserted": False,
            "VerifyCertificate": False,
            "Certificates": link(STORE),
            "Actions": actions_of_drive,
            **(drive or {}),
        },
        STORE: {"Members": []},
    }
    return Tree(resources, {STORE: store, INSERT: insert, EJECT: eject} | dict(actions))


def store(served, body):
    if body:
        served.resources[STORE]["Members"].append({"@odata.id": f"{STORE}/1", **body})
        return web.json_response({}, status=201)
    return web.json_response(served.resources[STORE])


def insert(served, body):
    served.resources[CD] |= {"Image": body["Image"], "Inserted": True}
    return web.Response(status=204)


def eject(served, body):
    served.resources[CD] |= {"Image": None, "Inserted": False}
    return web.Response(status=204)


def missing(parameter):
    """Refuse as DSP0266 says while a parameter is missing."""

    def action(served, body):
        if parameter in body:
            return insert(served, body)
        info = [{"MessageId": "Base.1.12.ActionParameterMissing", "Message": f"The action requires {parameter}."}]
        return web.json_response({"error": {"code": "x", "@Message.ExtendedInfo": info}}, status=400)

    return action


@asynccontextmanager
async def job(folder, served, **changes):
    runner = web.ServerRunner(web.Server(served.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority(folder)).start()
    address = f"127.0.0.1:{runner.addresses[0][1]}"
    inputs = {
        "name": "gpu-001",
        "slot": SLOT,
        "bmc": {"address": address},
        "media": {"url": URL, "ca": PEM},
        "inService": False,
        **changes,
    }
    scene = Scene("urn:pulumi:lab::supernode::x::y", folder, Settings(), Log())
    ca = (folder / "cert.pem").read_text()
    try:
        async with redfish.connect(address, "admin", "password", ca, QUICK) as client:
            made = Job(Wanted.of(inputs), scene, Deadline(10), client)
            made.bmc = await identity.find(client, made.wanted.identity)
            made.phase_deadline = Deadline(5)
            yield made
    finally:
        await runner.cleanup()


def play(tmp_path, served, work, **changes):
    async def go():
        async with job(tmp_path, served, **changes) as made:
            return await work(made)

    return asyncio.run(go())


async def fill(made):
    await media.insert(made, await media.drive(made))


def test_the_server_is_found_beside_the_boards_in_it(tmp_path):
    async def work(made):
        return made.bmc.system

    assert play(tmp_path, tree("NVIDIA"), work) == ONE


def test_the_drive_is_made_to_verify_before_it_loads(tmp_path):
    served = tree()
    play(tmp_path, served, fill)
    assert [path for path, _ in served.sent] == [STORE, CD, INSERT]
    assert served.sent[0][1] == {"CertificateString": PEM, "CertificateType": "PEM"}
    assert served.sent[1][1] == {"VerifyCertificate": True}


def test_a_drive_that_cannot_verify_is_refused_unless_told(tmp_path):
    served = tree(drive={"VerifyCertificate": None, "Certificates": {}})
    del served.resources[CD]["VerifyCertificate"]
    with pytest.raises(PhaseFailedError, match="cannot verify"):
        play(tmp_path, served, fill)
    assert served.sent == []
    play(tmp_path, served, fill, media={"url": URL, "ca": PEM, "verify": False})
    assert [path for path, _ in served.sent] == [INSERT]


@pytest.mark.parametrize("parameter", ["TransferProtocolType", "TransferMethod"])
def test_a_parameter_that_is_asked_for_is_given(tmp_path, parameter):
    served = tree(actions={INSERT: missing(parameter)})
    play(tmp_path, served, fill)
    assert [sorted(body) for path, body in served.sent if path == INSERT] == [["Image"], ["Image", parameter]]


def test_a_parameter_that_nobody_knows_is_an_error(tmp_path):
    with pytest.raises(redfish.RedfishError, match="Sorcery"):
        play(tmp_path, tree(actions={INSERT: missing("Sorcery")}), fill)


def test_a_drive_without_actions_takes_a_patch(tmp_path):
    served = tree(drive={"Actions": {}})
    play(tmp_path, served, fill)
    assert served.sent[-1] == (CD, {"Image": URL, "Inserted": True, "WriteProtected": True})


def test_a_stranger_s_image_stays_and_the_drive_is_not_ours(tmp_path):
    served = tree(drive={"Inserted": True, "Image": "https://elsewhere/x.iso"})
    with pytest.raises(CannotCarryError, match=r"the only virtual drive holds .*x\.iso, which is not ours"):
        play(tmp_path, served, fill)
    assert served.sent == []


def test_an_image_that_is_not_connected_is_in_nobody_s_use(tmp_path):
    served = tree(drive={"Inserted": True, "Image": "https://elsewhere/x.iso", "ConnectedVia": "NotConnected"})
    play(tmp_path, served, fill)
    assert [path for path, _ in served.sent if "Actions" in path] == [EJECT, INSERT]


def test_our_own_image_is_loaded_afresh_for_what_is_kept_of_it_has_a_dead_token(tmp_path):
    served = tree(drive={"Inserted": True, "Image": URL})
    play(tmp_path, served, fill)
    assert [path for path, _ in served.sent if "Actions" in path] == [EJECT, INSERT]


def test_a_2xx_that_did_nothing_is_noticed(tmp_path):
    served = tree(actions={INSERT: lambda served, body: web.Response(status=204)})
    with pytest.raises(CannotCarryError, match="answered 204 to InsertMedia twice, and the drive holds no medium"):
        play(tmp_path, served, fill)
    assert [path for path, _ in served.sent if path == INSERT] == [INSERT, INSERT]


def test_lenovo_s_upload_drives_are_passed_over(tmp_path):
    served = tree("Lenovo")
    served.resources[DRIVES]["Members"].insert(0, link(f"{DRIVES}/RDOC1"))
    served.resources[f"{DRIVES}/RDOC1"] = {"Id": "RDOC1", "MediaTypes": ["CD"]}

    async def work(made):
        return (await media.drive(made))["Id"]

    assert play(tmp_path, served, work) == "CD1"


@pytest.mark.parametrize(
    ("vendor", "model", "allowed", "target"),
    [
        ("Supermicro", "SYS-821GE", ["Cd", "UsbCd", "Pxe"], "UsbCd"),
        ("Supermicro", "ARS-111GL-NHR", ["Cd", "UsbCd"], "Cd"),
        ("Supermicro", "SYS-821GE", ["Cd"], "Cd"),
        ("Dell", "PowerEdge XE9680", ["Cd", "UsbCd"], "Cd"),
        ("NVIDIA", "DGX H100", None, "Cd"),
    ],
)
def test_the_boot_target_follows_vendor_and_model(vendor, model, allowed, target):
    system = {"Boot": {"BootSourceOverrideTarget@Redfish.AllowableValues": allowed, "BootSourceOverrideMode": "UEFI"}}
    if allowed is None:
        del system["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"]
    wanted = carrier.override(system, quirks.of("", vendor, model).cd_targets)
    assert wanted == {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": target}


def test_the_mode_is_set_where_it_is_another():
    assert carrier.override({"Boot": {"BootSourceOverrideMode": "Legacy"}}, ("Cd",))["BootSourceOverrideMode"] == "UEFI"


def test_no_allowed_target_is_said():
    with pytest.raises(PhaseFailedError, match="allowed: Hdd, Pxe"):
        carrier.override({"Boot": {"BootSourceOverrideTarget@Redfish.AllowableValues": ["Hdd", "Pxe"]}}, ("Cd",))


def test_an_override_that_does_not_hold_is_noticed(tmp_path):
    served = tree(system={"Boot": {"BootSourceOverrideEnabled": "Disabled"}})
    served.actions[ONE] = lambda s, body: web.json_response({"@odata.id": ONE, **s.resources[ONE]})  # takes no PATCH

    async def work(made):
        await made.bmc.override_boot({"BootSourceOverrideEnabled": "Once"}, made.phase_deadline)

    with pytest.raises(Exception, match="set 'Once', found 'Disabled'"):
        play(tmp_path, served, work)


def test_dell_is_told_when_to_apply_bios_settings(tmp_path):
    served = tree("Dell", system={"Bios": link(f"{ONE}/Bios")})
    served.resources[f"{ONE}/Bios"] = {
        "Attributes": {"ProcVirtualization": "Disabled"},
        "@Redfish.Settings": {"SettingsObject": link(f"{ONE}/Bios/Settings")},
    }
    served.resources[f"{ONE}/Bios/Settings"] = {"Attributes": {}}

    async def work(made):
        await bios._stage(made, await bios._bios(made), {"ProcVirtualization": "Enabled"})

    play(tmp_path, served, work)
    body = served.sent[-1][1]
    assert body["@Redfish.SettingsApplyTime"] == {"ApplyTime": "OnReset"}
    served.sent.clear()
    play(tmp_path, served, work)  # an iDRAC refuses what is pending already
    assert served.sent == []


def test_every_quirk_has_a_source_and_changes_something():
    known = set(quirks.Quirks.__dataclass_fields__)
    for row in quirks.TABLE:
        assert row.source
        assert set(row.change) <= known


REGISTRY = [
    {"AttributeName": "Boot", "Type": "Enumeration", "Value": [{"ValueName": "Uefi"}, {"ValueName": "Legacy"}]},
    {"AttributeName": "Delay", "Type": "Integer", "LowerBound": 0, "UpperBound": 10},
    {"AttributeName": "Quiet", "Type": "Boolean"},
    {"AttributeName": "Version", "Type": "String", "ReadOnly": True},
]


@pytest.mark.parametrize(
    ("wanted", "problems"),
    [
        ({"Boot": "Uefi", "Delay": 10, "Quiet": False}, 0),
        ({"Boot": "uefi"}, 1),
        ({"Delay": 11}, 1),
        ({"Delay": True}, 1),
        ({"Quiet": "yes"}, 1),
        ({"Version": "2"}, 1),
        ({"Boots": "Uefi", "Delay": -1}, 2),
    ],
)
def test_attributes_are_held_against_the_registry(wanted, problems):
    assert len(bios.wrong_names(wanted, REGISTRY)) == problems


def test_firmware_is_found_by_id_or_name():
    assert firmware.differences({"BIOS": "1", "NIC": "2"}, {"BIOS": "1", "NIC": "3"}) == ["NIC: baseline 2, found 3"]


@pytest.mark.parametrize(
    "value", ["To Be Filled By O.E.M.", "0123456789", "00000000", "", None, "Default string", "NONE"]
)
def test_placeholders_are_no_serials(value):
    assert identity._clean(value) == ""


@pytest.mark.parametrize("value", ["03000200-0400-0500-0006-000700080009", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", ""])
def test_placeholders_are_no_uuids(value):
    assert identity._clean_uuid(value) == ""


def test_identities_are_compared_as_people_write_them():
    wanted = {"bmc_mac": "AA-BB-CC-00-11-22", "uuid": "4C4C4544-0042", "system_serial": "X"}
    found = {"bmc_mac": "aa:bb:cc:00:11:22", "uuid": "4c4c45440042", "system_serial": "Y"}
    assert identity.mismatches(wanted, found) == ["system_serial: machines.yml has 'X', the machine says 'Y'"]


def test_the_second_interface_may_be_the_one_that_is_known(tmp_path):
    ports = f"{ONE}/EthernetInterfaces"
    served = tree(system={"EthernetInterfaces": link(ports)})
    macs = ("aa:00:00:00:00:01", "aa:00:00:00:00:02")
    served.resources[ports] = {"Members": [{"@odata.id": f"{ports}/{m}", "MACAddress": m} for m in macs]}

    async def work(made):
        return await identity.read(made.bmc, {"management_mac": "AA:00:00:00:00:02"})

    assert play(tmp_path, served, work)["management_mac"] == "aa:00:00:00:00:02"


def test_unknown_counts_as_in_service():
    inputs = {"name": "x", "slot": SLOT, "bmc": {}}
    assert Wanted.of(inputs).in_service
    assert not Wanted.of({**inputs, "inService": False}).in_service


async def take_out(made):
    await eject_phase.run(made)


@pytest.mark.parametrize("image", ["https://elsewhere/x.iso", "https://boot.internal/boot/gpu-002/1.iso", ""])
def test_a_medium_that_is_not_ours_stays_in(tmp_path, image):
    served = tree(drive={"Inserted": True, "Image": image})
    play(tmp_path, served, take_out)
    assert served.resources[CD]["Inserted"]
    assert EJECT not in [path for path, _ in served.sent]


@pytest.mark.parametrize("image", [URL, "https://boot.internal/boot/gpu-001/0.iso"])
def test_our_medium_comes_out_that_of_an_earlier_design_too(tmp_path, image):
    served = tree(drive={"Inserted": True, "Image": image})
    play(tmp_path, served, take_out)
    assert not served.resources[CD]["Inserted"]


def test_a_drive_that_does_not_name_its_medium_is_emptied_by_the_job_that_filled_it(tmp_path):
    served = tree(drive={"Inserted": True, "Image": None})

    async def work(made):
        made.booted = True
        await eject_phase.run(made)

    play(tmp_path, served, work)
    assert not served.resources[CD]["Inserted"]


STRANGE = [
    (None, "in_service"),
    ("slots:\n", "in_service"),
    ("", "in_service"),
    ("slots: {r09u09: {state: new}}\n", "in_service"),
    (f"slots: {{{SLOT}: {{state: in_service}}}}\n", "in_service"),
    (f"slots: {{{SLOT}: {{state: unheard-of}}}}\n", "in_service"),
    (f"slots: {{{SLOT}: in_service}}\n", "in_service"),
    (f"slots: {{{SLOT}: {{state: new}}}}\n", "idle"),
    (f"slots: {{{SLOT}: {{state: drained}}}}\n", "idle"),
]


@pytest.mark.parametrize(("text", "means"), STRANGE)
def test_what_machines_yml_does_not_say_counts_as_in_service(tmp_path, text, means):
    if text is not None:
        (tmp_path / "machines.yml").write_text(text)
    assert asyncio.run(guard.in_service_now(tmp_path, SLOT)) is (means == "in_service")


@pytest.mark.parametrize("text", ["slots: {r01u05: {state: new}", "<<<<<<< ours\nslots:\n=======\n"])
def test_a_machines_yml_that_cannot_be_read_refuses_and_names_the_file(tmp_path, text):
    (tmp_path / "machines.yml").write_text(text)
    with pytest.raises(RefusedError, match=r"machines\.yml cannot be read"):
        asyncio.run(guard.in_service_now(tmp_path, SLOT))


def test_the_login_in_the_address_of_another_s_medium_is_not_repeated(tmp_path):
    served = tree(drive={"Inserted": True, "Image": "https://root:hunter22@elsewhere/x.iso"})

    async def look(made):
        with pytest.raises(CannotCarryError) as caught:
            await media.drive(made)
        return [*await media.foreign(made), str(caught.value)]

    told = play(tmp_path, served, look)
    assert all("//***@elsewhere/x.iso" in line and "hunter22" not in line for line in told)


@pytest.mark.parametrize("spoilt", [{"Links": "none"}, {"Links": {"ManagedBy": 7}}])
def test_answers_of_another_shape_end_that_machine_and_nothing_else(tmp_path, spoilt):
    served = tree(system={"SerialNumber": "A1"})

    async def contact(made):
        served.resources[ONE].update(spoilt)
        made._bmc, made.wanted = (
            None,
            dataclasses.replace(made.wanted, bmc={"username": "admin", "password": "exec:echo x"}),
        )
        return await phases.run(made, ())

    outcome = play(tmp_path, served, contact)
    assert (outcome.status, outcome.phase) == ("failed", "contact")
    assert "not shaped as Redfish says" in outcome.reason
