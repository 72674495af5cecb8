"""Add to a grammar what a document says in frame tables and drawn dialogs.

Tables become rules whenever there are any. Dialogs become rules, named after the heading above them,
unless the grammar already says who sends what (``C:OHAI``): then a drawing is an example. A drawing of commands
that neither a table nor a rule defines is an example as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from specwire.generator.abnf import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.dialog_text import DrawnDialog, parse_dialog
from specwire.generator.documents.blocks import Block, line_above
from specwire.generator.documents.facts import find_headings
from specwire.generator.documents.joining import GrammarText
from specwire.generator.documents.synonyms import command_meant
from specwire.generator.documents.tables import (
    FRAME_COMMENT,
    Announced,
    Command,
    TableRule,
    command_name,
    find_sentence,
    rules_of_tables,
)
from specwire.generator.frametable import parse_frame_table
from specwire.generator.names import fold
from specwire.generator.passes.grammar import references
from specwire.generator.profile import Erratum
from specwire.generator.syntax import Rulelist

_SENTENCE_WITHIN = 6
"""Lines of prose above a table in which its sentence is looked for."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What a profile can say of converted text: the rules of frames, the commands, errata for the dialogs."""

    frames: tuple[TableRule, ...]
    commands: tuple[str, ...]
    errata: tuple[Erratum, ...]


def convert(
    source: Source, blocks: Sequence[Block], protocol: str, text: GrammarText, diagnostics: Diagnostics
) -> Converted:
    """Add the rules that tables and dialogs make to `text`."""
    lines = source.text.split("\n")
    commands = list(_commands(source, lines, blocks, diagnostics))
    rules = rules_of_tables(commands, diagnostics) if commands else []
    names = [command.name for command in commands]
    rulelist = _read(text)
    _add_rules(rules, set(names), text)
    errata: tuple[Erratum, ...] = ()
    if not any(use.role for rule in rulelist.rules for use in references(rule.definition)):
        known = {fold(rule.name) for rule in rulelist.rules} | {fold(name) for name in names}
        dialogs = _dialogs(source, lines, blocks, known, protocol, diagnostics)
        errata = tuple(_add_dialogs(dialogs, lines, blocks, known, names, text, diagnostics))
    frames = tuple(rule for rule in rules if rule.name not in names)
    return Converted(frames, tuple(names), errata)


def _read(text: GrammarText) -> Rulelist:
    if not text.lines:
        return Rulelist(())
    return parse_grammar(Source("", text.text), dialect="zeromq", diagnostics=Diagnostics())


def _commands(
    source: Source, lines: list[str], blocks: Sequence[Block], diagnostics: Diagnostics
) -> Iterator[Command]:
    seen: set[str] = set()
    for block in blocks:
        if block.kind != "frame table":
            continue
        table = parse_frame_table(source, block.text, diagnostics)
        if table is None:
            continue
        announced = _announced(source, lines, block, tuple(blocks))
        name = command_name(table.title) or (announced[0] if announced else "")
        if not name:
            message = "this frame table does not say which command it is of"
            help = "write the command above it: 'OPEN command'"
            diagnostics.error("E704", table.span, message, help)
        elif name in seen:
            diagnostics.error("E704", table.span, f"there is another frame table of {name} above")
        else:
            seen.add(name)
            yield Command(name, table, announced[1] if announced and announced[0] == name else None)


def _announced(
    source: Source, lines: list[str], block: Block, blocks: tuple[Block, ...]
) -> tuple[str, Announced] | None:
    """Return the command and the number of frames that the prose above a table announces."""
    prose = 0
    for number, line in line_above(lines, block.first_line, blocks):
        prose += bool(line.strip())
        if prose > _SENTENCE_WITHIN or number < block.first_line - 4 * _SENTENCE_WITHIN:
            return None
        if said := find_sentence(line):
            span = Span(source, number, said.start() + 1, number, said.end() + 1)
            return said["command"], Announced(int(said["count"]), bool(said["more"]), span)
    return None


def _add_rules(rules: Sequence[TableRule], commands: set[str], text: GrammarText) -> None:
    """Add the rules, an empty line above each; the messages stand together without one."""
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
    protocol: str,
    diagnostics: Diagnostics,
) -> list[tuple[str, DrawnDialog, Block]]:
    """Return the dialogs, each with the name of its rule; a drawing that has no known command is none."""
    headings = find_headings(lines, tuple(blocks))
    taken = set(known)
    named: list[tuple[str, DrawnDialog, Block]] = []
    for block in blocks:
        if block.kind != "dialog":
            continue
        above = [heading for number, heading in headings if number < block.first_line]
        for dialog in parse_dialog(source, block.text, diagnostics):
            if any(fold(command) in known for step in dialog.steps() for _, command in step.labels):
                name = _dialog_name(above[-1] if above else "", protocol, taken)
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
    """Add a rule for each dialog; yield what mends a command that the document names otherwise in its tables."""
    headings = find_headings(lines, tuple(blocks))
    for name, dialog, block in dialogs:
        if text.lines:
            text.add("")
        written = dialog.abnf()
        text.add(f"{name:<15} = {written}", block.span)
        mended, reasons = written, []
        for command in _unknown(dialog, known, name, diagnostics):
            if meant := command_meant(command, commands, headings, lines):
                mended = re.sub(rf"(?<=:){re.escape(command)}(?![\w-])", meant[0], mended)
                reasons.append(
                    f"There is no command {command}; the section {meant[1]} has the word for {meant[0]}."
                )
        if reasons:
            yield Erratum(rule=name, was=written, now=mended, why=" ".join(reasons))


def _dialog_name(heading: str, protocol: str, taken: set[str]) -> str:
    """Return a rule name made of the heading above the dialog: ``NFP/Client`` is ``nfp-client``."""
    words = re.findall(r"[a-z0-9]+", heading.lower())
    name = "-".join(words[:4])
    if not name or not name[0].isalpha():
        name = f"{protocol.replace('_', '-')}-dialog"
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(candidate for candidate in numbered if candidate not in taken)


def _unknown(dialog: DrawnDialog, known: set[str], rule: str, diagnostics: Diagnostics) -> list[str]:
    """Return the commands that nothing defines, each reported where it is first drawn."""
    found: list[str] = []
    for step in dialog.steps():
        for _, command in step.labels:
            if fold(command) not in known and command not in found:
                found.append(command)
                message = f"the dialog has a command '{command}' that no table and no rule defines"
                help = f"an erratum for '{rule}' in profile.toml says which command is meant"
                diagnostics.warning("W709", step.span, message, help)
    return found
