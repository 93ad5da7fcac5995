"""Who is scraped, by whom, and what then raises an alert: the files of the roles `node_exporter` and `watch`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supernode.design import render
from supernode.design.rows import CREDENTIALS, Host, Placed, RenderedFile

if TYPE_CHECKING:
    from supernode.design.model import Design

NODE_PORT, PROMETHEUS_PORT, ALERTMANAGER_PORT, COOLING_PORT = 9100, 9090, 9093, 9861
INTERVAL_S = 10
COOLING_INTERVAL_S = 5  # a leak is seen, judged and sent within twice this
RETENTION = "15d"
RULES = "/etc/prometheus/supernode-rules.yml"
TOKEN = "webhook"  # noqa: S105 - its name, not what it is
# Series of one target; above it a scrape is refused, so that one confused exporter cannot fill the disk of all.
LIMITS = {"prometheus": 5000, "alertmanager": 2000, "node": 10000, "cooling": 20000}


@dataclass(frozen=True)
class Target:
    """One address that Prometheus scrapes, and the labels that its series carry."""

    job: str
    address: str
    host: str
    rack: str
    pool: str


@dataclass(frozen=True)
class Job:
    """One job of Prometheus."""

    name: str
    interval: int
    limit: int
    count: int


def service_host(design: Design) -> Host | None:
    """Return the host on which Prometheus and Alertmanager run; None without a section `watch`."""
    watch = design.environment.watch
    return design.service_host(watch.pool) if watch is not None else None


def targets(design: Design) -> tuple[Target, ...]:
    """Return everything that Prometheus scrapes, job by job; a quarantined host is nobody's."""
    return tuple(_targets(design))


def _targets(design: Design) -> Iterator[Target]:
    mine = service_host(design)
    if mine is None:
        return
    yield _target("prometheus", mine, PROMETHEUS_PORT)
    yield _target("alertmanager", mine, ALERTMANAGER_PORT)
    yield from (_target("node", host, NODE_PORT) for host in design.hosts if host.state != "quarantined")
    agent = cooling_host(design)
    if agent is not None:
        yield _target("cooling", agent, COOLING_PORT)


def cooling_host(design: Design) -> Host | None:
    """Return the host on which the cooling agent runs; None without one."""
    cooling = design.environment.cooling
    return design.service_host(cooling.agent) if cooling is not None and cooling.agent else None


def _target(job: str, host: Host, port: int) -> Target:
    return Target(job, f"{host.management.ip}:{port}", host.name, host.rack, host.pool)


def node_exporter(_design: Design, host: Host) -> list[RenderedFile]:
    """Return what has the node exporter listen on the management address alone."""
    arguments = f"--web.listen-address={host.management.ip}:{NODE_PORT}"
    return list(_daemon("node_exporter", "prometheus-node-exporter", arguments))


def watch(design: Design, host: Host) -> list[RenderedFile]:
    """Return the configuration of Prometheus and Alertmanager, and whom they watch."""
    section = design.environment.watch
    if section is None:
        return []
    jobs = _jobs(design)
    cooling = any(job.name == "cooling" for job in jobs)
    names = {"name": design.name, "site": design.environment.site.name}
    own = f"{host.management.ip}:{ALERTMANAGER_PORT}"
    texts = {
        "prometheus.yml": render.text(
            "watch/prometheus.yml.j2", **names, interval=INTERVAL_S, alertmanager=own, jobs=jobs
        ),
        "supernode-rules.yml": render.text(
            "watch/rules.yml.j2",
            interval=INTERVAL_S,
            fast=COOLING_INTERVAL_S,
            jobs=jobs,
            cooling=cooling,
            units=design.cooling,
        ),
        "alertmanager.yml": render.text(
            "watch/alertmanager.yml.j2", webhook=section.webhook, token=section.token is not None
        ),
        **{f"targets/{job.name}.json": _sheet(design, job.name) for job in jobs},
    }
    files = [RenderedFile(f"/etc/prometheus/{name}", text, role="watch") for name, text in texts.items()]
    prometheus = (
        f"--web.listen-address={host.management.ip}:{PROMETHEUS_PORT} --storage.tsdb.retention.time={RETENTION}"
    )
    files += _daemon("watch", "prometheus", prometheus)
    # One Alertmanager has no cluster: without an address it opens no port for one.
    alertmanager = f"--web.listen-address={own} --cluster.listen-address="
    credential = f"{TOKEN}:{CREDENTIALS}/{TOKEN}" if section.token else ""
    files += _daemon("watch", "prometheus-alertmanager", alertmanager, credential)
    return files


def placed(design: Design, _host: Host) -> Sequence[Placed]:
    """Return the webhook's token, where it wants one."""
    section = design.environment.watch
    if section is None or section.token is None:
        return ()
    return (Placed(TOKEN, section.token, "prometheus-alertmanager.service"),)


def alerts(text: str) -> tuple[str, ...]:
    """Return the names of the alerts that a rendered file of rules raises, each once."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line.split(": ", 1)[1] for line in lines if line.startswith("- alert: ")))


def _daemon(role: str, unit: str, arguments: str, credential: str = "") -> Iterator[RenderedFile]:
    yield RenderedFile(f"/etc/default/{unit}", f'# Rendered from the design.\nARGS="{arguments}"\n', role=role)
    drop_in = render.text("watch/listening.conf.j2", credential=credential)
    yield RenderedFile(f"/etc/systemd/system/{unit}.service.d/supernode.conf", drop_in, role=role)


def _jobs(design: Design) -> list[Job]:
    names = [target.job for target in targets(design)]
    fast = {"cooling": COOLING_INTERVAL_S}
    return [Job(name, fast.get(name, INTERVAL_S), LIMITS[name], names.count(name)) for name in dict.fromkeys(names)]


def _sheet(design: Design, job: str) -> str:
    rows = [{"targets": [row.address], "labels": _labels(row)} for row in targets(design) if row.job == job]
    return json.dumps(rows, indent=1) + "\n"


def _labels(row: Target) -> dict[str, str]:
    """Return what every series of a target carries; the agent's are the units', which stand in other racks than it."""
    return {"host": row.host} | ({} if row.job == "cooling" else {"rack": row.rack, "pool": row.pool})
