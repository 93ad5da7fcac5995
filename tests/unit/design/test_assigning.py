"""Binding a delivery: what is right is bound once, what is doubtful is refused."""

import pytest

from supernode import spec
from supernode.design import assigning
from supernode.errors import Refusal
from supernode.spec import SlotState

from .sites import lab

HEAD = ",".join(assigning.COLUMNS["machines.csv"])
ROWS = [
    "r01u01,lab-gpu8,S1,B1,C1,11111111-2222-3333-4444-555555555501,02:00:00:00:01:01,02:00:00:00:02:01",
    "r02u17,lab-gpu8,S9,B9,C9,11111111-2222-3333-4444-555555555509,02:00:00:00:01:09,02:00:00:00:02:09",
]


def bind(found, *rows, **options):
    return assigning.bind(found, assigning.read_sheet("machines.csv", "\n".join([HEAD, *rows, ""])), **options)


def again(binding):
    return lab(machines=spec.machines_text(binding.machines))


def refused(found, *rows):
    with pytest.raises(Refusal) as caught:
        bind(found, *rows)
    return [(p.document, p.path, p.what) for p in caught.value.problems]


def test_a_delivery_is_bound_and_spares_are_spares():
    binding = bind(lab(), *ROWS)
    assert {slot: record.state for slot, record in binding.machines.slots.items()} == {
        "r01u01": "new",
        "r02u17": "spare",
    }
    assert binding.changes[0] == "r01u01 gpu-001: bound to system_serial S1"


def test_twice_is_the_same_as_once():
    first = bind(lab(), *ROWS)
    second = bind(again(first), *ROWS)
    assert second.changes == ()
    assert second.machines == first.machines


def test_a_bound_machine_keeps_its_state_and_what_is_learnt_is_added():
    known = lab(machines="schema: 1\nslots:\n  r01u01: {state: in_service, run: r7, identity: {system_serial: S1}}\n")
    record = bind(known, ROWS[0]).machines.slots["r01u01"]
    assert (record.state, record.run, record.identity.board_serial) == (SlotState.IN_SERVICE, "r7", "B1")


def test_one_way_of_writing_an_identity():
    row = ROWS[0].replace("02:00:00:00:01:01", "02-00-00-00-01-01").replace("-555555555501", "-5555555555AB")
    identity = bind(lab(), row).machines.slots["r01u01"].identity
    assert identity.bmc_mac == "02:00:00:00:01:01"
    assert identity.uuid.endswith("5555555555ab")


@pytest.mark.parametrize(
    "value", ["To be filled by O.E.M.", "Default string", "0000000", "None", "System Serial Number", "N/A", "xxxx"]
)
def test_what_nobody_filled_in_is_refused(value):
    assert "placeholder" in refused(lab(), ROWS[0].replace("S1", value))[0][2]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("11111111-2222-3333-4444-555555555501", "00000000-0000-0000-0000-000000000000"),
        ("11111111-2222-3333-4444-555555555501", "03000200-0400-0500-0006-000700080009"),
        ("11111111-2222-3333-4444-555555555501", "not-a-uuid"),
        ("02:00:00:00:01:01", "ff:ff:ff:ff:ff:ff"),
        ("02:00:00:00:01:01", "00:00:00:00:00:00"),
        ("02:00:00:00:01:01", "02:00:00:00:01"),
        ("lab-gpu8", "dgx-h100"),
        ("r01u01", "r01u02"),
        ("r01u01", "r03u01"),
        ("S1,B1,C1,11111111-2222-3333-4444-555555555501,02:00:00:00:01:01,02:00:00:00:02:01", ",,,,,"),
    ],
)
def test_wrong_rows_are_refused_at_their_line(right, wrong):
    found = refused(lab(), ROWS[1], ROWS[0].replace(right, wrong))
    assert {(document, path) for document, path, _ in found} == {("machines.csv", (3,))}


def test_two_slots_cannot_claim_one_machine():
    assert (
        refused(lab(), ROWS[0], ROWS[1].replace("S9", "S1"))[0][2]
        == "system_serial S1 is claimed by slots r01u01 and r02u17"
    )
    crossed = ROWS[1].replace("02:00:00:00:02:09", "02:00:00:00:01:01")
    assert "claimed" in refused(lab(), ROWS[0], crossed)[0][2]


def test_one_slot_cannot_have_two_rows():
    other = ROWS[1].replace("r02u17", "r01u01")
    assert any("is there twice" in what for _, _, what in refused(lab(), ROWS[0], other))


def test_another_machine_takes_a_new_slot_but_not_one_in_service_unless_said():
    bound = bind(lab(), *ROWS)
    other = ROWS[0].replace("S1", "S5")
    replaced = bind(again(bound), other)
    assert replaced.changes == ("r01u01 gpu-001: replaces system_serial S1 by system_serial S5",)
    serving = spec.machines_text(bound.machines).replace("r01u01: {state: new", "r01u01: {state: in_service")
    assert "in_service with another machine" in refused(lab(machines=serving), other)[0][2]
    record = bind(lab(machines=serving), other, replace=True).machines.slots["r01u01"]
    assert (record.state, record.identity.system_serial) == (SlotState.NEW, "S5")


def test_machines_swapped_between_two_slots_are_bound_crosswise():
    bound = bind(lab(), *ROWS)
    crossed = [ROWS[0].replace("r01u01", "r02u17"), ROWS[1].replace("r02u17", "r01u01")]
    slots = bind(again(bound), *crossed).machines.slots
    assert (slots["r01u01"].identity.system_serial, slots["r02u17"].identity.system_serial) == ("S9", "S1")


def test_a_switch_is_bound_with_its_host_key():
    head = ",".join(assigning.COLUMNS["switches.csv"])
    row = "r03u01,lab-leaf,W1,02:00:00:00:03:01,ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB comment"
    binding = assigning.bind(lab(), assigning.read_sheet("switches.csv", f"{head}\n{row}\n"))
    assert binding.machines.slots["r03u01"].identity.ssh_host_key == "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB"


def test_columns_may_be_in_any_order_and_none_may_lack():
    columns = HEAD.split(",")
    turned = "\n".join(",".join(reversed(line.split(","))) for line in [HEAD, ROWS[0]])
    assert assigning.read_sheet("machines.csv", turned)[0].identity["system_serial"] == "S1"
    with pytest.raises(Refusal, match="column uuid is missing"):
        assigning.read_sheet("machines.csv", ",".join(c for c in columns if c != "uuid") + "\n")
    with pytest.raises(Refusal, match="8 cells are wanted"):
        assigning.read_sheet("machines.csv", f"{HEAD}\nr01u01,lab-gpu8\n")


PIN, OTHER = "ab" * 32, "cd" * 32


def by_hand(found, slot="r01u01", **identity):
    return assigning.bind(found, [assigning.Delivered(slot, "", identity)])


def in_sheet(found, pin):
    sheet = assigning.read_sheet("machines.csv", f"{HEAD},bmc_fingerprint\n{ROWS[0]},{pin}\n")
    return assigning.bind(found, sheet)


def test_a_sheet_may_bring_fingerprints_and_need_not():
    spelled = ":".join(["AB"] * 32)  # as openssl writes it
    pinned = in_sheet(lab(), spelled)
    assert pinned.machines.slots["r01u01"].identity.bmc_fingerprint == PIN
    assert bind(again(pinned), ROWS[0]).changes == ()
    assert in_sheet(again(pinned), PIN).changes == ()


def test_a_renewed_certificate_is_the_same_machine_and_taken_by_hand_alone():
    known = again(in_sheet(lab(), PIN))
    binding = by_hand(known, bmc_fingerprint=OTHER)
    assert binding.changes == (f"r01u01 gpu-001: the same machine: bmc_fingerprint {PIN} by {OTHER}",)
    found = binding.machines.slots["r01u01"].identity
    assert (found.bmc_fingerprint, found.system_serial) == (OTHER, "S1")
    with pytest.raises(Refusal, match="another certificate pinned") as caught:
        in_sheet(again(binding), PIN)
    assert "--bmc-fingerprint" in caught.value.problems[0].hint


def test_another_machine_does_not_inherit_the_pin():
    known = again(in_sheet(lab(), PIN))
    assert by_hand(known, system_serial="S2").machines.slots["r01u01"].identity.bmc_fingerprint == ""


@pytest.mark.parametrize("wrong", ["ab" * 20, "xy" * 32, "SHA256:abc"])
def test_what_is_no_fingerprint_is_refused(wrong):
    with pytest.raises(Refusal, match="no fingerprint"):
        by_hand(lab(), bmc_fingerprint=wrong)


def test_a_certificate_that_two_controllers_show_tells_nothing():
    with pytest.raises(Refusal, match="claimed by slots"):
        by_hand(again(in_sheet(lab(), PIN)), "r02u17", bmc_fingerprint=PIN)


def test_nothing_is_designed_by_a_pin():
    bare, pinned = again(bind(lab(), ROWS[0])), again(in_sheet(lab(), PIN))
    assert bare.digest == pinned.digest
    assert bare.host("gpu-001").identity.bmc_fingerprint != pinned.host("gpu-001").identity.bmc_fingerprint


PINNED = """schema: 1
slots:
  r01u01: {state: STATE, reason: bad GPU, identity: {system_serial: S1, board_serial: B1, bmc_mac: "02:00:00:00:01:01",
    management_mac: "02:00:00:00:02:01", ssh_host_key: ssh-ed25519 AAAA, bmc_fingerprint: PIN}}
""".replace("PIN", PIN)


def exchange(state="in_service", host="r01u01", **identity):
    given = {"system_serial": "S2", "management_mac": "02:00:00:00:02:99", **identity}
    known = lab(machines=PINNED.replace("STATE", state))
    return assigning.bind(known, [assigning.Delivered(host, "", given)], replace=True)


def test_what_hung_on_an_exchanged_machine_is_listed_and_nothing_of_its_identity_is_kept():
    binding = exchange()
    record = binding.machines.slots["r01u01"]
    assert record.identity.known() == {"system_serial": "S2", "management_mac": "02:00:00:00:02:99"}
    rows = {row.what: row for row in binding.dependants["r01u01"]}
    assert rows["controller's password"].was == "file:secrets/bmc/r01u01"
    assert "file:delivery/bmc-factory/r01u01" in rows["controller's password"].becomes
    assert PIN in rows["controller's certificate"].was
    assert rows["controller's certificate"].becomes == "verified by delivery/bmc-ca.pem"
    assert rows["controller's address"].was == "198.18.2.11 at 02:00:00:00:01:01"
    assert rows["seed and deploy medium"].becomes.endswith("02:00:00:00:02:99")
    assert (rows["host key"].was, rows["cables"].was[:2]) == ("pinned", "8:")
    assert "BIOS" in rows["firmware baseline"].was
    assert rows["checks"].was == "serial S1"
    assert rows["state"].becomes.startswith("new:")
    assert [row.what for row in rows.values() if row.wanted] == []


def test_what_only_a_person_can_give_is_named():
    rows = {row.what: row.wanted for row in exchange(management_mac="").dependants["r01u01"]}
    assert rows["seed and deploy medium"] == "--management-mac"


def test_nothing_hangs_on_a_slot_that_stays_or_is_new():
    assert bind(lab(), *ROWS).dependants == {}
    known = lab(machines=PINNED.replace("STATE", "in_service"))
    assert by_hand(known, system_serial="S1", uuid="11111111-2222-3333-4444-555555555501").dependants == {}


def test_a_quarantined_slot_stays_shut_with_another_machine_in_it():
    record = exchange("quarantined").machines.slots["r01u01"]
    assert (record.state, record.reason) == (SlotState.QUARANTINED, "another machine since: bad GPU")
    assert exchange("quarantined").dependants["r01u01"][-1].becomes.endswith("`supernode release lab r01u01`")


def test_a_spare_that_serves_is_exchanged_in_the_place_where_it_serves():
    text = """schema: 1
slots:
  r01u01: {state: quarantined, reason: dead, identity: {system_serial: S1}}
  r02u17: {state: in_service, replaces: r01u01, identity: {system_serial: S9}}
"""
    binding = assigning.bind(
        lab(machines=text), [assigning.Delivered("r02u17", "", {"system_serial": "S10"})], replace=True
    )
    record = binding.machines.slots["r02u17"]
    assert (record.state, record.replaces) == (SlotState.NEW, "r01u01")


def test_a_host_key_is_a_pin_that_a_person_may_change_and_no_other_machine():
    known = lab(machines=PINNED.replace("STATE", "in_service"))
    binding = by_hand(known, ssh_host_key="ssh-ed25519 BBBB")
    record = binding.machines.slots["r01u01"]
    assert (record.state, record.identity.system_serial) == (SlotState.IN_SERVICE, "S1")
    assert record.identity.ssh_host_key == "ssh-ed25519 BBBB"
    assert binding.dependants == {}


def test_a_slot_s_row_of_a_sheet_completes_what_was_read_on_the_machine():
    rows = assigning.read_sheet("machines.csv", "\n".join([HEAD, *ROWS, ""]))
    found = assigning.completed(assigning.Delivered("r01u01", "", {"system_serial": "S1"}), rows)
    assert (found.identity["board_serial"], found.kind) == ("B1", "lab-gpu8")
    for slot, serial in (("r01u01", "S9"), ("r01u09", "S1")):
        with pytest.raises(Refusal, match=r"is another machine's there|no sheet has a row"):
            assigning.completed(assigning.Delivered(slot, "", {"system_serial": serial}), rows)
