"""`specwire match`: whether a text is what a rule describes, and if not, how far it got."""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, print_json
from specwire.runtime.cli.grammars import GrammarsOption, grammars_folder, protocol_folders
from specwire.runtime.log.text import show

if TYPE_CHECKING:
    from specwire.generator.abnf.syntax import Reference, Rulelist
    from specwire.generator.abnf.text_automaton import Match
    from specwire.generator.diagnostics import Diagnostics
    from specwire.generator.passes.grammar import Grammar

EXIT_STATUSES = "Exit status: 0; 1 where the text does not match; 2 for usage and a faulty grammar."

REFUSED = 1
"""Exit status where the text does not match."""
STANDARD_INPUT = "-"
PROTOCOL = re.compile(r"[A-Za-z]\w*\Z", re.ASCII)
"""What can be the name of a protocol; everything else is a path."""
WINDOW = 60
"""Characters of a long text that are shown before the place where it stops, and half as many from there on."""
MAX_EXPECTED = 16
"""Things that could have come that are listed for a person; ``--json`` has them all."""


class Notation(StrEnum):
    """How the grammar is read."""

    RFC5234 = "rfc5234"
    ZEROMQ = "zeromq"


def command(
    grammar: Annotated[
        str, typer.Argument(help="A file of ABNF, a protocol or its folder, or - for standard input.")
    ],
    rule: Annotated[str, typer.Argument(help="Name of the rule.")],
    text: Annotated[str, typer.Argument(help="The text; write -- before one that begins with a hyphen.")],
    dialect: Annotated[
        Notation, typer.Option(help="How the grammar is read: to the letter, or as ZeroMQ's are written.")
    ] = Notation.ZEROMQ,
    grammars: GrammarsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Say whether the whole of a text matches a rule, and where it stops."""
    if re.search("[\ud800-\udfff]", text):
        fail("the text is not UTF-8")
    found = match_rule(read_rules_of(place_of(grammar, grammars), dialect), grammar, rule, text)
    if json:
        print_json(
            {
                "rule": rule,
                "matches": found.matches,
                "offset": found.offset,
                "line": _line_and_column(text, found.offset)[0],
                "column": _line_and_column(text, found.offset)[1],
                "expected": found.expected,
                "may_end": found.may_end,
            }
        )
    else:
        sys.stdout.write(f"the text matches '{rule}'\n" if found.matches else explain(found, rule, text))
    if not found.matches:
        raise typer.Exit(REFUSED)


def match_rule(grammar: Grammar, shown: str, rule: str, text: str) -> Match:
    """Match `text` against the rule of that name; `shown` is what the user calls the grammar.

    Raises:
        SpecError: the rule cannot be matched against.
        CommandError: there is no such rule.
    """
    from specwire.generator.abnf.text_rules import compile_text_rule
    from specwire.generator.diagnostics import Diagnostics, SpecError

    reference = _reference(rule)
    if not grammar.find(reference) and not grammar.core(reference):
        close = get_close_matches(rule, [str(known) for known in grammar.rules[:5000]], n=1)
        fail(f"{shown} has no rule {rule!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    diagnostics = Diagnostics()
    compiled = compile_text_rule(grammar, reference, diagnostics)
    if compiled is None:
        raise SpecError(diagnostics.errors)
    return compiled.match(text)


def place_of(grammar: str, grammars: Path | None) -> str:
    """Return the file or folder that `grammar` means: what is there under this name, else the protocol's folder."""
    if (
        grammar == STANDARD_INPUT
        or not PROTOCOL.match(grammar)
        or (grammars is None and Path(grammar).exists())
    ):
        return grammar
    return str(protocol_folders(grammars_folder(grammars), [grammar])[0])


def read_rules_of(grammar: str, dialect: Notation) -> Grammar:
    """Read a grammar; names that nothing defines are no fault where the rule asked for does without them.

    Raises:
        SpecError: with every other fault found; warnings are the business of ``specwire check``.
    """
    from specwire.generator.diagnostics import Diagnostics, SpecError
    from specwire.generator.passes.resolve import resolve_names

    diagnostics = Diagnostics()
    is_folder = grammar != STANDARD_INPUT and Path(grammar).is_dir()
    read = _read_folder if is_folder else _read_file
    rulelists = read(grammar, dialect, diagnostics)
    resolved = resolve_names(rulelists, diagnostics=diagnostics, dialect=dialect.value)
    errors = tuple(error for error in diagnostics.errors if error.code != "E201")
    if errors:
        raise SpecError(errors)
    return resolved


def _read_file(grammar: str, dialect: Notation, diagnostics: Diagnostics) -> list[Rulelist]:
    from specwire.generator.abnf.lines import read_grammar
    from specwire.generator.abnf.parser import parse_grammar
    from specwire.generator.diagnostics import Source

    if grammar == STANDARD_INPUT:
        source = Source("standard input", read_grammar(sys.stdin.buffer))
    else:
        with Path(grammar).open("rb") as stream:
            source = Source(grammar, read_grammar(stream))
    return [parse_grammar(source, dialect=dialect.value, diagnostics=diagnostics)]


def _read_folder(grammar: str, dialect: Notation, diagnostics: Diagnostics) -> list[Rulelist]:
    from specwire.generator.abnf.sources import GRAMMAR, read_rules
    from specwire.generator.profile.reader import load_profile

    folder = Path(grammar)
    if dialect is not Notation.ZEROMQ:
        fail(f"a protocol's folder is read in dialect zeromq; name the file {folder / GRAMMAR}")
    if not (folder / GRAMMAR).exists() and not (folder / "profile.toml").exists():
        fail(f"there is no {GRAMMAR} in {folder}")
    shown = folder.as_posix()
    return read_rules(load_profile(folder, diagnostics, shown=shown), diagnostics, shown=shown)


def _reference(rule: str) -> Reference:
    from specwire.generator.abnf.syntax import Reference
    from specwire.generator.diagnostics import Source, Span

    role, name = re.fullmatch(r"(?:([A-Za-z]):)?(.*)", rule, re.DOTALL).groups()  # type: ignore[union-attr]
    return Reference(name, role, Span(Source("RULE", rule), 1, 1, 1, len(rule) + 1))


def explain(found: Match, rule: str, text: str) -> str:
    """Say where a text stops being one of the rule's, with a caret under the place, and what could have come."""
    place = found.offset
    why = (
        f"the text ends too early for '{rule}'"
        if place == len(text)
        else f"the text does not match '{rule}' at character {place + 1}"
    )
    line, column = _line_and_column(text, place)
    if line > 1:
        why += f", which is line {line}, column {column}"
    head = ("…" if place > WINDOW else "") + show(text[max(0, place - WINDOW) : place])
    tail = show(text[place : place + WINDOW // 2]) + ("…" if len(text) > place + WINDOW // 2 else "")
    caret = " " * _cells(head) + "^"
    return f"{why}\n  {head}{tail}\n  {caret}\nexpected {_expected(found)}\n"


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the place of a character as editors count, both from 1; lines end with LF."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _expected(found: Match) -> str:
    shown = list(found.expected[:MAX_EXPECTED])
    if len(found.expected) > len(shown):
        shown.append(f"{len(found.expected) - len(shown)} more")
    if found.may_end:
        shown.append("the end of the text")
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _cells(text: str) -> int:
    """Return the columns of a terminal that the text takes."""
    from rich.cells import cell_len

    return cell_len(text)
