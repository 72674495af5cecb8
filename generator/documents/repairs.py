"""Propose errata: what a published grammar writes otherwise than RFC 5234, and names that it misspells.

A profile that holds them says openly how each such right-hand side is read, and a new edition that mends one is
noticed. Roles in front of names and ``_`` in names have no other spelling and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specwire.generator.abnf_lines import Places, cut_rules
from specwire.generator.abnf_text import write_element
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source
from specwire.generator.documents.misspellings import speller_of
from specwire.generator.profile import Erratum
from specwire.generator.syntax import Rule, Rulelist

_REASONS = {
    "W103": "RFC 5234 writes alternatives with a slash.",
    "W106": "RFC 5234 marks hexadecimal values with %x.",
    "W107": "RFC 5234 wants the base of a number: %x, %d or %b.",
    "W108": "RFC 5234 has no quotes in a number value.",
    "W109": "RFC 5234 writes a range of characters in numbers.",
    "W110": "RFC 5234 uses % for number values only.",
    "W111": "RFC 5234 has no white space between a repeat and its element.",
    "W112": "An option inside a repetition says nothing that the repetition does not say.",
}
_SLIP_HELP = "so it is read: the erratum in profile.toml says it; take that out if it is wrong"
_BEFORE = re.compile(r"[^=]*=/?\s*")


def propose_errata(
    source: Source, rulelist: Rulelist, found: Sequence[Diagnostic], diagnostics: Diagnostics
) -> Iterator[Erratum]:
    """Yield an erratum for each right-hand side with a slip, or a finding in `_REASONS` about it, each once.

    `found` are the warnings from reading `source`, `rulelist` what was read. Slips are guesses, and reported.
    """
    cut = cut_rules(source.text, Places(source, source.text), dialect="zeromq", diagnostics=Diagnostics())
    places = Places(source, source.text)
    texts = {places.line(rule.start): rule.text for rule in cut.rules}
    seen: set[tuple[str, str]] = set()
    repairs = [diagnostic for diagnostic in found if diagnostic.code in _REASONS]
    speller = speller_of(rulelist)
    for rule in rulelist.rules:
        mended = speller.mend(rule.definition)
        written = [_REASONS[d.code] for d in repairs if _is_about(d, rule)]
        reasons = dict.fromkeys([*written, *(reason for _, reason in speller.slips)])
        was = re.sub(r"\s+", " ", _BEFORE.sub("", texts.get(rule.span.line, ""), count=1)).strip()
        now = write_element(mended)
        if reasons and was and (str(rule).lower(), was) not in seen:
            seen.add((str(rule).lower(), was))
            for span, reason in speller.slips:
                diagnostics.warning("W715", span, _told(reason), _SLIP_HELP)
            yield Erratum(rule=str(rule), was=was, now=now, why=" ".join(reasons))


def _told(reason: str) -> str:
    """Return the sentence of an erratum as a finding has it: no capital, no full stop."""
    return reason[0].lower() + reason[1:].removesuffix(".")


def _is_about(diagnostic: Diagnostic, rule: Rule) -> bool:
    place = diagnostic.span.line, diagnostic.span.column
    start = rule.definition.span.line, rule.definition.span.column
    return start <= place <= (rule.span.end_line, rule.span.end_column)
