"""What value a rule stands for on the wire.

A rule's layout is one of three: a value with a `Type`, a run of named fields, or a choice among rules
(Flux's ``PROTO``). `TypeReader.layout` answers for any rule, in this order: what the profile declares
(``[types.RULE]``, `specwire.generator.passes.declared`), what the grammar's shape says, what a comment says,
and last an assumption, which is a W401 warning so that nobody is surprised later.

Shapes, after RFC 5234's notation in ZeroMQ specifications:

- constants, and runs of them, are verified octets;
- an alternation of constants is an enumeration, of words a keyword;
- ``4OCTET / name-const`` is an integer with a sentinel;
- ``L *VCHAR`` and ``L *OCTET``, L an integer, are text and octets with their length in front;
- ``L *element`` is a counted list, of pairs a dictionary, of ``name=value`` texts one to be divided;
- ``NOCTET`` is an integer where a comment or the name says so, or N is 1, 2, 4 or 8;
- anything else made of character classes is text up to the end of the frame.

Rules do not contain themselves (`specwire.generator.passes.nesting` has seen to that), so reading one ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import structs

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.names import constant_name, enum_name, fold, snake_case
from specwire.generator.passes import declared
from specwire.generator.passes.octets import Octets
from specwire.generator.passes.resolve import Grammar
from specwire.generator.passes.uses import find_bits, find_counts
from specwire.generator.profile import LoadedProfile, TypeHint
from specwire.generator.profile_values import WIDTHS
from specwire.generator.syntax import (
    Alternation,
    CharVal,
    Comment,
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
LARGEST_INTEGER = 8
"""Octets."""


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
        self.octets = Octets(grammar)
        self.bits = find_bits(grammar, self.octets)
        self.enums: dict[str, ir.Enum] = {}
        self.constants: dict[str, ir.Constant] = {}
        self._counts = find_counts(grammar)
        self._hints = {fold(name): hint for name, hint in profile.profile.types.items()}
        self._layouts: dict[str, RuleLayout | None] = {}

    def hint(self, rule: Rule | Reference | None, message: Rule | None = None) -> TypeHint:
        """Return what the profile says of a rule, first of it in `message`; nothing said is an empty hint."""
        if rule is None:
            return TypeHint()
        inside = self._hints.get(fold(f"{message.name}.{rule.name}")) if message else None
        return inside or self._hints.get(fold(rule.name), TypeHint())

    def layout(self, rule: Rule) -> RuleLayout | None:
        """Return the rule's layout, or None after a diagnostic that says why there is none."""
        key = str(rule)
        if key not in self._layouts:
            self._layouts[key] = self._read(rule)
        return self._layouts[key]

    def seen(self, rule: Rule) -> bool:
        """Whether a message is made of the rule: somebody has asked for its layout."""
        return str(rule) in self._layouts

    def comment(self, rule: Rule) -> str:
        """Return the rule's own words: the comments on its lines, else those above it."""
        return words_of(rule.trailing or rule.leading)

    def value_type(self, element: Element, rule: Rule | None) -> ValueLayout | None:
        """Return the type of an element in place, None where it is no single value."""
        return self.shape(element, rule, self.hint(rule))

    def width(self, element: Element) -> int | None:
        """Return the octets of an element that an integer can have, else None."""
        width = self.octets.count(element)
        return width if width is not None and width <= LARGEST_INTEGER else None

    def _read(self, rule: Rule) -> RuleLayout | None:
        hint = self.hint(rule)
        value = self.shape(rule.definition, rule, hint)
        if declared.says_type(hint):
            type = declared.read(self, rule, hint, value.type if value else None)
            value = ValueLayout(type, value.sentinels if value else ()) if type else value
        if value is not None:
            return value
        definition = rule.definition
        if isinstance(definition, Reference):
            target = self.grammar.find(definition)
            if target is not None:
                return self.layout(target)
        if isinstance(definition, Alternation):
            found = [
                self.grammar.find(item) if isinstance(item, Reference) else None for item in definition.items
            ]
            rules = tuple(target for target in found if target is not None)
            if len(rules) == len(found):
                return ChoiceLayout(rules)
        if isinstance(definition, Concatenation):
            return FieldsLayout(definition.items)
        self.diagnostics.error(
            "E401", rule.name_span, f"cannot tell what rule '{rule}' is on the wire",
            f"declare its type under [types.{rule.name}] in {self.profile.source.path}",
        )  # fmt: skip
        return None

    def shape(self, element: Element, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        """Return the type that an element's shape gives; None where it is no single value."""
        constant = self.octets.constant(element)
        if constant is not None:
            return ValueLayout(_constant(element, constant))
        match element:
            case Reference():
                return self._reference(element, rule, hint)
            case Alternation(items=items):
                return self._alternation(items, element, rule)
            case Concatenation(items=(head, Repetition(maximum=None) as repetition)):
                return self._counted(head, repetition, rule, hint) or self._text(element)
            case Repetition(minimum=low, maximum=None) if self.octets.count(element.element) == 1:
                return ValueLayout(ir.OctetsType(REST, low))
        width = self.octets.count(element)
        if width is not None:
            return ValueLayout(self._fixed(width, rule))
        return self._text(element)

    def _reference(self, element: Reference, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        match self.grammar.external(element):
            case "frame":
                return ValueLayout(ir.OctetsType(REST))
            case "json":
                return ValueLayout(ir.JsonType())
        target = self.grammar.find(element)
        if target is None and self.grammar.core(element) is None:
            primitive = declared.PRIMITIVES.get(self.hint(element).type or "")
            return ValueLayout(primitive) if primitive else None
        if target is None:
            width = self.octets.count(element)
            return ValueLayout(self._fixed(width, rule)) if width else self._text(element)
        layout = self.layout(target)
        if not isinstance(layout, ValueLayout):
            return None
        if isinstance(layout.type, ir.PairsType) and hint.split:
            return ValueLayout(structs.replace(layout.type, value=None, split=hint.split))
        return layout

    def _alternation(
        self, items: tuple[Element, ...], element: Alternation, rule: Rule | None
    ) -> ValueLayout | None:
        found = [self.octets.constant(item) for item in items]
        constants = [octets for octets in found if octets]
        if len(constants) == len(items) and rule is not None:
            words = dict.fromkeys(constants)
            if all(isinstance(item, CharVal) for item in items):
                return ValueLayout(ir.KeywordType(tuple(octets.decode() for octets in words)))
            members = tuple(
                (item.name, int.from_bytes(octets, "big"))
                for item, octets in zip(items, constants, strict=True)
                if isinstance(item, Reference)
            )
            width = len(constants[0])
            if (
                len(members) == len(items)
                and {len(o) for o in constants} == {width}
                and width <= LARGEST_INTEGER
            ):
                return ValueLayout(self.enum(rule, members, width))
        return self._with_sentinels(element) or self._text(element)

    def _with_sentinels(self, element: Alternation) -> ValueLayout | None:
        """``4OCTET / name-const``: an integer, and the constants' names, which become the package's."""
        width = self.width(element.items[0])
        found: dict[str, ir.Constant] = {}
        for item in element.items[1:]:
            value = self.octets.constant(item)
            if value is None or len(value) != width or not isinstance(item, Reference):
                return None
            rule = self.grammar.find(item)
            name = constant_name(item.name)
            found[item.name] = ir.Constant(
                name, int.from_bytes(value, "big"), self.comment(rule) if rule else ""
            )
        if width is None:
            return None
        self.constants |= {constant.name: constant for constant in found.values()}
        return ValueLayout(ir.IntegerType(width), tuple(found))

    def _counted(
        self, head: Element, repetition: Repetition, rule: Rule | None, hint: TypeHint
    ) -> ValueLayout | None:
        """``L *X``: text, octets, a list or a dictionary, by what X is."""
        width = self.width(head)
        if width is None:
            return None
        if width not in WIDTHS:
            self.diagnostics.error(
                "E415", head.span, f"a length or a count of {width} octets has no layout",
                f"lengths and counts have {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]} octets",
            )  # fmt: skip
        body = repetition.element
        if self.octets.count(body) == 1:
            return ValueLayout(ir.OctetsType(ir.Length("prefix", width), repetition.minimum))
        if self.octets.is_class(body):
            return ValueLayout(ir.TextType(ir.Length("prefix", width), self.octets.pattern(repetition)))
        counted = self._collection(width, body, rule, hint)
        if counted is not None and repetition.minimum:
            self.diagnostics.warning(
                "W404", repetition.span, f"that there are at least {repetition.minimum} is not checked",
                "the number of elements is taken as it comes",
            )  # fmt: skip
        return ValueLayout(counted) if counted else None

    def _collection(
        self, width: int, body: Element, rule: Rule | None, hint: TypeHint
    ) -> ir.PairsType | ir.ListType | None:
        if isinstance(body, Concatenation):
            types = [found.type if (found := self.value_type(item, None)) else None for item in body.items]
            match types:
                case [ir.TextType() as name, ir.TextType() as value] if _ends(name) and _ends(value):
                    return ir.PairsType(width, name, value)
            return None
        inner = self.value_type(body, rule)
        match inner.type if inner else None:
            case ir.TextType() as text if _ends(text):
                if hint.split or self._says_pairs(body):
                    entry = body.name if isinstance(body, Reference) else None
                    return ir.PairsType(width, text, None, hint.split or "first", entry)
                return ir.ListType(width, text)
            case ir.OctetsType() as octets if _ends(octets):
                return ir.ListType(width, octets)
            case ir.IntegerType(enum=None, bitmask=False) as integer if integer.octets in WIDTHS:
                return ir.ListType(width, integer)
        return None

    def _says_pairs(self, body: Element) -> bool:
        rule = self.grammar.find(body) if isinstance(body, Reference) else None
        return rule is not None and "name=value" in self.comment(rule)

    def _fixed(self, width: int, rule: Rule | None) -> ir.Type:
        """Octets of a fixed number: an integer where anything says so, else by the usual widths."""
        octets = ir.OctetsType(ir.Length("fixed", width), width)
        if rule is None or width > LARGEST_INTEGER:
            return octets
        if str(rule) in self.bits:
            return ir.IntegerType(width, bitmask=True)
        hint = self.hint(rule)
        says = rule.name.lower().startswith("number") or isinstance(hint.default, int)
        if says or declared.says_type(hint) or INTEGER_WORDS.search(self.comment(rule)):
            return ir.IntegerType(width)
        if width not in WIDTHS:
            return octets
        if str(rule) not in self._counts:
            self.diagnostics.warning(
                "W401", rule.name_span, f"rule '{rule}' is taken for an unsigned integer of {width} octet{'s' if width > 1 else ''}",
                f"declare it under [types.{rule.name}] in {self.profile.source.path}",
            )  # fmt: skip
        return ir.IntegerType(width)

    def _text(self, element: Element) -> ValueLayout | None:
        """Text up to the end of the frame, where the element is text; a NUL that ends it is no content."""
        content = element
        terminated = isinstance(element, Concatenation) and self.octets.constant(element.items[-1]) == b"\0"
        if isinstance(element, Concatenation) and terminated:
            content = Concatenation(element.items[:-1], element.span)
        if not self.octets.is_textual(content):
            return None
        return ValueLayout(ir.TextType(REST, self.octets.pattern(content), terminated))

    def enum(self, rule: Rule, members: tuple[tuple[str, int], ...], width: int) -> ir.IntegerType:
        """Note an enumeration that is named as the rule, and return its type."""
        name = snake_case(rule.name)
        named = tuple((constant_name(member), value) for member, value in members)
        if len({value for _, value in named}) < len(named) or len(dict(named)) < len(named):
            self.diagnostics.error(
                "E416", rule.name_span, f"two members of enumeration '{rule}' are the same",
                "each has a name and a value of its own",
            )  # fmt: skip
        self.enums[name] = ir.Enum(name, enum_name(rule.name), named)
        return ir.IntegerType(width, enum=name)


def words_of(comments: Iterable[Comment]) -> str:
    """Return comments as one text, which generated modules can hold: without control characters, each once."""
    texts = [re.sub(r"[\x00-\x1f\x7f]+", " ", comment.text) for comment in comments if comment.text]
    return " ".join(dict.fromkeys(texts)).strip()


def _ends(type: ir.TextType | ir.OctetsType) -> bool:
    """Whether a value says itself where it ends: only such values follow each other in a frame."""
    return type.length.kind != "rest"


def _constant(element: Element, octets: bytes) -> ir.ConstantType:
    """A constant that was written as a quoted string reads as text, a single octet as a number."""
    text = octets.decode("ascii") if isinstance(element, CharVal) else None
    number = octets[0] if text is None and len(octets) == 1 else None
    return ir.ConstantType(octets.hex(), text, number)
