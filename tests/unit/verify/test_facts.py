"""Every parser against what the real tools print, well and faulty."""

import json
from pathlib import Path

import pytest

from supernode.verify.checks import CHECKS, proof
from supernode.verify.facts import clock, fib, identity, lldp, ping, ports
from supernode.verify.facts.raw import NotSeenError, Raw, answers

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str, rc: int = 0) -> Raw:
    out = (SAMPLES / f"{name}.txt").read_text() if (SAMPLES / f"{name}.txt").exists() else ""
    err = (SAMPLES / f"{name}.err").read_text() if (SAMPLES / f"{name}.err").exists() else ""
    return Raw(rc, out, err)


NO_HARDWARE = Raw(0, "{}")


@pytest.mark.parametrize("form", ["json", "json0"])
def test_lldp_neighbours_in_both_json_forms(form):
    found = lldp.parse(sample(f"lldpd-1.0.16-{form}-good"))
    assert {port: rows[0].text for port, rows in found.items()} == {
        "rail0": "su01-leaf0:swp1",
        "rail1": "su01-leaf0:swp2",
    }


@pytest.mark.parametrize("form", ["json", "json0"])
def test_one_neighbour_alone_is_read_though_the_plain_form_unwraps_it(form):
    found = lldp.parse(sample(f"lldpd-1.0.16-{form}-one"))
    assert {port: rows[0].device for port, rows in found.items()} == {"rail0": "su01-leaf0"}


def test_after_an_exchange_the_freshest_neighbour_counts():
    from supernode.verify.cabling import freshest

    found = lldp.parse(sample("lldpd-1.0.16-json0-swapped"))
    assert all(len(rows) == 2 for rows in found.values()), "the old neighbours have not aged out"
    assert {port: freshest(rows).text for port, rows in found.items()} == {
        "rail0": "su01-leaf0:swp2",
        "rail1": "su01-leaf0:swp1",
    }


def test_a_daemon_that_does_not_answer_is_not_seen():
    with pytest.raises(NotSeenError, match="unable to connect to socket"):
        lldp.parse(sample("lldpd-1.0.16-no-daemon", rc=1))


def test_ports_that_are_well():
    found = ports.parse(sample("iproute2-6.1.0-addr-good"), NO_HARDWARE)
    rail = found["rail0"]
    assert (rail.mtu, rail.up, rail.carrier, rail.addresses[0]) == (9000, True, True, "198.19.64.1/31")
    assert rail.link_local.startswith("fe80::")
    assert not rail.hardware


def test_a_port_without_carrier():
    found = ports.parse(sample("iproute2-6.1.0-addr-no-carrier"), NO_HARDWARE)
    assert (found["rail1"].up, found["rail1"].carrier) == (True, False)
    assert found["rail0"].carrier is True
    assert found["rail0"].errors == {"tx dropped": 8}


@pytest.mark.parametrize(
    ("name", "speed"), [("sysfs-composed-speed-400g", 400000), ("sysfs-composed-speed-100g", 100000)]
)
def test_the_speed_of_hardware(name, speed):
    hardware = Raw(0, json.dumps({"rail0": sample(name).out.strip()}))
    found = ports.parse(sample("iproute2-6.1.0-addr-good"), hardware)
    assert (found["rail0"].hardware, found["rail0"].speed) == (True, speed)
    assert not found["rail1"].hardware


@pytest.mark.parametrize("text", ["-1", "", "unknown"])
def test_hardware_that_does_not_know_its_speed_has_none(text):
    found = ports.parse(sample("iproute2-6.1.0-addr-good"), Raw(0, json.dumps({"rail0": text})))
    assert found["rail0"].speed is None


def test_the_kernels_table_in_every_shape():
    routes = fib.parse(sample("iproute2-6.1.0-route-good"))
    widths = {str(route.prefix): route.width for route in routes}
    assert widths["198.19.80.0/31"] == 2, "two next hops in the row"
    assert widths["198.19.80.2/31"] == 1
    assert widths["198.19.80.4/31"] == 2, "a group of nexthop objects"
    assert "198.19.0.0/16" not in widths, "an unreachable route is no way"


def test_a_dead_way_does_not_count():
    routes = fib.parse(sample("iproute2-6.1.0-route-linkdown"))
    route = fib.lookup(routes, "198.19.80.0/31")
    assert (route.ports, route.dead) == (("swp1",), ("swp2",))
    assert fib.lookup(routes, "198.19.80.4/31").width == 1, "the kernel takes a dead member out of a group itself"


def test_lookup_takes_the_longest_prefix_that_covers_all():
    routes = fib.parse(
        Raw(0, '[{"dst":"default","dev":"eth0"},{"dst":"10.0.0.0/8","dev":"a"},{"dst":"10.1.0.0/25","dev":"b"}]')
    )
    assert fib.lookup(routes, "10.1.0.0/24").ports == ("a",), "half of it does not cover it"
    assert fib.lookup(routes, "10.1.0.4/32").ports == ("b",)
    assert fib.lookup(routes, "192.0.2.1/32").ports == ("eth0",)


@pytest.mark.parametrize(
    ("name", "passed", "too_long"),
    [
        ("full", True, False),
        ("over", False, True),
        ("small", True, False),
        ("unreach", False, False),
        ("blackhole", False, False),
    ],
)
def test_pings(name, passed, too_long):
    found = ping.parse(sample(f"iputils-20221126-{name}", rc=0 if passed else 1))
    assert (found.sent, found.passed, found.too_long) == (2, passed, too_long)


def test_ping_sizes_are_of_the_whole_packet():
    assert ping.sizes(9000) == {"small": 56, "full": 8972, "over": 8973}


def test_a_good_clock():
    found = clock.parse(sample("chrony-4.3-good"))
    assert found.running
    assert found.synchronised
    assert (found.source, found.stratum) == ("198.19.64.0", 6)
    assert abs(found.offset) < 0.1


def test_a_clock_that_is_off_by_a_quarter_second():
    assert clock.parse(sample("chrony-4.3-offset")).offset == pytest.approx(250, abs=0.01)


def test_a_clock_without_a_source_and_one_without_a_daemon():
    assert not clock.parse(sample("chrony-4.3-unsynchronised")).synchronised
    found = clock.parse(sample("chrony-4.3-no-daemon", rc=1))
    assert (found.running, found.why) == (False, "506 Cannot talk to daemon")


def test_a_host_without_chrony_is_not_seen_rather_than_wrong():
    with pytest.raises(NotSeenError):
        clock.parse(Raw(127, "", "No such file or directory: 'chronyc'"))


def who(sample_name: str, image: str) -> identity.Identity:
    serial, uuid = (SAMPLES / f"{sample_name}.txt").read_text().splitlines()
    raw = {"hostname": Raw(0, "gpu-001.lab.internal\n"), "serial": Raw(0, serial + "\n"), "uuid": Raw(0, uuid + "\n")}
    return identity.parse({**raw, "image": sample(image)})


def test_identity():
    found = who("dmi-composed-good", "image-composed-good")
    assert (found.hostname, found.serial) == ("gpu-001", "SN0123")
    assert found.uuid == "4c4c4544-0042-3510-8052-b4c04f4d3732"
    assert len(found.image) == 64


def test_a_vendors_placeholder_is_no_identity():
    found = who("dmi-composed-placeholder", "image-composed-absent")
    assert (found.serial, found.uuid, found.image) == ("", "", "")


def test_what_a_login_shell_prints_before_the_answer_is_passed_over():
    assert answers('Welcome!\n{"hostname": {"rc": 0, "out": "x", "err": ""}}\n')["hostname"].out == "x"
    with pytest.raises(NotSeenError):
        answers("bash: python3: command not found\n")


def origins() -> dict[str, str]:
    rows = [line for line in (SAMPLES / "origins.txt").read_text().splitlines() if line and not line.startswith("#")]
    return {name: rest.split(",")[0].strip() for name, _, rest in (row.partition(":") for row in rows)}


def test_every_sample_says_its_origin_and_the_table_of_checks_says_the_same():
    told = origins()
    assert set(told) == {path.name for path in SAMPLES.iterdir()} - {"origins.txt"}
    for check in CHECKS.values():
        for name, origin in (*check.good, *check.bad):
            assert told[name] == origin, f"{check.name}: {name}"


def test_every_check_has_a_good_and_a_bad_sample_or_a_live_test():
    root = Path(__file__).parents[3]
    for check in CHECKS.values():
        assert (check.good and check.bad) or check.live, check.name
        assert not check.live or (root / check.live).is_file(), check.live


def test_the_gates_and_the_table_name_the_same_checks():
    from supernode.verify.gates import GATES

    assert {name.split(" ")[0] for name in CHECKS} == set(GATES)


def test_modelled_checks_are_counted_as_such():
    proven, modelled = proof()
    assert proven + modelled == len(CHECKS)
    assert not CHECKS["identity"].proven
    assert CHECKS["cabling"].proven
