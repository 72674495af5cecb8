"""Compilation of a protocol's folder to its IR, and of the IR to a package.

    profile.toml, grammar.abnf --read--> rules --resolve--> Grammar --types, layout--> messages
        --dialog--> automata --> Protocol --emit--> sources --format--> files

The faults of each step are collected, and raised before the next step that depends on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.sources import GRAMMAR, read_rules, unread_names
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostic, Diagnostics
from specwire.generator.ir.dialogs import Dialog
from specwire.generator.ir.names import class_name, fold
from specwire.generator.partial import build_sound
from specwire.generator.passes.capacity import check_capacity
from specwire.generator.passes.claims import check_claims
from specwire.generator.passes.counters import derive_fields
from specwire.generator.passes.declarations import (
    Names,
    all_constants,
    check_package_names,
    redacted,
)
from specwire.generator.passes.declared import PRIMITIVES
from specwire.generator.passes.dialog import build_dialogs, senders
from specwire.generator.passes.dialog_keys import check_keys
from specwire.generator.passes.dialog_roots import infer_dialogs
from specwire.generator.passes.expansion import check_expansion
from specwire.generator.passes.field_names import distinct
from specwire.generator.passes.fields import FieldReader
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.hint_sources import SilentHintSource
from specwire.generator.passes.layout import MessageReader
from specwire.generator.passes.layouts import ChoiceLayout, FieldsLayout, ValueLayout
from specwire.generator.passes.nesting import check_nesting
from specwire.generator.passes.options import is_settled
from specwire.generator.passes.payloads import build_payloads, defining_level
from specwire.generator.passes.presence import name_announced, read_flags
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.passes.roots import find_messages, message_names
from specwire.generator.passes.streams import find_stream
from specwire.generator.passes.tags import find_tags, is_folded
from specwire.generator.passes.timestamps import check_timestamps
from specwire.generator.passes.types import TypeReader
from specwire.generator.passes.unused import check_unused, standing_rules
from specwire.generator.profile.reader import load_profile
from specwire.generator.profile.tables import LoadedProfile, MessageTable


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiled protocol with its warnings."""

    protocol: ir.Protocol
    grammar: Grammar
    warnings: tuple[Diagnostic, ...]


def compile_protocol(folder: Path, *, shown: str | None = None, partial: bool = False) -> Compilation:
    """Read the protocol in `folder`, which diagnostics call `shown`.

    With `partial`, messages with faults are omitted, each with a warning (W423).

    Raises:
        SpecError: with every fault found, in the order of their places.
    """
    shown = shown or folder.as_posix()
    diagnostics = Diagnostics()
    loaded = load_profile(folder, diagnostics, shown=shown)
    rulelists = read_rules(loaded, diagnostics, shown=shown)
    primitives = [name for name, hint in loaded.profile.types.items() if hint.type in PRIMITIVES]
    # A rule that could not be read is still defined: its uses are not reported as well.
    primitives += unread_names(diagnostics.errors)
    grammar = resolve_names(rulelists, diagnostics=diagnostics, primitives=primitives)
    if partial:
        protocol, diagnostics, omitted = build_sound(
            grammar, loaded, diagnostics, lambda listed, found: _build(grammar, listed, found)
        )
    else:
        omitted = []
        diagnostics.raise_errors()
        protocol = _build(grammar, loaded, diagnostics)
    used = (*standing_rules(grammar, protocol, loaded.profile), *omitted)
    check_unused(grammar, used, diagnostics)
    return Compilation(protocol, grammar, tuple(diagnostics))


def _build(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics) -> ir.Protocol:
    profile = loaded.profile
    rules = find_messages(grammar, loaded, diagnostics)
    check_nesting(grammar, rules, diagnostics)
    diagnostics.raise_errors()
    check_expansion(grammar, rules, loaded, diagnostics)
    diagnostics.raise_errors()
    check_capacity(grammar, diagnostics)
    named = message_names(grammar, rules, loaded)
    classes = {rule: class_name(name) for rule, name in named.items()}
    if profile.dialogs:
        dialogs = build_dialogs(grammar, profile.dialogs, classes, diagnostics, place=loaded.span_of)
    else:
        dialogs = infer_dialogs(grammar, classes, loaded, diagnostics)
    reader = TypeReader(grammar, loaded, diagnostics, frozenset(classes.values()))
    flags = read_flags(reader)
    messages = _lay_out(rules, named, dialogs, MessageReader(reader, flags))
    bits = name_announced(flags, messages)
    check_claims(reader, messages)
    named_rules = tuple(_named_rules(grammar, reader, {str(rule) for rule in rules}))
    check_timestamps(reader)
    constants = all_constants(reader.constants.values(), profile.constants)
    enums = tuple(reader.enums.values())
    names = Names(loaded, diagnostics)
    names.check(grammar, messages)
    check_keys(dialogs, messages, bits, loaded, diagnostics)
    check_package_names(rules, classes, constants, enums, bits, diagnostics, loaded)
    replies = {fold(name): classes[rule] for rule, name in named.items()}
    answers = tuple(_answers(profile.answers, replies, names))
    unexpected = tuple(
        (role, names.reply(reply, replies, "unexpected", role)) for role, reply in profile.unexpected.items()
    )
    payloads = build_payloads(loaded, messages, diagnostics)
    diagnostics.raise_errors()
    selectors, tagged = find_tags(messages, enums, diagnostics, loaded.place("name"))
    protocol = ir.Protocol(
        ir_version=ir.IR_VERSION,
        name=profile.name,
        title=profile.title or profile.name,
        edition=profile.edition or profile.name,
        source=profile.source.document,
        digest=_digest(loaded),
        roles=tuple(ir.Role(letter, r.name, r.socket, r.doc) for letter, r in profile.roles.items()),
        messages=tagged,
        selectors=selectors,
        rules=named_rules,
        flags=bits,
        enums=enums,
        constants=constants,
        timers=tuple(profile.timers.items()),
        answers=answers,
        unexpected=unexpected,
        redact=redacted(profile.redact, messages),
        dialogs=dialogs,
        stream=find_stream(loaded, tagged, diagnostics),
        folded=is_folded(tagged),
        max_depth=profile.max_depth if reader.enclosed else 0,
        payloads=payloads,
    )
    diagnostics.raise_errors()
    return protocol


def _lay_out(
    rules: Sequence[Rule], named: Mapping[str, str], dialogs: Sequence[Dialog], reader: MessageReader
) -> list[ir.Message]:
    sent_by = senders(dialogs)
    return [
        reader.message(rule, name, tuple(sent_by.get(class_name(name), ())))
        for rule in rules
        for name in [named[str(rule)]]
    ]


def _named_rules(grammar: Grammar, reader: TypeReader, messages: set[str]) -> Iterator[ir.NamedRule]:
    """Every rule that a message is made of, with its layout, in the order of the grammar."""
    for rule in grammar.rules:
        if str(rule) in messages or not reader.seen(rule):
            continue
        match reader.layout(rule):
            case ValueLayout(type=ir.SizeType()):
                pass  # it has no value without what it covers
            case ValueLayout(type=type):
                yield ir.NamedRule(rule.name, rule.published_line, type)
            case FieldsLayout(items=items):
                run = tuple(FieldReader(reader, rule, MessageTable()).run(items))
                fields = derive_fields(SilentHintSource(reader), distinct(run, rule, Diagnostics()), rule)
                if is_settled(fields):
                    yield ir.NamedRule(rule.name, rule.published_line, fields=fields)
            case ChoiceLayout(rules=rules):
                yield ir.NamedRule(rule.name, rule.published_line, one_of=tuple(r.name for r in rules))


def _answers(answers: Sequence[ir.Answer], replies: Mapping[str, str], names: Names) -> Iterator[ir.Answer]:
    for number, answer in enumerate(answers):
        reply = answer.reply and names.reply(answer.reply, replies, "answers", number, "reply")
        yield msgspec.structs.replace(answer, reply=reply or None)


def _digest(loaded: LoadedProfile) -> str:
    """Return the SHA-256 of all inputs of a package: grammars, profiles, schemas, templates, IR version."""
    digest = hashlib.sha256(f"IR {ir.IR_VERSION}\n".encode())
    for level in loaded.levels:
        grammar = level.folder / GRAMMAR
        digest.update(grammar.read_bytes() if grammar.exists() else b"")
        digest.update(level.source.text.encode())
    for table in loaded.profile.payload:
        schema = defining_level(loaded).folder / table.json_schema
        digest.update(schema.read_bytes() if schema.is_file() else b"")
    templates = resources.files("specwire.generator") / "templates"
    modules = (item for item in templates.iterdir() if item.name.endswith((".java.j2", ".py.j2", ".pyx.j2")))
    for template in sorted(modules, key=lambda item: item.name):
        if template.name == "payloads.py.j2" and not loaded.profile.payload:
            continue
        digest.update(template.name.encode() + template.read_bytes())
    return digest.hexdigest()
