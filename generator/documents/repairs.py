"""Propose errata: what a published grammar writes otherwise than RFC 5234, and how the RFC writes it.

A profile that holds them says openly how each such right-hand side is read, and a new edition that mends one is
noticed. Roles in front of names and ``_`` in names have no other spelling and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specwire.generator.abnf_lines import Places, cut_rules
from specwire.generator.abnf_text import write_element
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source
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
_BEFORE = re.compile(r"[^=]*=/?\s*")


def propose_errata(source: Source, rulelist: Rulelist, found: Sequence[Diagnostic]) -> Iterator[Erratum]:
    """Yield an erratum for each right-hand side that a finding in `_REASONS` is about, each once.

    `found` are the warnings from reading `source`, `rulelist` what was read.
    """
    cut = cut_rules(source.text, Places(source, source.text), dialect="zeromq", diagnostics=Diagnostics())
    places = Places(source, source.text)
    texts = {places.line(rule.start): rule.text for rule in cut}
    seen: set[tuple[str, str]] = set()
    repairs = [diagnostic for diagnostic in found if diagnostic.code in _REASONS]
    for rule in rulelist.rules:
        reasons = dict.fromkeys(_REASONS[d.code] for d in repairs if _is_about(d, rule))
        was = re.sub(r"\s+", " ", _BEFORE.sub("", texts.get(rule.span.line, ""), count=1)).strip()
        now = write_element(rule.definition)
        if reasons and was and (str(rule).lower(), was) not in seen:
            seen.add((str(rule).lower(), was))
            yield Erratum(rule=str(rule), was=was, now=now, why=" ".join(reasons))


def _is_about(diagnostic: Diagnostic, rule: Rule) -> bool:
    place = diagnostic.span.line, diagnostic.span.column
    start = rule.definition.span.line, rule.definition.span.column
    return start <= place <= (rule.span.end_line, rule.span.end_column)
