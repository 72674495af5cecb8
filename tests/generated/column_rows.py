"""Messages as rows of ``columns.SCHEMA``, by the layout tables alone: what tests of column encoding start from."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any
from uuid import UUID

import pyarrow as pa

from specwire.generated.layout import (
    Bits,
    Boolean,
    Digits,
    Enclosing,
    Field,
    Float,
    Frame,
    Integer,
    ListOf,
    Octets,
    Pairs,
    Present,
    Record,
    Type,
    Union,
    Uuid,
    Varint,
)
from specwire.generated.messages import Message
from specwire.generated.named_plan import named_plan
from specwire.generated.plan import ITEM, Nest
from specwire.generated.writer import Writer
from tests.generated.agreement import message_layout


def batch_of(module: ModuleType, messages: Iterable[Message]) -> pa.RecordBatch:
    """Return messages as columns, without ``_message``, ``_error`` and ``_frames``.

    Raises:
        TypeError: a value is not of the type that columns have for its field, such as a list for a tuple.
        ValueError: a value is beyond what Arrow can hold, or is no record of the field.
    """
    rows = [(type(message).__name__, row_of(module, message)) for message in messages]
    return pa.record_batch(
        {
            name: pa.array([row if found == name else None for found, row in rows], column(module, name))
            for name in module.MESSAGES
        }
    )


def column(module: ModuleType, name: str) -> Any:
    """Return the Arrow type of a message's column."""
    return module.columns.SCHEMA.field(name).type


def row_of(module: ModuleType, message: Message) -> dict[str, Any]:
    """Return one message as a struct's fields."""
    found: dict[str, Any] = {}
    for part in message_layout(module, type(message).__name__).parts:
        for field in part.fields if isinstance(part, Frame) else (part.field,):
            if not field.implied:
                value = getattr(message, "wire_flags" if field.flags else field.attribute)
                many = not isinstance(part, Frame) and value is not None
                found[field.name] = (
                    [_cell(module, field.type, one) for one in _of(tuple, value)]
                    if many
                    else _cell(module, field.type, value)
                )
    return found or {"_present": True}


def _cell(module: ModuleType, type_: Type, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case ListOf(element=element):
            return [_cell(module, element, one) for one in _of(tuple, value)]
        case Pairs(name=name, value=of_value):
            return [_pair(module, name, of_value or name, pair) for pair in _of(tuple, value)]
        case Record(fields=fields):
            return _struct(module, fields, _of(getattr(module.codec, type_.class_name), value))
        case Union(options=options):
            (option,) = (one for one in options if one.class_name == type(value).__name__)
            return {getattr(module.codec, option.class_name).NAME: _struct(module, option.fields, value)}
        case Bits(boolean=True) | Present():
            return _of(bool, value)
        case Integer() | Varint() | Digits() | Bits():
            return _of(int, value)
        case Enclosing():
            return _octets(module, value)
        case Float():
            return _of(float, value)
        case Boolean():
            return _of(bool, value)
        case Uuid():
            return str(_of(UUID, value))
        case Octets():
            return _of(bytes, value)
    return _of(str, value)


def _octets(module: ModuleType, value: Any) -> bytes:
    """The octets of a record."""
    plan, class_ = named_plan(module.layout.LAYOUT), type(value)
    message = next(iter(plan.messages.values()))
    if class_.__name__ not in message.records:
        raise TypeError(f"a record wanted, not {class_.__name__}")
    writer = Writer(plan, message, class_.__module__, strict=False)
    return writer.item((Nest(ITEM, class_.__name__),), value)


def _pair(module: ModuleType, name: Type, of_value: Type, pair: Any) -> Any:
    if pair is None:
        return None
    if len(_of(tuple, pair)) != 2:
        raise TypeError("no pair")
    return {"name": _cell(module, name, pair[0]), "value": _cell(module, of_value, pair[1])}


def _of(kind: type, value: Any) -> Any:
    """The value, if it is of the very type that columns give back."""
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} wanted, not {type(value).__name__}")
    return value


def _struct(module: ModuleType, fields: tuple[Field, ...], value: Any) -> dict[str, Any]:
    valued = [field for field in fields if not field.implied]
    found = {field.name: _cell(module, field.type, getattr(value, field.attribute)) for field in valued}
    return found or {"_present": True}
