"""The fields of one message: names, types, defaults, documentation.

A literal in a message rule has no name; it becomes the message's ``id``. Constants keep their place among the
fields, because encoders and schemas need it, but are not fields of the class.

Defaults are those of the profile, None for an optional part, and an empty collection for a dictionary or list
that is followed only by fields with defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumVal,
    Option,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.ir.names import attribute, constant_name, fold, snake_case
from specwire.generator.passes.bits import read_bits
from specwire.generator.passes.counters import ALL
from specwire.generator.passes.defaults import Misfit, read_default
from specwire.generator.passes.delimited import end_values
from specwire.generator.passes.grammar import references
from specwire.generator.passes.layouts import ChoiceLayout, FieldsLayout, ValueLayout, words_of
from specwire.generator.passes.runs import Group, flat, group_elements
from specwire.generator.passes.timestamps import read_timestamp
from specwire.generator.profile.tables import NOTHING_SAID, MessageTable, PresenceTable, TypeHint

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader

LITERAL = "id"
"""The name of a literal in a message rule. In every protocol so far it is the message's number."""


class FieldReader:
    """Reader of the fields of one message rule; it remembers the names that are taken."""

    def __init__(self, reader: TypeReader, rule: Rule, table: MessageTable) -> None:
        self.reader = reader
        self.rule = rule
        self.table = table
        self.literals = 0
        self.options = 0
        """Number of options with a condition."""
        self.conditional = False
        """The fields that are read belong to an option."""

    def run(self, items: Sequence[Element]) -> Iterator[ir.Field]:
        """Yield the fields of a run; rules that are runs themselves are expanded.

        The name of a field from such a rule is qualified by the rule's name, ``address/port``, until
        `specwire.generator.passes.field_names.distinct` shortens it.
        """
        groups = list(group_elements(self.reader, items))
        trailing = len(groups)
        while trailing and groups[trailing - 1].kind == "optional":
            trailing -= 1
        last = len(groups) - 1
        yield from end_values(
            field
            for number, group in enumerate(groups)
            for field in self._group(group, last=number == last, trailing=number >= trailing)
        )

    def _group(self, group: Group, *, last: bool, trailing: bool) -> Iterator[ir.Field]:
        match group:
            case Group(kind="word", elements=(length, CharVal(text=text))):
                width = len(length.values) if isinstance(length, NumVal) else self.reader.width(length) or 1
                octets = len(text).to_bytes(width, "big") + text.encode()
                self.reader.note_literals(group.elements[1])
                folded = self.reader.octets.is_folded(group.elements[1])
                yield self._constant(ir.ConstantType(octets.hex(), text, folded=folded))
            case Group(kind="counted", elements=(head, Repetition() as repetition)):
                yield from self._counted(head, repetition)
            case Group(kind="length", elements=(head, Reference() as value)):
                yield from self._with_length(head, value)
            case Group(kind="size", elements=(Reference() as size,)):
                yield from self._size(size)
            case Group(kind="size", elements=(Alternation() as forms,)) if type := self.reader.forms_of(
                forms
            ):
                yield self._field("size", type, None, NOTHING_SAID)
            case Group(kind="optional", elements=(Option() as option,)):
                yield from self._optional(option, trailing=trailing)
            case Group(elements=(Reference() as item,)):
                yield from self._named(item, last=last)
            case Group(elements=(item, *_)):
                yield from self._unnamed(item)

    def _counted(self, head: Element, repetition: Repetition) -> Iterator[ir.Field]:
        """Yield the field of ``L *X``, named after X, or else after L without the word for a length."""
        body = repetition.element
        target = self.reader.grammar.find(body) if isinstance(body, Reference) else None
        hint = self.reader.hint(target, self.rule)
        layout = self.reader.counted(head, repetition, self.rule, hint)
        if layout is None:
            self._no_layout(repetition)
            return
        if target is not None:
            yield self._field(hint.name or target.name, layout.type, target, hint)
            return
        name = head.name if isinstance(head, Reference) else ""
        stem = re.sub(
            r"(?:^|[-_])(?:size|length|len|count)(?:-\d+)?\Z|^number\b.*", "", name, flags=re.IGNORECASE
        )
        yield self._field(stem or "data", layout.type, None, NOTHING_SAID)

    def _with_length(self, head: Element, value: Reference) -> Iterator[ir.Field]:
        """Yield the field of ``size body``: the value with its length or count before it."""
        rule = self.reader.grammar.find(value)
        layout = self.reader.layout(rule) if rule else None
        prefix = self.reader.prefix(head)
        found = layout.type if isinstance(layout, ValueLayout) else None
        self.reader.note_length(head)
        type = _prefixed(found, *prefix) if found is not None and prefix is not None else None
        if found is not None and prefix is not None and type is None:
            self.reader.fault(
                "E406",
                value.span,
                f"'{value}' cannot have '{head}' as its length: it is no text, octets or list of open length",
                f'declare what \'{head}\' counts: `counts = "{value}"`, or `scope = "rest"` for all octets after '
                "it",
            )
            return
        if type is None or rule is None:
            self._no_value(value)
            return
        hint = self.reader.hint(rule, self.rule)
        yield self._field(hint.name or rule.name, type, rule, hint)

    def _size(self, item: Reference) -> Iterator[ir.Field]:
        """Yield the field of an integer, plain or in several forms, that counts all octets after it."""
        width = self.reader.width(item)
        self.reader.note_length(item)
        opened = self.reader.opened(item)
        rule = self.reader.grammar.find(item)
        hint = self.reader.hint(rule, self.rule)
        forms = self.reader.forms_of(opened) if isinstance(opened, Alternation | Concatenation) else None
        type: ir.Type = forms or ir.SizeType((ir.SizeForm("", width or 1),))
        prefix = self.reader.prefix(item)
        if forms is None and prefix is not None and prefix[1] is not None:
            type = ir.CounterType(prefix[1], (ALL,))
        yield self._field(hint.name or item.name, type, rule, hint)

    def _optional(self, option: Option, *, trailing: bool) -> Iterator[ir.Field]:
        """Yield the fields of an option: a single value at the end of a frame, or fields with a condition.

        `specwire.generator.passes.options` finds the condition.
        """
        outer, self.conditional = self.conditional, True
        fields = list(self.run((option.element,)))
        self.conditional = outer
        values = [field for field in fields if not field.optional]
        condition = self._condition(option.element)
        single = len(values) == 1 and not values[0].implied and values[0].option is None
        if trailing and single and condition is None:
            for field in fields:
                yield msgspec.structs.replace(
                    field, optional=True, nullable=True, required=False, default=None
                )
            return
        if not fields or any(field.optional or field.option for field in fields):
            self.reader.fault(
                "E405",
                option.span,
                f"'{self.rule}' has an option inside another option in the middle of a frame",
                "write the inner option after the outer one, or move both to a rule of a list or of "
                "alternatives",
            )
            return
        yield from self._conditional(fields, condition or ir.Option("left"), option.element)

    def _conditional(
        self, fields: Sequence[ir.Field], condition: ir.Option, element: Element
    ) -> Iterator[ir.Field]:
        """Yield fields that are present only under a condition; constants alone give a boolean."""
        self.options += 1
        option = msgspec.structs.replace(condition, number=self.options)
        if all(field.implied for field in fields):
            name = element.name if isinstance(element, Reference) else _words(fields)
            told = self._field(name, ir.PresentType(), None, NOTHING_SAID)
            yield msgspec.structs.replace(told, option=option)
        for field in fields:
            if field.implied:
                yield msgspec.structs.replace(field, option=option)
            else:
                yield msgspec.structs.replace(
                    field, option=option, nullable=True, required=False, default=None
                )

    def _condition(self, element: Element) -> ir.Option | None:
        """Return the condition that the profile states for an element or for a rule in it."""
        for use in (element,) if isinstance(element, Reference) else references(element):
            presence = self.reader.hint(use, self.rule).presence
            if isinstance(presence, PresenceTable):
                return ir.Option(
                    "number", field=presence.field, mask=presence.mask, values=tuple(presence.values)
                )
            if isinstance(presence, str) and fold(presence) in self.reader.bit_names:
                return ir.Option("number", field=presence)
        return None

    def stack(
        self,
        rule: Rule | None,
        repetition: Repetition,
        presence: ir.Presence,
        delimiter: bytes,
        letter: ir.Letter = None,
    ) -> ir.Stack:
        """Return the part for ``*identity delimiter``: one field with all frames up to the delimiter."""
        name = rule.name if rule else str(repetition.element)
        field = self._tuple(name, rule, repetition)
        return ir.Stack(name, field, presence, letter, delimiter.hex())

    def rest(self, rule: Rule | None, repetition: Repetition) -> ir.Field:
        """Return the field for ``*more``: a tuple of all remaining frames.

        Args:
            rule: the rule that names the frames in the message (``content = msg``); None for frames in place.
        """
        return self._tuple(rule.name if rule else str(repetition.element), rule, repetition)

    def _tuple(self, name: str, rule: Rule | None, repetition: Repetition) -> ir.Field:
        element = repetition.element
        target = self.reader.grammar.find(element) if isinstance(element, Reference) else None
        inner: ir.Type = ir.OctetsType(ir.Length("rest"))
        if target is not None:
            layout = self.reader.layout(target)
            if isinstance(layout, ValueLayout) and _fills_a_frame(layout.type):
                inner = layout.type
            elif isinstance(element, Reference):
                self._no_value(element)
        described = rule or target
        hint = self.reader.hint(described, self.rule)
        default = () if hint.default is None else self._default(hint.default, inner, described, many=True)
        hint = msgspec.structs.replace(hint, default=None)
        return self._field(hint.name or name, inner, described, hint, default=default, required=False)

    def _named(self, item: Reference, *, last: bool = True) -> Iterator[ir.Field]:
        rule = self.reader.grammar.find(item)
        if rule is None:
            layout = self.reader.value_type(item, None)
            if layout:
                hint = self.reader.hint(item, self.rule)
                yield self._field(hint.name or item.name, layout.type, None, hint)
            else:
                self._no_value(item)
            return
        condition = self._condition(item)
        if condition is not None and not self.conditional:
            self.conditional = True
            yield from self._conditional(list(self._named(item, last=last)), condition, item)
            self.conditional = False
            return
        hint = self.reader.hint(rule, self.rule)
        if hint.bits:
            yield from self._bits(rule, hint)
            return
        found = self.reader.layout(rule)
        name = hint.name or rule.name
        if enclosing := self.reader.enclosing(rule):
            yield self._field(name, enclosing, rule, hint)
        elif isinstance(found, FieldsLayout) and str(rule) in self.reader.recursive:
            record = self.reader.record(rule.name, found.items, rule)
            if record is not None:
                yield self._field(name, record, rule, hint)
        elif isinstance(found, FieldsLayout):
            yield from self._opened(rule, found, hint, last=last)
        elif isinstance(found, ValueLayout):
            yield self._field(name, found.type, rule, hint, sentinels=found.sentinels)
        elif isinstance(found, ChoiceLayout):
            union = self.reader.union(rule.name, found.element)
            if union is not None:
                yield self._field(name, union, rule, hint)

    def _bits(self, rule: Rule, hint: TypeHint) -> Iterator[ir.Field]:
        """Yield the fields of the bits of an integer."""
        for bits in read_bits(self.reader, rule, hint):
            hint = TypeHint(
                default=bits.table.default, unit=bits.table.unit, doc=bits.table.doc or "",
                timestamp=bits.table.timestamp, epoch=bits.table.epoch,
            )  # fmt: skip
            field = self._field(bits.name, bits.type, rule, hint)
            yield msgspec.structs.replace(field, name=f"{snake_case(rule.name)}/{field.name}")

    def _opened(self, rule: Rule, found: FieldsLayout, hint: TypeHint, *, last: bool) -> Iterator[ir.Field]:
        """Yield the fields of a rule in place of its name.

        If a size in the rule does not cover all the rest of the frame, yield a record.
        """
        inner = FieldReader(self.reader, self.rule, self.table)
        inner.options, inner.conditional = self.options, self.conditional
        fields = list(inner.run(found.items))
        self.options = inner.options
        if not last and any(isinstance(field.type, ir.SizeType) for field in fields):
            record = self.reader.record(rule.name, found.items, rule)
            if record is not None:
                yield self._field(hint.name or rule.name, record, rule, hint)
            return
        for field in fields:
            yield msgspec.structs.replace(field, name=f"{snake_case(rule.name)}/{field.name}")

    def _no_value(self, item: Reference) -> None:
        if self.reader.has_fault(item):
            return
        self.reader.fault(
            "E406",
            item.span,
            f"'{item}' is not a single value in '{self.rule}'",
            "specwire cannot express alternatives in place of a field: make them a separate frame, or "
            "separate messages",
        )

    def _no_layout(self, item: Element) -> None:
        if any(map(self.reader.has_fault, references(item))):
            return
        self.reader.fault(
            "E407",
            item.span,
            f"an element of '{self.rule}' has neither a name nor a fixed value",
            "specwire cannot express it in place: give it a rule in an erratum",
        )

    def _unnamed(self, item: Element) -> Iterator[ir.Field]:
        """Yield the field of a value without a rule: a literal, a repetition, alternatives, or octets."""
        layout = self.reader.shape(item, None, NOTHING_SAID)
        if layout is not None and isinstance(layout.type, ir.ConstantType):
            yield self._constant(layout.type, "Number of the message." if isinstance(item, NumVal) else "")
            return
        if layout is not None and isinstance(layout.type, ir.SizeType):
            yield self._field("size", layout.type, None, NOTHING_SAID)
            return
        body = item.element if isinstance(item, Repetition) else item
        target = self.reader.grammar.find(body) if isinstance(body, Reference) else None
        if layout is not None and target is not None:
            hint = self.reader.hint(target, self.rule)
            yield self._field(hint.name or target.name, layout.type, target, hint)
            return
        if layout is not None and isinstance(body, Concatenation) and (named := self._name_of(body)):
            name, target = named
            yield self._field(name, layout.type, target, NOTHING_SAID)
            return
        name = "value"
        type = layout.type if layout else None
        if type is None and isinstance(item, Alternation):
            name = "choice"
            type = self.reader.union(f"{self.rule.name}-choice", item)
        elif type is None:
            self._no_layout(item)
        if type is not None:
            self._assume_name(item, name)
            yield self._field(name, type, None, NOTHING_SAID)

    def _name_of(self, group: Concatenation) -> tuple[str, Rule] | None:
        """Return the name of a repeated group: that of its only value, or of its name and value.

        ``*(SP key)`` is ``key``; ``*(header-name ":" header-value CRLF)`` is ``header``.
        """
        rules = [
            rule
            for item in flat(group.items)
            if isinstance(item, Reference) and self.reader.octets.constant(item) is None
            if (rule := self.reader.grammar.find(item))
        ]
        if len(rules) == 1:
            return self.reader.hint(rules[0], self.rule).name or rules[0].name, rules[0]
        if len(rules) == 2 and (stem := re.sub(r"[-_](?:name|key)\Z", "", rules[0].name)) != rules[0].name:
            return stem, rules[0]
        return None

    def _constant(self, type: ir.ConstantType, doc: str = "") -> ir.Field:
        self.literals += 1
        name = LITERAL if self.literals == 1 else f"{LITERAL}_{self.literals}"
        return self._field(name, type, None, TypeHint(doc=doc if self.literals == 1 else ""))

    def _assume_name(self, item: Element, name: str) -> None:
        if item.span in self.reader.nameless:
            return
        self.reader.nameless.add(item.span)
        self.reader.diagnostics.warning(
            "W408",
            item.span,
            f"an element of '{self.rule}' has no name and is named '{name}'",
            "give it a separate rule with the intended name in an erratum",
        )

    def _field(
        self,
        name: str,
        type: ir.Type,
        rule: Rule | None,
        hint: TypeHint,
        *,
        sentinels: tuple[str, ...] = (),
        default: ir.Default = None,
        required: bool = True,
    ) -> ir.Field:
        if hint.default is not None:
            default, required = self._default(hint.default, type, rule), False
        elif isinstance(type, ir.KeywordType):
            default, required = type.options[0], False
        timestamp = read_timestamp(hint, type)
        if timestamp is not None and rule is not None:
            used = f"{rule.name}/{name}" if isinstance(type, ir.BitType) else rule.name
            self.reader.times |= {fold(used), fold(f"{self.rule.name}.{used}")}
        snake = snake_case(name)
        return ir.Field(
            name=snake,
            attribute=attribute(snake),
            type=type,
            rule=rule.name if rule else None,
            line=rule.published_line if rule else 0,
            doc=hint.doc or (self._doc(rule) if rule else ""),
            unit=timestamp.words if timestamp else hint.unit,
            content=hint.content,
            timestamp=timestamp,
            default=default,
            required=required,
            sentinels=tuple(constant_name(sentinel) for sentinel in sentinels),
        )

    def _doc(self, rule: Rule) -> str:
        """Return the comment on the rule, without the words that only mark it as a frame."""
        text = self.reader.comment(rule)
        if "zeromq frame" in text.lower():
            text = words_of(rule.leading)
        return text

    def _default(
        self, value: object, type: ir.Type, rule: Rule | None, part: str | None = None, *, many: bool = False
    ) -> ir.Default:
        """Return a default of the profile in the form of the IR; None after E512 if it does not fit."""
        known = self.reader
        try:
            return read_default(value, type, many=many, constants=known.constants, enums=known.enums)
        except Misfit as misfit:
            path = self._place_of_default(rule, part)
            known.diagnostics.error(
                "E512",
                known.profile.place(*path),
                f"this default does not fit in message '{self.rule}': {misfit}",
                "write a value that the field can hold, or the name of a constant of the grammar",
            )
        return None

    def _place_of_default(self, rule: Rule | None, part: str | None) -> tuple[str, ...]:
        if part is not None or rule is None:
            return ("message", str(self.rule), "defaults", part or "")
        inside = f"{self.rule.name}.{rule.name}"
        key = inside if inside in self.reader.profile.profile.types else rule.name
        return ("types", key, "default")

    def settle(self, parts: Iterable[ir.Part]) -> tuple[ir.Part, ...]:
        """Return the parts with the defaults of their fields."""
        settled = [self._settle_part(part) for part in parts]
        trailing = True
        for index in reversed(range(len(settled))):
            part = settled[index]
            if not isinstance(part, ir.Frame):
                continue
            fields: list[ir.Field] = []
            for field in reversed(part.fields):
                if (
                    trailing
                    and field.required
                    and isinstance(field.type, ir.PairsType | ir.ListType)
                    and not field.type.minimum
                ):
                    field = msgspec.structs.replace(field, default=(), required=False)
                trailing = trailing and (field.implied or not field.required)
                fields.append(field)
            settled[index] = msgspec.structs.replace(part, fields=tuple(reversed(fields)))
        return tuple(settled)

    def _settle_part(self, part: ir.Part) -> ir.Part:
        if not isinstance(part, ir.Frame):
            return msgspec.structs.replace(part, field=self._settle_field(part.field, part))
        fields = tuple(self._settle_field(field, part) for field in part.fields)
        return msgspec.structs.replace(part, fields=fields)

    def _settle_field(self, field: ir.Field, part: ir.Part) -> ir.Field:
        changes: dict[str, Any] = {}
        nullable = not isinstance(part, ir.Rest) and not isinstance(part.presence, ir.Always)
        if nullable and not field.implied:
            changes = {"nullable": True, "required": False, "default": None}
        if part.name in self.table.defaults and not field.implied:
            many = not isinstance(part, ir.Frame)
            value = self._default(self.table.defaults[part.name], field.type, None, part.name, many=many)
            changes |= {"default": value, "required": False}
        return msgspec.structs.replace(field, **changes)


def _words(fields: Iterable[ir.Field]) -> str:
    """Return a name for constants that are present or not: the letters of the first text."""
    for field in fields:
        if isinstance(field.type, ir.ConstantType) and (field.type.text or "").strip():
            return re.sub(r"[^a-z0-9]+", "-", (field.type.text or "").lower()).strip("-") or "option"
    return "option"


def _prefixed(type: ir.Type, width: int, number: ir.CountType | None) -> ir.Type | None:
    """Return an open value with a length or count of `width` octets before it; None for other values."""
    length = ir.Length("prefix", width, number=number)
    match type:
        case ir.TextType(length=ir.Length(kind="rest")) | ir.OctetsType(length=ir.Length(kind="rest")):
            return msgspec.structs.replace(type, length=length)
        case ir.ListType(count_octets=0) | ir.PairsType(count_octets=0):
            return msgspec.structs.replace(type, count_octets=width, number=number)
    return None


def _fills_a_frame(type: ir.Type) -> bool:
    """Whether a value can fill each of any number of frames."""
    return isinstance(type, ir.TextType | ir.OctetsType) and type.length.kind == "rest"
