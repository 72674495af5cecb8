"""The fields of one message: names, types, defaults, documentation.

A literal in place has no name of its own; it is the message's ``id``. Constants keep their place among
the fields, because encoders and schemas need it, but are no fields of the class.

Defaults: what the profile declares; None for a part that can be absent; and no pairs or elements for a
dictionary or list that nothing without a default follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from specwire.generator import ir
from specwire.generator.names import attribute, constant_name, snake_case
from specwire.generator.passes.defaults import Misfit, read_default
from specwire.generator.passes.types import FieldsLayout, TypeReader, ValueLayout, words_of
from specwire.generator.profile import MessageTable, TypeHint
from specwire.generator.syntax import Element, NumVal, Reference, Repetition, Rule

LITERAL = "id"
"""The name of a literal that stands in a message rule: in every protocol so far, the message's number."""


class FieldReader:
    """Makes the fields of one message rule and remembers the names that are taken."""

    def __init__(self, reader: TypeReader, rule: Rule, table: MessageTable) -> None:
        self.reader = reader
        self.rule = rule
        self.table = table
        self.literals = 0

    def run(self, items: Sequence[Element]) -> Iterator[ir.Field]:
        """Yield a field for each element of a run; rules that are runs themselves are opened."""
        for item in items:
            if isinstance(item, Reference):
                yield from self._named(item)
            else:
                yield from self._literal(item)

    def stack(
        self, rule: Rule | None, repetition: Repetition, presence: ir.Presence, letter: ir.Letter = None
    ) -> ir.Stack:
        """Return the part for ``*identity delimiter``: one field with all frames up to the delimiter."""
        name = rule.name if rule else str(repetition.element)
        return ir.Stack(name, self._tuple(name, rule, repetition), presence, letter)

    def rest(self, rule: Rule | None, repetition: Repetition) -> ir.Field:
        """Return the field for ``*more``: a tuple of all frames that are left.

        `rule` is the rule that stands for them in the message (``content = msg``), None for frames in place.
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

    def _named(self, item: Reference) -> Iterator[ir.Field]:
        rule = self.reader.grammar.find(item)
        if rule is None:
            layout = self.reader.value_type(item, None)
            if layout:
                hint = self.reader.hint(item, self.rule)
                yield self._field(hint.name or item.name, layout.type, None, hint)
            else:
                self._no_value(item)
            return
        found = self.reader.layout(rule)
        if isinstance(found, FieldsLayout):
            yield from self.run(found.items)
        elif isinstance(found, ValueLayout):
            hint = self.reader.hint(rule, self.rule)
            yield self._field(hint.name or rule.name, found.type, rule, hint, sentinels=found.sentinels)
        else:
            self._no_value(item)

    def _no_value(self, item: Reference) -> None:
        self.reader.diagnostics.error(
            "E406", item.span, f"'{item}' has no single value where message '{self.rule}' uses it",
            "a field is a value or a run of values; alternatives are a frame of their own, or messages",
        )  # fmt: skip

    def _literal(self, item: Element) -> Iterator[ir.Field]:
        octets = self.reader.octets.constant(item)
        layout = self.reader.value_type(item, None)
        if octets is None or layout is None:
            self.reader.diagnostics.error(
                "E407", item.span, f"an element of message '{self.rule}' has neither a name nor a fixed value",
                "give it a rule of its own",
            )  # fmt: skip
            return
        self.literals += 1
        name = LITERAL if self.literals == 1 else f"{LITERAL}_{self.literals}"
        doc = "Number of the message." if isinstance(item, NumVal) else ""
        yield self._field(name, layout.type, None, TypeHint(doc=doc))

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
        snake = snake_case(name)
        return ir.Field(
            name=snake,
            attribute=attribute(snake),
            type=type,
            rule=rule.name if rule else None,
            line=rule.published_line if rule else 0,
            doc=hint.doc or (self._doc(rule) if rule else ""),
            unit=hint.unit,
            default=default,
            required=required,
            sentinels=tuple(constant_name(sentinel) for sentinel in sentinels),
        )

    def _doc(self, rule: Rule) -> str:
        """The comment on the rule, less the words that only say that it is a frame."""
        text = self.reader.comment(rule)
        if "zeromq frame" in text.lower():
            text = words_of(rule.leading)
        return text

    def _default(
        self, value: object, type: ir.Type, rule: Rule | None, part: str | None = None, *, many: bool = False
    ) -> ir.Default:
        """Return what a default of the profile is in the IR; one that does not fit is E512, and none."""
        known = self.reader
        try:
            return read_default(value, type, many=many, constants=known.constants, enums=known.enums)
        except Misfit as misfit:
            path = self._place_of_default(rule, part)
            known.diagnostics.error(
                "E512",
                known.profile.place(*path),
                f"this cannot be a default in message '{self.rule}': {misfit}",
            )
        return None

    def _place_of_default(self, rule: Rule | None, part: str | None) -> tuple[str, ...]:
        if part is not None or rule is None:
            return ("message", str(self.rule), "defaults", part or "")
        inside = f"{self.rule.name}.{rule.name}"
        key = inside if inside in self.reader.profile.profile.types else rule.name
        return ("types", key, "default")

    def settle(self, parts: Iterable[ir.Part]) -> tuple[ir.Part, ...]:
        """Give fields of absent parts their None, profile defaults, and trailing collections theirs."""
        settled = [self._settle_part(part) for part in parts]
        trailing = True
        for index in reversed(range(len(settled))):
            part = settled[index]
            if not isinstance(part, ir.Frame):
                continue
            fields: list[ir.Field] = []
            for field in reversed(part.fields):
                if trailing and field.required and isinstance(field.type, ir.PairsType | ir.ListType):
                    field = msgspec.structs.replace(field, default=(), required=False)
                trailing = trailing and (field.constant or not field.required)
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
        if nullable and not field.constant:
            changes = {"nullable": True, "required": False, "default": None}
        if part.name in self.table.defaults and not field.constant:
            many = not isinstance(part, ir.Frame)
            value = self._default(self.table.defaults[part.name], field.type, None, part.name, many=many)
            changes |= {"default": value, "required": False}
        return msgspec.structs.replace(field, **changes)


def _fills_a_frame(type: ir.Type) -> bool:
    """Whether a value can be each of any number of frames."""
    return isinstance(type, ir.TextType | ir.OctetsType) and type.length.kind == "rest"
