"""Going on after a typing error: stand-ins for wrong values, so that contradictions elsewhere show in the same run."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from supernode.errors import Path

Model = TypeVar("Model", bound=BaseModel)
_NOTHING: Any = object()
_TAGS = {"str", "int", "bool"}


def mended(model: type[Model], data: Mapping[str, Any], wrong: Iterable[tuple[Any, ...]]) -> Model | None:
    """Validate a document again with stand-ins at the wrong places.

    Args:
        model: the document's type.
        data: what the YAML said; it is changed.
        wrong: the places, as pydantic names them.

    Returns:
        The model, or None where no stand-in can be found.
    """
    for index, path in enumerate(wrong):
        _stand_in(model, data, without_tags(path), index)
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def without_tags(path: Iterable[Any]) -> Path:
    """Return a path as the document has it: pydantic adds which member of a union it tried."""
    parts = tuple(path)
    return parts[:-1] if len(parts) > 1 and parts[-1] in _TAGS else parts


def _stand_in(model: Any, holder: Any, path: Path, index: int) -> None:
    annotation, field = model, None
    for depth, part in enumerate(path):
        annotation, field = step(annotation, part)
        last = depth == len(path) - 1
        try:
            if not last:
                holder = holder[part]
                continue
            value = _NOTHING if field is not None and not field.is_required() else _value(annotation, field, index)
            if value is _NOTHING:
                holder.pop(part, None)
            else:
                holder[part] = value
        except (KeyError, IndexError, TypeError, AttributeError):
            return  # the holder itself is wrong; its own row mends it, or the second validation fails


def step(annotation: Any, part: str | int) -> tuple[Any, FieldInfo | None]:
    """Return the annotation of a part, and its field where it is one of a model; an unknown key has neither."""
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):  # a section that may be left out
        annotation = next((a for a in typing.get_args(annotation) if a is not type(None)), annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if (field.alias or name) == part:
                return field.annotation, field
        return _NOTHING, None
    arguments = [a for a in typing.get_args(annotation) if a not in (Ellipsis, type(None))]
    return (arguments[-1], None) if arguments else (_NOTHING, None)


def _value(annotation: Any, field: FieldInfo | None, index: int) -> Any:
    """Return something valid of a type; networks differ from each other by `index`."""
    if annotation is _NOTHING:
        return _NOTHING
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        rows = ((f.alias or name, f) for name, f in annotation.model_fields.items() if f.is_required())
        return {name: _value(f.annotation, f, index * 16 + at) for at, (name, f) in enumerate(rows)}
    if typing.get_origin(annotation) is typing.Literal:
        return typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is typing.Annotated:
        return _value(typing.get_args(annotation)[0], field, index)
    if typing.get_origin(annotation) is tuple:
        return [_value(typing.get_args(annotation)[0], None, index)]
    if typing.get_origin(annotation) in (dict, types.UnionType, typing.Union):
        return _NOTHING
    name = getattr(annotation, "__name__", "")
    plain = {
        "IPv4Network": f"0.0.{index % 256}.0/32",
        "IPv4Address": "0.0.0.1",
        "MbitPerS": "1 kbit/s",
        "float": 1.0,
        "int": 1,
    }
    if name in plain:
        return _least(field) or plain[name]
    is_reference = field is not None and any(getattr(m, "func", None) is not None for m in field.metadata)
    return "file:x" if is_reference else "standin"


def _least(field: FieldInfo | None) -> Any:
    return next((m.ge for m in field.metadata if getattr(m, "ge", None)), None) if field else None
