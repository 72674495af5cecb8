"""The rules of a protocol: published rules, corrected by errata, with the rules of the profile.

A protocol is a folder with ``grammar.abnf`` and ``profile.toml``. `read_rules` applies the errata
of the profile (`specwire.generator.errata`), parses the published rules, and adds the profile's
rules, with their places in the TOML file. A protocol that extends another one inherits its rules,
except those with the name of a rule that it defines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath

from specwire.generator.abnf import parse_grammar
from specwire.generator.abnf_bounds import read_grammar
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source
from specwire.generator.errata import read_published
from specwire.generator.passes.grammar import key_of
from specwire.generator.profile import LoadedProfile
from specwire.generator.syntax import Rulelist
from specwire.generator.toml_places import ContentLine, content_lines

GRAMMAR = "grammar.abnf"
_GRAMMAR_HELP = "write the rules there, or import the document: specwire import DOCUMENT --protocol NAME"
DEFINED = re.compile(r"^[ \t]*(?:[A-Za-z]:)?([A-Za-z][\w-]*)[ \t]*=", re.MULTILINE | re.ASCII)


def read_rules(loaded: LoadedProfile, diagnostics: Diagnostics, *, shown: str) -> list[Rulelist]:
    """Return the rule lists of a protocol, those of its base first.

    Args:
        shown: the protocol's folder as diagnostics print it.
    """
    inherited: list[Rulelist] = []
    if loaded.base is not None:
        base_shown = (PurePath(shown).parent / loaded.base.folder.name).as_posix()
        inherited = read_rules(loaded.base, diagnostics, shown=base_shown)
    own = [*_published(loaded, diagnostics, shown), *_added(loaded, diagnostics)]
    replaced = {key_of(rule) for rulelist in own for rule in rulelist.rules} if loaded.base else set()
    kept = [
        replace(rulelist, rules=tuple(rule for rule in rulelist.rules if key_of(rule) not in replaced))
        for rulelist in inherited
    ]
    return kept + own


def unread_names(faults: Iterable[Diagnostic]) -> list[str]:
    """Return the names defined in the texts with faults, including rules that could not be parsed."""
    texts = {fault.span.source.text for fault in faults}
    return [name for text in texts for name in DEFINED.findall(text)]


def _published(loaded: LoadedProfile, diagnostics: Diagnostics, shown: str) -> Iterator[Rulelist]:
    try:
        with (loaded.folder / GRAMMAR).open("rb") as stream:
            text = read_grammar(stream)
    except FileNotFoundError:
        if loaded.base is None:
            diagnostics.error(
                "E505", loaded.place("name"), f"there is no {GRAMMAR} in {shown}", _GRAMMAR_HELP
            )
    except OSError as error:
        message = f"{shown}/{GRAMMAR} cannot be read: {error.strerror}"
        diagnostics.error("E505", loaded.place("name"), message, "make it a readable file")
    else:
        yield read_published(Source(f"{shown}/{GRAMMAR}", text), loaded, diagnostics)


def _added(loaded: LoadedProfile, diagnostics: Diagnostics) -> Iterator[Rulelist]:
    for number, rules in enumerate(loaded.profile.rules):
        place = loaded.places.get(("rules", number, "text"))
        lines = list(content_lines(loaded.source.text, place)) if place else []
        span = loaded.place("rules", number, "text")
        if not rules.text.strip():
            diagnostics.error("E513", span, "these [[rules]] contain no rule", "remove them")
        elif any("\n" in line.text for line in lines):
            diagnostics.error(
                "E513",
                span,
                "these [[rules]] have line ends inside a line of the file",
                "write each rule on a separate line, between ''' and '''",
            )
        else:
            found = Diagnostics()
            text = _laid_out(lines)
            yield parse_grammar(loaded.source, dialect="zeromq", diagnostics=found, text=text)
            diagnostics.extend(found.errors)  # a profile may use the dialect without warnings


def _laid_out(lines: list[ContentLine]) -> str:
    """Return the lines of an added grammar at the lines and columns where the profile has them."""
    text: list[str] = []
    number, in_comment, indent = 1, False, 0
    for line in lines:
        text.append("\n" * (line.line - number))
        number = line.line
        if line.joined and line.text:
            # A line that continues the one above: a comment, or indented deeper than the rule.
            text.append("; " if in_comment else " " * max(line.column - 1, indent + 1))
        else:
            text.append(" " * (line.column - 1))
            indent = line.column - 1 + len(line.text) - len(line.text.lstrip())
            in_comment = False
        text.append(line.text)
        in_comment = in_comment or ";" in line.text
    return "".join(text)
