"""Proposed errata for notation that RFC 5234 does not allow, and for misspelled names.

The errata in the profile state how each such definition is read, and become outdated (W708) when a
new edition corrects it. Roles in front of names and ``_`` in names cannot be written in another way
and are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from specwire.generator.abnf.lines import Places, cut_rules
from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    Reference,
    Repetition,
    Rule,
    Rulelist,
    write_element,
)
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source, Span
from specwire.generator.documents.misspellings import speller_of
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import references
from specwire.generator.passes.layouts import words_of
from specwire.generator.passes.octets import Octets
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.profile.tables import Erratum

_REASONS = {
    "W103": "RFC 5234 writes alternatives with a slash.",
    "W106": "RFC 5234 marks hexadecimal values with %x.",
    "W107": "RFC 5234 requires the base of a number: %x, %d or %b.",
    "W108": "RFC 5234 has no quotes in a number value.",
    "W109": "RFC 5234 writes a range of characters in numbers.",
    "W110": "RFC 5234 uses % for number values only.",
    "W111": "RFC 5234 has no white space between a repeat and its element.",
    "W112": "An option inside a repetition is redundant: the repetition may be empty already.",
}
_ENDLESS = "A length has an end: the star after the number of its octets is a slip."
_LONG_LENGTHS = (2, 4, 8)
"""Octets of a length after its escape."""
_REPEATED = "The same octet several times is one value: the repetition has a name, its parts have none."
_CHARACTERS = re.compile(r"\b(?:char(?:acter)?s?|sign(?:ed)?)\b", re.IGNORECASE)
_SLIP_HELP = "profile.toml records this correction as an erratum; remove the erratum if it is wrong"
_BEFORE = re.compile(r"[^=]*=/?\s*")


def propose_errata(
    source: Source,
    rulelist: Rulelist,
    found: Sequence[Diagnostic],
    diagnostics: Diagnostics,
    inherited: Collection[str] = (),
) -> Iterator[Erratum]:
    """Yield one erratum for each definition with a misspelled name, or with a finding in `_REASONS`.

    Corrections of names are assumptions and are reported.

    Args:
        found: the warnings from reading `source`.
        rulelist: the rules read from `source`.
        inherited: names that another protocol defines, whose rules this one uses.
    """
    cut = cut_rules(source.text, Places(source, source.text), dialect="zeromq", diagnostics=Diagnostics())
    places = Places(source, source.text)
    texts = {places.line(rule.start): rule.text for rule in cut.rules}
    seen: set[tuple[str, str]] = set()
    repairs = [diagnostic for diagnostic in found if diagnostic.code in _REASONS]
    speller = speller_of(rulelist, inherited)
    octets = Octets(resolve_names([rulelist], diagnostics=Diagnostics()))
    for rule in rulelist.rules:
        corrected = speller.correct(rule)
        if length := _length_with_end(rule, rulelist):
            corrected = length
            speller.slips.append((rule.definition.span, _ENDLESS))
        if repeated := _as_repetition(rule, octets):
            corrected = repeated
            speller.slips.append((rule.definition.span, _REPEATED))
        if _names_characters(rule):
            corrected = _with_alternatives(corrected, octets, speller.slips)
        written = [_REASONS[d.code] for d in repairs if _is_about(d, rule)]
        reasons = dict.fromkeys([*written, *(reason for _, reason in speller.slips)])
        was = re.sub(r"\s+", " ", _BEFORE.sub("", texts.get(rule.span.line, ""), count=1)).strip()
        now = write_element(corrected)
        if reasons and was and (str(rule).lower(), was) not in seen:
            seen.add((str(rule).lower(), was))
            for span, reason in speller.slips:
                diagnostics.warning("W715", span, _told(reason), _SLIP_HELP)
            yield Erratum(rule=str(rule), was=was, now=now, why=" ".join(reasons))


def octet_rules(errata: Sequence[Erratum]) -> list[str]:
    """Return the rules that an erratum makes a number of single octets; each is one value."""
    return [erratum.rule for erratum in errata if _REPEATED in erratum.why]


def _as_repetition(rule: Rule, octets: Octets) -> Repetition | None:
    """Return ``4number-1`` for ``number-1 number-1 number-1 number-1``, if that is a single octet."""
    match rule.definition:
        case Concatenation(items=(Reference() as first, *others)) if octets.count(first) == 1:
            if all(other == first for other in others):
                count = len(rule.definition.items)
                return Repetition(count, count, first, rule.definition.span)
    return None


def _length_with_end(rule: Rule, rulelist: Rulelist) -> Element | None:
    """Return ``OCTET / escape 8OCTET`` for the length ``OCTET / escape 8*OCTET``, which has no end.

    None for other rules, and if more than one element follows the length somewhere: then it is not
    known what it counts.
    """
    match rule.definition:
        case Alternation(
            items=(
                Reference(name="OCTET") as short,
                Concatenation(
                    items=(escape, Repetition(maximum=None, element=Reference(name="OCTET")) as long)
                ) as form,
            )
        ) if long.minimum in _LONG_LENGTHS and _precedes_one_element(rule, rulelist):
            fixed = replace(form, items=(escape, replace(long, maximum=long.minimum)))
            return Alternation((short, fixed), rule.definition.span)
    return None


def _precedes_one_element(rule: Rule, rulelist: Rulelist) -> bool:
    uses = [
        use
        for other in rulelist.rules
        for use in references(other.definition)
        if fold(use.name) == fold(rule.name)
    ]
    sequences = [other.definition for other in rulelist.rules if isinstance(other.definition, Concatenation)]
    fitting = [items for sequence in sequences if (items := sequence.items)[-2] in uses]
    return bool(uses) and len(fitting) == len(uses)


def _names_characters(rule: Rule) -> bool:
    """Whether the comment of a rule describes a set of characters: ``; visible char plus tab, space``."""
    return bool(_CHARACTERS.search(words_of(rule.trailing or rule.leading)))


def _with_alternatives(element: Element, octets: Octets, slips: list[tuple[Span, str]]) -> Element:
    """Return an element with ``1*( SP / VCHAR )`` for the slip ``1*( SP VCHAR )``, noted in `slips`."""
    match element:
        case Concatenation(items=items):
            return replace(element, items=tuple(_with_alternatives(item, octets, slips) for item in items))
        case Repetition(element=Concatenation(items=items) as group) if all(map(octets.is_class, items)):
            alternatives = Alternation(items, group.span)
            slips.append((group.span, f"One character at a time is repeated: {write_element(alternatives)}."))
            return replace(element, element=alternatives)
    return element


def _told(reason: str) -> str:
    """Return the sentence of an erratum as a message: without capital and full stop."""
    return reason[0].lower() + reason[1:].removesuffix(".")


def _is_about(diagnostic: Diagnostic, rule: Rule) -> bool:
    place = diagnostic.span.line, diagnostic.span.column
    start = rule.definition.span.line, rule.definition.span.column
    return start <= place <= (rule.span.end_line, rule.span.end_column)
