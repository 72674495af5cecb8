"""Layouts of rules on the wire.

A rule's layout is a value with a `Type`, a run of named fields, or a choice among rules (Flux's
``PROTO``). `TypeReader.layout` uses, in this order: the profile (``[types.RULE]``,
`specwire.generator.passes.declared`), the shape of the definition, a comment, and finally an
assumption, which it reports as W401.

Shapes, after RFC 5234's notation in ZeroMQ specifications:

- constants, and runs of them, are verified octets;
- an alternation of constants is an enumeration, of words a keyword, of numbers an integer with few values;
- ``4OCTET / name-const`` is an integer with a sentinel;
- ``%x04 short-size / %x06 long-size`` is a size in two forms;
- ``L *VCHAR`` and ``L *OCTET``, where L is an integer, are text and octets with their length before them;
- ``L *element`` is a counted list, or a dictionary if the elements are pairs or texts ``name=value``;
- ``*element`` is a list up to the end;
- ``NOCTET`` is an integer if a comment or the name says so, or if N is 1, 2, 4 or 8;
- ``NALPHA`` is text of fixed length;
- any other element of character classes extends to the end of the frame: it is text if the characters are
  printable, otherwise octets.

Reading a rule ends, because `specwire.generator.passes.nesting` has rejected rules that contain
themselves. Each rule and each element is read once, whether it has a layout or not. The time is
proportional to the grammar and to the fields that it expands to, which
`specwire.generator.passes.expansion` bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, count
from typing import Generic, TypeVar

from msgspec import structs

from specwire.generator import ir
from specwire.generator.abnf.statements import FLOAT, SIGNED, is_little_endian, number_kinds, says_exact
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.ir.names import class_name, constant_name, enum_name, fold, snake_case
from specwire.generator.passes import declared
from specwire.generator.passes.alternations import read_alternation
from specwire.generator.passes.grammar import EXTERNALS
from specwire.generator.passes.layouts import (
    LARGEST_INTEGER,
    REST,
    ChoiceLayout,
    FieldsLayout,
    RuleLayout,
    ValueLayout,
    is_open,
    words_of,
)
from specwire.generator.passes.octets import Octets
from specwire.generator.passes.records import read_record, read_union
from specwire.generator.passes.recursion import recursive_rules
from specwire.generator.passes.repetitions import is_structured, read_collection, read_counted
from specwire.generator.passes.resolve import Grammar
from specwire.generator.passes.runs import counts, varies
from specwire.generator.passes.sizes import find_forms, forms_of, is_size_name, names_sizes, read_forms
from specwire.generator.passes.texts import read_text
from specwire.generator.passes.uses import find_bits, find_counts
from specwire.generator.profile.tables import NOTHING_SAID, LoadedProfile, TypeHint
from specwire.generator.profile.value_checks import WIDTHS

INTEGER_WORDS = re.compile(
    r"\b(integer|number|numeric|network (byte )?order|big.endian|time|count)\b", re.IGNORECASE
)

_NUMBER = re.compile(r"number-(\d{1,3})\Z", re.IGNORECASE)
"""Names that state the number of octets of the integer."""
Answer = TypeVar("Answer")
Value = TypeVar("Value", ir.RecordType, ir.UnionType)


class Memo(Generic[Answer]):
    """Cache of answers about elements of the syntax tree, so that the work is proportional to the grammar.

    The keys are the identities of nodes: equal nodes occur in several places, and hashing a node
    takes time in proportion to its size. The cache holds each node, so that no identity is reused.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[tuple[object, ...], Answer]] = {}

    def find(self, nodes: tuple[object, ...], words: tuple[str, ...], read: Callable[[], Answer]) -> Answer:
        """Return the cached answer about `nodes` and `words`; call `read` for it the first time."""
        key = (*map(id, nodes), *words)
        if key not in self._known:
            self._known[key] = (nodes, read())
        return self._known[key][1]


class TypeReader:
    """Reader of the layouts of rules, each once.

    It collects the enumerations, constants, lengths and quoted strings that it reads.
    """

    def __init__(
        self,
        grammar: Grammar,
        profile: LoadedProfile,
        diagnostics: Diagnostics,
        classes: frozenset[str] = frozenset(),
    ) -> None:
        self.grammar = grammar
        self.profile = profile
        self.diagnostics = diagnostics
        self.octets = Octets(grammar, exact=profile.profile.case == "exact" or _says_exact(grammar))
        self.bits = find_bits(grammar, self.octets)
        self.enums: dict[str, ir.Enum] = {}
        self.constants: dict[str, ir.Constant] = {}
        self.lengths: dict[str, int] = {}
        """Octets of the length or count that a rule holds, by rule."""
        self.literals: dict[Span, CharVal] = {}
        """The quoted strings that are compared octet by octet, by place."""
        self.times: set[str] = set()
        """Keys of `types` in the profile, and bits as ``rule/name``, that are a timestamp in a field."""
        self.nameless: set[Span] = set()
        """The places of elements that were given a name; each is reported once."""
        self._classes = classes
        self._counts = find_counts(grammar)
        self._hints = {fold(name): hint for name, hint in profile.profile.types.items()}
        self.counted_names = {fold(name) for name in _counted(self._hints.values())}
        """Rules that a number counts according to the profile."""
        self.bit_names = {fold(name) for hint in self._hints.values() for name in hint.bits}
        self.recursive = recursive_rules(grammar)
        """Rules that contain themselves; each is one value wherever it is used."""
        self.enclosed: set[str] = set()
        """Rules of the records and unions that contain themselves, as far as they were read."""
        self._reading: dict[str, str] = {}
        """Rules of the records and unions that are being read, and the names of these."""
        self._layouts: dict[str, RuleLayout | None] = {}
        self._noted: set[str] = set()
        self._faults: set[tuple[str, Span]] = set()
        self._shapes: Memo[ValueLayout | None] = Memo()
        self._counted: Memo[ValueLayout | None] = Memo()
        self._unnamed: dict[str, tuple[str, ...]] = {}
        """Items of the records without a rule, by the names of the records."""
        self._records: Memo[ir.RecordType | None] = Memo()
        self._unions: Memo[ir.UnionType | None] = Memo()
        self._forms: Memo[ir.SizeType | None] = Memo()
        self._answers: Memo[bool] = Memo()

    def hint(self, rule: Rule | Reference | None, message: Rule | None = None) -> TypeHint:
        """Return the profile's hint for a rule, with what it says about the rule in `message`.

        An empty hint if there is none.
        """
        if rule is None:
            return NOTHING_SAID
        hint = self._hints.get(fold(rule.name), NOTHING_SAID)
        inside = self._hints.get(fold(f"{message.name}.{rule.name}")) if message else None
        return hint.with_fields_of(inside) if inside else hint

    @cached_property
    def forms(self) -> frozenset[str]:
        """The names of the rules that are one form of a size in several forms."""
        return find_forms(self)

    def layout(self, rule: Rule) -> RuleLayout | None:
        """Return the rule's layout; None after a diagnostic with the reason."""
        key = str(rule)
        if key not in self._layouts:
            self._layouts[key] = self._read(rule)
        return self._layouts[key]

    def fault(self, code: str, span: Span, message: str, help: str) -> None:
        """Report an error at most once for each place, however many messages use it."""
        if (code, span) not in self._faults:
            self._faults.add((code, span))
            self.diagnostics.error(code, span, message, help)

    def has_fault(self, use: Reference) -> bool:
        """Whether an error was reported at `use`, or in a rule that it refers to, directly or through others."""
        places = [use.span]
        for rule in self.grammar.below(use):
            places += (rule.name_span, rule.definition.span)
        return any(place.holds(found.span) for found in self.diagnostics.errors for place in places)

    def note_length(self, head: Element, rule: Rule | None = None) -> None:
        """Record that `head` is a length or a count. If it is not a rule itself, `rule` contains it."""
        named = self.grammar.find(head) if isinstance(head, Reference) else rule
        width = self.width(head)
        if named is not None and width is not None:
            self.lengths[str(named)] = width

    def note_literals(self, element: Element) -> None:
        """Record the quoted strings of a constant."""
        match element:
            case CharVal():
                self.literals.setdefault(element.span, element)
            case Concatenation(items=items) | Alternation(items=items):
                for item in items:
                    self.note_literals(item)
            case Repetition(element=inner):
                self.note_literals(inner)
            case Reference():
                rule = self.grammar.find(element)
                if rule is not None and str(rule) not in self._noted:
                    self._noted.add(str(rule))
                    self.note_literals(rule.definition)

    def seen(self, rule: Rule) -> bool:
        """Whether a message uses the rule: its layout was read."""
        return str(rule) in self._layouts

    def comment(self, rule: Rule) -> str:
        """Return the rule's comments: those on its lines, else those above it."""
        words = words_of(rule.trailing or rule.leading)
        return words_of((*rule.leading, *rule.trailing)) if words.lower() == "zeromq frame" else words

    def value_type(self, element: Element, rule: Rule | None) -> ValueLayout | None:
        """Return the type of an element in place; None if it is not a single value."""
        return self.shape(element, rule, self.hint(rule))

    def note_enum(self, called: str, rule: Rule, members: tuple[tuple[str, int], ...]) -> str:
        """Record an enumeration of a rule, and return its name; E416 if two members are alike."""
        name = snake_case(called)
        named = tuple((constant_name(member), value) for member, value in members)
        if len({value for _, value in named}) < len(named) or len(dict(named)) < len(named):
            self.diagnostics.error(
                "E416",
                rule.name_span,
                f"two members of enumeration '{called}' have the same name or value",
                "write a different name and a different value for each",
            )
        self.enums[name] = ir.Enum(name, enum_name(called), named)
        return name

    def width(self, element: Element) -> int | None:
        """Return the octets of an element if an integer can have as many, else None."""
        width = self.octets.count(element)
        return width if width is not None and width <= LARGEST_INTEGER else None

    def prefix(self, head: Element) -> tuple[int, ir.CountType | None] | None:
        """Return the least octets of a number that can count what follows it, and how it is written.

        The second is None for a big-endian unsigned integer. The whole is None for any other element.
        """
        rule = self.grammar.find(head) if isinstance(head, Reference) else None
        if self.is_bits(head):
            return None
        described = rule is not None and any(number_kinds(self.comment(rule)))
        says_type = rule is not None and declared.says_type(self.hint(rule))
        if rule is not None and (described or says_type):
            layout = self.layout(rule)
            match layout.type if isinstance(layout, ValueLayout) else None:
                case ir.IntegerType(octets=octets, order="little", signed=False) if octets > 1:
                    return octets, ir.IntegerType(octets, order="little")
                case ir.VarintType(signed=None) as number:
                    return 1, number
                case ir.DigitsType(signed=False) as number if number.minimum == number.maximum:
                    return number.minimum, number
                case ir.IntegerType(signed=False, enum=None):
                    pass
                case _ if says_type:
                    return None
        width = self.width(head)
        return None if width is None else (width, None)

    def is_bits(self, element: Element) -> bool:
        """Whether the profile names the bits of an element."""
        rule = self.grammar.find(element) if isinstance(element, Reference) else None
        return rule is not None and bool(self.hint(rule).bits)

    def is_number(self, element: Element) -> bool:
        """Whether the profile declares an element as a number, so that a repetition of it is a list."""
        rule = self.grammar.find(element) if isinstance(element, Reference) else None
        hint = self.hint(rule)
        return bool(hint.bits or hint.members) or hint.type in ("integer", "boolean")

    def opened(self, element: Element) -> Element:
        """Return the definition that a reference leads to, through other references.

        Other elements unchanged.
        """
        while isinstance(element, Reference) and (rule := self.grammar.find(element)):
            element = rule.definition
        return element

    def counted(
        self, head: Element, repetition: Repetition, rule: Rule | None, hint: TypeHint
    ) -> ValueLayout | None:
        """Return the type of ``L *X`` in place; None if it is not a value."""
        return self._counted.find(
            (head, repetition, hint), _name(rule), lambda: read_counted(self, head, repetition, rule, hint)
        )

    def record(self, name: str, items: tuple[Element, ...], rule: Rule | None) -> ir.RecordType | None:
        """Return the record of a run; None after a diagnostic.

        If other items without a rule have the name already, the record gets a number.
        """
        nodes = (rule,) if rule else items
        if rule is None:
            name = self._unnamed_record(name, items)
        called = self.class_for(class_name(name))
        with self._inside(name, called):
            found = self._records.find(nodes, (name,), lambda: read_record(self, name, items, rule))
        return self._ended(name, found, items[0].span)

    def union(self, name: str, element: Alternation) -> ir.UnionType | None:
        """Return the union of alternatives that are records; None after a diagnostic."""
        with self._inside(name, snake_case(name)):
            found = self._unions.find((element,), (name,), lambda: read_union(self, name, element))
        return self._ended(name, found, element.span)

    def enclosing(self, rule: Rule) -> ir.EnclosingType | None:
        """Return the type of a rule that contains the value that is read; None if it does not."""
        if str(rule) not in self.recursive or rule.name not in self._reading:
            return None
        self.enclosed.add(rule.name)
        return ir.EnclosingType(self._reading[rule.name])

    def _ended(self, name: str, found: Value | None, span: Span) -> Value | None:
        """Return a record or union; None after E412 if it contains itself and its end is not defined."""
        if found is None or name not in self.enclosed or not is_open(found):
            return found
        self.fault(
            "E412",
            span,
            f"rule '{name}' contains itself and has no end",
            "specwire can express it if a count, a length or a constant ends each value in it",
        )
        return None

    @contextmanager
    def _inside(self, rule: str, name: str) -> Iterator[None]:
        """Read the record or union `name` of a rule."""
        outer = self._reading
        self._reading = {**outer, rule: name}
        yield
        self._reading = outer

    def forms_of(self, element: Alternation | Concatenation) -> ir.SizeType | None:
        """Return the size that an element has the form of; None if it has another form."""
        return self._forms.find((element,), (), lambda: forms_of(self, element))

    def names_sizes(self, element: Element) -> bool:
        """Whether the element uses a rule with the name of a size."""
        return self._answers.find((element,), ("size",), lambda: names_sizes(element))

    def varies(self, element: Element) -> bool:
        """Whether the number of octets of an element varies."""
        return self._answers.find((element,), ("varies",), lambda: varies(self, element))

    def _unnamed_record(self, name: str, items: tuple[Element, ...]) -> str:
        shown = tuple(map(str, items))
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        return next(one for one in names if self._unnamed.setdefault(one, shown) == shown)

    def class_for(self, name: str) -> str:
        """Return the class name of a record, which differs from that of every message."""
        return f"{name}Record" if name in self._classes else name

    def _read(self, rule: Rule) -> RuleLayout | None:
        hint = self.hint(rule)
        if hint.bits:
            return FieldsLayout((Reference(rule.name, rule.role, rule.name_span),))
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
            return ChoiceLayout(definition, tuple(target for target in found if target is not None))
        if isinstance(definition, Concatenation):
            return FieldsLayout(definition.items)
        self.diagnostics.error(
            "E401",
            rule.name_span,
            f"the type of rule '{rule}' is not defined",
            f"declare its type under [types.{rule.name}] in {self.profile.source.path}",
        )
        return None

    def shape(self, element: Element, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        """Return the type that follows from an element's form; None if it is not a single value."""
        return self._shapes.find((element, hint), _name(rule), lambda: self._read_shape(element, rule, hint))

    def _read_shape(self, element: Element, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
        constant = self.octets.constant(element)
        if constant is not None:
            self.note_literals(element)
            return ValueLayout(_constant(element, constant, folded=self.octets.is_folded(element)))
        match element:
            case Reference():
                return self._reference(element, rule, hint)
            case Alternation():
                return self._alternation(element, rule)
            case Concatenation(items=(head, Repetition() as repetition)) if counts(self, head, repetition):
                return self.counted(head, repetition, rule, hint) or read_text(self, element, rule, hint)
            case Repetition(minimum=low, maximum=high) if _varies(element):
                if self.is_number(element.element):
                    return read_collection(self, 0, element, rule, hint)
                if self.octets.count(element.element) == 1:
                    return ValueLayout(ir.OctetsType(REST, low, high))
                if hint.type != "text" and is_structured(self, element.element):
                    return read_collection(self, 0, element, rule, hint)
                found = read_text(self, element, rule, hint)
                if found is None and self.octets.is_class(element.element):
                    found = ValueLayout(ir.OctetsType(REST, low, high))
                return found or read_collection(self, 0, element, rule, hint)
        width = self.octets.count(element)
        if width is not None:
            return ValueLayout(self._fixed(width, rule))
        if found := read_text(self, element, rule, hint):
            return found
        extent = self.octets.extent(element) if self.octets.is_class(element) else None
        return ValueLayout(ir.OctetsType(ir.Length("fixed", extent), extent)) if extent else None

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
            return ValueLayout(self._fixed(width, rule)) if width else read_text(self, element, rule, hint)
        layout = self.layout(target)
        if not isinstance(layout, ValueLayout):
            return None
        if isinstance(layout.type, ir.PairsType) and hint.split:
            return ValueLayout(structs.replace(layout.type, value=None, split=hint.split))
        return layout

    def _alternation(self, element: Alternation, rule: Rule | None) -> ValueLayout | None:
        size = read_forms(self, element, rule.name if rule else None)
        if size is not None:
            return ValueLayout(size)
        return read_alternation(self, element, rule) or read_text(self, element, rule, self.hint(rule))

    def _fixed(self, width: int, rule: Rule | None) -> ir.Type:
        """Return the type of a fixed number of octets: an integer, octets, text or padding."""
        octets = ir.OctetsType(ir.Length("fixed", width), width)
        if rule is None:
            return octets
        if self._is_padding(rule):
            return ir.PaddingType(width)
        if width > LARGEST_INTEGER:
            return octets
        if str(rule) in self.bits:
            return ir.IntegerType(width, bitmask=True)
        hint = self.hint(rule)
        numbered = _NUMBER.match(rule.name)
        if numbered and int(numbered[1]) != width and not declared.says_type(hint):
            return self._assumed_integer(width, rule, ", though its name has another number")
        says = (
            rule.name.lower().startswith("number") or is_size_name(rule.name) or isinstance(hint.default, int)
        )
        if declared.says_type(hint):
            return ir.IntegerType(width)
        if says or INTEGER_WORDS.search(self.comment(rule)):
            return self._commented(width, rule) or ir.IntegerType(width)
        if width not in WIDTHS:
            return octets
        if found := self._commented(width, rule):
            return found
        return ir.IntegerType(width) if str(rule) in self._counts else self._assumed_integer(width, rule)

    def _commented(self, width: int, rule: Rule) -> ir.Type | None:
        """Return the number that the rule's comment describes; None if it describes no special kind.

        A kind that needs the profile leaves a plain integer, which E423 reports.
        """
        kinds = dict(number_kinds(self.comment(rule)))
        if not kinds:
            return None
        little = is_little_endian(kinds)
        order: ir.Order = "little" if little and width > 1 else "big"
        if FLOAT in kinds and width in (4, 8):
            return ir.FloatType(4 if width == 4 else 8, order)
        return ir.IntegerType(width, order=order, signed=SIGNED in kinds)

    def _assumed_integer(self, width: int, rule: Rule, though: str = "") -> ir.IntegerType:
        """Return an integer that only its number of octets suggests, and report the assumption."""
        self.diagnostics.warning(
            "W401",
            rule.name_span,
            f"rule '{rule}' is read as an unsigned integer of {width} "
            f"octet{'s' if width > 1 else ''}{though}",
            f"declare it under [types.{rule.name}] in {self.profile.source.path}",
        )
        return ir.IntegerType(width)

    def _is_padding(self, rule: Rule) -> bool:
        """Whether the octets have no meaning: the rule is named padding, and the profile declares no type."""
        return rule.name.lower() == "padding" and not declared.says_type(self.hint(rule))


def _counted(hints: Iterable[TypeHint]) -> Iterator[str]:
    for hint in hints:
        counted = [hint.counts, *(bits.counts for _, _, bits in hint.bit_tables())]
        for names in counted:
            yield from [names] if isinstance(names, str) else names


def _name(rule: Rule | None) -> tuple[str, ...]:
    return (str(rule),) if rule else ()


def _varies(repetition: Repetition) -> bool:
    return repetition.minimum != repetition.maximum


def _says_exact(grammar: Grammar) -> bool:
    """Whether a comment of the document says that quoted strings are case-sensitive."""
    rules = (rule for rule in grammar.rules if fold(rule.name) not in EXTERNALS)
    comments = (comment for rule in rules for comment in (*rule.leading, *rule.trailing))
    return any(says_exact(comment.text) for comment in (*grammar.loose_comments, *comments))


def _constant(element: Element, octets: bytes, *, folded: bool) -> ir.ConstantType:
    """Return the type of a constant: text for a quoted string, a number for a single octet."""
    text = octets.decode("ascii") if isinstance(element, CharVal) else None
    number = octets[0] if text is None and len(octets) == 1 else None
    return ir.ConstantType(octets.hex(), text, number, folded)
