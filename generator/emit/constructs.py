"""Emitter of ``constructs.py``: a Construct declaration for every rule and message.

The declarations serve as a reference: one for each rule of the grammar, under the rule's name, and
one for all frames of each message. They spell the operations of the plan in Construct's classes, and
share no other code with the codec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

import msgspec

from specwire.generator import ir
from specwire.generator.emit.construct_bodies import ConstructBody, Fields
from specwire.generator.emit.python import octets_literal
from specwire.generator.emit.records import unions
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.ir.names import construct_name, snake_case
from specwire.generator.passes.shapes import weight
from specwire.generator.plan import plan_of
from specwire.generator.plan.layouts import announcing_bits
from specwire.generator.support.octets import pattern_atom
from specwire.generator.support.plan import (
    Body,
    Choose,
    Loop,
    ManyFrames,
    MessagePlan,
    Nest,
    Number,
    OneFrame,
    Optional,
    Plan,
    Region,
    Sized,
    fixed_octets,
    flag_values,
    operations,
)

HELPERS = {
    "constructs": ("IfLeft", "IfNext", "IfNumber", "Stack", "Trailing", "Unlike", "frame", "message"),
    "construct_numbers": ("Bits", "Digits", "Uuid", "Varint"),
    "construct_runs": (
        "Aligned", "Before", "Counted", "Derived", "Items", "Mark", "Record", "Run", "Sized", "Tagged",
    ),
    "construct_values": (
        "Among", "AtLeast", "AtMost", "Divided", "Folded", "Padded", "ToEnd", "Unterminated", "Until", "Words",
    ),
}  # fmt: skip
"""Names that declarations use, by the modules of `specwire.generated` that have them."""


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's constructs module."""
    writer = _Writer(protocol)
    declarations = [*writer.rules(), *writer.recursive(), *writer.messages()]
    text = "\n".join(value for _, value in declarations)
    return render(
        "constructs.py.j2",
        header=header(
            protocol,
            f"{protocol.edition}: Construct declarations for every rule and message.",
            "The declaration of a rule parses the octets of one frame. The declaration of a message parses all its\n"
            "frames, each preceded by its length; `parse` and `build` convert to and from this form.",
        ),
        helpers=[
            (module, name)
            for module, names in HELPERS.items()
            for name in names
            if re.search(rf"(?<![.\w]){name}\(", text)
        ],
        declarations=declarations,
        messages=[
            (m.class_name, construct_name(m.rule) + ("" if writer.whole(m) else "_frames"))
            for m in protocol.messages
        ],
        flags=_flags_place(protocol, writer.plan) if announcing_bits(protocol) else "None",
    )


class _Writer:
    """Names declared so far, and the expressions of the others."""

    def __init__(self, protocol: ir.Protocol) -> None:
        self.protocol = protocol
        self.plan = plan_of(protocol)
        self.declared: dict[str, ir.Type] = {}
        self.bodies = {record.class_name: record.body for record in self.plan.records}
        self.fields: dict[str, Fields] = {}
        """For each class of a record, its fields."""
        _collect([field for message in protocol.messages for field in message.fields], self.fields)
        self.again = _containing_themselves(self.plan)
        """Classes of records that contain themselves."""

    def recursive(self) -> list[tuple[str, str]]:
        """Return the declarations of records that contain themselves."""
        return [(_own_name(name), self._whole_record(name)) for name in self.again]

    def rules(self) -> list[tuple[str, str]]:
        """Return the rules used by messages: values, then runs of fields, then unions."""
        found: list[tuple[str, str]] = []
        alone = _rules_alone(self.protocol)
        plan = plan_of(alone)
        self.bodies |= {record.class_name: record.body for record in plan.records}
        _collect([field for message in alone.messages for field in message.fields], self.fields)
        frames = {
            message.name: (op.parts[0].body, _by_slot(message.fields))
            for message, op in zip(alone.messages, plan.messages, strict=True)
        }
        for rule in self.protocol.rules:
            if rule.type is not None and rule.name in frames:
                found.append((construct_name(rule.name), self.value(*frames[rule.name])))
                self.declared[rule.name] = rule.type
        for rule in self.protocol.rules:
            if rule.fields:
                found.append((construct_name(rule.name), self.struct(*frames[rule.name])))
        waiting = [rule for rule in self.protocol.rules if rule.one_of]
        while ready := [rule for rule in waiting if _names(rule) <= {name for name, _ in found}]:
            found += [
                (construct_name(rule.name), f"cs.Select({', '.join(map(construct_name, rule.one_of))})")
                for rule in ready
            ]
            waiting = [rule for rule in waiting if rule not in ready]
        return found

    def messages(self) -> list[tuple[str, str]]:
        """Return the declarations of each message: its header frame if a rule names it, then all frames."""
        found: list[tuple[str, str]] = []
        for message, plan in zip(self.protocol.messages, self.plan.messages, strict=True):
            name = construct_name(message.rule)
            if self.whole(message):
                found.append((name, self.frames(message, plan, None)))
                continue
            found.append((name, self.struct(plan.parts[0].body, _by_slot(message.fields))))
            found.append((f"{name}_frames", self.frames(message, plan, name)))
        return found

    def whole(self, message: ir.Message) -> bool:
        """Return whether the rule consists of frames only, so that it declares the whole message."""
        return message.parts[0].name != message.name

    def frames(self, message: ir.Message, plan: MessagePlan, head: str | None) -> str:
        """Return the declaration of all frames; `head` names the declaration of the first, if any."""
        entries = [*self.unlike(message), *self.checks(plan)]
        fields = _by_slot(message.fields)
        for index, (part, op) in enumerate(zip(message.parts, plan.parts, strict=True)):
            if isinstance(op, OneFrame):
                assert isinstance(part, ir.Frame)
                entries.append(self._frame_entry(part, op, head if index == 0 else None))
                continue
            name, element = fields[op.slot].name, self.value(op.body, {})
            if op.delimiter is not None:
                end = f", {octets_literal(op.delimiter)}" if op.delimiter else ""
                entries.append(f'"{name}" / {_present(op, name, f"Stack({element}{end})")}')
            else:
                entries.append(f'"{name}" / cs.GreedyRange(frame({element}))')
        return f"message({', '.join(entries)})"

    def _frame_entry(self, part: ir.Frame, op: OneFrame, head: str | None) -> str:
        """Return a frame: with one value, it has the field's name; with several, its own lower-case name."""
        fields = _by_slot(part.fields)
        if len(part.fields) == 1 and not head:
            name, inner = part.fields[0].name, self.value(op.body, fields)
        else:
            rule = next((r for r in self.protocol.rules if r.fields == part.fields), None)
            name = snake_case(part.name)
            inner = head or (construct_name(rule.name) if rule else self.struct(op.body, fields))
        return f'"{name}" / {_present(op, name, f"frame({inner})")}'

    def checks(self, plan: MessagePlan) -> list[str]:
        """Return checks of the flag bits that the message's parts allow."""
        groups, absent = flag_values(plan.parts, announcing_bits(self.protocol))
        if absent:
            groups[absent] = {0}
        return [
            f"cs.Check(lambda this: this._params.flags & 0x{mask:02x} in {tuple(sorted(values))!r})"
            for mask, values in groups.items()
            if values != {0, mask} or mask & (mask - 1)
        ]

    def unlike(self, message: ir.Message) -> list[str]:
        """Return the more specific shapes of other messages, which this one must not match."""
        if not message.shadowed:
            return []
        least = min(map(weight, _shapes(message)))
        others = [
            shape for other in self.protocol.messages if other is not message for shape in _shapes(other)
        ]
        heavier = [_shape(shape) for shape in others if weight(shape) > least]
        folded = ", folded=True" if self.protocol.folded else ""
        return [f"Unlike({', '.join(heavier)}{folded})"] if heavier else []

    def struct(self, body: Body, fields: Fields) -> str:
        """Return a run of fields."""
        inner = ConstructBody(fields, self.declared, self.record)
        inner.visit(body)
        return inner.struct()

    def value(self, body: Body, fields: Fields) -> str:
        """Return the only value of a body."""
        inner = ConstructBody(fields, self.declared, self.record)
        inner.visit(body)
        ((_, value),) = inner.entries
        return value

    def record(self, class_name: str) -> str:
        """Return a record; the name of its declaration if it contains itself."""
        if class_name in self.again:
            return f"cs.LazyBound(lambda: {_own_name(class_name)})"
        return self._whole_record(class_name)

    def _whole_record(self, class_name: str) -> str:
        deepest = f", deepest={self.plan.max_depth}" if self.plan.max_depth else ""
        return f"Record({self.struct(self.bodies[class_name], self.fields[class_name])}{deepest})"


def _own_name(class_name: str) -> str:
    """Return the name of the declaration of a record that contains itself."""
    return "_" + re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


def _containing_themselves(plan: Plan) -> list[str]:
    """Return the classes of records that contain themselves."""
    inside = {record.class_name: set(_records_in(record.body)) for record in plan.records}
    for _ in inside:
        for found in inside.values():
            found |= {deeper for name in found for deeper in inside[name]}
    return [name for name, found in inside.items() if name in found]


def _records_in(body: Body) -> Iterator[str]:
    """Yield the classes of records in a body, not those inside these."""
    for op in body:
        match op:
            case Nest(record=record):
                yield record
            case Choose(options=options):
                yield from (record for _, record in options)
            case Loop(body=inside) | Optional(body=inside) | Sized(body=inside) | Region(body=inside):
                yield from _records_in(inside)


def _by_slot(fields: Iterable[ir.Field]) -> Fields:
    return {field.attribute: field for field in fields}


def _collect(fields: Iterable[ir.Field], found: dict[str, Fields]) -> None:
    """Add the fields of all records in fields, by class."""
    for field in fields:
        waiting: list[ir.Type] = [field.type]
        while waiting:
            match waiting.pop():
                case ir.ListType(element=element):
                    waiting.append(element)
                case ir.UnionType(options=options):
                    waiting += options
                case ir.RecordType(class_name=name, fields=inside) if name not in found:
                    found[name] = _by_slot(inside)
                    _collect(inside, found)


def _rules_alone(protocol: ir.Protocol) -> ir.Protocol:
    """Return a protocol with a message for each rule, whose frame has only what the rule defines."""
    messages: list[ir.Message] = []
    named = {union.name: union for union in unions(protocol)}
    for rule in protocol.rules:
        fields = tuple(
            msgspec.structs.replace(field, type=_with_unions(field.type, named)) for field in rule.fields
        )
        if rule.type is not None and not isinstance(rule.type, ir.BitType):
            fields = (ir.Field("value", "value", _alone(rule.type), None, 0, ""),)
        if fields:
            names = {field.name for field in fields}
            parts = (ir.Frame(rule.name, tuple(_without_others(field, names) for field in fields)),)
            messages.append(ir.Message(rule.name, rule.name, rule.name, "", 0, (), parts, ()))
    return msgspec.structs.replace(protocol, messages=tuple(messages), selectors=(), flags=())


def _alone(type: ir.Type) -> ir.Type:
    """Return a type without what lies outside the value."""
    match type:
        case ir.CounterType(number=number) | ir.ChecksumType(number=number):
            return number
        case ir.TextType(length=ir.Length(kind="rest")) | ir.OctetsType(length=ir.Length(kind="rest")):
            return msgspec.structs.replace(type, length=ir.Length("rest"))
        case ir.PaddingType(multiple=multiple) if multiple:
            return ir.ConstantType("")
    return type


def _with_unions(
    type: ir.Type, named: Mapping[str, ir.UnionType], around: frozenset[str] = frozenset()
) -> ir.Type:
    """Return a type with the unions in place of their names, unless these unions contain it."""
    match type:
        case ir.EnclosingType(name=name) if name in named and name not in around:
            return _with_unions(named[name], named, around)
        case ir.ListType(element=element):
            return msgspec.structs.replace(type, element=_with_unions(element, named, around))
        case ir.UnionType(name=name, options=options):
            inside = tuple(_with_unions(option, named, around | {name}) for option in options)
            return msgspec.structs.replace(type, options=inside)
        case ir.RecordType(fields=fields):
            typed = tuple(
                msgspec.structs.replace(field, type=_with_unions(field.type, named, around))
                for field in fields
            )
            return msgspec.structs.replace(type, fields=typed)
    return type


def _without_others(field: ir.Field, names: set[str]) -> ir.Field:
    """Return a field of a run; one that follows from fields elsewhere is a plain number, or always present."""
    if field.option is not None and field.option.field and field.option.field not in names:
        field = msgspec.structs.replace(field, option=None)
    match field.type:
        case ir.CounterType(counts=others) | ir.ChecksumType(over=others) if not names.issuperset(others):
            return msgspec.structs.replace(field, type=field.type.number)
    return field


def _names(rule: ir.NamedRule) -> set[str]:
    return {construct_name(name) for name in rule.one_of}


def _present(part: OneFrame | ManyFrames, name: str, expression: str) -> str:
    """Return the expression, made optional if the part is optional."""
    match part.presence.kind:
        case "announced":
            condition = f"(cs.this._params.flags & 0x{part.presence.mask:02x}) == 0x{part.presence.value:02x}"
            return f"cs.If({condition}, {expression})"
        case "counted":
            return f'Trailing("{name}", {expression})'
    return expression


def _shapes(message: ir.Message) -> tuple[ir.Shape, ...]:
    """Return the shapes of a message; a pattern is a shape of the first frame."""
    patterns = (ir.Shape((ir.FrameHead(pattern),), 1, None) for pattern in message.tags)
    return message.shapes or tuple(patterns)


def _shape(shape: ir.Shape) -> str:
    heads = "".join(f"{_expression(head)}, " for head in shape.frames)
    return f"(({heads}), {shape.least}, {shape.most})"


def _expression(head: ir.FrameHead) -> str:
    """Return how a frame begins, as a regular expression."""
    pieces = wrap(head.octets, 2)
    end = r"\Z" if head.whole else ""
    return f'rb"{"".join(map(pattern_atom, pieces))}{end}"'


def _flags_place(protocol: ir.Protocol, plan: Plan) -> str:
    """Return the frame of the octet whose bits announce parts, and its offset or its field, as source."""
    offsets: set[int | None] = set()
    for message in plan.messages:
        offset: int | None = 0
        for op in operations(message.parts[-1].body):
            if isinstance(op, Number) and op.flags:
                offsets.add(offset)
                break
            size = fixed_octets(op)
            offset = None if offset is None or size is None else offset + size
    if len(offsets) == 1 and None not in offsets:
        return f"(-1, {offsets.pop()})"
    names = (field.name for message in protocol.messages for field in message.fields if _is_flags(field))
    return f"(-1, {next(names)!r})"


def _is_flags(field: ir.Field) -> bool:
    return isinstance(field.type, ir.IntegerType) and field.type.bitmask


EMITTER = Emitter("constructs.py", emit)
