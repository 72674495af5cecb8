"""Recognition of statements about numbers, letter case and frames in the text of a specification.

ABNF cannot express that an integer is signed, that a string is case-sensitive, or that a message has
more frames. Documents state this in comments and prose. The functions here find such statements by
regular expressions, and `specwire.generator.passes.claims` compares them with the layouts. They match
key words only: the result is quoted in a diagnostic and decides no layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LONGEST_QUOTE = 60
"""Most characters of a statement that a diagnostic quotes."""

_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "in another byte order",
        (
            r"\blittle[- ]?endian\b",
            r"\bhost (?:byte )?order\b",
            r"\bLSB[- ]first\b",
            r"(?-i:\bLE\b)",
            r"\b(?:u?int|[ui])_?(?:16|32|64)[-_ ]?le\b|\ble[-_]?u?int_?(?:16|32|64)\b",
            r"\bleast[- ]significant\b[^.;]{0,40}\bfirst\b",
            r"\blow(?:est)?[- ](?:order )?(?:bytes?|octets?)\b[^.;]{0,20}\bfirst\b",
        ),
    ),
    (
        "signed",
        (
            r"\bsigned\b(?![- ](?:by|with|off|up|in|message|copy)\b)",
            r"\btwo['\u2019]?s[- ]complement\b",
            r"\btwo complement\b",
        ),
    ),
    (
        "a floating-point number",
        (
            r"\bIEEE[- ]?754\b",
            r"\bfloats?\b(?! the\b)",
            r"\bfloating[- ]point\b",
            r"\bdouble[- ]precision\b",
            r"(?:\A|\b(?:an?|as|is|binary64|type)\s+)doubles?\b(?![- ](?:quote|the|its|this|that))",
        ),
    ),
    (
        "of variable width",
        (
            r"\bvar[- ]?ints?\b",
            r"\bLEB128\b",
            r"\bzig-?zag\b",
            r"\bbase[- ]128\b",
            r"\bvariable[- ](?:length|width|size|sized)(?! of\b)[\w\s-]{0,30}\b(?:integers?|numbers?)\b",
            r"\bvariable[\w\s-]{0,20}\bintegers?\b",
        ),
    ),
    ("in decimal digits of four bits", (r"\bBCD\b", r"\bbinary[- ]coded decimal\b")),
)
_NUMBER_KINDS = tuple((kind, re.compile("|".join(patterns), re.IGNORECASE)) for kind, patterns in _KINDS)
BYTE_ORDER, SIGNED, FLOAT = (_KINDS[place][0] for place in range(3))
"""The kind that does not apply to an integer of one octet."""
NUMBER_WORDS = re.compile(
    r"\b(?:integers?|numbers?|numeric|values?|fields?|lengths?|sizes?|octets|bytes|counts?)\b", re.IGNORECASE
)
"""Words of a sentence that is about numbers."""
_NEGATION = re.compile(
    r"\b(?:not|never|no|nor|neither|without|rather than|instead of|isn['\u2019]t|almost|nearly)"
    r"\s+(?:(?:an?|in|as|be)\s+)?\Z",
    re.IGNORECASE,
)

_VALUE = (
    r"(?:[\"\u201c](?P<text>[^\"\u201d]{1,64})[\"\u201d]"
    r"|(?P<number>0[xX][0-9A-Fa-f]{1,16}|\d{1,19}|zero(?:e?s)?\b)"
    r"(?:\s*(?:\(|or\s+)(?P<again>0[xX][0-9A-Fa-f]{1,16}|\d{1,19})\)?)?)"
)
"""A quoted text, or a number, which may be written twice: ``0x0A (10)``."""
_FIXED = re.compile(
    r"(?:\b(?:(?:must|shall)\s+(?:always\s+)?(?:be|equal)|always|constant|protocol\s+version)\s+"
    r"(?:equal\s+to\s+|set\s+to\s+|the\s+(?:string|text|value|word|letters|number|octets?)\s+)?"
    r"|\b(?:value|current)\s+is\s+"
    r"|\A(?:protocol\s+)?version\s*=\s*)"
    rf"{_VALUE}(?=\s*(?:[.;)](?!\d)|,(?!\s*[\"\u201c\d])|\Z))",
    re.IGNORECASE,
)

_CONDITION = re.compile(
    r"\b(?:unless|if|when|whenever|where|otherwise|except|depending|until|only for"
    r"|default|initial(?:ly)?|max(?:imum)?|min(?:imum)?|typical(?:ly)?|usual(?:ly)?|recommended)\b",
    re.IGNORECASE,
)
"""Words of a comment whose value is not the only one: a condition, a default, a limit."""
_FRAMES = re.compile(
    r"\b(?:has|have|having|adds?|carr(?:y|ies)|contains?|followed by|preceded by|consists? of|sends?|prepends?"
    r"|first|second|third|fourth|last|next|previous|other|additional|further|more|another|separate|final"
    r"|optional|topic|payload|delimiter|empty|body|data|content|identity|address|routing|route)"
    r"\b[^.;:]{0,40}\bframes?\b"
    r"|\bframes\b|\bmulti-?part\b",
    re.IGNORECASE,
)
_ONE_FRAME = re.compile(
    r"\b(?:a single|single|one|exactly one|only one|the same) (?:\w+ )?frames?\b", re.IGNORECASE
)
_SIZED = re.compile(
    r"(?:\b(?:determined|given|defined|specified|counted|stated)\s+(?:by|in)\s+(?:the\s+)?|\bsee\s+)"
    r"['\"`]?(?P<by>[A-Za-z][\w-]*)"
    r"|(?<![\w-])['\"`]?(?P<of>[A-Za-z][\w-]*)['\"`]?\s+(?:octets|bytes)\b",
    re.IGNORECASE,
)
_EXACT = re.compile(r"\bcase[- ]sensitive(?:ly)?\b", re.IGNORECASE)
_FOLDED = re.compile(
    r"\bcase[- ]?insensitive(?:ly)?\b|\bregardless of case\b|\bignoring case\b|\bcase is ignored\b",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?<![A-Za-z])[A-Za-z](?:[ |'\"+,]{1,5}[A-Za-z]){1,31}(?![A-Za-z])")
"""Single letters, as in diagrams of octets: ``C H I R P``, ``| C | H |``."""
_WORD = re.compile(r"[\"\u201c'\u2018`]([A-Za-z][\w-]{0,63})[\"\u201d'\u2019`]")


@dataclass(frozen=True, slots=True)
class FixedValue:
    """The value that a comment requires, and the words that require it."""

    value: str | int
    words: str


def number_kinds(text: str) -> Iterator[tuple[str, str]]:
    """Yield each kind of number that `text` mentions, with its words.

    Unsigned and big-endian are no kinds.
    """
    for kind, pattern in _NUMBER_KINDS:
        if found := _first(pattern, text):
            yield kind, found.group()


def is_little_endian(kinds: Mapping[str, str]) -> bool:
    """Whether the kinds that a text mentions include a byte order that is not the host's."""
    return BYTE_ORDER in kinds and "host" not in kinds[BYTE_ORDER].lower()


def fixed_value(text: str) -> FixedValue | None:
    """Return the only value that `text` requires (``must be "FILEMQ"``).

    None if it requires no value, several, or one that is conditional, a default or a limit.
    """
    if _CONDITION.search(text):
        return None
    found = list(_matches(_FIXED, text))
    values = {value for match in found for value in _values(match)}
    if len(values) != 1:
        return None
    return FixedValue(values.pop(), quoted(found[0].group()))


def _values(match: re.Match[str]) -> Iterator[str | int]:
    if match["text"]:
        yield match["text"]
        return
    for written in (match["number"], match["again"]):
        if written:
            hexadecimal = written.lower().startswith("0x")
            yield 0 if written.lower().startswith("z") else int(written, 16 if hexadecimal else 10)


def frame_words(text: str) -> str | None:
    """Return the words of `text` that mention frames besides the one described, None if there are none."""
    others = _FRAMES.finditer(_ONE_FRAME.sub(_blank, text))
    found = next((match for match in others if not _is_negated(text, match)), None)
    return quoted(text[found.start() : found.end()]) if found else None


def size_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each name that `text` may declare as its size (``determined by LENGTH``), with the words."""
    for match in _SIZED.finditer(text):
        yield match["by"] or match["of"], quoted(match.group())


def says_exact(text: str) -> bool:
    """Whether `text` states that strings are case-sensitive."""
    return _first(_EXACT, text) is not None


def says_folded(text: str) -> str | None:
    """Return the words by which `text` states that strings are case-insensitive, None if there are none."""
    found = _first(_FOLDED, text)
    return found.group() if found else None


def shown_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word that `text` shows letter by letter or in quotes, and the form in which it is shown.

    Quoted words in lower case are skipped: they are more often terms of the prose than strings of
    the grammar.
    """
    for match in _SPACED.finditer(text):
        yield re.sub(r"[^A-Za-z]", "", match.group()), match.group()
    for match in _WORD.finditer(text):
        if not match[1].islower():
            yield match[1], match.group()


def quoted(text: str) -> str:
    """Return `text` on one line, truncated to `LONGEST_QUOTE` characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1].rstrip()}…"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(_matches(pattern, text), None)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches that are not negated."""
    return (match for match in pattern.finditer(text) if not _is_negated(text, match))


def _is_negated(text: str, match: re.Match[str]) -> bool:
    """Whether a negation precedes a match: ``not little-endian``."""
    return _NEGATION.search(text, max(0, match.start() - 40), match.start()) is not None
