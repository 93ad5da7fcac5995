"""The collective library reads what was designed, and the devices that it is told to use are there. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from supernode.design.collectives import conf
from supernode.records import Finding, Verdict
from supernode.verify.expected import CollectivesWanted, Wanted
from supernode.verify.facts.collectives import BEFORE, Read
from supernode.verify.facts.device import DeviceFacts, Facts


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge every host whose collective library is configured."""
    rows = ((name, host.collectives) for name, host in wanted.hosts.items())
    return [_host(name, want, facts.of(name)) for name, want in rows if want is not None]


def _host(name: str, want: CollectivesWanted, seen: DeviceFacts) -> Finding:
    text = f"{', '.join(want.files)} as designed"
    found = seen.collectives
    if found is None:
        why = seen.why if not seen.reached else seen.unseen.get("collectives") or seen.unseen.get("everything", "")
        return Finding("collectives", name, Verdict.UNKNOWN, text, "not seen", evidence=(why,) if why else ())
    wrong = [*_files(want, found), *_before(want, found), *_devices(want, found)]
    if wrong:
        hint = "`supernode tune --explain` says what each line is for; the role collectives places the files"
        return Finding("collectives", name, Verdict.FAIL, text, wrong[0], evidence=tuple(wrong), hint=hint)
    if want.devices and found.rdma is None:
        why = "no PCI bus to look at, so nobody saw whether the RDMA devices have the designed names"
        return Finding("collectives", name, Verdict.UNKNOWN, text, "files as designed", evidence=(why,))
    return Finding("collectives", name, Verdict.PASS, text, "as designed")


def _files(want: CollectivesWanted, found: Read) -> Iterator[str]:
    for path, digest in want.files.items():
        text = found.files.get(path)
        if text is None:
            yield f"{path} is not there"
        elif hashlib.sha256(text.encode()).hexdigest() != digest:
            yield from _differences(path, text, want) if path == conf.PATH else (f"{path} is otherwise than designed",)


def _differences(path: str, text: str, want: CollectivesWanted) -> Iterator[str]:
    """Say what the library makes of a conf file that is not ours, and which lines deceive."""
    read = conf.parse(text)
    yield from (f"{path} line {number}: {what}" for number, what in conf.faults(text))
    for name, value in want.settings.items():
        if name not in read:
            yield f"{path} does not set {name}"
        elif read[name] != value:
            yield f"{path} sets {name} to {read[name]}, not {value}"
    strange = [name for name in read if name not in want.settings]
    yield f"{path} is otherwise than designed" + (f": it also sets {', '.join(strange)}" if strange else "")


def _before(want: CollectivesWanted, found: Read) -> Iterator[str]:
    for path in BEFORE:
        for name, value in conf.parse(found.files.get(path) or "").items():
            if want.settings.get(name, value) != value:
                yield f"{path} sets {name} to {value}, which goes before {conf.PATH}"


def _devices(want: CollectivesWanted, found: Read) -> Iterator[str]:
    if found.rdma is None:
        return
    for name, address in want.devices.items():
        there = found.rdma.get(address)
        if there is None:
            yield f"no RDMA device at {address}, where {name} should be"
        elif there != name:
            yield f"the RDMA device at {address} is {there}, not {name}"
