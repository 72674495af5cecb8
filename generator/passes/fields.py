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
from specwire.generator.passes.octets import constant_of
from specwire.generator.passes.types import FieldsLayout, TypeReader, ValueLayout
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
                yield self._literal(item)

    def stack(
        self, rule: Rule | None, repetition: Repetition, presence: ir.Presence, letter: ir.Letter = None
    ) -> ir.Stack:
        """Return the part for ``*identity delimiter``: one field with all frames up to the delimiter."""
        element = repetition.element
        assert isinstance(element, Reference)
        name = rule.name if rule else element.name
        return ir.Stack(name, self._tuple(name, rule, element), presence, letter)

    def rest(self, repetition: Repetition) -> ir.Field:
        """Return the field for ``*more``: a tuple of all frames that are left."""
        element = repetition.element
        assert isinstance(element, Reference)
        return self._tuple(element.name, self.reader.grammar.find(element), element)

    def _tuple(self, name: str, rule: Rule | None, element: Reference) -> ir.Field:
        target = self.reader.grammar.find(element)
        layout = self.reader.layout(target) if target else None
        inner = layout.type if isinstance(layout, ValueLayout) else ir.OctetsType(ir.Length("rest"))
        described = rule or target
        hint = self.reader.hint(described)
        return self._field(hint.name or name, inner, described, hint, default=(), required=False)

    def _named(self, item: Reference) -> Iterator[ir.Field]:
        rule = self.reader.grammar.find(item)
        if rule is None:
            layout = self.reader.value_type(item, None)
            if layout:
                yield self._field(item.name, layout.type, None, TypeHint())
            return
        found = self.reader.layout(rule)
        if isinstance(found, FieldsLayout):
            yield from self.run(found.items)
        elif isinstance(found, ValueLayout):
            hint = self.reader.profile.profile.types.get(
                f"{self.rule.name}.{rule.name}", self.reader.hint(rule)
            )
            yield self._field(hint.name or rule.name, found.type, rule, hint, sentinels=found.sentinels)
        else:
            self.reader.diagnostics.error(
                "E406", item.span, f"'{item}' has no single value where message '{self.rule}' uses it"
            )

    def _literal(self, item: Element) -> ir.Field:
        octets = constant_of(item, self.reader.grammar)
        layout = self.reader.value_type(item, None)
        if octets is None or layout is None:
            self.reader.diagnostics.error(
                "E407", item.span, f"an element of message '{self.rule}' has neither a name nor a fixed value",
                "give it a rule of its own",
            )  # fmt: skip
            return self._field(LITERAL, ir.ConstantType(""), None, TypeHint())
        self.literals += 1
        name = LITERAL if self.literals == 1 else f"{LITERAL}_{self.literals}"
        doc = "Number of the message." if isinstance(item, NumVal) else ""
        return self._field(name, layout.type, None, TypeHint(doc=doc))

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
            default, required = self._default(hint.default), False
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
            text = " ".join(comment.text for comment in rule.leading)
        return text

    def _default(self, default: str | int) -> ir.Default:
        constant = self.reader.constants.get(constant_name(str(default)))
        return constant.value if constant else default

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
        if isinstance(part, ir.Rest):
            return part
        nullable = not isinstance(part.presence, ir.Always)
        fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
        settled: list[ir.Field] = []
        for field in fields:
            changes: dict[str, Any] = {}
            if nullable and not field.constant:
                changes = {"nullable": True, "required": False, "default": None}
            if part.name in self.table.defaults:
                value = self.table.defaults[part.name]
                changes |= {"default": () if value == [] else value, "required": False}
            settled.append(msgspec.structs.replace(field, **changes))
        if isinstance(part, ir.Frame):
            return msgspec.structs.replace(part, fields=tuple(settled))
        return msgspec.structs.replace(part, field=settled[0])

    def check(self, parts: Iterable[ir.Part]) -> None:
        """Report names that fall together and frames with two values of unbounded length."""
        names: dict[str, ir.Field] = {}
        for part in parts:
            fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
            for field in fields:
                if field.name in names:
                    self.reader.diagnostics.error(
                        "E408", self.rule.name_span, f"message '{self.rule}' has two fields named '{field.name}'",
                        "give one of their rules another name under [types] in the profile",
                    )  # fmt: skip
                names[field.name] = field
            open_ended = [field for field in fields if _unbounded(field.type)]
            if isinstance(part, ir.Frame) and any(field is not fields[-1] for field in open_ended):
                self.reader.diagnostics.error(
                    "E409", self.rule.name_span,
                    f"'{open_ended[0].name}' in message '{self.rule}' has no end, and another field follows it",
                )  # fmt: skip
            if isinstance(part, ir.Frame) and not isinstance(part.presence, ir.Always) and len(fields) > 1:
                self.reader.diagnostics.error(
                    "E410", self.rule.name_span, f"optional frame '{part.name}' has more than one field"
                )


def _unbounded(type: ir.Type) -> bool:
    return isinstance(type, ir.JsonType | ir.KeywordType) or (
        isinstance(type, ir.TextType | ir.OctetsType) and type.length.kind == "rest"
    )
