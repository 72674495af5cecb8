"""Emitter of ``strategies.py``: Hypothesis strategies for every message and record, for users' tests.

The function of a class accepts every field as a keyword: a value, a strategy of values, or nothing,
which draws any value that the grammar allows. The values of a field are drawn by a call of a
function that all packages share. Constraints between several fields, such as readings of one frame
or an optional tail, are separate arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.python import annotation, frame_fields, paragraph, sentence
from specwire.generator.emit.records import records
from specwire.generator.emit.strategy_values import Values
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.ir.names import attribute
from specwire.generator.passes.shapes import takes_sender

ABOUT = """\
``{example}()`` draws messages of one class, ``messages()`` any message, and ``frames()`` their frames. Every
message that is drawn can be encoded, and every message that can be encoded may be drawn.

Pass a value or a strategy to fix a field; it is used unchanged, even if it does not fit, and the other fields
adapt to it. With ``strict``, messages follow the specification to the letter: they encode and decode under
``strict`` as well.

Needs hypothesis: ``pip install 'specwire[testing]'``."""

_OWN = frozenset({"decode", "frames", "malformed_frames", "messages", "mutated_frames"})


@dataclass(frozen=True, slots=True)
class _Function:
    """Content of the template for one class."""

    name: str
    class_name: str
    doc: str
    parameters: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, str], ...]
    keywords: tuple[str, ...]


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's strategies module."""
    names = _function_names(protocol)
    values = Values(protocol, names)
    senders = dict.fromkeys(letter for message in protocol.messages for letter in message.senders)
    functions = [_message(message, values) for message in protocol.messages]
    functions += [_record(record, values) for record in records(protocol)]
    example = names[protocol.messages[0].class_name]
    return render(
        "strategies.py.j2",
        header=header(protocol, f"{protocol.edition}: Hypothesis strategies for its messages.", ABOUT.format(example=example)),
        names=sorted({*names, *values.constants}),
        patterns=[(name, pattern) for pattern, name in values.patterns.items()],
        roles=", ".join(f'"{letter}"' for letter in senders),
        by_sender=takes_sender(protocol),
        functions=functions,
        every=[(names[message.class_name], repr(message.senders)) for message in protocol.messages],
    )  # fmt: skip


def _function_names(protocol: ir.Protocol) -> dict[str, str]:
    """Return the function name for each class; it differs from every field, as fields are arguments."""
    everything: tuple[ir.RecordType | ir.Message, ...] = (*records(protocol), *protocol.messages)
    found = {one.class_name: _snake(one.class_name) for one in everything}
    taken = {*_OWN, *(field.attribute for one in everything for field in one.fields)}
    for class_name, name in found.items():
        while name in taken:
            name += "_"
        taken.add(name)
        found[class_name] = name
    return found


def _snake(class_name: str) -> str:
    return attribute(re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower())


def _message(message: ir.Message, values: Values) -> _Function:
    fields = tuple(frame_fields(message))
    return _Function(
        name=values.names[message.class_name],
        class_name=message.class_name,
        doc=_doc("messages", message),
        parameters=tuple((field.attribute, annotation(field, many=many)) for field, many in fields),
        fields=tuple(_drawn(message, values)),
        keywords=tuple(_keywords(message)),
    )


def _drawn(message: ir.Message, values: Values) -> Iterator[tuple[str, str]]:
    """Yield each field of a message with the source of its strategy."""
    for part in message.parts:
        if isinstance(part, ir.Frame):
            yield from values.run(part.fields)
        else:
            yield part.field.attribute, values.frames(part)


def _record(record: ir.RecordType, values: Values) -> _Function:
    fields = [field for field in record.fields if not field.implied]
    return _Function(
        name=values.names[record.class_name],
        class_name=record.class_name,
        doc=_doc("records", record),
        parameters=tuple((field.attribute, annotation(field)) for field in fields),
        fields=tuple(values.run(record.fields)),
        keywords=tuple(_groups("tails", [_tail(record.fields)])),
    )


def _doc(kind: str, one: ir.Message | ir.RecordType) -> str:
    return paragraph(f"Draw {one.name} {kind}. {sentence(one.doc)}".strip(), 4)


def _keywords(message: ir.Message) -> Iterator[str]:
    """Yield the constraints between the fields of a message as arguments."""
    readings: dict[int, list[str]] = {}
    counted: list[str] = []
    tails = [_tail(part.fields) for part in message.parts if isinstance(part, ir.Frame)]
    letters: dict[ir.Letter, list[str]] = {}
    for part in message.parts:
        if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Always):
            continue
        fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
        names = [field.attribute for field in fields if not field.implied]
        letters.setdefault(part.letter, []).extend(names)
        if isinstance(part.presence, ir.Announced):
            readings.setdefault(part.presence.mask, []).extend(names)
        else:
            counted += names
    yield from _groups("readings", readings.values())
    yield from _groups("tails", [*tails, counted])
    for letter in ("required", "forbidden"):
        if letter in letters:
            yield f"{letter}={tuple(letters[letter])!r} if strict else ()"
    if message.shadowed or any(map(_is_tight, message.fields)):
        yield "together=True"


def _groups(name: str, groups: Iterable[list[str]]) -> Iterator[str]:
    found = tuple(tuple(group) for group in groups if group)
    if found:
        yield f"{name}={found!r}"


def _tail(fields: Iterable[ir.Field]) -> list[str]:
    """Return the optional fields at the end of a run."""
    return [field.attribute for field in fields if field.optional]


def _is_tight(field: ir.Field) -> bool:
    """Return whether a value can be too long for a size, or empty but optional, although its parts fit."""
    return (field.optional and isinstance(field.type, ir.RecordType | ir.UnionType)) or _is_sized(field.type)


def _is_sized(type: ir.Type) -> bool:
    match type:
        case ir.SizeType(forms=forms):
            return max(form.octets for form in forms) <= 2
        case ir.ListType(element=element):
            return _is_sized(element)
        case ir.RecordType(fields=fields):
            return any(map(_is_tight, fields))
        case ir.UnionType(options=options):
            return any(map(_is_sized, options))
    return False


EMITTER = Emitter("strategies.py", emit, requires=("package",))
