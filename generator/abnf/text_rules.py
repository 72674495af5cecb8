"""Matchers compiled from rules that describe text: whether a text is a ``topic``, and if not, where it fails.

A rule that is not recursive is a regular expression over characters, and matched as such; one that contains
itself calls itself by name (`specwire.generator.abnf.text_recursion`). Rules are read as RFC 5234 means it:
a quoted string is case-insensitive unless it begins with ``%s`` (RFC 7405), a number value is the
character of that code point, up to 10FFFF, and alternatives have no order: a text matches if any way
through the rule takes the whole of it.

Elements that do not describe text are reported at their places, if the rule uses them: a prose
value (E602), an external type such as ``FRAME`` (E603), a rule of more than `MAX_SIZE` runs of
characters (E604), a rule that never ends (E605), an undefined name (E201). A text with too many
readings by a recursive rule is an error, too (E601).

Rules are followed without recursion and each is read once; groups inside one rule are bounded by the parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from specwire.generator.abnf.parser import core_rules
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
    write_element,
)
from specwire.generator.abnf.text_automaton import Automaton, Match, build_automaton, match_text
from specwire.generator.abnf.text_expressions import (
    EMPTY,
    Call,
    Characters,
    Expression,
    Run,
    chain,
    choice,
    many,
    maybe,
)
from specwire.generator.abnf.text_recursion import TooManyReadings, match_recursive
from specwire.generator.diagnostics import Diagnostics, Span, SpecError
from specwire.generator.passes.grammar import External, Grammar, references
from specwire.generator.passes.recursion import element_ends, ending_rules

MAX_SIZE = 50_000
"""Runs of characters in one rule with all rules it is made of.

The largest of the IETF's, RFC 9116's, has 14,773.
"""
MAX_COPIED = 20
"""Maximum runs of a rule that is expanded at each use, if all rules together exceed `MAX_SIZE`."""
MAX_ELEMENTS = 300_000
"""Elements and ranges that are read before a grammar is given up."""
MAX_FAULTS = 20
"""Faults that are reported of one rule and what it is made of."""
MAX_GUESSES = 5_000
"""Rules of a grammar among which a misspelt name is looked for."""
LITERAL_SHOWN = 40
"""Characters of a literal or a prose value that are shown."""
EXTERNAL_WORDS: Mapping[External, str] = MappingProxyType(
    {"frame": "one ZeroMQ frame", "messages": "all the following frames", "json": "JSON text"}
)


@dataclass(frozen=True, slots=True)
class TextRule:
    """A rule that texts can be matched against, with the recursive rules that it is made of."""

    name: str
    automaton: Automaton
    recursive: Mapping[str, Automaton]
    place: Span

    def match(self, text: str) -> Match:
        """Match the whole of `text`, in time proportional to its length where the rule is not recursive.

        Raises:
            SpecError: the rule is recursive, and the text has too many readings (E601).
        """
        if not self.recursive:
            return match_text(self.automaton, text)
        try:
            return match_recursive({**self.recursive, "": self.automaton}, "", text)
        except TooManyReadings:
            found = Diagnostics()
            found.error(
                "E601",
                self.place,
                f"a text of {len(text):,} characters has too many readings by rule '{self.name}'",
                "match a shorter text, or write the repetition with '*' instead of recursion",
            )
            raise SpecError(found.errors) from None


def compile_text_rule(grammar: Grammar, reference: Reference, diagnostics: Diagnostics) -> TextRule | None:
    """Return the matcher of the rule or core rule that `reference` names, None where a fault was reported."""
    reader = _Reader(grammar, reference, diagnostics)
    try:
        expression = reader.read()
    except _GivenUp:
        return None
    if expression is None:
        return None
    recursive = {name: build_automaton(called) for name, called in reader.called().items()}
    rule = grammar.find(reference)
    place = rule.name_span if rule else reference.span
    return TextRule(str(reference), build_automaton(expression), MappingProxyType(recursive), place)


class _GivenUp(Exception):
    """Raised when enough faults were reported; the rest of the grammar is not examined."""


class _Reader:
    """The expressions of the rules that `root` is made of."""

    def __init__(self, grammar: Grammar, root: Reference, diagnostics: Diagnostics) -> None:
        self._grammar = grammar
        self._root = root
        self._diagnostics = diagnostics
        self._known: dict[str, Expression] = {}
        self._called: set[str] = set()
        """Rules that contain themselves, and those that are too large to be copied wherever they are used."""
        self._shares = False
        self._ending = ending_rules(grammar)
        self._left = MAX_ELEMENTS
        self._faults = 0

    def called(self) -> dict[str, Expression]:
        """Return the rules that are called by name and what they come to."""
        return {name: self._known[name] for name in sorted(self._called)}

    def read(self) -> Expression | None:
        """Return the expression of the root; None after a fault."""
        expression = self._read()
        if not self._faults and not self._ends(self._root):
            self._report_endless()
        if not self._faults and self._size(expression) > MAX_SIZE:
            self._shares = True
            self._left = MAX_ELEMENTS
            self._known.clear()
            expression = self._read()
        if not self._faults and self._size(expression) > MAX_SIZE:
            self._report_size(f"{MAX_SIZE} runs of characters")
        return None if self._faults else expression

    def _size(self, expression: Expression) -> int:
        return expression.size + sum(called.size for called in self.called().values())

    def _read(self) -> Expression:
        """Read what the root is made of, and the root last."""
        open_rules: dict[str, None] = {}
        pending: list[tuple[Reference, bool]] = [(self._root, False)]
        while pending:
            reference, done = pending.pop()
            name, definition = self._meaning(reference)
            if definition is None:
                self._report_undefined(name, reference)
            elif done:
                open_rules.popitem()
                self._known[name] = _named(name, self._express(definition))
            elif name in open_rules:
                self._called.add(name)
            elif name not in self._known:
                open_rules[name] = None
                pending.append((reference, True))
                pending.extend((inner, False) for inner in reversed(list(references(definition))))
        return self._known[self._meaning(self._root)[0]]

    def _meaning(self, reference: Reference) -> tuple[str, Element | None]:
        """Return one name for all references to the same rule, and its definition if it has one."""
        rule = self._grammar.find(reference)
        if rule:
            return str(rule), rule.definition
        return reference.name.upper(), self._grammar.core(reference)

    def _express(self, element: Element) -> Expression:
        """Return the expression of an element whose rules are known; after a fault, of anything."""
        self._spend(1)
        match element:
            case CharVal(text=text, case_sensitive=case_sensitive):
                self._spend(len(text))
                return _literal(text, case_sensitive)
            case NumVal(values=values):
                self._spend(len(values))
                return _values(values)
            case NumRange(first=first, last=last):
                return Run(Characters(((first, last),), (write_element(element),)))
            case ProseVal():
                self._report_prose(element)
            case Reference():
                name = self._meaning(element)[0]
                if self._shares and name in self._known and self._known[name].size > MAX_COPIED:
                    self._called.add(name)
                return Call(name) if name in self._called else self._known.get(name, EMPTY)
            case Concatenation(items=items):
                return chain([self._express(item) for item in items])
            case Alternation(items=items):
                found = choice([self._express(item) for item in items if self._ends(item)] or [EMPTY])
                self._spend(len(found.characters.ranges) if isinstance(found, Run) else 0)
                return found
            case Option(element=inner):
                return maybe(self._express(inner)) if self._ends(inner) else EMPTY
            case Repetition(maximum=0):
                return EMPTY  # RFC 3986 writes the empty path as 0<pchar>
            case Repetition(minimum=0, element=inner) if not self._ends(inner):
                return EMPTY
            case Repetition(minimum=low, maximum=high, element=inner):
                return many(self._express(inner), low, high)
        return EMPTY

    def _spend(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            self._report_size(f"{MAX_ELEMENTS} elements")
            raise _GivenUp

    def _error(self, code: str, span: Span, message: str, help: str) -> None:
        self._faults += 1
        self._diagnostics.error(code, span, message, help)
        if self._faults == MAX_FAULTS:
            raise _GivenUp

    def _report_undefined(self, name: str, reference: Reference) -> None:
        if name in self._known:
            return
        self._known[name] = EMPTY
        if external := self._grammar.external(reference):
            message = f"'{reference}' is read as {EXTERNAL_WORDS[external]}, which no rule describes"
            self._error(
                "E603", reference.span, message, "define the rule, or match a rule that describes characters"
            )
            return
        names = {str(rule).lower(): str(rule) for rule in self._grammar.rules[:MAX_GUESSES]}
        names |= {core.lower(): core for core in core_rules()}
        close = get_close_matches(str(reference).lower(), names, n=1, cutoff=0.7)
        help = f"did you mean '{names[close[0]]}'? Otherwise define it" if close else "define it"
        self._error("E201", reference.span, f"rule '{reference}' is not defined", help)

    def _ends(self, element: Element) -> bool:
        """Whether some text matches the element; alternatives that never end are skipped."""
        return element_ends(self._grammar, element, self._ending)

    def _report_endless(self) -> None:
        rule = self._grammar.find(self._root)
        self._error(
            "E605",
            rule.name_span if rule else self._root.span,
            f"no text matches rule '{self._root}': every alternative leads back to a rule that never ends",
            "add an alternative that ends, or write the recursive element in brackets: '[ ]'",
        )

    def _report_prose(self, prose: ProseVal) -> None:
        shown = prose.text if len(prose.text) <= LITERAL_SHOWN else f"{prose.text[:LITERAL_SHOWN]}…"
        message = f"no text can be matched against the prose value <{shown}>"
        self._error("E602", prose.span, message, "write a rule for the text that it describes")

    def _report_size(self, much: str) -> None:
        """Report that the whole is too large, where the rule that was asked for is defined."""
        rule = self._grammar.find(self._root)
        self._error(
            "E604",
            rule.name_span if rule else self._root.span,
            f"rule '{self._root}' expands to more than {much}",
            "repeat a single class of characters, such as 1*65535OCTET, or omit the upper bound: "
            "any other repetition is expanded",
        )


def _named(name: str, expression: Expression) -> Expression:
    """Call a class of characters by its rule's name, unless the grammar writes it as shortly: ``":"``."""
    if not (isinstance(expression, Run) and expression.is_single):
        return expression
    characters = expression.characters
    if len(characters.names) == 1 and characters.names[0].endswith('"'):
        return expression
    return Run(Characters(characters.ranges, (name,)))


def _literal(text: str, case_sensitive: bool) -> Expression:
    """Name each character by the rest of the literal: after ``G``, ``"GMT"`` expects ``"MT"``."""
    found: list[Expression] = []
    for place, character in enumerate(text):
        same = {character}
        if not case_sensitive and character.isascii():
            same |= {character.lower(), character.upper()}
        rest = text[place : place + LITERAL_SHOWN] + ("…" if len(text) - place > LITERAL_SHOWN else "")
        name = f'{"%s" if case_sensitive else ""}"{rest}"'
        found.append(Run(Characters(tuple((code, code) for code in sorted(map(ord, same))), (name,))))
    return chain(found)


def _values(values: Sequence[int]) -> Expression:
    found: list[Expression] = []
    for place, value in enumerate(values):
        rest = ".".join(f"{code:02X}" for code in values[place : place + LITERAL_SHOWN])
        more = "…" if len(values) - place > LITERAL_SHOWN else ""
        found.append(Run(Characters(((value, value),), (f"%x{rest}{more}",))))
    return chain(found)
