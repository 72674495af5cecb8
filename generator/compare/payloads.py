"""Changes of payloads: their topics, and the keys, presence and types of the objects in them.

Payloads do not affect the octets of messages, so a peer reads every message. These changes state
whether the reader's program accepts the payload. A payload without a required key, or with a value
of another type, is accepted only under a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specwire.generator import ir
from specwire.generator.compare.comparison import (
    Change,
    Effect,
    Judgement,
    Readings,
    TableJudgement,
    change,
    depends,
    each,
    yes,
)
from specwire.generator.compare.context import Context
from specwire.generator.emit.payloads import type_text

_READ = yes("the reader accepts the payload")
_IGNORED = yes("the reader ignores the key")
_UNDESCRIBED = yes("the messages are the same; one edition does not describe the payload")
_OTHERWISE = depends("correct if the value has both types")
_MISSING = depends("correct if the key is there")
_REFUSED = depends("correct if the key is not there")
_COLUMN = TableJudgement(Effect.COLUMN, "with --payloads, a column that is null in old rows")
_KEPT = TableJudgement(Effect.APPEND, "with --payloads, the column stays")
_RETYPED = TableJudgement(Effect.REWRITE, "with --payloads, a column changes its type")

_Classes = Mapping[str, ir.PayloadObject | ir.PayloadChoice]


def payload_changes(context: Context) -> Iterator[Change]:
    """Yield the changes of payloads, then those of the objects in them."""
    old, new = context.old.payloads, context.new.payloads
    before, after = ({_label(one): one for one in side.payloads} for side in (old, new))
    for label in dict.fromkeys((*before, *after)):
        yield from _payload(label, before.get(label), after.get(label))
    objects, others = ({one.class_name: one for one in side.classes} for side in (old, new))
    for name, one in objects.items():
        other = others.get(name)
        if other is not None:
            yield from _object(name, one, other)


def _label(payload: ir.Payload) -> str:
    return f"{payload.topic} ({', '.join(message for message, _ in payload.places)})"


def _payload(label: str, old: ir.Payload | None, new: ir.Payload | None) -> Iterator[Change]:
    group = f"payload {label}"
    texts = each(lambda one: type_text(one.type), old, new)
    if old is None or new is None:
        tables = _COLUMN if old is None else _KEPT
        yield change(group, "payload", label, texts, (_UNDESCRIBED, _UNDESCRIBED), tables)
    elif old.type != new.type:
        yield change(group, "payload", label, texts, (_OTHERWISE, _OTHERWISE), _RETYPED, "retyped")


def _object(
    name: str, old: ir.PayloadObject | ir.PayloadChoice, new: ir.PayloadObject | ir.PayloadChoice
) -> Iterator[Change]:
    group = f"payload object {name}"
    if isinstance(old, ir.PayloadObject) and isinstance(new, ir.PayloadObject):
        before, after = ({key.name: key for key in one.keys} for one in (old, new))
        for key in dict.fromkeys((*before, *after)):
            yield from _key(group, key, (old, before.get(key)), (new, after.get(key)))
        return
    texts = _kind(old), _kind(new)
    if texts[0] != texts[1]:
        yield change(group, "payload", name, texts, (_OTHERWISE, _OTHERWISE), _RETYPED, "retyped")


def _kind(found: ir.PayloadObject | ir.PayloadChoice) -> str:
    return " | ".join(found.options) if isinstance(found, ir.PayloadChoice) else "an object"


_Side = tuple[ir.PayloadObject, ir.PayloadKey | None]


def _key(group: str, name: str, old: _Side, new: _Side) -> Iterator[Change]:
    (before, first), (after, second) = old, new
    texts = each(_describe, first, second)
    readings: Readings
    if first is None or second is None:
        readings = _reads(before, first, second), _reads(after, second, first)
        tables = _COLUMN if first is None else _KEPT
        yield change(group, "key", name, texts, readings, tables)
        return
    if first.type != second.type:
        yield change(group, "key", name, texts, (_OTHERWISE, _OTHERWISE), _RETYPED, "retyped")
    if first.required != second.required:
        readings = (_MISSING, _READ) if first.required else (_READ, _MISSING)
        yield change(group, "key", name, texts, readings, _KEPT, "presence")


def _reads(reader: ir.PayloadObject, known: ir.PayloadKey | None, written: ir.PayloadKey | None) -> Judgement:
    """Return whether the reader of an object, which has the key `known`, reads one with `written`."""
    if written is None:
        return _MISSING if known and known.required else _READ
    return _REFUSED if reader.closed else _IGNORED


def _describe(key: ir.PayloadKey) -> str:
    return f"{type_text(key.type)}, {'required' if key.required else 'optional'}"
