"""The Run as a JSON document, both ways: what runs/<env>/<id>/run.json holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from supernode.records import Event, Finding, Run, StageRecord, State, Verdict
from supernode.units import Seconds

SCHEMA = 1


def to_json(run: Run) -> dict[str, Any]:
    """Return the document that `from_json` reads back: plain lists, strings and numbers."""
    document = dataclasses.asdict(run)
    document["events"] = [{**row, "state": row["state"].value} for row in document["events"]]
    document["findings"] = [finding_to_json(row) for row in run.findings]
    document["stages"] = list(document["stages"])
    return {"schema": SCHEMA, **document}


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """Return one finding as a document."""
    row = dataclasses.asdict(finding)
    return {**row, "verdict": finding.verdict.value, "cables": list(finding.cables), "evidence": list(finding.evidence)}


def from_json(document: Mapping[str, Any]) -> Run:
    """Read what `to_json` wrote.

    Raises:
        ValueError: another schema version, or a verdict or state that this version does not know.
        KeyError, TypeError: no Run document.
    """
    if document.get("schema") != SCHEMA:
        raise ValueError(f"run of schema {document.get('schema')!r}, this version reads {SCHEMA}")
    fields = {field.name for field in dataclasses.fields(Run)}
    row = {key: value for key, value in document.items() if key in fields}
    return Run(
        **{
            **row,
            "stages": tuple(_stage(stage) for stage in document["stages"]),
            "events": tuple(Event(**{**event, "state": State(event["state"])}) for event in document["events"]),
            "findings": tuple(_finding(finding) for finding in document["findings"]),
        }
    )


def _stage(row: Mapping[str, Any]) -> StageRecord:
    return StageRecord(**{**row, "budget_s": Seconds(row["budget_s"])})


def _finding(row: Mapping[str, Any]) -> Finding:
    changed = {"verdict": Verdict(row["verdict"]), "cables": tuple(row["cables"]), "evidence": tuple(row["evidence"])}
    return Finding(**{**row, **changed})
