"""Documents: what is read, what is written, where a thing stands."""

import json
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.errors import Refusal

ROOT = Path(__file__).resolve().parents[3]
LAB = (ROOT / "tests/lab/slim/environment.yml").read_text()


def problems(text, **others):
    with pytest.raises(Refusal) as caught:
        spec.read({"environment": text, **others})
    return caught.value.problems


def test_the_environment_mirrors_the_document():
    env = spec.read({"environment": LAB}).environment
    assert str(env.site.networks.management.cidr) == "198.18.0.0/23"
    assert (env.pools[0].kind, env.pools[0].count, env.pools[0].racks) == ("lab-gpu8", 8, ("r01", "r02"))
    assert (env.fabric.rates.rail, env.fabric.rates.uplink) == (10.0, 50.0)
    assert (env.stacks.limit, env.budgets.provision_s + env.budgets.configure_s + env.budgets.verify_s) == (
        400,
        45 * 60,
    )


def test_documents_cannot_be_changed():
    env = spec.read({"environment": LAB}).environment
    with pytest.raises(ValueError, match="frozen"):
        env.name = "other"


def test_allocation_and_machines_come_back_as_they_were_written():
    env = {"environment": LAB}
    allocation = design.build(spec.read(env)).allocation
    identity = spec.Identity(system_serial="S: 1, {x}", uuid="a#b", bmc_mac="02:00:00:00:00:01")
    record = spec.SlotRecord(state=spec.SlotState.DRAINED, reason="fan: 3 'slow' — späť", run="r", identity=identity)
    machines = spec.Machines(slots={"r01u09": record, "r01u01": spec.SlotRecord()})
    texts = {**env, "allocation": spec.allocation_text(allocation), "machines": spec.machines_text(machines)}
    again = spec.read(texts)
    assert again.allocation == allocation
    assert again.machines == machines


def test_numbers_that_look_like_numbers_stay_texts():
    machines = spec.Machines(
        slots={"r01u01": spec.SlotRecord(identity=spec.Identity(system_serial="0012345", uuid="1e5"))}
    )
    again = spec.read({"environment": LAB, "machines": spec.machines_text(machines)}).machines
    assert again.slots["r01u01"].identity.system_serial == "0012345"


@pytest.mark.parametrize(
    ("path", "starts"),
    [
        (("name",), "name: lab"),
        (("site", "networks", "rails", "cidr"), "    rails:"),
        (("pools", 0, "count"), "    count: 8"),
        (("racks", 2), "  - {name: r03"),
        (("fabric", "nothing"), "fabric:"),
        ((), "# yaml"),
    ],
)
def test_a_path_leads_to_its_line(path, starts):
    assert LAB.splitlines()[spec.locate(LAB, path) - 1].startswith(starts)


def test_a_secret_is_refused_and_not_repeated():
    found = problems(LAB.replace("file:secrets/bmc/{slot}", "Tr0ub4dor"))
    assert [p.path for p in found] == [("bmc", "password")]
    assert "Tr0ub4dor" not in str(found)


def test_problems_of_all_documents_come_at_once():
    found = problems(
        LAB.replace("count: 8", "count: x"), machines="schema: 1\nslots: {r01u01: {stat: new}}\n", allocation="{"
    )
    assert [p.document for p in found] == ["environment", "allocation", "machines"]


def test_a_contradiction_shows_beside_a_wrong_value():
    found = problems(LAB.replace("spares: 1", "spares: one").replace("198.18.2.0/23", "198.18.0.0/24"))
    assert [p.path for p in found] == [
        ("site", "networks", "bmc", "cidr"),
        ("site", "networks", "bmc", "gateway"),
        ("pools", 0, "spares"),
    ]


def test_what_stands_in_for_a_wrong_value_is_never_spoken_of():
    found = problems(
        LAB.replace("kind: lab-gpu8", "kind: [1]").replace("198.18.4.0/24", "loop").replace("[r03]", "r03")
    )
    assert [p.path for p in found] == [
        ("site", "networks", "loopbacks", "cidr"),
        ("pools", 0, "kind"),
        ("fabric", "racks"),
    ]


def test_the_schema_for_editors_is_fresh():
    assert (ROOT / "inventories/environment.schema.json").read_text() == spec.schema_text()


def test_the_schema_knows_every_section_and_no_other_key():
    schema = json.loads(spec.schema_text())
    assert schema["additionalProperties"] is False
    assert {"site", "pools", "fabric", "machines"} <= set(schema["properties"])


@pytest.mark.parametrize(
    "path", sorted((ROOT / "inventories").glob("**/environment.yml")), ids=lambda path: path.parent.name
)
def test_every_environment_points_its_editor_to_the_schema(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.split("=")[1]).resolve() == ROOT / "inventories/environment.schema.json"


def test_a_folder_of_another_name_is_refused_at_the_name():
    with pytest.raises(Refusal) as refused:
        spec.read({"environment": LAB}, name="copy")
    assert [problem.path for problem in refused.value.problems] == [("name",)]
    assert spec.read({"environment": LAB}, name="lab") == spec.read({"environment": LAB})


def test_a_name_that_is_wrong_by_itself_is_said_once():
    with pytest.raises(Refusal) as refused:
        spec.read({"environment": LAB.replace("name: lab\n", "name: 7!\n", 1)}, name="copy")
    assert [problem.path for problem in refused.value.problems] == [("name",)]
    assert "lies in the folder" not in str(refused.value)
