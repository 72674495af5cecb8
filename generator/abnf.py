"""ABNF parser: from the text of a grammar to a tree of rules, each node with its place.

Both dialects share one grammar (abnf.lark). ``rfc5234`` is RFC 5234 with RFC 7405, with three exceptions:
lines may end in LF, the last line may have no line end, and comments may contain any character. ``zeromq``
also accepts the notation listed in `specwire.generator.abnf_dialect`.

Steps: `specwire.generator.abnf_lines` splits the text into rules. Lark (LALR) parses one rule at a time.
`specwire.generator.abnf_tree` builds syntax nodes and checks what abnf.lark does not.
`specwire.generator.abnf_faults` turns Lark's errors into diagnostics. Each rule is parsed separately, so one
run reports every fault of a file.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from pathlib import Path

from lark import Lark
from lark.exceptions import UnexpectedInput

from specwire.generator.abnf_bounds import report_large_text, report_long_rules
from specwire.generator.abnf_dialect import Dialect
from specwire.generator.abnf_faults import explain
from specwire.generator.abnf_lexer import RuleLexer
from specwire.generator.abnf_lines import Places, RuleText, cut_rules
from specwire.generator.abnf_tree import RuleReader
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.syntax import Rule, Rulelist

NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Octets that are not UTF-8, as decoded with ``surrogateescape``."""
MAX_FOREIGN = 20
"""Runs of such octets that are reported separately; a file with more of them is not text."""
SHOWN_OCTETS = 16


def parse_grammar(
    source: Source,
    *,
    dialect: Dialect,
    diagnostics: Diagnostics,
    text: str | None = None,
    first_line: int = 1,
) -> Rulelist:
    """Return the rules of `source` in order; rules with a syntax error are reported and omitted.

    Args:
        text: the text to parse, if only a part of the file is ABNF. It has the same lines and columns as the
            source from line `first_line` on, with blanks in place of everything else.
    """
    whole = source.text if text is None else text
    places = Places(source, whole, first_line)
    if report_large_text(whole, places, diagnostics):
        return Rulelist(())
    if not _report_foreign_octets(whole, places, diagnostics):
        return Rulelist(())
    before = len(diagnostics)
    cut = cut_rules(whole, places, dialect=dialect, diagnostics=diagnostics)
    if report_long_rules(cut.rules, places, diagnostics):
        return Rulelist(())
    rules = [_parse_rule(rule, places, dialect, diagnostics) for rule in cut.rules]
    if not cut.rules and len(diagnostics) == before and not NOT_UTF8.search(whole):
        diagnostics.error(
            "E100",
            places.span(0, 0),
            "the grammar has no rule",
            "write one, such as 'NOM = signature %x07 credit'",
        )
    return Rulelist(tuple(rule for rule in rules if rule), cut.loose)


def _report_foreign_octets(text: str, places: Places, diagnostics: Diagnostics) -> bool:
    """Report octets that are not UTF-8 in a text decoded with ``errors="surrogateescape"``.

    Returns:
        False if there are so many of them that the file is not text.
    """
    runs = list(islice(re.finditer("[\udc80-\udcff]+", text), MAX_FOREIGN + 1))
    for run in runs[:MAX_FOREIGN]:
        octets = run.group()[:SHOWN_OCTETS].encode("utf-8", "surrogateescape").hex(" ").upper()
        more = " …" if len(run.group()) > SHOWN_OCTETS else ""
        message = f"octets {octets}{more} are not UTF-8"
        diagnostics.error("E129", places.span(*run.span()), message, "save the file as UTF-8")
    if len(runs) <= MAX_FOREIGN:
        return True
    message = (
        f"there are more than {MAX_FOREIGN} runs of octets that are not UTF-8, so this is not a text file"
    )
    diagnostics.error("E129", places.span(*runs[-1].span()), message, "pass a file of ABNF, saved as UTF-8")
    return False


def _parse_rule(text: RuleText, places: Places, dialect: Dialect, diagnostics: Diagnostics) -> Rule | None:
    if NOT_UTF8.search(text.text):
        return None  # reported by _report_foreign_octets
    try:
        tree = _parser().parse(text.text)
    except UnexpectedInput as error:
        fault = explain(error, text.text)
        span = places.span(text.start + fault.start, text.start + fault.end)
        diagnostics.error(fault.code, span, fault.message, fault.help)
        return None
    return RuleReader(text, places=places, dialect=dialect, diagnostics=diagnostics).rule(tree)


@cache
def _parser() -> Lark:
    """Build the parser on first use: building it takes longer than reading a grammar."""
    grammar = Path(__file__).with_name("abnf.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=RuleLexer, start="rule")
