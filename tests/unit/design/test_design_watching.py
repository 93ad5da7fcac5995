"""Who is scraped and who is told: the rendered files of the roles node_exporter, watch and cooling_agent."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from supernode import carried, design, packaged, spec
from supernode.design import expectations, roles, watching
from supernode.design.expectations import Expectations

LAB = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
SECTIONS = """
cooling:
  agent: gpu
  units:
    - {name: cdu1, kind: lab-cdu-modbus, address: 198.18.2.201, racks: [r01]}
    - name: cdu2
      kind: lab-cdu-redfish
      address: 198.18.2.202
      racks: [r02]
      username: reader
      password: file:secrets/cdu2
      ca: ca.pem
watch: {pool: gpu, webhook: "https://alerts.example.net/hook", token: "file:secrets/hook"}
"""


def built(more=SECTIONS, machines=""):
    texts = {"environment": LAB + more} | ({"machines": machines} if machines else {})
    return design.build(spec.read(texts))


def placed(found, host="gpu-001"):
    return {file.path: file.content for file in found.files(host)}


def test_without_the_sections_nothing_is_installed_and_nobody_is_asked():
    found = built("")
    assert not {"node_exporter", "watch", "cooling_agent"} & {role.name for role in roles.of(found, found.hosts[0])}
    assert not [name for name in roles.packages(found) if "prometheus" in name or carried.AGENT in name]
    assert (expectations.build(found).cooling, expectations.build(found).watch) == (None, None)


def test_every_host_is_a_target_once_and_a_quarantined_one_is_none():
    found = built()
    rows = json.loads(placed(found)["/etc/prometheus/targets/node.json"])
    assert [row["labels"]["host"] for row in rows] == [host.name for host in found.hosts]
    assert rows[1] == {
        "targets": [f"{found.hosts[1].management.ip}:9100"],
        "labels": {"host": found.hosts[1].name, "rack": found.hosts[1].rack, "pool": "gpu"},
    }
    slot = found.hosts[1].slot
    less = built(machines=MACHINES.format(slot=slot))
    hosts = {row.host for row in watching.targets(less) if row.job == "node"}
    assert hosts == {host.name for host in found.hosts} - {found.hosts[1].name}


MACHINES = "schema: 1\nslots:\n  {slot}: {{state: quarantined, reason: dead}}\n"


def test_the_service_host_alone_watches_and_everything_listens_on_its_management_address():
    found = built()
    assert "watch" not in {role.name for role in roles.of(found, found.hosts[1])}
    mine, files = found.hosts[0].management.ip, placed(found)
    for path in ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter"):
        assert f"--web.listen-address={mine}:" in files[f"/etc/default/{path}"]
    assert json.loads(files["/etc/supernode/cooling.json"])["listen"] == {"address": str(mine), "port": 9861}


def test_rules_count_what_the_design_has_and_every_alert_is_expected_by_name():
    found = built()
    files = placed(found)
    rules = yaml.safe_load(files["/etc/prometheus/supernode-rules.yml"])
    flat = [rule for group in rules["groups"] for rule in group["rules"]]
    assert {rule["alert"] for rule in flat} == set(expectations.build(found).watch.alerts)
    counts = [rule["expr"] for rule in flat if rule["alert"] == "TargetsMissing"]
    assert f'(count(up{{job="node"}}) or vector(0)) != {len(list(found.hosts))}' in counts
    assert {"CoolantLeak", "LeakDetectorBlind", "CoolingUnitFrozen"} <= {rule["alert"] for rule in flat}
    plain = yaml.safe_load(placed(built(SECTIONS[SECTIONS.index("watch:") :]))["/etc/prometheus/supernode-rules.yml"])
    assert [group["name"] for group in plain["groups"]] == ["targets"]


def test_every_state_of_a_detector_but_dry_raises_an_alert():
    from supernode.telemetry.metrics import DETECTOR_STATES

    text = placed(built())["/etc/prometheus/supernode-rules.yml"]
    said = {state for found in re.findall(r'detector_state{state=~"([^"]+)"', text) for state in found.split("|")}
    assert said == set(DETECTOR_STATES) - {"ok"}


def rules(found):
    text = placed(found)["/etc/prometheus/supernode-rules.yml"]
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def test_a_unit_without_flow_or_without_a_detector_raises_an_alert():
    flow = "supernode_cooling_flow_cubic_meters_per_second"
    found = {rule["alert"]: rule["expr"] for rule in rules(built())}
    low = [rule["expr"] for rule in rules(built()) if rule["alert"] == "CoolantFlowLow"]
    assert low == [f'{flow}{{cdu="{name}",loop="secondary"}} < 0.0005' for name in ("cdu1", "cdu2")]
    fresh = 'supernode_cooling_unit_state{state="fresh"} == 1 unless on (cdu) '
    assert found["CoolantFlowMissing"] == f'{fresh}{flow}{{loop="secondary"}}'
    assert found["LeakDetectorsMissing"] == f"{fresh}supernode_cooling_leak_detector_state"


def test_every_metric_that_a_rule_names_is_one_that_the_agent_serves():
    from supernode.clients.cdu import FLOW, Reading
    from supernode.telemetry import metrics, settings
    from supernode.telemetry.seen import Seen

    found = placed(built())
    units = settings.parse(json.loads(found["/etc/supernode/cooling.json"])).units
    seen = {unit.name: Seen(1, 0) for unit in units}
    for mark in "12":
        seen["cdu1"].answered(Reading("cdu1", {FLOW: 0.001}, (), {}, (), mark), 0, 0)
    served = {family.name for family in metrics.families(units, seen, 0)}
    named = set(re.findall(r"supernode_cooling_\w+", found["/etc/prometheus/supernode-rules.yml"]))
    assert {name.removesuffix("_total") for name in named} <= served


def test_secrets_are_placed_and_stand_in_no_file():
    found = built()
    host = found.hosts[0]
    assert {(row.name, row.source, row.unit) for row in roles.placed(found, host)} == {
        ("webhook", "file:secrets/hook", "prometheus-alertmanager.service"),
        ("cdu2.password", "file:secrets/cdu2", "supernode-cooling.service"),
        ("cdu2.ca", "ca.pem", "supernode-cooling.service"),
    }
    assert roles.placed(found, found.hosts[1]) == ()
    text = "".join(placed(found).values())
    assert "file:secrets" not in text
    alertmanager = yaml.safe_load(placed(found)["/etc/prometheus/alertmanager.yml"])
    hook = alertmanager["receivers"][0]["webhook_configs"][0]
    assert hook["http_config"]["authorization"]["credentials_file"].endswith("/webhook")
    drop_in = placed(found)["/etc/systemd/system/supernode-cooling.service.d/site.conf"]
    for line in (
        "IPAddressDeny=any",
        "IPAddressAllow=198.18.2.201",
        "LoadCredential=cdu2.password:/etc/supernode/credentials/cdu2.password",
    ):
        assert line in drop_in.splitlines()


def test_no_units_name_makes_its_password_somebody_elses():
    named = SECTIONS.replace("name: cdu1", "name: cdu2-ca").replace("name: cdu2\n", "name: webhook\n")
    found = built(named)
    rows = roles.placed(found, found.hosts[0])
    assert len({row.path for row in rows}) == len(rows) == 3


def test_units_are_read_no_more_often_than_they_measure():
    units = json.loads(placed(built())["/etc/supernode/cooling.json"])["units"]
    assert [(row["unit"], row["interval_s"], row["racks"]) for row in units] == [
        ("cdu1", 2.0, ["r01"]),
        ("cdu2", 5.0, ["r02"]),
    ]
    assert units[1]["password"] == "file:/run/credentials/supernode-cooling.service/cdu2.password"


def test_expectations_survive_json():
    rows = expectations.build(built())
    assert Expectations.from_json(json.loads(json.dumps(rows.to_json()))) == rows


with_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="the role itself runs promtool before it restarts anything"
)


@with_promtool
def test_promtool_takes_what_is_rendered(tmp_path):
    for path, text in placed(built()).items():
        if path.startswith("/etc/prometheus/"):
            place = tmp_path / path.removeprefix("/etc/prometheus/")
            place.parent.mkdir(exist_ok=True)
            place.write_text(text.replace("/etc/prometheus", str(tmp_path)))
    done = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def series(name, value, **labels):
    said = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return {"series": f"supernode_cooling_{name}{{{said}}}", "values": f"{value}x12"}


def raised(name, summary, **labels):
    labels |= {"cdu": summary[:4], "severity": "critical"}
    alert = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
    return {"alertname": name, "eval_time": "40s", "exp_alerts": [alert]}


@with_promtool
def test_prometheus_itself_raises_them_for_the_right_unit(tmp_path):
    """cdu1 runs too slowly, cdu2 shows neither flow nor detector; a silent one shows nothing and is not called dry."""
    (tmp_path / "rules.yml").write_text(placed(built())["/etc/prometheus/supernode-rules.yml"])
    flow = "flow_cubic_meters_per_second"
    shown = [
        *(series("unit_state", 1, cdu=name, state="fresh") for name in ("cdu1", "cdu2")),
        *(series("unit_state", 0, cdu=name, state="silent") for name in ("cdu1", "cdu2")),
        series("unit_state", 0, cdu="cdu3", state="fresh"),
        series(flow, 0.0004, cdu="cdu1", loop="secondary"),
        series(flow, 0.002, cdu="cdu1", loop="primary"),
        series(flow, 0.002, cdu="cdu2", loop="primary"),
        series("leak_detector_state", 1, cdu="cdu1", detector="tray", state="ok"),
    ]
    alerts = [
        raised("CoolantFlowLow", "cdu1: 0.0004 m3/s on the racks' side, at least 0.0005 is wanted", loop="secondary"),
        raised("CoolantFlowMissing", "cdu2 shows no flow on the racks' side", state="fresh"),
        raised("LeakDetectorsMissing", "cdu2 shows no leak detector", state="fresh"),
        {"alertname": "CoolantLeak", "eval_time": "40s", "exp_alerts": []},
    ]
    test = {"interval": "5s", "input_series": shown, "alert_rule_test": alerts}
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "5s", "tests": [test]})
    )
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
