"""Emitter of ``strategies.py``: Hypothesis strategies for every message and record, for users' tests.

The function of a class accepts every field as a keyword: a value, a strategy of values, or nothing,
which draws any value that the grammar allows. `specwire.generated.strategies.Drawing` draws the values
from the plan of the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.python import annotation, frame_fields, paragraph, sentence
from specwire.generator.emit.records import enclosing, records
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
    kind: str
    doc: str
    parameters: tuple[tuple[str, str], ...]


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's strategies module."""
    names = _function_names(protocol)
    senders = dict.fromkeys(letter for message in protocol.messages for letter in message.senders)
    functions = [
        _function("messages", message, names[message.class_name], frame_fields(message), protocol)
        for message in protocol.messages
    ]
    for record in records(protocol):
        fields = [(field, False) for field in record.fields if not field.implied]
        functions.append(_function("records", record, names[record.class_name], fields, protocol))
    likely = list(_likely(protocol))
    example = names[protocol.messages[0].class_name]
    return render(
        "strategies.py.j2",
        header=header(protocol, f"{protocol.edition}: Hypothesis strategies for its messages.", ABOUT.format(example=example)),
        names=sorted({*names, *(name for _, _, special in likely for name in special)}),
        likely=likely,
        shadowed=tuple(message.class_name for message in protocol.messages if message.shadowed),
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


def _function(
    kind: str,
    one: ir.Message | ir.RecordType,
    name: str,
    fields: Iterable[tuple[ir.Field, bool]],
    protocol: ir.Protocol,
) -> _Function:
    unions = enclosing(protocol)
    return _Function(
        name,
        one.class_name,
        kind,
        doc=paragraph(f"Draw {one.name} {kind}. {sentence(one.doc)}".strip(), 4),
        parameters=tuple(
            (field.attribute, annotation(field, many=many, enclosing=unions)) for field, many in fields
        ),
    )


def _likely(protocol: ir.Protocol) -> Iterator[tuple[str, str, list[str]]]:
    """Yield class, attribute and constants of each field in which some numbers have a special meaning."""
    constants = [constant.name for constant in protocol.constants]
    everything: tuple[ir.Message | ir.RecordType, ...] = (*protocol.messages, *records(protocol))
    for one in everything:
        for field in one.fields:
            special = [name for name in constants if name in field.sentinels]
            if special and isinstance(field.type, ir.IntegerType | ir.BitType):
                yield one.class_name, field.attribute, special


EMITTER = Emitter("strategies.py", emit, requires=("package",))
