"""What pulumi-aws takes, read from its SDK: the argument classes' wire names, types and required properties.

The packages on PyPI carry no schema, and the SDK itself drops a misspelt key of a nested dict in silence; so the test's
provider derives the schema each time from the very SDK that the components import, and refuses what it does not know.
"""

from __future__ import annotations

import collections.abc
import enum
import importlib
import inspect
import types
import typing
from dataclasses import dataclass
from functools import cache

import pulumi
from pulumi import _types as sdk

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # what stands for a value that a preview does not know yet
_PLUMBING = (type(None), collections.abc.Awaitable, pulumi.Output)


@dataclass(frozen=True)
class Problem:
    """What is wrong with one property; `path` is written as the engine does."""

    path: str
    said: str

    def __str__(self):
        return f"{self.path}: {self.said}"


def arguments(token):
    """Return the argument class of a resource's type, e.g. "aws:ec2/launchTemplate:LaunchTemplate"."""
    package, module, name = token.split(":")
    assert package == "aws", token
    found = getattr(importlib.import_module(f"pulumi_aws.{module.partition('/')[0]}"), name)
    return getattr(inspect.getmodule(found), f"{name}Args")


@cache
def properties(cls):
    """Return a class's properties by wire name: their types, and which of them are required."""
    hints = typing.get_type_hints(
        cls.__init__, vars(inspect.getmodule(cls)), {"Output": pulumi.Output, "T": typing.Any}
    )
    names = sdk.input_type_py_to_pulumi_names(cls)
    required = {name for name, given in _parameters(cls).items() if given.default is inspect.Parameter.empty}
    return {names[python]: (hints[python], python in required) for python in _parameters(cls)}


def _parameters(cls):
    return {name: given for name, given in inspect.signature(cls.__init__).parameters.items() if name != "__self__"}


def settings():
    """Return the wire names of what the provider itself is configured with."""
    return set(properties(importlib.import_module("pulumi_aws.provider").ProviderArgs))


def check(token, inputs):
    """Return what the type refuses: unknown and missing keys at any depth, and values of another type."""
    return list(_object(arguments(token), inputs, ""))


def _object(cls, value, path):
    if not isinstance(value, dict):
        yield Problem(path, f"is {value!r}, a mapping is wanted")
        return
    known = properties(cls)
    for key in value:
        if key not in known:
            yield Problem(f"{path}.{key}".lstrip("."), f"unknown property of {cls.__name__}")
    for key, (hint, required) in known.items():
        if value.get(key) is not None:
            yield from _value(hint, value[key], f"{path}.{key}".lstrip("."))
        elif required:
            yield Problem(f"{path}.{key}".lstrip("."), f"{cls.__name__} misses it")


def _members(hint):
    """Return what a hint admits on the wire: unions are opened, and what only the SDK needs of them is left out."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [member for part in typing.get_args(hint) for member in _members(part)]
    origin = typing.get_origin(hint) or hint
    return [] if isinstance(origin, type) and issubclass(origin, _PLUMBING) else [hint]


def _value(hint, value, path):
    if value == UNKNOWN:
        return
    refused = []
    for member in _members(hint):
        found = list(_one(member, value, path))
        if not found:
            return
        refused.append(found)
    yield from min(refused, key=len, default=[Problem(path, "takes nothing")])


def _one(hint, value, path):
    origin = typing.get_origin(hint) or hint
    if hint is typing.Any:
        return
    if issubclass(origin, str | enum.Enum):
        ok, wanted = isinstance(value, str), "a text"
    elif origin is bool:
        ok, wanted = isinstance(value, bool), "true or false"
    elif origin in (int, float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        ok, wanted = number and (origin is float or value == int(value)), "a number"
    elif issubclass(origin, collections.abc.Mapping):
        yield from _mapping(hint, value, path)
        return
    elif issubclass(origin, collections.abc.Sequence):
        yield from _list(hint, value, path)
        return
    else:
        yield from _object(origin, value, path)
        return
    if not ok:
        yield Problem(path, f"is {value!r}, {wanted} is wanted")


def _list(hint, value, path):
    if not isinstance(value, list):
        yield Problem(path, f"is {value!r}, a list is wanted")
        return
    for index, item in enumerate(value):
        yield from _value(typing.get_args(hint)[0], item, f"{path}[{index}]")


def _mapping(hint, value, path):
    if not isinstance(value, dict):
        yield Problem(path, f"is {value!r}, a mapping is wanted")
        return
    for key, item in value.items():
        yield from _value(typing.get_args(hint)[1], item, f"{path}.{key}")
