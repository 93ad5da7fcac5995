"""What is wrong with a variable for a collective library: a rule for each way to go wrong in silence."""

from __future__ import annotations

import difflib
import re
from ipaddress import ip_network

from supernode import catalog
from supernode.catalog.libraries import CollectiveLibrary, Variable, number

Fault = tuple[str, str | None]
LONGEST = 1023  # characters of a name or a value; NCCL cuts what is longer

# Since then NCCL finds the index by address; a fixed one is another entry after every change of addresses.
_FINDS_GIDS = (2, 21)


def fault(library: str, version: str, name: str, value: str, because: str | None) -> Fault | None:
    """Return the first thing that is wrong with a variable: what, and how to mend it.

    Args:
        library: its name in the catalogue.
        version: the oldest that will read the variable.
        name: the variable's, in full.
        value: as it will stand in the file.
        because: the reason that was given for it, if any.
    """
    known = catalog.library(library)
    variable = known.variables.get(name)
    if variable is None:
        return _unknown(known, name)
    for rule in (_text, _since, _gid_index, _exact, _bond, _range, _choice, _address_range, _debugging):
        found = rule(variable, value, version, because)
        if found is not None:
            return found
    return None


def _unknown(known: CollectiveLibrary, name: str) -> Fault:
    if name in known.gone:
        return f"{known.name} does not read {name}: {known.gone[name]}", "it would be passed over in silence"
    what = f"{known.name} {known.version} knows no variable {name}, and would pass over it in silence"
    near = difflib.get_close_matches(name, known.variables, n=1, cutoff=0.8)
    return what, f"did you mean {near[0]}?" if near else f"its variables begin with {known.prefix}"


def _text(variable: Variable, value: str, _version: str, _because: str | None) -> Fault | None:
    """Refuse what the library takes literally: nothing is trimmed, unquoted or a remark behind a value."""
    name = variable.name
    if value != value.strip() or "\n" in value or "\r" in value:
        return f"the value of {name} begins or ends with a blank, or has several lines", "blanks count as characters"
    if not value:
        return f"{name} is empty, which is not the same as leaving it out", "leave it out"
    if value[0] in "\"'":
        return f"the value of {name} has quotes of its own, which become part of it", "leave them out"
    if re.search(r"\s#", value):
        return f"the value of {name} holds a remark, which becomes part of it", "remarks go behind the YAML value"
    if len(value) > LONGEST:
        return f"the value of {name} has {len(value)} characters, {LONGEST} are read", None
    return None


def _since(variable: Variable, _value: str, version: str, _because: str | None) -> Fault | None:
    if variable.since and number(version) < number(variable.since):
        what = f"{variable.name} came with {variable.since}, collectives.version is {version}"
        return what, "raise collectives.version where no older library is in use"
    return None


def _gid_index(variable: Variable, _value: str, version: str, _because: str | None) -> Fault | None:
    if variable.name == "NCCL_IB_GID_INDEX" and number(version) >= _FINDS_GIDS:
        what = f"NCCL_IB_GID_INDEX fixes a place in a table that changes; NCCL {version} finds the right one itself"
        return what, "leave it out: NCCL_IB_ADDR_RANGE is written from networks.rails"
    return None


def _exact(variable: Variable, value: str, _version: str, _because: str | None) -> Fault | None:
    if not variable.exact or value.removeprefix("^").startswith("="):
        return None
    if value.startswith("^"):
        return None  # to exclude by prefix is what one mostly wants: docker0, docker1, …
    what = f"{variable.name} is {value}, which also takes every name that only begins so"
    return what, f"write ={value}"


def _bond(variable: Variable, value: str, _version: str, because: str | None) -> Fault | None:
    if variable.name == "NCCL_IB_HCA" and "bond" in value and not because:
        what = f"NCCL_IB_HCA is {value}: one connection over a bond uses one of its ports"
        return what, "give the ports their own addresses, or write {value: …, because: …}"
    return None


def _range(variable: Variable, value: str, _version: str, _because: str | None) -> Fault | None:
    if variable.range is None:
        return None
    low, high = variable.range
    if not re.fullmatch(r"-?\d+", value) or not low <= int(value) <= high:
        return f"{variable.name} is {value}, wanted: a number from {low} to {high}", None
    return None


def _choice(variable: Variable, value: str, _version: str, _because: str | None) -> Fault | None:
    if not variable.choices or value in variable.choices:
        return None
    numeric = value.lstrip("-").isdigit() and not variable.choices[0].isdigit()
    hint = "numbers mean other levels in other versions" if numeric else None
    return f"{variable.name} is {value}, wanted: {', '.join(variable.choices)}", hint


def _address_range(variable: Variable, value: str, _version: str, _because: str | None) -> Fault | None:
    if variable.name != "NCCL_IB_ADDR_RANGE":
        return None
    try:
        ip_network(value)
    except ValueError:
        return f"NCCL_IB_ADDR_RANGE is {value}, wanted: a network such as 10.64.0.0/16", None
    return None


def _debugging(variable: Variable, _value: str, _version: str, because: str | None) -> Fault | None:
    if variable.kind == "system" or because:
        return None
    says = "its guide lists it under Debugging" if variable.kind == "debugging" else "its guide does not have it"
    return f"{variable.name} has no place in a configuration without a reason: {says}", "write {value: …, because: …}"
