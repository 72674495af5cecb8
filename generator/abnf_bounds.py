"""Size limits of a grammar, so that every file is read or rejected within about a second.

The limits are ten times the largest published grammars. The IETF grammars that were measured have 1,009 rules
and 57,000 characters together, and their longest rule has 5,000 characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from specwire.generator.abnf_lines import RULE_START, Places, RuleText
from specwire.generator.diagnostics import Diagnostics

MAX_CHARACTERS = 2_000_000
MAX_LINES = 100_000
MAX_RULES = 10_000
MAX_RULE_CHARACTERS = 100_000
"""Characters of one rule, without its comments."""
_MAX_OCTETS = 4 * MAX_CHARACTERS
"""A longer file also has too many characters: a character of UTF-8 has at most four octets."""


def read_grammar(stream: BinaryIO) -> str:
    """Return the text of a grammar, or the beginning of a text that is too large.

    Octets that are not UTF-8 are kept (``surrogateescape``), so that the parser can report their place.
    """
    return stream.read(_MAX_OCTETS + 1).decode("utf-8", "surrogateescape")


def report_large_text(text: str, places: Places, diagnostics: Diagnostics) -> bool:
    """Return whether a text is too large to be split into rules, and report it (E139)."""
    lines = text.count("\n") + 1
    if len(text) > MAX_CHARACTERS:
        _report("too many characters", f"{MAX_CHARACTERS:,}", 0, places, diagnostics)
        return True
    if lines > MAX_LINES:
        _report(f"{lines:,} lines", f"{MAX_LINES:,}", 0, places, diagnostics)
        return True
    starts = [match.start(1) for match in RULE_START.finditer(text)]
    if len(starts) > MAX_RULES:
        _report(f"{len(starts):,} rules", f"{MAX_RULES:,}", starts[MAX_RULES], places, diagnostics)
    return len(starts) > MAX_RULES


def report_long_rules(rules: Sequence[RuleText], places: Places, diagnostics: Diagnostics) -> bool:
    """Report (E139) each rule that is too long; return whether there is one."""
    long = [rule for rule in rules if len(rule.text) > MAX_RULE_CHARACTERS]
    for rule in long:
        much = f"a rule of {len(rule.text):,} characters"
        _report(much, f"{MAX_RULE_CHARACTERS:,}", rule.start, places, diagnostics)
    return bool(long)


def _report(much: str, bound: str, offset: int, places: Places, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "E139",
        places.span(offset, offset + 1),
        f"the grammar has {much}; at most {bound} are allowed",
        "split it into protocols that extend each other with `base`, or remove text that is not a rule",
    )
