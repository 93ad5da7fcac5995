"""Findings as JUnit XML, one test case for each check at each place."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from supernode.records import Finding, Run, Verdict

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    """Write a run's findings: FAIL is a failure, UNKNOWN an error (nobody saw it), ADVICE passes and says so."""
    checks: dict[str, list[Finding]] = {}
    for finding in run.findings:
        checks.setdefault(finding.check, []).append(finding)
    top = Xml.Element("testsuites", name=f"supernode {run.environment} {run.id}")
    for check, rows in checks.items():
        top.append(_suite(check, rows))
    Xml.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(top, encoding="unicode") + "\n"


def _suite(check: str, rows: list[Finding]) -> Xml.Element:
    failures, errors = (sum(row.verdict is verdict for row in rows) for verdict in (Verdict.FAIL, Verdict.UNKNOWN))
    counts = {"tests": str(len(rows)), "failures": str(failures), "errors": str(errors)}
    suite = Xml.Element("testsuite", {"name": check, **counts})
    for row in rows:
        suite.append(_case(row))
    return suite


def _case(row: Finding) -> Xml.Element:
    case = Xml.Element("testcase", classname=row.check, name=_clean(row.place))
    properties = Xml.SubElement(case, "properties")
    Xml.SubElement(properties, "property", name="verdict", value=row.verdict.value)
    tag = {Verdict.FAIL: "failure", Verdict.UNKNOWN: "error"}.get(row.verdict)
    if tag is not None:
        message = row.cause or f"wanted {row.wanted}, found {row.found}"
        Xml.SubElement(case, tag, message=_clean(message), type=row.check).text = _clean(details(row))
    elif row.verdict is Verdict.ADVICE:
        Xml.SubElement(case, "system-out").text = _clean(details(row))
    return case


def details(row: Finding) -> str:
    """Write everything that a finding knows, line by line."""
    lines = [f"wanted: {row.wanted}", f"found: {row.found}"]
    lines += [f"cables: {', '.join(row.cables)}"] if row.cables else []
    lines += [f"hint: {row.hint}"] if row.hint else []
    return "\n".join([*lines, *row.evidence])


def _clean(text: str) -> str:
    """Drop what XML cannot carry: evidence may hold a console's control characters."""
    return _NO_XML.sub("?", text)
