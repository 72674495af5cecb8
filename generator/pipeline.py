"""A protocol's folder to its IR, and the IR to a package: the whole way, top to bottom.

    profile.toml, grammar.abnf --read--> rules --resolve--> Grammar --types, layout--> messages
        --dialog--> automata --> Protocol --emit--> sources --format--> files

Each step's faults are collected and raised before the next step that would trip over them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostic, Diagnostics
from specwire.generator.names import class_name
from specwire.generator.passes.dialog import build_dialogs, senders
from specwire.generator.passes.fields import FieldReader
from specwire.generator.passes.grammar import Grammar, references
from specwire.generator.passes.layout import MessageReader
from specwire.generator.passes.presence import read_flags
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.passes.tags import find_tags
from specwire.generator.passes.types import ChoiceLayout, FieldsLayout, TypeReader, ValueLayout
from specwire.generator.profile import LoadedProfile, MessageTable, load_profile
from specwire.generator.sources import GRAMMAR, read_rules
from specwire.generator.syntax import Alternation, Reference, Repetition, Rule


@dataclass(frozen=True, slots=True)
class Compilation:
    """A protocol that compiled, with the warnings that it gave on the way."""

    protocol: ir.Protocol
    grammar: Grammar
    warnings: tuple[Diagnostic, ...]


def compile_protocol(folder: Path, *, shown: str | None = None) -> Compilation:
    """Read the protocol in `folder`, which diagnostics call `shown`.

    Raises:
        SpecError: with every fault found, in the order of their places.
    """
    shown = shown or str(folder)
    diagnostics = Diagnostics()
    loaded = load_profile(folder, diagnostics, display=f"{shown}/profile.toml")
    diagnostics.raise_errors()
    assert loaded is not None
    rulelists = read_rules(folder, loaded, diagnostics, shown=shown)
    diagnostics.raise_errors()
    grammar = resolve_names(rulelists, diagnostics=diagnostics)
    diagnostics.raise_errors()
    protocol = _build(grammar, loaded, diagnostics, _digest(folder, loaded))
    diagnostics.raise_errors()
    return Compilation(protocol, grammar, tuple(diagnostics))


def _build(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics, digest: str) -> ir.Protocol:
    profile = loaded.profile
    rules = _message_rules(grammar, loaded, diagnostics)
    diagnostics.raise_errors()
    classes = {str(rule): class_name(rule.name) for rule in rules}
    dialogs = build_dialogs(grammar, profile.dialogs, classes, diagnostics, place=loaded.span_of)
    reader = TypeReader(grammar, loaded, diagnostics)
    flags = read_flags(reader)
    sent_by = senders(dialogs)
    messages = MessageReader(reader, flags)
    laid_out = [messages.message(rule, tuple(sent_by.get(classes[str(rule)], ()))) for rule in rules]
    diagnostics.raise_errors()
    selectors, tagged = find_tags(laid_out, diagnostics, loaded.span_of("name"))
    named = {rule.name.lower(): classes[str(rule)] for rule in rules}
    return ir.Protocol(
        ir_version=ir.IR_VERSION,
        name=profile.name,
        title=profile.title or profile.name,
        edition=profile.edition or profile.name,
        source=profile.source.document,
        digest=digest,
        roles=tuple(ir.Role(letter, r.name, r.socket, r.doc) for letter, r in profile.roles.items()),
        messages=tagged,
        selectors=selectors,
        rules=tuple(_named_rules(grammar, reader, {str(rule) for rule in rules})),
        flags=flags.bits,
        enums=tuple(reader.enums.values()),
        constants=(
            *reader.constants.values(),
            *(ir.Constant(name, value, "") for name, value in profile.constants.items()),
        ),
        timers=tuple(profile.timers.items()),
        answers=tuple(_answers(loaded, named, diagnostics)),
        unexpected=tuple(
            (role, _reply(reply, named, loaded, diagnostics) or "")
            for role, reply in profile.unexpected.items()
        ),
        dialogs=dialogs,
        stream=profile.stream,
    )


def _message_rules(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics) -> list[Rule]:
    """Return the rules of messages: those the profile lists, else those a role sends, else a first rule's choices."""
    listed = loaded.profile.messages
    if listed:
        rules: list[Rule] = []
        for name in listed:
            role, _, bare = name.rpartition(":")
            rule = grammar.rule(bare, role or None)
            if rule is None:
                diagnostics.error(
                    "E507", loaded.span_of(f'"{name}"'), f"there is no rule '{name}' to be a message"
                )
            else:
                rules.append(rule)
        return rules
    dialog_rules = {str(rule) for rule in grammar.rules if _speaks(rule)}
    sent: set[str] = set()
    for rule in grammar.rules:
        if str(rule) in dialog_rules:
            found = [grammar.find(reference) for reference in references(rule.definition)]
            sent |= {str(target) for target in found if target} - dialog_rules
    sent = {name for name in sent if not _is_dialog(grammar, name, dialog_rules)}
    if not sent:
        sent = _choices(grammar)
    if not sent:
        diagnostics.error(
            "E508", loaded.span_of("name"), "the grammar does not say which of its rules are messages",
            "list them under `messages` in the profile",
        )  # fmt: skip
    return [rule for rule in grammar.rules if str(rule) in sent]


def _speaks(rule: Rule) -> bool:
    """Whether the rule says who sends something: a rule of a dialog."""
    return any(reference.role for reference in references(rule.definition))


def _is_dialog(grammar: Grammar, name: str, dialog_rules: set[str]) -> bool:
    """Whether a rule is made of dialog rules only (``filemq-protocol`` itself names no role)."""
    rule = next(rule for rule in grammar.rules if str(rule) == name)
    found = [grammar.find(reference) for reference in references(rule.definition)]
    return bool(found) and all(target is not None and str(target) in dialog_rules for target in found)


def _choices(grammar: Grammar) -> set[str]:
    """The alternatives of a first rule such as ``msg = *( OHAI | NOM )``."""
    definition = grammar.rules[0].definition
    while isinstance(definition, Repetition):
        definition = definition.element
    if not isinstance(definition, Alternation):
        return set()
    found = [grammar.find(item) if isinstance(item, Reference) else None for item in definition.items]
    return {str(rule) for rule in found if rule} if all(found) else set()


def _named_rules(grammar: Grammar, reader: TypeReader, messages: set[str]) -> Sequence[ir.NamedRule]:
    """Every rule that a message is made of, with its layout, in the order of the grammar."""
    named: list[ir.NamedRule] = []
    for rule in grammar.rules:
        if str(rule) in messages or not reader.seen(rule):
            continue
        match reader.layout(rule):
            case ValueLayout(type=type):
                named.append(ir.NamedRule(rule.name, rule.published_line, type))
            case FieldsLayout(items=items):
                fields = FieldReader(reader, rule, MessageTable())
                named.append(ir.NamedRule(rule.name, rule.published_line, fields=tuple(fields.run(items))))
            case ChoiceLayout(rules=rules):
                named.append(
                    ir.NamedRule(rule.name, rule.published_line, one_of=tuple(r.name for r in rules))
                )
    return named


def _answers(loaded: LoadedProfile, named: dict[str, str], diagnostics: Diagnostics) -> Sequence[ir.Answer]:
    return [
        msgspec.structs.replace(
            answer, reply=_reply(answer.reply, named, loaded, diagnostics) if answer.reply else None
        )
        for answer in loaded.profile.answers
    ]


def _reply(name: str, named: dict[str, str], loaded: LoadedProfile, diagnostics: Diagnostics) -> str | None:
    found = named.get(name.lower())
    if found is None:
        diagnostics.error(
            "E509", loaded.span_of(f'"{name}"'), f"'{name}' is no message of the protocol",
            f"the messages are {', '.join(named)}",
        )  # fmt: skip
    return found


def _digest(folder: Path, loaded: LoadedProfile) -> str:
    """SHA-256 over all that decides the output: grammars, profiles, templates and the IR's version."""
    digest = hashlib.sha256(f"IR {ir.IR_VERSION}\n".encode())
    level: LoadedProfile | None = loaded
    place = folder
    while level is not None:
        grammar = place / GRAMMAR
        digest.update(grammar.read_bytes() if grammar.exists() else b"")
        digest.update(level.source.text.encode())
        level = level.base
        place = folder.parent / level.profile.name if level else place
    templates = resources.files("specwire.generator") / "templates"
    for template in sorted(templates.iterdir(), key=lambda item: item.name):
        digest.update(template.name.encode() + template.read_bytes())
    return digest.hexdigest()
