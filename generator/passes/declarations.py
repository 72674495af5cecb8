"""Checks that everything the profile names exists, and that the names of the package differ.

    E418  two names of the generated package are the same
    E509  an unknown message
    E511  any other unknown name

Without this check, a declaration with a misspelled name would silently have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import get_args

from specwire.generator import ir
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import PACKAGE_NAMES, constant_name, fold
from specwire.generator.passes.grammar import Grammar, references
from specwire.generator.profile.tables import OF_FIELDS, LoadedProfile, PresenceTable, TypeHint
from specwire.generator.support.errors import Kind

KINDS: tuple[str, ...] = get_args(Kind)
"""The kinds of a DecodeError."""


def may_redact(field: ir.Field) -> bool:
    """Return whether a shorter value can take the place of the field's: text, octets and lists of them."""
    type = field.type.element if isinstance(field.type, ir.ListType) else field.type
    return isinstance(type, ir.TextType | ir.OctetsType | ir.JsonType)


def redacted(entries: Sequence[str] | None, messages: Sequence[ir.Message]) -> ir.Redacted | None:
    """Return for each message class with content the attributes that have it; None if nothing is declared."""
    if entries is None:
        return None
    wanted = {fold(entry).replace("-", "_") for entry in entries}
    found: list[tuple[str, tuple[str, ...]]] = []
    for message in messages:
        prefix = fold(message.name).replace("-", "_")
        attributes = tuple(
            field.attribute for field in message.fields if {field.name, f"{prefix}.{field.name}"} & wanted
        )
        if attributes:
            found.append((message.class_name, attributes))
    return tuple(found)


class Names:
    """Lookup of the names that a profile uses; reports unknown names."""

    def __init__(self, loaded: LoadedProfile, diagnostics: Diagnostics) -> None:
        self.loaded = loaded
        self.diagnostics = diagnostics
        self.messages: list[str] = []
        """The names of the protocol's messages, as soon as `check` knows them."""

    def check(self, grammar: Grammar, messages: Sequence[ir.Message]) -> None:
        """Report entries of the profile for rules, parts and roles that do not exist."""
        profile = self.loaded.profile
        by_rule = {fold(message.rule): message for message in messages}
        by_name = {fold(message.name): message for message in messages}
        self.messages = [message.name for message in messages]
        used = {fold(use.name) for rule in grammar.rules for use in references(rule.definition)}
        for key, hint in profile.types.items():
            if fold(key) not in used:
                self._type(key, hint, grammar, by_name)
        for key, table in profile.message.items():
            message = by_rule.get(fold(key))
            if message is None:
                self.missing("message", [m.rule for m in messages], "message", key)
                continue
            for number, role in enumerate(table.senders):
                self._role(role, "message", key, "senders", number)
            parts = [part.name for part in message.parts]
            for part in table.defaults:
                if part not in parts:
                    self.missing("frame", parts, "message", key, "defaults", part)
            for part in table.letter:
                if part not in parts:
                    self.missing("frame", parts, "message", key, "letter", part)
        for number, answer in enumerate(profile.answers):
            self._answer(number, answer, by_name)
        for number, name in enumerate(profile.redact or ()):
            self._redacted(number, name, by_name)
        for role in profile.unexpected:
            self._role(role, "unexpected", role)
        for number, dialog in enumerate(profile.dialogs):
            for role in dialog.roles:
                self._role(role, "dialogs", number, "roles")

    def missing(self, what: str, known: Iterable[str], *path: str | int, code: str = "E511") -> None:
        """Report that there is no `what` with the name at the end of `path`."""
        name, listed = str(path[-1]), list(known)
        self._report(what, name, listed, code, path)

    def _report(
        self, what: str, name: str, known: Sequence[str], code: str, path: tuple[str | int, ...]
    ) -> None:
        close = get_close_matches(name, known, n=1)
        help = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known[:12]) or 'none'}"
        self.diagnostics.error(code, self.loaded.place(*path), f"there is no {what} '{name}'", help)

    def _type(self, key: str, hint: TypeHint, grammar: Grammar, by_name: Mapping[str, ir.Message]) -> None:
        message, dot, name = key.partition(".")
        rule = grammar.rule(name if dot else key)
        if dot and fold(message) not in by_name:
            self._report("message", message, [m.name for m in by_name.values()], "E511", ("types", key))
        elif rule is None:
            self._report(
                "rule", name if dot else key, [r.name for r in grammar.rules], "E511", ("types", key)
            )
        elif dot:
            given = {f for f in hint.__struct_fields__ if getattr(hint, f) != getattr(TypeHint(), f)}
            allowed = OF_FIELDS | ({"presence"} if isinstance(hint.presence, PresenceTable) else set())
            for word in sorted(given - allowed):
                self.diagnostics.error(
                    "E511",
                    self.loaded.place("types", key, word),
                    f"`{word}` applies to a rule, not to one message",
                    f"write it under [types.{rule.name}]",
                )

    def _answer(self, number: int, answer: ir.Answer, by_name: Mapping[str, ir.Message]) -> None:
        self._role(answer.role, "answers", number, "role")
        if answer.kind is not None and answer.kind not in KINDS:
            self._report("kind of error", answer.kind, KINDS, "E511", ("answers", number, "kind"))
        messages = list(by_name.values())
        if answer.message is not None:
            names = [message.name for message in messages]
            if answer.message not in names:
                self._report("message", answer.message, names, "E509", ("answers", number, "message"))
                return
            messages = [by_name[fold(answer.message)]]
        fields = list(dict.fromkeys(field.name for message in messages for field in message.fields))
        if answer.field is not None and answer.field not in fields:
            self._report("field", answer.field, fields, "E511", ("answers", number, "field"))

    def _redacted(self, number: int, entry: str, by_name: Mapping[str, ir.Message]) -> None:
        message, dot, name = entry.rpartition(".")
        if dot and fold(message) not in by_name:
            known = [found.name for found in by_name.values()]
            self._report("message", message, known, "E511", ("redact", number))
            return
        messages = [by_name[fold(message)]] if dot else list(by_name.values())
        fields = {field.name: None for found in messages for field in found.fields if may_redact(field)}
        if name.replace("-", "_") not in fields:
            self._report("field with content", name, list(fields), "E511", ("redact", number))

    def _role(self, letter: str, *path: str | int) -> None:
        roles = list(self.loaded.profile.roles)
        if letter not in roles:
            self.diagnostics.error(
                "E511",
                self.loaded.place(*path),
                f"there is no role '{letter}'",
                self._how_to_add(letter, roles),
            )

    def _how_to_add(self, letter: str, roles: Sequence[str]) -> str:
        """Return the help for a missing role: the declared roles, and how to add one."""
        close = get_close_matches(letter, roles, n=1)
        known = (
            f"did you mean '{close[0]}'? " if close else f"there are: {', '.join(roles)}; " if roles else ""
        )
        path = self.loaded.source.path
        return (
            f"{known}add [roles.{letter}] with a name and a socket in {path}, for example name = "
            '"client", socket = "DEALER"'
        )

    def reply(self, reply: str, classes: Mapping[str, str], *path: str | int) -> str:
        """Return the class of the message that a role replies with; E509 if there is no such message."""
        found = classes.get(fold(reply))
        if found is None:
            self._report("message", reply, self.messages, "E509", path)
        return found or ""


def check_package_names(
    rules: Sequence[Rule],
    classes: Mapping[str, str],
    constants: Sequence[ir.Constant],
    enums: Sequence[ir.Enum],
    flags: Sequence[ir.FlagBit],
    diagnostics: Diagnostics,
    loaded: LoadedProfile,
) -> None:
    """Report names of classes, enumerations and constants that collide in the package."""
    taken = dict.fromkeys(PACKAGE_NAMES - {"Flags"}, "a name of every package")
    for name, what in _package_names(rules, classes, constants, enums, flags):
        if name in taken:
            rule = next(
                (rule for rule in rules if classes[str(rule)] == name and what.endswith(f"'{rule}'")), None
            )
            span = rule.name_span if rule else loaded.place("constants", name)
            diagnostics.error(
                "E418",
                span,
                f"{what} and {taken[name]} would both be '{name}' in Python",
                "rename one of them, in [[rules]] or in an erratum",
            )
        taken.setdefault(name, what)


def _package_names(
    rules: Sequence[Rule],
    classes: Mapping[str, str],
    constants: Sequence[ir.Constant],
    enums: Sequence[ir.Enum],
    flags: Sequence[ir.FlagBit],
) -> Iterator[tuple[str, str]]:
    if flags:
        yield "Flags", "the flags"
    for enum in enums:
        yield enum.class_name, f"enumeration '{enum.name}'"
    for constant in constants:
        yield constant.name, f"constant '{constant.name}'"
    for rule in rules:
        yield classes[str(rule)], f"message '{rule}'"


def all_constants(grammars: Iterable[ir.Constant], declared: Mapping[str, int]) -> tuple[ir.Constant, ...]:
    """Return the constants of the grammar, then those of the profile."""
    return (*grammars, *(ir.Constant(constant_name(name), value, "") for name, value in declared.items()))
