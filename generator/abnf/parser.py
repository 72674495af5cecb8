"""ABNF parser: from the text of a grammar to a tree of rules, each node with its place.

Both dialects share one grammar (abnf.lark). ``rfc5234`` is RFC 5234 with RFC 7405, with three exceptions:
lines may end in LF, the last line may have no line end, and comments may contain any character. ``zeromq``
also accepts the notation listed in `specwire.generator.abnf.dialect`.

Steps: `specwire.generator.abnf.lines` splits the text into rules. Lark (LALR) parses one rule at a time.
`specwire.generator.abnf.rule_reader` builds syntax nodes and checks what abnf.lark does not.
`specwire.generator.abnf.faults` turns Lark's errors into diagnostics. Each rule is parsed separately, so one
run reports every fault of a file. `core_rules` are those of RFC 5234 appendix B.1, which every grammar may
use without defining them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from lark import Lark, Token
from lark.common import LexerConf
from lark.exceptions import UnexpectedCharacters, UnexpectedInput
from lark.lexer import Lexer, TerminalDef

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.faults import explain
from specwire.generator.abnf.lines import Places, RuleText, cut_rules, report_large_text, report_long_rules
from specwire.generator.abnf.rule_reader import RuleReader
from specwire.generator.abnf.syntax import Element, Rule, Rulelist
from specwire.generator.diagnostics import Diagnostics, Source

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


class RuleLexer(Lexer):
    """Lexer for a rule: one regular expression that also skips white space.

    Lark's contextual lexer matches white space separately before each token. With short tokens and a
    small grammar that is half of its work. The terminals, their order and the ignored ones come from
    abnf.lark. Tokens have offsets but no line numbers.
    """

    def __init__(self, conf: LexerConf) -> None:
        ignored = "|".join(t.pattern.to_regexp() for t in conf.terminals if t.name in conf.ignore)
        kept = sorted((t for t in conf.terminals if t.name not in conf.ignore), key=_rank)
        named = "|".join(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})" for terminal in kept)
        skipped = f"(?>(?:{ignored})*)"  # atomic: no backtracking into long runs of blanks
        self._match = re.compile(f"{skipped}(?:{named}|\\Z)").match
        self._skip = re.compile(skipped).match

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """Yield the tokens of `text`.

        Raises:
            UnexpectedCharacters: no terminal matches at some offset.
        """
        match, at, end = self._match, 0, len(text)
        while at < end:
            found = match(text, at)
            if found is None:
                skipped = self._skip(text, at)
                place = skipped.end() if skipped else at
                raise UnexpectedCharacters(text, place, 1, 1)  # type: ignore[no-untyped-call]
            kind = found.lastgroup
            if kind is None:
                return
            start, at = found.span(kind)
            yield Token(kind, text[start:at], start, None, None, None, None, at)


def _rank(terminal: TerminalDef) -> tuple[int, int, int, str]:
    """Return the sort key of Lark's order: priority, maximum width, length of the pattern, name."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name


CORE_GRAMMAR = """\
ALPHA  = %x41-5A / %x61-7A
BIT    = "0" / "1"
CHAR   = %x01-7F
CR     = %x0D
CRLF   = CR LF
CTL    = %x00-1F / %x7F
DIGIT  = %x30-39
DQUOTE = %x22
HEXDIG = DIGIT / "A" / "B" / "C" / "D" / "E" / "F"
HTAB   = %x09
LF     = %x0A
LWSP   = *(WSP / CRLF WSP)
OCTET  = %x00-FF
SP     = %x20
VCHAR  = %x21-7E
WSP    = SP / HTAB
"""


@cache
def core_rules() -> Mapping[str, Element]:
    """Return the definition of each core rule by its name in capitals."""
    source = Source("RFC 5234 appendix B.1", CORE_GRAMMAR)
    rulelist = parse_grammar(source, dialect="rfc5234", diagnostics=Diagnostics())
    return MappingProxyType({rule.name: rule.definition for rule in rulelist.rules})
