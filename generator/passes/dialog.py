"""Dialogs from dialog rules, in a strict and a concurrent reading.

A dialog rule is a regular expression over messages, each marked with its sender, such as FILEMQ
v2's ``use-peering = C:ICANHAZ ( S:ICANHAZ-OK / error ) / C:NOM``. A profile names the rule and
declares what the rule cannot express: its errors, its key, whether it repeats (`DialogSettings`).
The rule as written gives the strict reading; its shape gives the concurrent one
(`specwire.generator.passes.lifecycle`).

Diagnostics:

    E301  a message without its sender          E305  a repetition or a dialog that is too large
    E302  a rule that refers to itself          E306  something that is not a message
    E303  a role that the dialog does not have  E307  the profile names a rule that does not exist
    E304  a rule without messages               E308  an error rule with more than single messages
    E309  settings that are invalid or contradict each other
    W304  no repeated part: the dialog is one run in the concurrent reading too
    W305  a message whose meaning depends on later messages
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.ir.dialogs import Concurrent, Dialog, DialogSettings, State, Transition
from specwire.generator.passes.automata import (
    Automaton,
    Many,
    Regex,
    Steps,
    Symbol,
    TooLarge,
    alternatives_of,
    build_automaton,
    labels_of,
)
from specwire.generator.passes.dialog_rules import DialogReader, fold
from specwire.generator.passes.lifecycle import has_group, read_concurrently
from specwire.generator.passes.resolve import Grammar
from specwire.generator.passes.states import START, USE, name_states

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")

Place = Callable[..., Span]
"""Finds the line of the profile that holds all the given words (`LoadedProfile.span_of`)."""


def build_dialogs(
    grammar: Grammar,
    settings: Sequence[DialogSettings],
    classes: Mapping[str, str],
    diagnostics: Diagnostics,
    *,
    place: Place | None = None,
    steps: Steps | None = None,
) -> tuple[Dialog, ...]:
    """Return the dialogs of a protocol, in the order of the profile; dialogs with a fault are omitted.

    Args:
        grammar: all rules, resolved.
        settings: the profile's ``[[dialogs]]``.
        classes: the class name for each message rule as written (``OHAI``, ``C:request``).
        diagnostics: collects the faults.
        place: finds the line of the profile for a fault of `settings`.
        steps: budget for automata, shared with other dialogs.
    """
    builder = _Builder(grammar, classes, diagnostics, place or _nowhere, steps or Steps())
    names = [fold(entry.name) for entry in settings]
    for entry in settings:
        if names.count(fold(entry.name)) > 1:
            builder.contradiction(entry, f"two dialogs are named '{entry.name}'")
    built = [builder.build(entry) for entry in settings]
    return tuple(dialog for dialog in built if dialog is not None)


def senders(dialogs: Sequence[Dialog]) -> dict[str, tuple[str, ...]]:
    """Return for each message class the letters of the roles that may send it in some dialog."""
    found: dict[str, dict[str, None]] = {}
    for dialog in dialogs:
        for role in dialog.roles:
            for label in dialog.labels:
                sender, _, class_name = label.partition(":")
                if sender == role:
                    found.setdefault(class_name, {})[role] = None
    return {class_name: tuple(roles) for class_name, roles in found.items()}


def _nowhere(*_words: str) -> Span:
    return Span(Source("profile.toml", ""), 1, 1, 1, 2)


@dataclass(frozen=True, slots=True)
class _Builder:
    """Builder of dialogs; a method that finds a fault reports it and returns None."""

    grammar: Grammar
    classes: Mapping[str, str]
    diagnostics: Diagnostics
    place: Place
    steps: Steps

    def build(self, entry: DialogSettings) -> Dialog | None:
        found_before = self.diagnostics.faults
        self._check(entry)
        rule = self._find_rule(entry.rule)
        if rule is None or not entry.roles:
            return None
        reader = DialogReader(self.grammar, self.classes, entry.roles, self.diagnostics)
        regex = reader.read(rule)
        errors = self._errors(reader, entry)
        if self.diagnostics.faults > found_before:
            return None
        if not labels_of(regex):
            self.diagnostics.error(
                "E304",
                rule.name_span,
                f"dialog rule '{rule}' contains no message",
                "write at least one message with its sender: 'ROLE:message'",
            )
            return None
        return self._automata(entry, rule, regex, errors)

    def contradiction(self, entry: DialogSettings, message: str) -> None:
        """Report a fault of a profile entry."""
        help = "docs/reference/grammars.md describes the keys of [[dialogs]]"
        self.diagnostics.error("E309", self.place(f'"{entry.name}"', "name"), message, help)

    def _check(self, entry: DialogSettings) -> None:
        if not _NAME.match(entry.name):
            self.contradiction(entry, f"'{entry.name}' cannot name a dialog: use letters, digits and '-'")
        if not entry.roles:
            self.contradiction(entry, f"dialog '{entry.name}' has no roles")
        if entry.symmetric and len(entry.roles) != 2:
            self.contradiction(entry, f"symmetric dialog '{entry.name}' needs two roles")
        if unkeyed := sorted(set(entry.keyless) - set(entry.key)):
            self.contradiction(entry, f"keyless field '{unkeyed[0]}' is not in the key of '{entry.name}'")

    def _find_rule(self, name: str) -> Rule | None:
        role, _, bare = name.rpartition(":")
        rule = self.grammar.rule(bare, role or None)
        if rule is None:
            self.diagnostics.error(
                "E307",
                self.place(f'"{name}"'),
                f"dialog rule '{name}' is not defined",
                "define it in the grammar, or under [[rules]] in the profile",
            )
        return rule

    def _errors(self, reader: DialogReader, entry: DialogSettings) -> tuple[str, ...]:
        rule = self._find_rule(entry.error) if entry.error is not None else None
        if rule is None:
            return ()
        found_before = self.diagnostics.faults
        items = alternatives_of(reader.read(rule))
        labels = tuple(item.label for item in items if isinstance(item, Symbol))
        if len(labels) < len(items) and self.diagnostics.faults == found_before:
            self.diagnostics.error(
                "E308",
                rule.name_span,
                f"error rule '{rule}' is not an alternation of single messages",
                "write it as 'ROLE:message / ROLE:message'",
            )
        return labels

    def _automata(
        self, entry: DialogSettings, rule: Rule, regex: Regex, errors: tuple[str, ...]
    ) -> Dialog | None:
        if entry.repeat:
            regex = Many(regex)
        if not has_group(regex):
            self.diagnostics.warning(
                "W304",
                rule.name_span,
                f"dialog '{entry.name}' has no repeated part, so it allows one run of its messages",
                "write '*( ... )' around the part that repeats, or set repeat = true in the profile",
            )
        mirror = _mirror(labels_of(regex), entry.roles) if entry.symmetric else {}
        try:
            automaton = build_automaton(regex, self.steps)
            concurrent, ambiguous = read_concurrently(regex, errors=errors, mirror=mirror, steps=self.steps)
        except TooLarge:
            self.diagnostics.error(
                "E305",
                rule.name_span,
                f"the automaton of dialog rule '{rule}' is too large",
                "use fewer counted repetitions and fewer consecutive optional parts",
            )
            return None
        if ambiguous and not entry.key:  # a key tells which request a reply belongs to
            self.diagnostics.warning(
                "W305",
                rule.name_span,
                f"in dialog '{entry.name}' the meaning of {_quoted(ambiguous)} is ambiguous until later "
                "messages arrive",
                "it is read as a reply if one is expected, otherwise as the start or the end of the dialog; "
                "if a field matches replies to requests, name it as `key` in the profile",
            )
        return Dialog(
            name=entry.name,
            rule=str(rule),
            roles=entry.roles,
            labels=tuple(dict.fromkeys((*labels_of(regex), *errors, *mirror.values()))),
            strict=_name_strict(automaton, concurrent),
            concurrent=concurrent,
            key=entry.key,
            keyless=tuple(entry.keyless.items()),
            unanswered=tuple(entry.unanswered.items()),
        )


def _quoted(labels: Sequence[str]) -> str:
    quoted = [f"'{label}'" for label in labels]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _mirror(labels: Sequence[str], roles: Sequence[str]) -> dict[str, str]:
    """Return for each label the one that the other role sends."""
    swapped = dict(zip(roles, reversed(roles), strict=True))
    parts = (label.partition(":") for label in labels)
    return {f"{role}:{name}": f"{swapped[role]}:{name}" for role, _, name in parts}


def _name_strict(automaton: Automaton, concurrent: Concurrent) -> tuple[State, ...]:
    """Return the strict states; the state that corresponds to the phase for use gets its name."""
    known: dict[frozenset[str], str] = {}
    for phase in (phase for phase in concurrent.phases if phase.name in (START, USE)):
        allowed = {move.label for move in phase.moves} | {start.label for start in phase.starts}
        allowed -= set(concurrent.errors)
        known.setdefault(frozenset(allowed & set(automaton.labels)), phase.name)
    rows = automaton.transitions
    alike = {n: known[frozenset(row)] for n, row in enumerate(rows) if row and frozenset(row) in known}
    names = name_states(automaton, alike)
    return tuple(
        State(
            names[number],
            number in automaton.accepting,
            tuple(Transition(label, names[target]) for label, target in row.items()),
        )
        for number, row in enumerate(rows)
    )
