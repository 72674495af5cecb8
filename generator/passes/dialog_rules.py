"""Regular expressions over labels, read from dialog rules.

A dialog rule consists of messages with their senders (``C:OHAI``) and other dialog rules
(``open-peering``), which are expanded in place. It contains nothing else: octets belong in
messages, and each message needs a sender.

A rule that refers to itself has no finite automaton (E302). Counted repetitions are expanded, so their count
and the size of the whole expression are bounded (E305). A fault costs the dialog, but not the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.passes.automata import EMPTY, Chain, Choice, Many, Regex, Symbol
from specwire.generator.passes.resolve import Grammar

MAX_COUNT = 16
"""Highest count of a repetition."""
MAX_ELEMENTS = 5_000
"""Most elements of a dialog after the expansion of its rules."""
MAX_GUESSES = 20
"""Undefined names for which a similar rule is looked up."""
MAX_DEPTH = 100
"""Deepest nesting of rules and groups."""


def fold(name: str) -> str:
    """Return the spelling under which names are equal: without case, ``_`` as ``-``."""
    return name.lower().replace("_", "-")


@dataclass(slots=True)
class DialogReader:
    """Reader of one dialog's rules. It reports faults to `diagnostics` and reads them as the empty word."""

    grammar: Grammar
    classes: Mapping[str, str]
    """Class name by message rule as written, role included where the rule has one."""
    roles: Sequence[str]
    diagnostics: Diagnostics
    _folded: dict[str, str] = field(init=False)
    _path: list[Rule] = field(default_factory=list)
    _undefined: set[str] = field(default_factory=set)
    _depth: int = 0
    _elements: int = 0
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._folded = {fold(name): class_name for name, class_name in self.classes.items()}

    def read(self, rule: Rule) -> Regex:
        """Return the expression of `rule`, all rules that it refers to expanded."""
        self._path.append(rule)
        regex = self._element(rule.definition)
        self._path.pop()
        return regex

    def _element(self, element: Element) -> Regex:
        self._elements += 1
        if self._elements > MAX_ELEMENTS or self._depth > MAX_DEPTH:
            return self._too_large(element.span)
        self._depth += 1
        regex = self._expand(element)
        self._depth -= 1
        return regex

    def _expand(self, element: Element) -> Regex:
        match element:
            case Reference():
                return self._reference(element)
            case Alternation(items):
                return Choice(tuple(self._element(item) for item in items))
            case Concatenation(items):
                return Chain(tuple(self._element(item) for item in items))
            case Option(body):
                return Choice((self._element(body), EMPTY))
            case Repetition():
                return self._repetition(element)
        self.diagnostics.error(
            "E306",
            element.span,
            f"octets in dialog rule '{self._path[-1]}'",
            "write octets in the rule of a message; a dialog rule contains only messages with their senders",
        )
        return EMPTY

    def _repetition(self, element: Repetition) -> Regex:
        if max(element.minimum, element.maximum or 0) > MAX_COUNT:
            self.diagnostics.error(
                "E305",
                element.span,
                f"a repeat count in a dialog is at most {MAX_COUNT}",
                "write '*' and check the number of messages in the application",
            )
            return EMPTY
        required = tuple(self._element(element.element) for _ in range(element.minimum))
        if element.maximum is None:
            body = required[0] if required else self._element(element.element)
            return Many(body, element.minimum)
        optional: Regex = EMPTY
        for _ in range(element.maximum - element.minimum):
            optional = Choice((Chain((self._element(element.element), optional)), EMPTY))
        return Chain((*required, optional))

    def _reference(self, reference: Reference) -> Regex:
        if reference.role is not None:
            return self._message(reference, reference.role)
        senders = [role for role in self.roles if fold(f"{role}:{reference.name}") in self._folded]
        if senders or fold(reference.name) in self._folded:
            written = " or ".join(f"'{role}:{reference.name}'" for role in senders or self.roles)
            self.diagnostics.error(
                "E301",
                reference.span,
                f"message '{reference}' in a dialog has no sender",
                f"write {written}",
            )
            return EMPTY
        rule = self.grammar.find(reference)
        if rule is None:
            return self._no_message(reference)
        if any(rule is other for other in self._path):
            cycle = " -> ".join(f"'{other}'" for other in (*self._path, rule))
            self.diagnostics.error(
                "E302",
                reference.span,
                f"dialog rule '{rule}' refers to itself: {cycle}",
                "write the repetition with '*'",
            )
            return EMPTY
        return self.read(rule)

    def _message(self, reference: Reference, role: str) -> Regex:
        """Return the symbol of a message that `role` sends: of the rule ``ROLE:name``, else of ``name``."""
        class_name = self._folded.get(fold(str(reference)), self._folded.get(fold(reference.name)))
        if class_name is None:
            return self._no_message(reference)
        known = {fold(letter): letter for letter in self.roles}
        if fold(role) not in known:
            self.diagnostics.error(
                "E303",
                reference.span,
                f"'{role}' is not a role of this dialog",
                f"its roles are {', '.join(self.roles)}; the profile lists them in [[dialogs]]",
            )
            return EMPTY
        return Symbol(f"{known[fold(role)]}:{class_name}")

    def _no_message(self, reference: Reference) -> Regex:
        rule = self.grammar.find(reference)
        if rule is None and not (self.grammar.core(reference) or self.grammar.external(reference)):
            self._report_undefined(reference)
            return EMPTY
        help = "a dialog rule contains messages with their senders, and rules that consist of such names"
        if rule is not None and any(rule is other for other in self._path):
            help = (
                f"names are not case-sensitive, so it is the dialog rule '{rule}' itself: rename one of them"
            )
        self.diagnostics.error(
            "E306", reference.span, f"'{reference}' in a dialog rule is not a message", help
        )
        return EMPTY

    def _report_undefined(self, reference: Reference) -> None:
        """Report a name without a definition at its first use."""
        name = fold(str(reference))
        if name in self._undefined:
            return
        names = [str(rule) for rule in self.grammar.rules] if len(self._undefined) < MAX_GUESSES else []
        self._undefined.add(name)
        close = get_close_matches(str(reference), names, n=1, cutoff=0.7)
        self.diagnostics.error(
            "E306",
            reference.span,
            f"rule '{reference}' is not defined",
            f"did you mean '{close[0]}'?" if close else "define it under [[rules]] in the profile",
        )

    def _too_large(self, span: Span) -> Regex:
        if not self._stopped:
            self._stopped = True
            self.diagnostics.error(
                "E305",
                self._path[0].name_span,
                f"dialog rule '{self._path[0]}' is too large: over {MAX_ELEMENTS} elements or "
                f"{MAX_DEPTH} levels when its rules are expanded",
                f"expansion stopped at {span}",
            )
        return EMPTY
