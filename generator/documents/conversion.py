"""Conversion of frame tables and drawn dialogs to rules of the grammar.

Every table becomes rules. A dialog becomes a rule named after the heading above it, unless the
grammar already defines senders (``C:OHAI``): then the drawing is an example. A drawing whose
commands are defined neither by a table nor by a rule is an example as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import CharVal, Concatenation, Element, NumVal, Reference, Rulelist
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.blocks import Block
from specwire.generator.documents.commands import Commands, find_commands, section_of
from specwire.generator.documents.dialog_text import DrawnDialog, parse_dialog
from specwire.generator.documents.facts import find_headings
from specwire.generator.documents.joining import GrammarText
from specwire.generator.documents.prose import find_sentences
from specwire.generator.documents.senders import Role, find_senders
from specwire.generator.documents.synonyms import command_meant
from specwire.generator.documents.tables import FRAME_COMMENT, TableRule, rules_of_tables
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import references
from specwire.generator.profile.tables import Erratum


@dataclass(frozen=True, slots=True)
class Converted:
    """Profile entries for converted text.

    `commands` is empty if the grammar has messages too. The profile then lists none, and all are
    found by their form.
    """

    frames: tuple[TableRule, ...]
    commands: tuple[str, ...]
    errata: tuple[Erratum, ...]
    published: tuple[str, ...]
    """Rules of the document's grammar that a table or a list uses as frames."""
    senders: dict[str, tuple[Role, ...]]
    """The senders of messages that are assumed from sentences and names."""


def convert(
    source: Source, blocks: Sequence[Block], protocol: str, text: GrammarText, diagnostics: Diagnostics
) -> Converted:
    """Add the rules of tables and dialogs to `text`."""
    lines = source.text.split("\n")
    found = find_commands(source, lines, tuple(blocks), diagnostics)
    rulelist = _read(text)
    defined = {fold(str(rule)) for rule in rulelist.rules}
    # Where the grammar says what a message or a frame is made of, a table or a list says it again.
    commands = [command for command in found.commands if fold(command.name) not in defined]
    made = rules_of_tables(commands, defined, diagnostics)
    rules = [rule for rule in made if fold(rule.name) not in defined]
    published = tuple(rule.name for rule in made if fold(rule.name) in defined)
    names = [command.name for command in commands]
    _add_rules(rules, set(names), text)
    errata: tuple[Erratum, ...] = ()
    senders: dict[str, tuple[Role, ...]] = {}
    if not any(use.role for rule in rulelist.rules for use in references(rule.definition)):
        known = {fold(rule.name) for rule in rulelist.rules} | {fold(name) for name in names}
        dialogs = _dialogs(source, lines, blocks, known, found, protocol, diagnostics)
        errata = tuple(_add_dialogs(dialogs, lines, blocks, known, names, text, diagnostics))
        if not dialogs:
            sentences = (sentence.text for sentence in find_sentences(source, blocks))
            senders = find_senders(commands, sentences, diagnostics)
    frames = tuple(rule for rule in rules if rule.name not in names)
    listed = () if _has_messages(rulelist) else tuple(names)
    return Converted(frames, listed, errata, published, senders)


def _has_messages(rulelist: Rulelist) -> bool:
    """Whether a grammar has messages: unused rules of several elements that begin with a constant."""
    by_name = {fold(rule.name): rule.definition for rule in rulelist.rules}
    used = {fold(use.name) for rule in rulelist.rules for use in references(rule.definition) if not use.role}
    for rule in rulelist.rules:
        if fold(rule.name) in used or not isinstance(rule.definition, Concatenation):
            continue
        first: Element | None = rule.definition.items[0]
        if isinstance(first, Reference):
            first = by_name.get(fold(first.name))
        if isinstance(first, Concatenation):
            first = first.items[0]
        if isinstance(first, NumVal | CharVal):
            return True
    return False


def _read(text: GrammarText) -> Rulelist:
    if not text.lines:
        return Rulelist(())
    return parse_grammar(Source("", text.text), dialect="zeromq", diagnostics=Diagnostics())


def _add_rules(rules: Sequence[TableRule], commands: set[str], text: GrammarText) -> None:
    """Add the rules with an empty line above each, except between messages."""
    for rule in rules:
        is_message = rule.name in commands
        if text.lines and not (is_message and rule is not rules[0]):
            text.add("")
        if not is_message:
            text.add(f"; {rule.comment}", rule.span)
        comment = "" if is_message else f"; {FRAME_COMMENT}"
        text.add(f"{rule.name:<15} = {rule.text:<21} {comment}".rstrip(), rule.span)


def _dialogs(
    source: Source,
    lines: list[str],
    blocks: Sequence[Block],
    known: set[str],
    commands: Commands,
    protocol: str,
    diagnostics: Diagnostics,
) -> list[tuple[str, DrawnDialog, Block]]:
    """Return the dialogs, each with the name of its rule; drawings without a known command are skipped."""
    headings = find_headings(lines, tuple(blocks))
    taken = set(known)
    named: list[tuple[str, DrawnDialog, Block]] = []
    for block in blocks:
        if block.kind != "dialog":
            continue
        section, heading = section_of(block.first_line, headings)
        for drawn in parse_dialog(source, block.text, diagnostics):
            dialog = drawn.renamed(partial(commands.meant_in, section))
            if any(fold(command) in known for step in dialog.steps() for _, command in step.labels):
                name = _dialog_name(heading, protocol, taken)
                taken.add(name)
                named.append((name, dialog, block))
    return named


def _add_dialogs(
    dialogs: Sequence[tuple[str, DrawnDialog, Block]],
    lines: list[str],
    blocks: Sequence[Block],
    known: set[str],
    commands: Sequence[str],
    text: GrammarText,
    diagnostics: Diagnostics,
) -> Iterator[Erratum]:
    """Add a rule for each dialog; yield errata for commands that the tables name differently."""
    headings = find_headings(lines, tuple(blocks))
    for name, dialog, block in dialogs:
        if text.lines:
            text.add("")
        written = dialog.abnf()
        text.add(f"{name:<15} = {written}", block.span)
        corrected, reasons = written, []
        for command in _unknown(dialog, known, name, diagnostics):
            if meant := command_meant(command, commands, headings, lines):
                corrected = re.sub(rf"(?<=:){re.escape(command)}(?![\w-])", meant[0], corrected)
                reasons.append(
                    f"There is no command {command}; the section {meant[1]} uses the word for {meant[0]}."
                )
        if reasons:
            yield Erratum(rule=name, was=written, now=corrected, why=" ".join(reasons))


def _dialog_name(heading: str, protocol: str, taken: set[str]) -> str:
    """Return a rule name from the heading above the dialog: ``NFP/Client`` becomes ``nfp-client``."""
    words = re.findall(r"[a-z0-9]+", heading.lower())
    name = "-".join(words[:4])
    if not name or not name[0].isalpha():
        name = f"{protocol.replace('_', '-')}-dialog"
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(candidate for candidate in numbered if candidate not in taken)


def _unknown(dialog: DrawnDialog, known: set[str], rule: str, diagnostics: Diagnostics) -> list[str]:
    """Return the undefined commands; report each at its first place."""
    found: list[str] = []
    for step in dialog.steps():
        for _, command in step.labels:
            if fold(command) not in known and command not in found:
                found.append(command)
                message = f"command '{command}' in the dialog is not defined"
                help = f"write an erratum for '{rule}' in profile.toml with the right command"
                diagnostics.warning("W709", step.span, message, help)
    return found
