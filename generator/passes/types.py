"""What value a rule stands for on the wire.

A rule's layout is one of three: a value with a `Type`, a run of named fields, or a choice among rules
(Flux's ``PROTO``). `TypeReader.layout` answers for any rule, in this order: what the profile declares
(``[types.RULE]``), what the grammar's shape says, what a comment says, and last an assumption, which is a
W401 warning so that nobody is surprised later.

Shapes, after RFC 5234's notation in ZeroMQ specifications:

- constants, and runs of them, are verified octets;
- an alternation of constants is an enumeration, of words a keyword;
- ``4OCTET / name-const`` is an integer with a sentinel;
- ``L *VCHAR`` and ``L *OCTET``, L an integer, are text and octets with their length in front;
- ``L *element`` is a counted list, of pairs a dictionary, of ``name=value`` texts one to be divided;
- ``NOCTET`` is an integer where a comment or the name says so, or N is 1, 2, 4 or 8;
- anything else made of character classes is text up to the end of the frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.names import constant_name, snake_case
from specwire.generator.passes.octets import constant_of, is_octet_class, is_textual, octet_count, pattern_of
from specwire.generator.passes.resolve import Grammar
from specwire.generator.profile import LoadedProfile, TypeHint
from specwire.generator.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    Reference,
    Repetition,
    Rule,
)

INTEGER_WORDS = re.compile(
    r"\b(integer|number|numeric|network (byte )?order|big.endian|time|count)\b", re.IGNORECASE
)
REST = ir.Length("rest")


@dataclass(frozen=True, slots=True)
class ValueLayout:
    """The rule is one value."""

    type: ir.Type
    sentinels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldsLayout:
    """The rule is a run of elements, each a field."""

    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class ChoiceLayout:
    """The rule is one of other rules, each a run of fields."""

    rules: tuple[Rule, ...]


RuleLayout = ValueLayout | FieldsLayout | ChoiceLayout


class TypeReader:
    """Answers what rules mean, each once; collects the enumerations and constants that it meets."""

    def __init__(self, grammar: Grammar, profile: LoadedProfile, diagnostics: Diagnostics) -> None:
        self.grammar = grammar
        self.profile = profile
        self.diagnostics = diagnostics
        self.enums: dict[str, ir.Enum] = {}
        self.constants: dict[str, ir.Constant] = {}
        self._layouts: dict[str, RuleLayout | None] = {}

    def hint(self, rule: Rule | Reference | None) -> TypeHint:
        """Return what the profile says of a rule; nothing said is an empty hint."""
        return self.profile.profile.types.get(rule.name, TypeHint()) if rule else TypeHint()

    def layout(self, rule: Rule) -> RuleLayout | None:
        """Return the rule's layout, or None after a diagnostic that says why there is none."""
        key = str(rule)
        if key not in self._layouts:
            self._layouts[key] = None  # a rule inside itself finds this, and is reported below
            self._layouts[key] = self._read(rule)
        return self._layouts[key]

    def seen(self, rule: Rule) -> bool:
        """Whether a message is made of the rule: somebody has asked for its layout."""
        return str(rule) in self._layouts

    def comment(self, rule: Rule) -> str:
        """Return the rule's own words: the comments on its lines, else those above it."""
        comments = rule.trailing or rule.leading
        return " ".join(comment.text for comment in comments if comment.text)

    def value_type(self, element: Element, rule: Rule | None) -> ValueLayout | None:
        """Return the type of an element in place, None where it is no single value."""
        layout = self._value(element, rule, self.hint(rule) if rule else TypeHint())
        return layout if isinstance(layout, ValueLayout) else None

    def _read(self, rule: Rule) -> RuleLayout | None:
        hint = self.hint(rule)
        value = self._declared(rule, hint) or self._value(rule.definition, rule, hint)
        if value is not None:
            return value
        definition = rule.definition
        if isinstance(definition, Reference):
            target = self.grammar.find(definition)
            return self.layout(target) if target else None
        if isinstance(definition, Alternation):
            rules = [
                self.grammar.find(item) if isinstance(item, Reference) else None for item in definition.items
            ]
            if all(rules):
                return ChoiceLayout(tuple(found for found in rules if found))
        if isinstance(definition, Concatenation):
            return FieldsLayout(definition.items)
        self.diagnostics.error(
            "E401", rule.name_span, f"cannot tell what rule '{rule}' is on the wire",
            f"declare its type under [types.{rule.name}] in {self.profile.source.path}",
        )  # fmt: skip
        return None

    def _declared(self, rule: Rule, hint: TypeHint) -> ValueLayout | None:
        """The type as the profile declares it, its length still from the grammar."""
        if hint.constant is not None:
            return self._declared_constant(rule, hint.constant)
        if hint.members:
            width = self._width(rule.definition)
            if width is None:
                self._misdeclared(rule, "an enumeration must be an integer")
                return None
            return ValueLayout(self._enum(rule, tuple(hint.members.items()), width))
        pattern = pattern_of(rule.definition, self.grammar)
        match hint.type:
            case "integer":
                width = self._width(rule.definition)
                sentinels = self._sentinels(rule.definition)
                if width is None and sentinels is not None:
                    return ValueLayout(ir.IntegerType(sentinels[0]), sentinels[1])
                if width is None:
                    self._misdeclared(rule, "an integer must be a number of octets, from 1 to 8")
                    return None
                return ValueLayout(ir.IntegerType(width))
            case "octets":
                width = octet_count(rule.definition, self.grammar)
                length = ir.Length("fixed", width) if width else REST
                return ValueLayout(ir.OctetsType(length, self._minimum(rule.definition)))
            case "text":
                return ValueLayout(self._rest_text(rule.definition, pattern))
            case "json":
                return ValueLayout(ir.JsonType())
        return None

    def _declared_constant(self, rule: Rule, constant: str | int) -> ValueLayout | None:
        inner = self._value(rule.definition, rule, TypeHint())
        match inner.type if inner else None, constant:
            case ir.IntegerType(octets=octets), int(number) if 0 <= number < 256**octets:
                return ValueLayout(ir.ConstantType(number.to_bytes(octets, "big").hex(), number=number))
            case ir.TextType(length=ir.Length(kind="prefix", octets=octets)), str(text):
                raw = text.encode()
                return ValueLayout(ir.ConstantType((len(raw).to_bytes(octets, "big") + raw).hex(), text=text))
            case ir.TextType(length=ir.Length(kind="rest")), str(text):
                return ValueLayout(ir.ConstantType(text.encode().hex(), text=text))
        self._misdeclared(rule, "a constant must be a text or an integer that the rule can hold")
        return None

    def _misdeclared(self, rule: Rule, sentence: str) -> None:
        self.diagnostics.error(
            "E402", self.profile.span_of(f"[types.{rule.name}]"), f"rule '{rule}' cannot be so: {sentence}",
            f"it is defined at {rule.name_span}",
        )  # fmt: skip

    def _value(self, element: Element, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        """The type by shape; None where the element is no single value."""
        constant = constant_of(element, self.grammar)
        if constant is not None:
            return ValueLayout(_constant(element, constant))
        match element:
            case Reference():
                return self._reference(element, rule, hint)
            case Alternation(items=items):
                return self._alternation(items, element, rule)
            case Concatenation(items=(head, Repetition(minimum=low, maximum=None, element=body))) if low <= 1:
                return self._counted(head, body, rule, hint) or self._text(element)
            case Repetition(minimum=low, maximum=None) if octet_count(element.element, self.grammar) == 1:
                return ValueLayout(ir.OctetsType(REST, low))
        width = octet_count(element, self.grammar)
        if width is not None:
            return ValueLayout(self._octets(element, width, rule))
        return self._text(element)

    def _reference(self, element: Reference, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        match self.grammar.external(element):
            case "frame":
                return ValueLayout(ir.OctetsType(REST))
            case "json":
                return ValueLayout(ir.JsonType())
        target = self.grammar.find(element)
        if target is None:
            width = octet_count(element, self.grammar)
            return ValueLayout(self._octets(element, width, rule)) if width else self._text(element)
        layout = self.layout(target)
        if not isinstance(layout, ValueLayout):
            return None
        if isinstance(layout.type, ir.PairsType) and hint.split:
            return ValueLayout(ir.PairsType(layout.type.count_octets, layout.type.name, None, hint.split))
        return layout

    def _alternation(
        self, items: tuple[Element, ...], element: Element, rule: Rule | None
    ) -> ValueLayout | None:
        constants = [constant_of(item, self.grammar) for item in items]
        if None not in constants and rule is not None:
            octets = [c for c in constants if c is not None]
            if all(isinstance(item, CharVal) for item in items):
                return ValueLayout(ir.KeywordType(tuple(o.decode() for o in octets)))
            if len({len(o) for o in octets}) == 1 and all(isinstance(item, Reference) for item in items):
                members = tuple(
                    (item.name, int.from_bytes(o, "big")) for item, o in zip(items, octets, strict=True)
                    if isinstance(item, Reference)
                )  # fmt: skip
                return ValueLayout(self._enum(rule, members, len(octets[0])))
        sentinels = self._sentinels(element)
        if sentinels is not None:
            return ValueLayout(ir.IntegerType(sentinels[0]), sentinels[1])
        return self._text(element)

    def _sentinels(self, element: Element) -> tuple[int, tuple[str, ...]] | None:
        """``4OCTET / name-const``: the width and the constants' names, which become the package's."""
        if not isinstance(element, Alternation):
            return None
        width = octet_count(element.items[0], self.grammar)
        names: list[str] = []
        for item in element.items[1:]:
            value = constant_of(item, self.grammar)
            if width is None or value is None or len(value) != width or not isinstance(item, Reference):
                return None
            names.append(item.name)
            rule = self.grammar.find(item)
            doc = self.comment(rule) if rule else ""
            name = constant_name(item.name)
            self.constants[name] = ir.Constant(name, int.from_bytes(value, "big"), doc)
        return (width, tuple(names)) if width else None

    def _counted(self, head: Element, body: Element, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        """``L *X``: text, octets, a list or a dictionary, by what X is."""
        width = self._width(head)
        if width is None:
            return None
        if octet_count(body, self.grammar) == 1:
            return ValueLayout(ir.OctetsType(ir.Length("prefix", width)))
        if is_octet_class(body, self.grammar):
            pattern = pattern_of(Repetition(0, None, body, body.span), self.grammar)
            return ValueLayout(ir.TextType(ir.Length("prefix", width), pattern))
        if isinstance(body, Concatenation):
            return self._pairs(width, body)
        inner = self.value_type(body, rule)
        if inner is None:
            return None
        if isinstance(inner.type, ir.TextType) and (hint.split or self._says_pairs(body)):
            return ValueLayout(ir.PairsType(width, inner.type, None, hint.split or "first"))
        if isinstance(inner.type, ir.IntegerType | ir.TextType | ir.OctetsType):
            return ValueLayout(ir.ListType(width, inner.type))
        return None

    def _pairs(self, width: int, body: Concatenation) -> ValueLayout | None:
        types = [found.type if (found := self.value_type(item, None)) else None for item in body.items]
        match types:
            case [ir.TextType() as name, ir.TextType() as value]:
                return ValueLayout(ir.PairsType(width, name, value))
        return None

    def _says_pairs(self, body: Element) -> bool:
        rule = self.grammar.find(body) if isinstance(body, Reference) else None
        return rule is not None and "name=value" in self.comment(rule)

    def _octets(self, element: Element, width: int, rule: Rule | None) -> ir.Type:
        """Octets of a fixed number: an integer where anything says so, else by the usual widths."""
        if rule is None or width > 8:
            return ir.OctetsType(ir.Length("fixed", width), width)
        if self._flag_rules(rule):
            return ir.IntegerType(width, bitmask=True)
        declared = rule.name.lower().startswith("number") or isinstance(self.hint(rule).default, int)
        if declared or INTEGER_WORDS.search(self.comment(rule)):
            return ir.IntegerType(width)
        if width not in (1, 2, 4, 8):
            return ir.OctetsType(ir.Length("fixed", width), width)
        if not self._is_count(rule):
            self.diagnostics.warning(
                "W401", rule.name_span, f"rule '{rule}' is taken for an unsigned integer of {width} octets",
                f"declare it under [types.{rule.name}] in {self.profile.source.path}",
            )  # fmt: skip
        return ir.IntegerType(width)

    def _is_count(self, rule: Rule) -> bool:
        """Whether every use of the rule is in front of a repetition, where only an integer makes sense."""
        uses = [parts for parts in _concatenations(r.definition for r in self.grammar.rules)]
        found = [
            isinstance(after, Repetition)
            for items in uses
            for item, after in zip(items, (*items[1:], None), strict=True)
            if isinstance(item, Reference) and self.grammar.find(item) == rule
        ]
        return bool(found) and all(found)

    def flag_rules(self) -> dict[str, list[Rule]]:
        """Return, for each bitmask rule, the rules that name its bits (``flags`` and ``flag-…``)."""
        return {rule.name: bits for rule in self.grammar.rules if (bits := self._flag_rules(rule))}

    def _flag_rules(self, rule: Rule) -> list[Rule]:
        prefix = rule.name.lower().removesuffix("s") + "-"
        if not rule.name.lower().endswith("s") or octet_count(rule.definition, self.grammar) is None:
            return []
        return [
            r for r in self.grammar.rules if r.name.lower().startswith(prefix) and self._bit(r) is not None
        ]

    def _bit(self, rule: Rule) -> bytes | None:
        return constant_of(rule.definition, self.grammar)

    def _width(self, element: Element) -> int | None:
        width = octet_count(element, self.grammar)
        return width if width is not None and width <= 8 else None

    def _minimum(self, element: Element) -> int:
        return element.minimum if isinstance(element, Repetition) else 0

    def _text(self, element: Element) -> ValueLayout | None:
        """Text up to the end of the frame, where the element is text; NUL may end it."""
        content = element
        if isinstance(element, Concatenation) and self._terminated(element):
            content = Concatenation(element.items[:-1], element.span)
        if not is_textual(content, self.grammar):
            return None
        return ValueLayout(self._rest_text(element, pattern_of(element, self.grammar)))

    def _terminated(self, element: Element) -> bool:
        return isinstance(element, Concatenation) and constant_of(element.items[-1], self.grammar) == b"\0"

    def _rest_text(self, element: Element, pattern: str | None) -> ir.TextType:
        """Text up to the frame's end; a NUL that ends the rule is a terminator, not content."""
        terminated = self._terminated(element)
        if pattern and terminated:
            pattern = pattern.removesuffix("\\x00")
        return ir.TextType(REST, pattern, terminated)

    def _enum(self, rule: Rule, members: tuple[tuple[str, int], ...], width: int) -> ir.IntegerType:
        name = snake_case(rule.name)
        class_name = "".join(word.capitalize() for word in name.split("_"))
        named = tuple((constant_name(member), value) for member, value in members)
        self.enums[name] = ir.Enum(name, class_name, named)
        return ir.IntegerType(width, enum=name)


def _constant(element: Element, octets: bytes) -> ir.ConstantType:
    """A constant that was written as a quoted string reads as text, a single octet as a number."""
    text = octets.decode("ascii") if isinstance(element, CharVal) else None
    number = octets[0] if text is None and len(octets) == 1 else None
    return ir.ConstantType(octets.hex(), text, number)


def _concatenations(elements: Iterable[Element]) -> Iterable[tuple[Element, ...]]:
    """Yield every run of elements in a definition, single elements included."""
    for element in elements:
        match element:
            case Concatenation(items=items):
                yield items
                yield from _concatenations(item for item in items if not isinstance(item, Reference))
            case Alternation(items=items):
                yield from _concatenations(items)
            case Reference():
                yield (element,)
            case Repetition() | CharVal():
                yield from _concatenations((element.element,) if isinstance(element, Repetition) else ())
