"""The daemon's socket, the lab's names, and what refuses a start."""

import asyncio
import stat
import threading

import lab_sample
import pytest

from supernode.errors import CouldNotRun
from supernode.lab import artefacts, capacity, control, doctor
from supernode.lab.doctor import Trait
from supernode.lab.places import Places
from supernode.units import MbitPerS


async def handler(request):
    if request["do"] == "fail":
        raise CouldNotRun("gpu-001", "is not running", "power it on first")
    if request["do"] == "bug":
        raise KeyError("slot")
    return {"echo": request["do"]}


@pytest.fixture
def socket_path(tmp_path):
    path, ready = tmp_path / "control.sock", threading.Event()
    loop = asyncio.new_event_loop()

    async def serve():
        server = await control.serve(path, handler)
        ready.set()
        async with server:
            await server.serve_forever()

    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait([task])))
    thread.start()
    ready.wait(5)
    yield path
    loop.call_soon_threadsafe(task.cancel)
    thread.join(5)
    loop.close()


def test_an_answer_comes_back(socket_path):
    assert control.ask(socket_path, {"do": "status"}) == {"echo": "status"}
    assert stat.S_IMODE(socket_path.stat().st_mode) == 0o600


def test_a_refusal_keeps_its_place_and_hint(socket_path):
    with pytest.raises(CouldNotRun) as refused:
        control.ask(socket_path, {"do": "fail"})
    assert (refused.value.where, refused.value.hint) == ("gpu-001", "power it on first")


def test_a_defect_is_told_not_hidden(socket_path):
    with pytest.raises(CouldNotRun, match="KeyError"):
        control.ask(socket_path, {"do": "bug"})
    assert control.ask(socket_path, {"do": "still"}) == {"echo": "still"}


def test_no_socket_means_no_lab(tmp_path):
    with pytest.raises(CouldNotRun, match="no lab runs"):
        control.ask(tmp_path / "absent" / "control.sock", {"do": "status"})


def test_names_of_two_labs_differ_everywhere_and_fit():
    one, other = Places.of("lab"), Places.of("lab-with-a-very-long-name-indeed")
    assert one.wire != other.wire
    assert one.cgroup != other.cgroup
    assert len(other.wire) <= 15


@pytest.mark.parametrize("name", ["", "../etc", "Lab", "a b", "x" * 41])
def test_a_name_that_is_no_folder_is_refused(name):
    with pytest.raises(CouldNotRun, match="no name for a lab"):
        Places.of(name)


def test_more_than_the_machine_carries_is_refused_with_what_fits(tmp_path):
    plan = artefacts.read(lab_sample.write(tmp_path, rate=100))
    capacity.check(plan, MbitPerS(1000))  # 4 x 100 of 1000 is just 40 %
    with pytest.raises(CouldNotRun) as refused:
        capacity.check(plan, MbitPerS(990))
    assert "4 rails at once need 400 Mbit/s" in str(refused.value)
    assert "99 Mbit/s or less" in refused.value.hint


def test_capacity_is_measured_once_a_boot(tmp_path, monkeypatch):
    runs = iter((100.0, 300.0, 200.0))
    monkeypatch.setattr(capacity, "measure", lambda: MbitPerS(next(runs)))
    assert capacity.measured(tmp_path / "capacity.json") == 300
    assert capacity.measured(tmp_path / "capacity.json") == 300  # a fourth measurement would end the iterator


def test_a_machine_that_was_busy_is_measured_again_before_it_refuses(tmp_path, monkeypatch):
    plan = artefacts.read(lab_sample.write(tmp_path / "artefacts", rate=100))
    runs = iter((100.0, 100.0, 100.0, 1000.0, 100.0, 100.0))
    monkeypatch.setattr(capacity, "measure", lambda: MbitPerS(next(runs)))
    capacity.check_machine(plan, tmp_path / "capacity.json")


def test_only_what_has_no_stand_in_stops_a_start():
    fine = (Trait("kernel", "veth", True, True, "cables"), Trait("kernel", "vrf", False, False, "vrf", "none"))
    doctor.essential(fine)
    with pytest.raises(CouldNotRun, match=r"lacks tbf \(rates\)"):
        doctor.essential((*fine, Trait("kernel", "tbf", True, False, "rates")))


def test_not_seen_is_unknown_not_missing():
    assert Trait("kernel", "veth", True, None, "cables").verdict == "unknown"
