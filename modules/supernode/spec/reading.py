"""Texts in, checked documents out; every problem of all documents at once, in line order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from supernode.errors import Problem, Refusal
from supernode.spec import consistency, mending, ranges, wording
from supernode.spec.allocation import Allocation
from supernode.spec.environment import Environment
from supernode.spec.machines import Machines
from supernode.spec.yamltext import locate, parse

__all__ = ["Inputs", "locate", "read"]

_ORDER = ("environment", "allocation", "machines")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Inputs:
    """What an environment is computed from; `allocation` is None where none was saved."""

    environment: Environment
    allocation: Allocation | None
    machines: Machines


def read(texts: Mapping[str, str], *, name: str | None = None) -> Inputs:
    """Read environment.yml, allocation.yml and machines.yml from their texts.

    Args:
        texts: by "environment", "allocation", "machines"; the last two may be absent.
        name: the folder's, where the texts come from one: stacks are called by the document's name, state and runs by
            the folder's, so a copy that kept its name would drive the stacks of the original.

    Raises:
        Refusal: with every problem of every document, by document and line.
    """
    problems: list[Problem] = []
    environment = _document(Environment, texts["environment"], "environment", problems)
    broken = {problem.path for problem in problems}
    allocation = _document(Allocation, texts["allocation"], "allocation", problems) if "allocation" in texts else None
    machines = _document(Machines, texts["machines"], "machines", problems) if "machines" in texts else Machines()
    if environment is not None:
        problems += consistency.environment(environment, broken)
        problems += consistency.same_name(environment, name) if ("name",) not in broken else ()
    if machines is not None:
        problems += consistency.machines(machines)
    if environment is not None and allocation is not None:
        problems += consistency.allocation(environment, allocation)
    if problems or environment is None or machines is None:
        raise Refusal(in_line_order(problems, texts))
    return Inputs(environment, allocation, machines)


def in_line_order(problems: list[Problem], texts: Mapping[str, str]) -> list[Problem]:
    """Sort problems as a person meets them who reads the documents from the top."""
    return sorted(problems, key=lambda p: (_ORDER.index(p.document), locate(texts.get(p.document, ""), p.path)))


def _document(model: type[Model], text: str, name: str, problems: list[Problem]) -> Model | None:
    data, found = parse(text, name)
    problems += found
    if data is None:
        return None
    if not isinstance(data, dict):
        problems.append(Problem((), "the file holds no mapping", document=name))
        return None
    data, wrong = ranges.expand(data) if model is Environment else (data, [])
    problems += wrong
    try:
        return model.model_validate(data)
    except ValidationError as error:
        rows = wording.telling(error.errors(include_url=False))
        told = [problem.path for problem in wrong]
        problems += [p for p in wording.problems(rows, model, name) if not any(p.path[: len(t)] == t for t in told)]
        return mending.mended(model, data, [row["loc"] for row in rows])
