"""The rules of a protocol: published rules, corrected by errata, with the rules of the profile.

A protocol is a folder with ``grammar.abnf`` and ``profile.toml``. `read_rules` applies the errata
of the profile, parses the published rules, and adds the profile's rules, with their places in the
TOML file. A protocol that extends another one inherits its rules, except those with the name of a
rule that it defines.

An erratum gives a rule's definition as published (`was`) and as corrected (`now`). The published
text is never changed. Before it is parsed, each definition with an erratum is replaced by a prose
value of the same size, so that its syntax errors are not reported. Then the parsed `now`, with its
places in profile.toml, is inserted. An erratum whose `was` is not in the grammar is an error
(E506).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import PurePath

from specwire.generator.abnf.lines import Places, cut_rules, read_grammar, report_large_text
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Element, Rulelist
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source
from specwire.generator.passes.grammar import key_of
from specwire.generator.profile.tables import Erratum, LoadedProfile
from specwire.generator.profile.toml_places import ContentLine, content_lines

GRAMMAR = "grammar.abnf"
_GRAMMAR_HELP = "write the rules there, or import the document: specwire import DOCUMENT --protocol NAME"
DEFINED = re.compile(r"^[ \t]*(?:[A-Za-z]:)?([A-Za-z][\w-]*)[ \t]*=", re.MULTILINE | re.ASCII)
_HEAD = re.compile(r"((?:[A-Za-z]:)?[A-Za-z][A-Za-z0-9_-]*)\s*:{0,2}=/?\s*")
MAX_GUESSES = 500
"""Maximum number of rules that are compared with an unknown name in an erratum."""
NO_NEWS = "W104"
"""Roles in front of names, which an erratum for a dialog needs."""


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


@dataclass(frozen=True, slots=True)
class _Definition:
    """The definition of one published rule: the rule's name, the offset at which it begins, and its text."""

    rule: str
    start: int
    text: str


def read_published(source: Source, loaded: LoadedProfile, diagnostics: Diagnostics) -> Rulelist:
    """Return the published rules with errata applied.

    Syntax errors in the replaced definitions are not reported.
    """
    if not loaded.profile.errata:
        return parse_grammar(source, dialect="zeromq", diagnostics=diagnostics)
    places = Places(source, source.text)
    published = _definitions(source, places)
    covered = list(source.text)
    corrected: dict[tuple[int, int], Element] = {}
    for number, erratum in enumerate(loaded.profile.errata):
        named = published.get(_fold(erratum.rule), [])
        fitting = [found for found in named if _squeeze(found.text) == _squeeze(erratum.was)]
        if not fitting:
            _report_stale(number, erratum, published, loaded, diagnostics)
            continue
        element = _read_now(number, erratum, loaded, diagnostics)
        for found in fitting:
            _cover(covered, found)
            span = places.span(found.start, found.start + 1)
            if element is not None:
                corrected[span.line, span.column] = element
    rulelist = parse_grammar(source, dialect="zeromq", diagnostics=diagnostics, text="".join(covered))
    rules = tuple(
        replace(rule, definition=corrected.get(_start(rule.definition), rule.definition))
        for rule in rulelist.rules
    )
    return replace(rulelist, rules=rules)


def _start(element: Element) -> tuple[int, int]:
    return element.span.line, element.span.column


def _definitions(source: Source, places: Places) -> dict[str, list[_Definition]]:
    """Return the definitions of each rule; empty if the text is too large to be read."""
    found: dict[str, list[_Definition]] = {}
    unread = Diagnostics()  # faults are reported when the corrected text is read
    if report_large_text(source.text, places, unread):
        return found
    for rule in cut_rules(source.text, places, dialect="zeromq", diagnostics=unread).rules:
        head = _HEAD.match(rule.text)
        if head and head.end() < len(rule.text):
            text = rule.text[head.end() :]
            found.setdefault(_fold(head[1]), []).append(_Definition(head[1], rule.start + head.end(), text))
    return found


def _cover(text: list[str], definition: _Definition) -> None:
    """Write a prose value over the first line of a definition, and blanks over the other lines."""
    first, *_ = definition.text.split("\n")
    size = len(first.rstrip())
    for offset, character in enumerate(definition.text, start=definition.start):
        if not character.isspace():
            text[offset] = " "
    cover = "<" + "-" * (size - 2) + ">" if size > 1 else "x"
    text[definition.start : definition.start + size] = cover


def _read_now(
    number: int, erratum: Erratum, loaded: LoadedProfile, diagnostics: Diagnostics
) -> Element | None:
    """Return the element of `now`, with places in the profile."""
    place = loaded.places.get(("errata", number, "now"))
    lines = list(content_lines(loaded.source.text, place)) if place else []
    written = [line for line in lines if line.text.strip()]
    if not written:
        diagnostics.error(
            "E513",
            loaded.place("errata", number),
            f"the erratum for '{erratum.rule}' has an empty `now`",
            "write the corrected definition in `now`, or remove the erratum",
        )
        return None
    # The name is on the line above, and every line of `now` is indented, so it continues that rule.
    first_line = max(written[0].line - 1, 1)
    text, at = f"{erratum.rule} =\n", first_line + 1
    for line in written:
        text += "\n" * (line.line - at) + " " * max(line.column - 1, 1) + line.text
        at = max(line.line, at)
    found = Diagnostics()
    parsed = parse_grammar(
        loaded.source, dialect="zeromq", diagnostics=found, text=text + "\n", first_line=first_line
    )
    diagnostics.extend(diagnostic for diagnostic in found if _is_news(diagnostic))
    return parsed.rules[0].definition if parsed.rules else None


def _is_news(diagnostic: Diagnostic) -> bool:
    return diagnostic.code != NO_NEWS


def _report_stale(
    number: int,
    erratum: Erratum,
    published: Mapping[str, list[_Definition]],
    loaded: LoadedProfile,
    diagnostics: Diagnostics,
) -> None:
    named = published.get(_fold(erratum.rule))
    help = "remove it, or copy the text of the grammar to `was`"
    if named:
        now = f"the rule is now '{_squeeze(named[0].text)}'"
    else:
        now = "there is no such rule"
        close = get_close_matches(_fold(erratum.rule), list(islice(published, MAX_GUESSES)), n=1, cutoff=0.7)
        help = f"did you mean '{published[close[0]][0].rule}'? Otherwise remove it" if close else "remove it"
    diagnostics.error(
        "E506",
        loaded.place("errata", number, "was" if named else "rule"),
        f"the erratum for '{erratum.rule}' corrects nothing: {now}",
        help,
    )


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _fold(name: str) -> str:
    return name.lower().replace("_", "-")
