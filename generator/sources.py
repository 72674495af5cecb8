"""The grammar of a protocol as the passes read it: published rules, mended, with the profile's own.

A protocol is a folder with ``grammar.abnf`` and ``profile.toml``. `read_rules` parses the published rules,
applies the profile's errata (each must still find the text it mends), and adds the profile's rules. A
protocol that stands on another takes the other's rules first; its own replace those of the same name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from specwire.generator.abnf import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.passes.grammar import key_of
from specwire.generator.profile import Erratum, LoadedProfile
from specwire.generator.syntax import Rule, Rulelist

GRAMMAR = "grammar.abnf"


def read_rules(
    folder: Path, loaded: LoadedProfile, diagnostics: Diagnostics, *, shown: str
) -> list[Rulelist]:
    """Return the rule lists of the protocol in `folder`, the base's first.

    `shown` is the folder as diagnostics print it.
    """
    inherited: list[Rulelist] = []
    if loaded.base is not None:
        name = loaded.base.profile.name
        base_shown = shown.replace(folder.name, name)
        inherited = read_rules(folder.parent / name, loaded.base, diagnostics, shown=base_shown)
    own: list[Rulelist] = []
    grammar = folder / GRAMMAR
    if grammar.exists():
        own.append(_read_published(Source(f"{shown}/{GRAMMAR}", _text(grammar)), loaded, diagnostics))
    elif loaded.base is None:
        diagnostics.error("E505", loaded.span_of("name"), f"there is no {GRAMMAR} in {shown}")
    for text in loaded.rule_texts():
        found = Diagnostics()
        own.append(parse_grammar(loaded.source, dialect="zeromq", diagnostics=found, text=text))
        diagnostics.extend(found.errors)  # a profile is written for us: its dialect is no news
    replaced = {key_of(rule) for rulelist in own for rule in rulelist.rules} if loaded.base else set()
    kept = [Rulelist(tuple(r for r in rulelist.rules if key_of(r) not in replaced)) for rulelist in inherited]
    return kept + own


def _text(path: Path) -> str:
    """Read as UTF-8; other octets are shown as they are, and the parser points at them."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _read_published(source: Source, loaded: LoadedProfile, diagnostics: Diagnostics) -> Rulelist:
    """Parse the published rules and mend them; what an erratum mends is not reported as well."""
    found = Diagnostics()
    rulelist = parse_grammar(source, dialect="zeromq", diagnostics=found)
    mended: list[Span] = []
    rules = list(rulelist.rules)
    for erratum in loaded.profile.errata:
        places = [i for i, rule in enumerate(rules) if erratum.rule in (rule.name, str(rule))]
        fitting = [i for i in places if _squeeze(_right_hand_side(rules[i])) == _squeeze(erratum.was)]
        if not fitting:
            _report_stale(erratum, [rules[i] for i in places], loaded, diagnostics)
            continue
        for index in fitting:
            mended.append(rules[index].span)
            rules[index] = _mend(rules[index], erratum, loaded, diagnostics)
    diagnostics.extend(
        diagnostic for diagnostic in found if not any(_within(diagnostic.span, span) for span in mended)
    )
    return Rulelist(tuple(rules))


def _mend(rule: Rule, erratum: Erratum, loaded: LoadedProfile, diagnostics: Diagnostics) -> Rule:
    place = loaded.span_of(erratum.now, "now")
    text = "\n" * (place.line - 1) + f"{rule} = {erratum.now}\n"
    parsed = parse_grammar(loaded.source, dialect="rfc5234" if not rule.role else "zeromq",
                           diagnostics=diagnostics, text=text)  # fmt: skip
    return replace(rule, definition=parsed.rules[0].definition) if parsed.rules else rule


def _report_stale(
    erratum: Erratum, rules: list[Rule], loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    now = f"it is now '{_squeeze(_right_hand_side(rules[0]))}'" if rules else "there is no such rule"
    diagnostics.error(
        "E506", loaded.span_of(f'rule = "{erratum.rule}"'), f"the erratum for '{erratum.rule}' mends nothing: {now}",
        "take it out, or give the text that the grammar has in `was`",
    )  # fmt: skip


def _right_hand_side(rule: Rule) -> str:
    """The definition as written, without comments."""
    span = rule.definition.span
    lines = span.source.text.splitlines()[span.line - 1 : span.end_line]
    if len(lines) == 1:
        return lines[0][span.column - 1 : span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    lines[-1] = lines[-1][: span.end_column - 1]
    return " ".join(line.partition(";")[0] for line in lines)


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _within(inner: Span, outer: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) <= (outer.end_line, outer.end_column)
