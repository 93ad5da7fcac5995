"""What services of a host say on their own pages: the cooling agent's metrics, and whom Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from supernode.verify.facts.raw import NotSeenError, Raw

if TYPE_CHECKING:
    from supernode.design.observers import CoolingExpectation, WatchExpectation

# The facts script gives a command 20 s. An agent that has just started needs two readings, Prometheus one scrape.
PATIENCE_S = 15
_STARTING = r'unit_state\{[^}]*state="starting"[^}]*\} 1'
# Down counts as pending, too: a service that has just been started was down when it was scraped last.
# One that has itself just been started reads the files of its targets some seconds later.
_UNSETTLED = r'"health":"(unknown|down)"|"active(Targets|Alertmanagers)":\[\]'


@dataclass(frozen=True)
class Sample:
    """One series and its value."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Metrics:
    """A page of metrics, and the host's clock when it was read."""

    at: float
    samples: tuple[Sample, ...]

    def of(self, name: str, **labels: str) -> tuple[Sample, ...]:
        """Return the series of a name that carry these labels."""
        return tuple(s for s in self.samples if s.name == name and labels.items() <= dict(s.labels).items())


@dataclass(frozen=True)
class Scraping:
    """One target, as Prometheus sees it; health is up, down or unknown."""

    job: str
    address: str
    host: str
    health: str
    why: str


@dataclass(frozen=True)
class Watched:
    """What Prometheus says of itself.

    Attributes:
        alerts: its alerting rules, each with why it cannot be evaluated, or "".
        alertmanagers: addresses that it sends alerts to.
        firing: alerts that are raised, as "name: summary".
    """

    targets: tuple[Scraping, ...]
    alerts: Mapping[str, str]
    alertmanagers: tuple[str, ...]
    firing: tuple[str, ...] = ()


def _command(pending: str, *urls: str) -> tuple[str, ...]:
    text = resources.files("supernode.verify.facts").joinpath("fetch_on_host.py").read_text(encoding="utf-8")
    return ("python3", "-c", text, str(PATIENCE_S), pending, *urls)


def cooling_command(wanted: CoolingExpectation) -> tuple[str, ...]:
    """Return what the agent's host is asked."""
    return _command(_STARTING, wanted.url)


def watch_command(wanted: WatchExpectation) -> tuple[str, ...]:
    """Return what the host of Prometheus is asked."""
    return _command(_UNSETTLED, *(wanted.url + path for path in _PATHS))


_PATHS = ("/api/v1/targets?state=active", "/api/v1/rules?type=alert", "/api/v1/alertmanagers")


def metrics(raw: Raw) -> Metrics:
    """Read the agent's page.

    Raises:
        NotSeenError: it did not come, or is none.
    """
    document = raw.json()
    page = _page(document, "/metrics")
    try:
        families = list(text_string_to_metric_families(page))
    except ValueError as error:
        raise NotSeenError(f"no page of metrics: {error}") from error
    samples = tuple(Sample(s.name, dict(s.labels), float(s.value)) for family in families for s in family.samples)
    return Metrics(float(document["at"]), samples)


def watched(raw: Raw) -> Watched:
    """Read Prometheus's answers.

    Raises:
        NotSeenError: one did not come, or tells of an error.
    """
    document = raw.json()
    targets, rules, managers = (_data(_page(document, path)) for path in _PATHS)
    alerts, firing = dict[str, str](), list[str]()
    for group in rules["groups"]:
        for rule in group["rules"]:
            if rule["health"] == "err" or rule["name"] not in alerts:
                alerts[rule["name"]] = rule.get("lastError", "") if rule["health"] == "err" else ""
            firing += [_firing(rule["name"], each) for each in rule["alerts"] if each["state"] == "firing"]
    return Watched(
        tuple(_target(row) for row in targets["activeTargets"]),
        alerts,
        tuple(row["url"].split("/")[2] for row in managers["activeAlertmanagers"]),
        tuple(firing),
    )


def _target(row: Mapping[str, Any]) -> Scraping:
    labels = row["labels"]
    return Scraping(labels["job"], labels["instance"], labels.get("host", ""), row["health"], row["lastError"])


def _firing(name: str, alert: Mapping[str, Any]) -> str:
    return f"{name}: {alert['annotations'].get('summary', '')}"


def _page(document: Mapping[str, Any], path: str) -> str:
    for url, text in document["pages"].items():
        if url.endswith(path):
            return str(text)
    said = [f"{url}: {why}" for url, why in document["errors"].items() if url.endswith(path)]
    raise NotSeenError(said[0] if said else f"{path} was not fetched")


def _data(text: str) -> Any:
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise NotSeenError(f"Prometheus answers no JSON: {error}") from error
    if answer.get("status") != "success":
        raise NotSeenError(f"Prometheus: {answer.get('error', 'no success')}")
    return answer["data"]
