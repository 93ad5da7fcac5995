"""Every designed accelerator is on the bus, driven by the pinned driver, and kept initialised. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.records import Finding, Verdict
from supernode.verify.expected import GpusWanted, Wanted
from supernode.verify.facts import gpus
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.gpus import Gpu, Gpus


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge the accelerators of every host for which a driver is wanted."""
    return [_host(name, host.gpus, facts.of(name)) for name, host in wanted.hosts.items() if host.gpus is not None]


def _host(name: str, want: GpusWanted, seen: DeviceFacts) -> Finding:
    text = f"{want.count} accelerators, driver {want.driver}, persistence on"
    if seen.gpus is None:
        why = seen.why if not seen.reached else seen.unseen.get("gpus") or seen.unseen.get("everything", "")
        return Finding("gpus", name, Verdict.UNKNOWN, text, "not seen", evidence=(why,) if why else ())
    found = seen.gpus
    wrong = [*_missing(want, found), *_driver(want, found)]
    log = (f"kernel's log: {found.log}",) if found.log else ()
    if not wrong and log:
        return Finding("gpus", name, Verdict.UNKNOWN, text, "the kernel's log was not read", evidence=log)
    if not wrong:
        return Finding("gpus", name, Verdict.PASS, text, text, evidence=found.xids)
    evidence = (*wrong[1:], *((found.why,) if found.why and found.why not in wrong[0] else ()), *found.xids, *log)
    shown = f"{len(_driven(want, found))} of {want.count}: {wrong[0]}"
    return Finding("gpus", name, Verdict.FAIL, text, shown, evidence=evidence, hint=_hint(want, found))


def _driven(want: GpusWanted, found: Gpus) -> list[Gpu]:
    return [gpu for gpu in found.driven if not want.addresses or gpu.address in want.addresses]


def _missing(want: GpusWanted, found: Gpus) -> Iterator[str]:
    """Yield each designed accelerator that is not there, by its number and address, and where it is missing."""
    driven = {gpu.address for gpu in found.driven}
    for number, address in enumerate(want.addresses):
        said = [line for line in found.xids if gpus.normal(line) == address]
        xid = f" (XID {said[-1].split('): ', 1)[-1].split(',', 1)[0]})" if said else ""
        if address not in found.bus:
            yield f"GPU {number} at {address} is gone from the bus{xid}"
        elif driven and address not in driven:
            yield f"GPU {number} at {address} is on the bus, but the driver does not see it{xid}"
    if not want.addresses and driven and len(found.driven) != want.count:
        yield f"the driver shows {len(found.driven)} of {want.count} accelerators"


def _driver(want: GpusWanted, found: Gpus) -> Iterator[str]:
    """Yield what is wrong with the driver as a whole, and with what it drives."""
    if not found.driven:
        yield found.why or "the driver shows no accelerator"
    for version in sorted({gpu.driver for gpu in found.driven} - {want.driver}):
        yield f"driver {version} runs, not {want.driver}"
    asleep = [gpu for gpu in found.driven if not gpu.persistent]
    if asleep:
        yield f"persistence is off at {', '.join(gpu.address for gpu in asleep)}"


def _hint(want: GpusWanted, found: Gpus) -> str:
    if "mismatch" in found.why:
        return "the kernel runs another module than the one installed: drain the host and restart it"
    if not found.driven:
        return "did the module build and load? dkms status; journalctl -k | grep -e NVRM -e nouveau; Secure Boot"
    gone = any(address not in found.bus for address in want.addresses)
    if gone or (not want.addresses and len(found.driven) < want.count):
        return "power the host off and on by its BMC; if the accelerator stays away, reseat or replace it"
    if any(gpu.driver != want.driver for gpu in found.driven):
        return "run the playbooks (role gpu_driver), then restart the host"
    return "systemctl status nvidia-persistenced; else see the kernel's log for this accelerator"
