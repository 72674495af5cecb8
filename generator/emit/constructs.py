"""Writes ``constructs.py``: a Construct declaration for every rule and message.

The declarations are the reference: one for each rule of the grammar, under the rule's own name, and one for
each message over all its frames. They are made from the same IR as the codec and share no code with it.
"""

from __future__ import annotations

from itertools import takewhile

from specwire.generator import ir
from specwire.generator.emit.python import announcing_bits, fixed_size, octets_literal
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.names import construct_name, snake_case

NUMBERS = {1: "cs.Int8ub", 2: "cs.Int16ub", 3: "cs.Int24ub", 4: "cs.Int32ub", 8: "cs.Int64ub"}


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's constructs module."""
    writer = _Writer(protocol)
    declarations = [*writer.rules(), *writer.messages()]
    text = "\n".join(value for _, value in declarations)
    used = ("AtLeast", "Divided", "Stack", "Trailing", "Unterminated", "frame", "message")
    return render(
        "constructs.py.j2",
        header=header(
            protocol,
            f"{protocol.edition}: Construct declarations of every rule and message.",
            "A rule's declaration reads the octets of one frame. A message's reads all its frames, each with its\n"
            "length in front, as `parse` and `build` put them together.",
        ),
        helpers=[name for name in used if f"{name}(" in text],
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
        """The rules that messages are made of: values, then runs of fields, then choices."""
        found: list[tuple[str, str]] = []
        for rule in self.protocol.rules:
            if rule.type is not None:
                self.declared[rule.name] = rule.type
                found.append((construct_name(rule.name), self.type(rule.type)))
        for rule in self.protocol.rules:
            if rule.fields:
                found.append((construct_name(rule.name), self.struct(rule.fields)))
        for rule in self.protocol.rules:
            if rule.one_of:
                names = ", ".join(construct_name(name) for name in rule.one_of)
                found.append((construct_name(rule.name), f"cs.Select({names})"))
        return found

    def messages(self) -> list[tuple[str, str]]:
        """Each message: its header frame under the rule's name where it has one, then all frames."""
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
        """Whether the rule is made of frames only, so that its declaration is that of the whole message."""
        return message.parts[0].name != message.name

    def frames(self, message: ir.Message, head: str | None) -> str:
        """The declaration of all frames; `head` is the declaration of the first where it has a name."""
        entries = [*self.checks(message)]
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
        """A frame with one value has the field's name, one with several its own (lower-case) name."""
        if len(part.fields) == 1 and not head:
            only = part.fields[0]
            expression = self.present(part, only.name, self.frame(self.value(only)))
            return f'"{only.name}" / {expression}'
        rule = next((r for r in self.protocol.rules if r.fields == part.fields), None)
        inner = head or (construct_name(rule.name) if rule else self.struct(part.fields))
        return f'"{snake_case(part.name)}" / {self.present(part, snake_case(part.name), self.frame(inner))}'

    def checks(self, message: ir.Message) -> list[str]:
        """The flag bits that the message's parts allow."""
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
        """The expression, made optional as the part is."""
        match part.presence:
            case ir.Announced(mask=mask, value=value):
                return f"cs.If((cs.this._params.flags & 0x{mask:02x}) == 0x{value:02x}, {expression})"
            case ir.Counted():
                return f'Trailing("{name}", {expression})'
        return expression

    def frame(self, inner: str) -> str:
        """One ZeroMQ frame, read to its end."""
        return f"frame({inner})"

    def struct(self, fields: tuple[ir.Field, ...]) -> str:
        """A run of fields."""
        entries = [f'"{field.name}" / {self.value(field)}' for field in fields]
        return f"cs.Struct({', '.join(entries)})"

    def value(self, field: ir.Field) -> str:
        """The name of the rule that gives the field its type, else the type in place."""
        if field.rule and self.declared.get(field.rule) == field.type:
            return construct_name(field.rule)
        return self.type(field.type)

    def type(self, type: ir.Type) -> str:
        """The declaration of a type."""
        match type:
            case ir.ConstantType() as constant:
                return f"cs.Const({octets_literal(constant.octets)})"
            case ir.KeywordType(options=options):
                return f'cs.OneOf(cs.GreedyString("utf8"), {options!r})'
            case ir.IntegerType(octets=octets, enum=enum):
                return self._integer(octets, enum)
            case ir.TextType(length=length, terminated=terminated):
                return f"Unterminated({_text(length)})" if terminated else _text(length)
            case ir.OctetsType(length=length, minimum=minimum):
                raw = _octets(length)
                return f"AtLeast({minimum}, {raw})" if minimum and length.kind != "fixed" else raw
            case ir.JsonType():
                return 'cs.GreedyString("utf8")'
            case ir.ListType(count_octets=count, element=element):
                return f"cs.PrefixedArray({_number(count)}, {self.type(element)})"
            case ir.PairsType(count_octets=count, name=name, value=None, split=split):
                last = ", last=True" if split == "last" else ""
                return f"cs.PrefixedArray({_number(count)}, Divided({_text(name.length)}{last}))"
            case ir.PairsType(count_octets=count, name=name, value=value):
                assert value is not None
                pair = f"cs.Sequence({_text(name.length)}, {_text(value.length)})"
                return f"cs.PrefixedArray({_number(count)}, {pair})"

    def _integer(self, octets: int, enum: str | None) -> str:
        members = next((e.members for e in self.protocol.enums if e.name == enum), ())
        if not members:
            return _number(octets)
        return f"cs.OneOf({_number(octets)}, {tuple(value for _, value in members)!r})"


def _number(octets: int) -> str:
    return NUMBERS.get(octets, f"cs.BytesInteger({octets})")


def _text(length: ir.Length) -> str:
    if length.kind == "prefix":
        return f'cs.PascalString({_number(length.octets)}, "utf8")'
    return (
        'cs.GreedyString("utf8")'
        if length.kind == "rest"
        else f'cs.FixedSized({length.octets}, cs.GreedyString("utf8"))'
    )


def _octets(length: ir.Length) -> str:
    if length.kind == "prefix":
        return f"cs.Prefixed({_number(length.octets)}, cs.GreedyBytes)"
    return "cs.GreedyBytes" if length.kind == "rest" else f"cs.Bytes({length.octets})"


def _flags_place(protocol: ir.Protocol) -> str:
    """Where the octet stands whose bits announce parts: frame and offset, or None."""
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
