"""From the Design and what was seen to findings. Pure.

A finding fails when the run would; what nobody told is unknown, and what a person should know is advice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from supernode import catalog
from supernode.bringup.live.seen import BmcSeen, HereSeen, Login, NameSeen, Port, Seen, SwitchSeen, TimeSeen, UnitSeen
from supernode.design import Design
from supernode.provider.identity import mismatches
from supernode.records import Finding, Verdict
from supernode.spec import Environment

CLOCK_BEGINS = "2020-01-01"  # the boot server's certificates begin then: an earlier clock trusts none of them
CLOCK_AHEAD_S = 300.0
OURS_AHEAD_S = 1.0
ROOM_IMAGE = 6 << 30  # what building the image and its mirror takes
ROOM_MEDIUM = 160 << 20  # each machine's deploy medium
GIB = 1 << 30
_GB = 10**9

_pass, _fail = partial(Finding, verdict=Verdict.PASS), partial(Finding, verdict=Verdict.FAIL)
_advice, _unknown = partial(Finding, verdict=Verdict.ADVICE), partial(Finding, verdict=Verdict.UNKNOWN)


def judge(design: Design, seen: Seen) -> list[Finding]:
    """Say of each check and place what was found, in the order of the Design."""
    found: list[Finding] = []
    for bmc in seen.bmcs:
        found += of_bmc(design, bmc)
    for host in design.hosts:
        if host.state == "quarantined" and not host.cloud:
            found.append(_advice("bmc", host.name, found="quarantined: not contacted"))
    found += [of_switch(switch) for switch in seen.switches]
    found += of_names(design.environment, seen.names)
    found += [of_time(server) for server in seen.times]
    found += [of_unit(design.environment, unit) for unit in seen.units]
    return found + list(of_here(design, seen.here))


def of_bmc(design: Design, seen: BmcSeen) -> list[Finding]:
    """Judge one controller: reached, who stands there, its clock, its drives."""
    contact = _contact(seen)
    beyond = design.networks_of(design.host(seen.host)) is not design.environment.site.networks
    if beyond and seen.login is Login.UNREACHABLE:
        hint = "it stands at the other site: where no tunnel stands yet, the first run makes it"
        return [dataclasses.replace(contact, verdict=Verdict.UNKNOWN, hint=hint)]
    if seen.login not in (Login.IN, Login.FACTORY):
        return [contact]
    return [contact, _identity(design, seen), _clock(seen), _disk(design, seen)]


def of_unit(env: Environment, seen: UnitSeen) -> Finding:
    """Judge one cooling unit: what holds its racks' machines now; racks with an override are held by nothing."""
    wanted = "dry, flowing, measuring"
    if not seen.said:
        return _pass("cooling", seen.name, wanted=wanted, found=wanted)
    said = "; ".join(seen.said)
    overridden = env.cooling.interlock.override if env.cooling else {}
    held = [rack for rack in seen.racks if rack not in overridden]
    if not held:
        return _advice("cooling", seen.name, wanted=wanted, found=f"{said}; overridden")
    cause = f"{said}: no machine of {', '.join(held)} would be switched on"
    hint = "see to the unit; cooling.interlock.override says of a rack or slot why it may run all the same"
    return _fail("cooling", seen.name, wanted=wanted, found=said, cause=cause, hint=hint)


_LOGINS = {
    Login.UNREACHABLE: (
        "an answer",
        "is it powered and cabled, and is the address in this slot's BMC the designed one?",
    ),
    Login.UNTRUSTED: ("a certificate to trust", "is it signed by bmc.ca, or pinned in machines.yml?"),
    Login.BROKEN: ("Redfish", "does a server's controller answer at this address?"),
    Login.NOT_TRIED: ("a password", "write the file, or name another reference in environment.yml"),
    Login.REFUSED: ("a login", "the password is another one; further tries may lock the account, so none were made"),
    Login.MUST_CHANGE: (
        "a login",
        "somebody set it so at the controller: change it there, and where bmc.password says",
    ),
}


def _contact(seen: BmcSeen) -> Finding:
    place = (seen.address, seen.slot)
    if seen.login is Login.IN:
        return _pass("bmc", seen.host, wanted="a login", found="logged in", evidence=place)
    if seen.login in _FACTORY:
        hint = "a run replaces it at first contact"
        return _advice("bmc", seen.host, wanted="our password", found=_FACTORY[seen.login], hint=hint, evidence=place)
    wanted, hint = _LOGINS[seen.login]
    found = {
        Login.REFUSED: "refuses the password",
        Login.MUST_CHANGE: "wants our password changed before it answers anything else",
    }.get(seen.login, seen.said)
    return _fail("bmc", seen.host, wanted=wanted, found=found, hint=seen.hint or hint, evidence=place)


_FACTORY = {
    Login.FACTORY: "still has its factory password",
    Login.FACTORY_CLOSED: "still has its factory password, and shows nothing more before that is replaced",
}


def _identity(design: Design, seen: BmcSeen) -> Finding:
    record = design.machines.slots.get(seen.slot)
    bound = record.identity.hardware() if record else {}
    known = {name: value for name, value in bound.items() if name in seen.identity}
    told = ", ".join(f"{name} {value}" for name, value in seen.identity.items()) or "nothing"
    if not bound:
        hint = f"`supernode assign {design.name}` binds what was delivered"
        return _fail("identity", seen.host, wanted=f"a machine bound to {seen.slot}", found=f"none; {told}", hint=hint)
    if wrong := mismatches(known, seen.identity):
        hint = "another machine stands there: look at its label, then `supernode assign` it, or correct the cabling"
        return _fail("identity", seen.host, wanted="the machine that is bound", found="; ".join(wrong), hint=hint)
    if not known:
        wanted = f"one of {', '.join(bound)}"
        return _fail(
            "identity", seen.host, wanted=wanted, found=f"the controller tells {told}", hint="bind what it tells"
        )
    return _pass("identity", seen.host, found=", ".join(f"{name} {value}" for name, value in known.items()))


def _clock(seen: BmcSeen) -> Finding:
    if seen.clock_ahead_s is None:
        return _unknown("clock", seen.host, wanted="its clock", found=seen.clock or "the controller shows none")
    if seen.clock[:10] < CLOCK_BEGINS:
        hint = "it verifies no certificate so; set its clock or its time server (a flat battery shows like this)"
        return _fail("clock", seen.host, wanted="the time", found=f"stands at {seen.clock}", hint=hint)
    if abs(seen.clock_ahead_s) > CLOCK_AHEAD_S:
        way = "ahead of" if seen.clock_ahead_s > 0 else "behind"
        found = f"{abs(seen.clock_ahead_s):.0f} s {way} ours ({seen.clock})"
        return _advice(
            "clock", seen.host, wanted=f"within {CLOCK_AHEAD_S:.0f} s", found=found, hint="its log's times are off"
        )
    return _pass("clock", seen.host, found=f"{seen.clock_ahead_s:+.1f} s")


def _disk(design: Design, seen: BmcSeen) -> Finding:
    wanted_bytes, wanted_name = _system_disk(design, seen.host)
    wanted = f"a drive of {wanted_bytes / _GB:.0f} GB or more" + (f" ({wanted_name})" if wanted_name else "")
    if seen.drives is None:
        return _unknown("disk", seen.host, wanted=wanted, found="the controller lists no storage")
    listed = ", ".join(f"{d.model or d.name} {(d.bytes or 0) / _GB:.0f} GB {d.health}".strip() for d in seen.drives)
    # Sizes are rounded on both sides: a drive sold as 1.92 TB has 1.9 of them.
    large = [d for d in seen.drives if d.bytes is None or d.bytes >= wanted_bytes * 0.95]
    if not large:
        hint = "the run would find no disk to write: is it seated, and does the controller of the drives see it?"
        return _fail("disk", seen.host, wanted=wanted, found=listed or "no drive", hint=hint)
    if all(d.health == "Critical" for d in large):
        return _fail("disk", seen.host, wanted=wanted, found=f"failing: {listed}", hint="replace it")
    return _pass("disk", seen.host, wanted=wanted, found=listed)


def _system_disk(design: Design, host: str) -> tuple[int, str]:
    row = design.host(host)
    disk = catalog.server(row.kind).disk
    named = next((pool.disk for pool in design.environment.pools if pool.name == row.pool), None)
    return disk.size_gb * _GB, named or disk.by_id


def of_switch(seen: SwitchSeen) -> Finding:
    """Judge one switch. Another name on it is no fault: before its first run it has the factory's."""
    if seen.error:
        wanted = "a login under its pinned key"
        return _fail("switch", seen.name, wanted=wanted, found=seen.error, hint=seen.hint, evidence=(seen.address,))
    found = f"logged in; it calls itself {seen.hostname or 'nothing'}"
    return _pass("switch", seen.name, found=found, evidence=(seen.address,))


def names_used(environment: Environment) -> tuple[str, ...]:
    """Return the time servers, which are all that an environment may give by name."""
    return environment.site.time_servers


def of_names(environment: Environment, seen: tuple[NameSeen, ...]) -> Iterator[Finding]:
    """Judge the names that hosts will have to resolve, by the servers that hosts will ask."""
    answers = {name: [row for row in seen if row.name == name] for name in dict.fromkeys(row.name for row in seen)}
    for name, rows in answers.items():
        if not rows[0].server:
            hint = "give its address, or site.name_servers"
            yield _fail("names", name, wanted="an address", found="hosts have no name server to ask", hint=hint)
            continue
        for row in rows:
            yield _name(row)
    if not answers and environment.site.time_servers:
        yield _pass("names", environment.name, found="every server is given by its address")


def _name(row: NameSeen) -> Finding:
    wanted = f"an address from {row.server}"
    if row.error:
        hint = "hosts ask this server, too: is it up, and does it serve this network?"
        return _fail("names", row.name, wanted=wanted, found=row.error, hint=hint)
    if not row.addresses:
        return _fail("names", row.name, wanted=wanted, found="no such name", hint="correct it, or give an address")
    return _pass("names", row.name, wanted=wanted, found=", ".join(row.addresses))


def of_time(seen: TimeSeen) -> Finding:
    """Judge one time server, and our own clock by it."""
    wanted = "the time"
    if seen.error:
        hint = "hosts would not be synchronous: does it run, and does a firewall let port 123 (UDP) through?"
        return _fail("time", seen.server, wanted=wanted, found=seen.error, hint=hint)
    if seen.unsynchronised:
        found = f"it is not synchronised itself (stratum {seen.stratum})"
        return _fail("time", seen.server, wanted=wanted, found=found, hint="give it a source, or name another server")
    found = f"stratum {seen.stratum}, {seen.ahead_s:+.3f} s from this machine's clock"
    if abs(seen.ahead_s) > OURS_AHEAD_S:
        hint = "one of the two is wrong; certificates and the run's clock go by this machine's"
        return _advice("time", seen.server, wanted=wanted, found=found, hint=hint)
    return _pass("time", seen.server, wanted=wanted, found=found)


def of_here(design: Design, seen: HereSeen) -> Iterator[Finding]:
    """Judge the operator's machine."""
    yield _serve(design, seen)
    yield from _mirror(design, seen)
    yield from _room(design, seen)


def _serve(design: Design, seen: HereSeen) -> Finding:
    serve = design.environment.site.serve
    place, wanted = f"{serve.address}:{serve.port}", "the boot server, or room for it"
    if seen.port is Port.ELSEWHERE:
        hint = "add the address here, or name one of this machine in site.serve; a lab's exists while the lab runs"
        return _fail("serve", place, wanted=wanted, found="is no address of this machine", hint=hint)
    if seen.port is Port.OTHER:
        hint = "`ss -ltnp` names what listens there; stop it, or choose another site.serve.port"
        return _fail("serve", place, wanted=wanted, found=f"another program has it: {seen.said}", hint=hint)
    if seen.port is Port.FREE:
        return _pass("serve", place, wanted=wanted, found="free: a run starts the server")
    if not seen.code:
        return _advice("serve", place, wanted=wanted, found="our server, of other code; a run restarts it")
    return _pass("serve", place, wanted=wanted, found="our server answers")


def _mirror(design: Design, seen: HereSeen) -> Iterator[Finding]:
    packages = design.software().packages
    wanted = ", ".join(packages) or "no package"
    if seen.packages is None:
        what = "the mirror" if seen.image else "image and mirror"
        hint = f"a run builds them, from the distribution's archive; `supernode image {design.name}` does it before"
        yield _advice("mirror", design.environment.software.suite, wanted=wanted, found=f"{what} not built", hint=hint)
        return
    for package in packages:
        name, _, version = package.partition("=")
        found = seen.packages.get(name)
        if found is None or (version and found != version):
            hint = "it is none of this suite's, or its version is gone from the archive: correct software.packages"
            yield _fail("mirror", package, wanted=package, found=f"{name}={found}" if found else "absent", hint=hint)
        else:
            yield _pass("mirror", package, found=f"{name}={found}")
    if seen.served is False:
        hint = f"see .supernode/{design.name}/serve/serve.log"
        yield _fail("mirror", "served", wanted="the mirror", found="our server does not hand it out", hint=hint)


def _room(design: Design, seen: HereSeen) -> Iterator[Finding]:
    media = sum(not host.cloud for host in design.hosts) * ROOM_MEDIUM
    needed = media + (0 if seen.image else ROOM_IMAGE)
    for place, free in seen.free_bytes.items():
        wanted, found = f"{needed / GIB:.1f} GiB free", f"{free / GIB:.1f} GiB free"
        if free < needed:
            hint = "free some, or let SUPERNODE_CACHE name a folder with more"
            yield _fail("room", place, wanted=wanted, found=found, hint=hint)
        else:
            yield _pass("room", place, wanted=wanted, found=found)


def twins(design: Design, others: dict[str, Design]) -> list[Finding]:
    """Judge whether a name is given twice: to two devices here, or also in another environment of the same domain."""
    names = _device_names(design)
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    found = [_fail("names", name, wanted="one device", found="two devices of this environment") for name in twice]
    for other, theirs in others.items():
        same = set(_device_names(theirs)) & set(names)
        if same and theirs.environment.site.domain == design.environment.site.domain:
            example = sorted(same)[0]
            text = f"{len(same)} names, such as {example}.{design.environment.site.domain}, are also those of {other}"
            found.append(
                _advice("names", other, wanted="names of their own", found=text, hint="give one another domain")
            )
    return found or [_pass("names", design.name, found=f"{len(names)} names, each once")]


def _device_names(design: Design) -> list[str]:
    return [*(host.name for host in design.hosts), *(switch.name for switch in design.switches)]
