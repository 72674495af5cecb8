"""Emitter of ``constructs.py``: a Construct declaration for every rule and message.

The declarations serve as a reference: one for each rule of the grammar, under the rule's name, and
one for all frames of each message. They are generated from the same IR as the codec and share no
code with it.
"""

from __future__ import annotations

from itertools import takewhile
from textwrap import wrap

from specwire.generator import ir
from specwire.generator.emit.python import announcing_bits, fixed_size, octets_literal
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.ir.names import construct_name, snake_case
from specwire.generator.passes.shapes import weight

HELPERS = ("Stack", "Trailing", "Unlike", "frame", "message")
VALUE_HELPERS = (
    "AtLeast",
    "AtMost",
    "Divided",
    "Padded",
    "Record",
    "Sized",
    "Tagged",
    "ToEnd",
    "Unterminated",
    "Until",
)
NUMBERS = {1: "cs.Int8ub", 2: "cs.Int16ub", 3: "cs.Int24ub", 4: "cs.Int32ub", 8: "cs.Int64ub"}


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's constructs module."""
    writer = _Writer(protocol)
    declarations = [*writer.rules(), *writer.messages()]
    text = "\n".join(value for _, value in declarations)
    return render(
        "constructs.py.j2",
        header=header(
            protocol,
            f"{protocol.edition}: Construct declarations for every rule and message.",
            "The declaration of a rule parses the octets of one frame. The declaration of a message parses all its\n"
            "frames, each preceded by its length; `parse` and `build` convert to and from this form.",
        ),
        helpers=[name for name in HELPERS if f"{name}(" in text],
        value_helpers=[name for name in VALUE_HELPERS if f"{name}(" in text],
        declarations=declarations,
        messages=[
            (m.class_name, construct_name(m.rule) + ("" if writer.whole(m) else "_frames"))
            for m in protocol.messages
        ],
        flags=_flags_place(protocol),
    )


class _Writer:
    """Names declared so far, and the expressions of the others."""

    def __init__(self, protocol: ir.Protocol) -> None:
        self.protocol = protocol
        self.declared: dict[str, ir.Type] = {}

    def rules(self) -> list[tuple[str, str]]:
        """Return the rules used by messages: values, then runs of fields, then unions."""
        found: list[tuple[str, str]] = []
        for rule in self.protocol.rules:
            if rule.type is not None:
                self.declared[rule.name] = rule.type
                found.append((construct_name(rule.name), self.type(rule.type)))
        for rule in self.protocol.rules:
            if rule.fields:
                found.append((construct_name(rule.name), self.struct(rule.fields)))
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
        for message in self.protocol.messages:
            name = construct_name(message.rule)
            if self.whole(message):
                found.append((name, self.frames(message, None)))
                continue
            head = message.parts[0]
            assert isinstance(head, ir.Frame)
            found.append((name, self.struct(head.fields)))
            found.append((f"{name}_frames", self.frames(message, name)))
        return found

    def whole(self, message: ir.Message) -> bool:
        """Return whether the rule consists of frames only, so that it declares the whole message."""
        return message.parts[0].name != message.name

    def frames(self, message: ir.Message, head: str | None) -> str:
        """Return the declaration of all frames; `head` names the declaration of the first, if any."""
        entries = [*self.unlike(message), *self.checks(message)]
        for index, part in enumerate(message.parts):
            if isinstance(part, ir.Rest):
                entries.append(
                    f'"{part.field.name}" / cs.GreedyRange({self.frame(self.type(part.field.type))})'
                )
            elif isinstance(part, ir.Stack):
                stack = f"Stack({self.type(part.field.type)})"
                entries.append(f'"{part.field.name}" / {self.present(part, part.field.name, stack)}')
            else:
                entries.append(self._frame_entry(part, head if index == 0 else None))
        return f"message({', '.join(entries)})"

    def _frame_entry(self, part: ir.Frame, head: str | None) -> str:
        """Return a frame: with one value, it has the field's name; with several, its own lower-case name."""
        if len(part.fields) == 1 and not head:
            only = part.fields[0]
            expression = self.present(part, only.name, self.frame(self.value(only)))
            return f'"{only.name}" / {expression}'
        rule = next((r for r in self.protocol.rules if r.fields == part.fields), None)
        inner = head or (construct_name(rule.name) if rule else self.struct(part.fields))
        return f'"{snake_case(part.name)}" / {self.present(part, snake_case(part.name), self.frame(inner))}'

    def checks(self, message: ir.Message) -> list[str]:
        """Return checks of the flag bits that the message's parts allow."""
        groups: dict[int, set[int]] = {}
        for part in message.parts:
            if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Counted) or not part.presence.mask:
                continue
            values = groups.setdefault(part.presence.mask, set())
            values |= (
                {part.presence.value} if isinstance(part.presence, ir.Always) else {0, part.presence.value}
            )
        known = 0
        for mask in groups:
            known |= mask
        absent = announcing_bits(self.protocol) & ~known
        if absent:
            groups[absent] = {0}
        return [
            f"cs.Check(lambda this: this._params.flags & 0x{mask:02x} in {tuple(sorted(values))!r})"
            for mask, values in groups.items()
            if values != {0, mask} or mask & (mask - 1)
        ]

    def present(self, part: ir.Frame | ir.Stack, name: str, expression: str) -> str:
        """Return the expression, made optional if the part is optional."""
        match part.presence:
            case ir.Announced(mask=mask, value=value):
                return f"cs.If((cs.this._params.flags & 0x{mask:02x}) == 0x{value:02x}, {expression})"
            case ir.Counted():
                return f'Trailing("{name}", {expression})'
        return expression

    def frame(self, inner: str) -> str:
        """Return the expression for one ZeroMQ frame, parsed to its end."""
        return f"frame({inner})"

    def unlike(self, message: ir.Message) -> list[str]:
        """Return the more specific shapes of other messages, which this one must not match."""
        if not message.shadowed:
            return []
        least = min(map(weight, _shapes(message)))
        others = [
            shape for other in self.protocol.messages if other is not message for shape in _shapes(other)
        ]
        heavier = [_shape(shape) for shape in others if weight(shape) > least]
        return [f"Unlike({', '.join(heavier)})"] if heavier else []

    def struct(self, fields: tuple[ir.Field, ...]) -> str:
        """Return a run of fields; the octets counted by a size are a nested struct."""
        entries: list[str] = []
        for index, field in enumerate(fields):
            if isinstance(field.type, ir.SizeType):
                forms = "".join(
                    f"({octets_literal(bytes.fromhex(f.tag))}, {f.octets}), " for f in field.type.forms
                )
                entries.append(f'"{field.name}" / Sized(({forms}), {self.struct(fields[index + 1 :])})')
                break
            value = f'Trailing("{field.name}", {self.value(field)})' if field.optional else self.value(field)
            entries.append(f'"{field.name}" / {value}')
        return f"cs.Struct({', '.join(entries)})"

    def value(self, field: ir.Field) -> str:
        """Return the name of the rule that types the field, or else the type's declaration."""
        if field.rule and self.declared.get(field.rule) == field.type:
            return construct_name(field.rule)
        return self.type(field.type)

    def type(self, type: ir.Type) -> str:
        """Return the declaration of a type."""
        match type:
            case ir.ConstantType() as constant:
                return f"cs.Const({octets_literal(constant.octets)})"
            case ir.KeywordType(options=options):
                return f'cs.OneOf(cs.GreedyString("utf8"), {options!r})'
            case ir.PaddingType(octets=octets, fill=fill):
                return f"cs.Padding({octets}, {octets_literal(bytes.fromhex(fill))})"
            case ir.SizeType():
                raise AssertionError("a size is part of a run")
            case ir.IntegerType():
                return self._integer(type)
            case ir.TextType(length=length, padding=str(padding)):
                return f"Padded({length.octets}, {octets_literal(bytes.fromhex(padding))})"
            case ir.TextType(length=length, terminated=terminated):
                return f"Unterminated({_text(length)})" if terminated else _text(length)
            case ir.OctetsType():
                return _octets(type)
            case ir.JsonType():
                return 'cs.GreedyString("utf8")'
            case ir.ListType(count_octets=count, element=element, minimum=minimum):
                return _many(count, self.type(element), minimum)
            case ir.PairsType():
                return self._pairs(type)
            case ir.RecordType(fields=fields):
                return f"Record({self.struct(fields)})"
            case ir.UnionType(options=options, tags=tags):
                rows = zip(tags, options, strict=True)
                listed = (
                    f"{octets_literal(bytes.fromhex(t))}: ({o.class_name!r}, {self.type(o)})" for t, o in rows
                )
                return f"Tagged({{{', '.join(listed)}}})"

    def _integer(self, type: ir.IntegerType) -> str:
        members = next((e.members for e in self.protocol.enums if e.name == type.enum), ())
        values = tuple(value for _, value in members) or type.values
        number = _number(type.octets)
        return f"cs.OneOf({number}, {values!r})" if values else number

    def _pairs(self, type: ir.PairsType) -> str:
        if type.value is None:
            last = ", last=True" if type.split == "last" else ""
            entry = f"Divided({self.type(type.name)}{last})"
        else:
            entry = f"cs.Sequence({self.type(type.name)}, {self.type(type.value)})"
        return _many(type.count_octets, entry, type.minimum)


def _names(rule: ir.NamedRule) -> set[str]:
    return {construct_name(name) for name in rule.one_of}


def _many(count: int, entry: str, minimum: int) -> str:
    found = f"cs.PrefixedArray({_number(count)}, {entry})" if count else f"ToEnd({entry})"
    return f"AtLeast({minimum}, {found})" if minimum else found


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
    spelled = ["." if piece == "??" else "\\x" + piece for piece in pieces]
    end = r"\Z" if head.whole else ""
    return f'rb"{"".join(spelled)}{end}"'


def _number(octets: int) -> str:
    return NUMBERS.get(octets, f"cs.BytesInteger({octets})")


def _text(length: ir.Length) -> str:
    if length.kind == "prefix":
        return f'cs.PascalString({_number(length.octets)}, "utf8")'
    if length.kind == "until":
        return f'Until({octets_literal(bytes.fromhex(length.until))}, cs.GreedyString("utf8"))'
    return (
        'cs.GreedyString("utf8")'
        if length.kind == "rest"
        else f'cs.FixedSized({length.octets}, cs.GreedyString("utf8"))'
    )


def _octets(type: ir.OctetsType) -> str:
    length = type.length
    if length.kind == "fixed":
        return f"cs.Bytes({length.octets})"
    raw = "cs.GreedyBytes"
    if length.kind == "prefix":
        raw = f"cs.Prefixed({_number(length.octets)}, cs.GreedyBytes)"
    raw = f"AtLeast({type.minimum}, {raw})" if type.minimum else raw
    return raw if type.maximum is None else f"AtMost({type.maximum}, {raw})"


def _flags_place(protocol: ir.Protocol) -> str:
    """Return frame and offset of the octet whose bits announce parts, or None, as source."""
    if not announcing_bits(protocol):
        return "None"
    part = protocol.messages[0].parts[-1]
    assert isinstance(part, ir.Frame)
    before = takewhile(lambda field: not _is_bitmask(field), part.fields)
    offset = sum(fixed_size(field.type) or 0 for field in before)
    return f"(-1, {offset})"


def _is_bitmask(field: ir.Field) -> bool:
    return isinstance(field.type, ir.IntegerType) and field.type.bitmask


EMITTER = Emitter("constructs.py", emit)
