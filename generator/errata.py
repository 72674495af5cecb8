"""Correction of published rules by the errata of the profile.

An erratum gives a rule's definition as published (`was`) and as corrected (`now`). The published
text is never changed. Before it is parsed, each definition with an erratum is replaced by a prose
value of the same size, so that its syntax errors are not reported. Then the parsed `now`, with its
places in profile.toml, is inserted. An erratum whose `was` is not in the grammar is an error
(E506).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice

from specwire.generator.abnf import parse_grammar
from specwire.generator.abnf_bounds import report_large_text
from specwire.generator.abnf_lines import Places, cut_rules
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source
from specwire.generator.profile import Erratum, LoadedProfile
from specwire.generator.syntax import Element, Rulelist
from specwire.generator.toml_places import content_lines

_HEAD = re.compile(r"((?:[A-Za-z]:)?[A-Za-z][A-Za-z0-9_-]*)\s*:{0,2}=/?\s*")
MAX_GUESSES = 500
"""Maximum number of rules that are compared with an unknown name in an erratum."""
NO_NEWS = "W104"
"""Roles in front of names, which an erratum for a dialog needs."""


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
    published = _published(source, places)
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


def _published(source: Source, places: Places) -> dict[str, list[_Definition]]:
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
