"""How large a grammar may be, so that every file is read or refused within a second or so.

A tree in Python costs some microseconds for each word of a grammar. The bounds are ten times what anybody
published (all grammars of the IETF that we know have 1,009 rules and 57,000 characters together; the longest
of their rules has 5,000), and what is beyond them is something else: generated, or no grammar at all.
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
"""Characters of one rule, its comments left out."""
_MAX_OCTETS = 4 * MAX_CHARACTERS
"""What has more has too many characters, too: a character of UTF-8 has at most four octets."""


def read_grammar(stream: BinaryIO) -> str:
    """Return a grammar's text; of one that is too large no more than shows that.

    Octets that are not UTF-8 stay what they are (``surrogateescape``), and the parser points at them.
    """
    return stream.read(_MAX_OCTETS + 1).decode("utf-8", "surrogateescape")


def report_large_text(text: str, places: Places, diagnostics: Diagnostics) -> bool:
    """Report (E139) and say whether a text is too large to be cut into rules."""
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
    """Report (E139) each rule that is too long, and say whether there is one."""
    long = [rule for rule in rules if len(rule.text) > MAX_RULE_CHARACTERS]
    for rule in long:
        much = f"a rule of {len(rule.text):,} characters"
        _report(much, f"{MAX_RULE_CHARACTERS:,}", rule.start, places, diagnostics)
    return bool(long)


def _report(much: str, bound: str, offset: int, places: Places, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "E139", places.span(offset, offset + 1), f"the grammar has {much}; at most {bound} are read",
        "divide it into protocols that stand on each other with `base`, or leave out what is no rule of this one",
    )  # fmt: skip
