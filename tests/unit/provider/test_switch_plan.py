"""Which commands bring a switch's files into force, and what counts as a difference."""

import pytest

from supernode.provider import check
from supernode.provider.schema import SWITCH_DEFAULTS
from supernode.provider.switch_plan import RUNNING, commands, differences, digest

CONF, DAEMONS, LLDP = "/etc/frr/frr.conf", "/etc/frr/daemons", "/etc/lldpd.d/supernode.conf"


@pytest.mark.parametrize(
    ("changed", "about"),
    [
        ([], []),
        ([CONF], ["reload frr"]),
        ([DAEMONS], ["restart frr"]),
        ([CONF, DAEMONS], ["restart frr"]),
        ([LLDP], ["restart lldpd"]),
        (["/etc/systemd/network/50-swp.network"], ["reload networkd"]),
        (["/etc/systemd/networkd.conf.d/60-supernode.conf"], ["restart networkd"]),
        ([LLDP, CONF, "/etc/sysctl.d/60-supernode.conf"], ["apply sysctl", "reload frr", "restart lldpd"]),
        (["/etc/motd"], []),
    ],
)
def test_commands(changed, about):
    assert [c.about for c in commands(changed)] == about


def old(**changes):
    files = [{"path": CONF, "content": "a", "mode": "0640"}, {"path": LLDP, "content": "b", "mode": "0644"}]
    applied = {CONF: digest("a"), LLDP: digest("b"), RUNNING: "r"}
    return {"slot": "r03u40", "name": "leaf", "status": "ready", "files": files, "applied": applied, **changes}


def new(*files, **changes):
    listed = [{"path": p, "content": c, "mode": m} for p, c, m in files]
    return {"slot": "r03u40", "name": "leaf", "files": listed, **changes}


SAME = ((CONF, "a", "640"), (LLDP, "b", "0644"))


def test_no_difference():
    assert differences(old(), new(*SAME)) == {}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({}, new((CONF, "A", "0640"), SAME[1]), {"files[0].content": "update"}),
        ({}, new((CONF, "a", "0600"), SAME[1]), {"files[0].mode": "update"}),
        ({}, new(*SAME, ("/etc/x", "x", "0644")), {"files[2]": "add"}),
        ({}, new(SAME[0]), {"files[1]": "delete"}),
        ({"applied": {CONF: "drifted", LLDP: digest("b")}}, new(*SAME), {"files[0].content": "update"}),
        ({"applied": {LLDP: digest("b")}}, new(*SAME), {"files[0].content": "update"}),
        ({"drift": ["+ neighbor x"]}, new(*SAME), {"files": "update"}),
        ({"status": "failed"}, new(*SAME), {"files": "update"}),
        ({"slot": "r03u41"}, new(*SAME), {"slot": "update-replace"}),
        ({"sshUser": "a"}, new(*SAME, sshUser="b"), {"sshUser": "update"}),
    ],
)
def test_differences(before, after, found):
    assert differences(old(**before), after) == found


def test_every_wrong_input_of_a_switch_is_named_at_once():
    inputs = {
        "name": "leaf",
        "slot": "rack 3",
        "address": "leaf.example",
        "hostKey": "",
        "sshKey": "-----BEGIN OPENSSH PRIVATE KEY-----",
        "files": [
            {"path": "etc/x", "content": "", "mode": "0644"},
            {"path": "/etc/../x", "content": "x", "mode": "rw"},
            {"path": CONF, "content": "x", "mode": "0640"},
            {"path": CONF, "content": "x", "mode": "0640"},
        ],
    }
    found = dict(check.switch_config(check.with_defaults(inputs, SWITCH_DEFAULTS)))
    assert set(found) == {
        "hostKey", "slot", "address", "sshKey", "files[0].path", "files[1].path", "files[1].mode", "files[3].path",
    }  # fmt: skip
    assert "PRIVATE" not in str(found)
    assert "supernode assign" in found["hostKey"]
