"""Statements of specifications about values, letter case and frames, recognised by their words.

ABNF cannot say that an integer is signed, that a string is compared with case, or that a message has further
frames. Documents say so in comments and prose. The functions here recognise such statements, so that
`specwire.generator.passes.claims` can compare them with what is generated. They read no meaning beyond
that: what they return is quoted in a diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_QUOTE = 60
"""Characters of a statement that a diagnostic quotes."""

_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "in another byte order",
        (
            r"\blittle[- ]?endian\b",
            r"\bhost (?:byte )?order\b",
            r"\bLSB[- ]first\b",
            r"(?-i:\bLE\b)",
            r"\b(?:u?int|[ui])_?(?:16|32|64)[-_ ]?le\b|\ble[-_]?u?int_?(?:16|32|64)\b",
            r"\b(?:least[- ]significant|low(?:est)?(?:[- ]order)?)\b[^.;]{0,40}\bfirst\b",
        ),
    ),
    (
        "signed",
        (
            r"\bsigned\b(?! (?:by|with|off|up|in|message|copy))",
            r"\btwo['\u2019]?s[- ]complement\b",
            r"\btwo complement\b",
        ),
    ),
    (
        "a floating-point number",
        (
            r"\bIEEE[- ]?754\b",
            r"\bfloats?\b",
            r"\bfloating[- ]point\b",
            r"\bdouble[- ]precision\b",
            r"(?:\A|\b(?:an?|as|is|binary64|type)\s+)doubles?\b(?! (?:quote|the|its|this|that)\b)",
        ),
    ),
    (
        "of variable width",
        (
            r"\bvar[- ]?ints?\b",
            r"\bLEB128\b",
            r"\bzig-?zag\b",
            r"\bbase[- ]128\b",
            r"\bvariable[- ](?:length|width|size|sized)[\w\s-]{0,30}\b(?:integers?|numbers?)\b",
            r"\bvariable\b[^.;]{0,20}\bintegers?\b",
        ),
    ),
    ("in decimal digits of four bits", (r"\bBCD\b", r"\bbinary[- ]coded decimal\b")),
)
_NUMBER_KINDS = tuple((kind, re.compile("|".join(patterns), re.IGNORECASE)) for kind, patterns in _KINDS)
BYTE_ORDER = _KINDS[0][0]
"""The kind that means nothing for an integer of one octet."""
NUMBER_WORDS = re.compile(
    r"\b(?:integers?|numbers?|numeric|values?|fields?|lengths?|sizes?|octets|bytes|counts?)\b", re.IGNORECASE
)
"""Words that show that a sentence speaks of numbers at all."""
_DENIED = re.compile(
    r"\b(?:not|never|no|nor|neither|without|rather than|instead of|isn['\u2019]t)\s+(?:(?:an?|in|as|be)\s+)?\Z",
    re.IGNORECASE,
)

_VALUE = (
    r"(?:[\"\u201c](?P<text>[^\"\u201d]{1,64})[\"\u201d]"
    r"|(?P<number>0[xX][0-9A-Fa-f]{1,16}|\d{1,19}|zero(?:e?s)?\b)"
    r"(?:\s*(?:\(|or\s+)(?P<again>0[xX][0-9A-Fa-f]{1,16}|\d{1,19})\)?)?)"
)
"""A text, or a number that may be said twice: ``0x0A (10)``."""
_FIXED = re.compile(
    r"(?:\b(?:(?:must|shall)\s+(?:always\s+)?(?:be|equal|hold|contain)|(?:is|are)\s+always|always|constant"
    r"|(?:value|current)\s+is|protocol\s+version)\s+"
    r"(?:equal\s+to\s+|set\s+to\s+|the\s+(?:string|text|value|word|letters|number|octets?)\s+)?"
    r"|\A[\w -]{1,30}=\s*)"
    rf"{_VALUE}(?=\s*(?:[.;)]|,(?!\s*[\"\u201c\d])|\Z))",
    re.IGNORECASE,
)

_FRAMES = re.compile(
    r"\b(?:has|have|having|adds?|carr(?:y|ies)|contains?|followed by|preceded by|consists? of|sends?|prepends?"
    r"|first|second|third|fourth|last|next|previous|other|additional|further|more|another|separate|final|optional"
    r"|topic|payload|delimiter|empty|body|data|content|identity|address|routing|route)\b[^.;:]{0,40}\bframes?\b"
    r"|\bframes\b|\bmulti-?part\b",
    re.IGNORECASE,
)
_ONE_FRAME = re.compile(
    r"\b(?:a single|single|one|exactly one|only one|the same) (?:\w+ )?frames?\b", re.IGNORECASE
)
_EXACT = re.compile(r"\bcase[- ]sensitive(?:ly)?\b", re.IGNORECASE)
_FOLDED = re.compile(
    r"\bcase[- ]?insensitive(?:ly)?\b|\bregardless of case\b|\bignoring case\b|\bcase is ignored\b",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?<![A-Za-z])[A-Za-z](?:[ |'\"+,]{1,5}[A-Za-z]){1,31}(?![A-Za-z])")
"""Letters one by one, as drawings of octets have them: ``C H I R P``, ``| C | H |``."""
_WORD = re.compile(r"[\"\u201c'\u2018`]([A-Za-z][\w-]{0,63})[\"\u201d'\u2019`]")


@dataclass(frozen=True, slots=True)
class FixedValue:
    """The value that a comment demands, and the words that do so."""

    value: str | int
    words: str


def number_kinds(text: str) -> Iterator[tuple[str, str]]:
    """Yield each kind of number, other than unsigned and big-endian, that `text` speaks of, with the words."""
    for kind, pattern in _NUMBER_KINDS:
        found = next((match for match in pattern.finditer(text) if not _is_denied(text, match)), None)
        if found:
            yield kind, found.group()


def fixed_value(text: str) -> FixedValue | None:
    """Return the one value that `text` demands (``must be "FILEMQ"``); None where it demands none, or several."""
    found = [match for match in _FIXED.finditer(text) if not _is_denied(text, match)]
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
    """Return the words of `text` that speak of frames of a message beside the one described; None without."""
    found = next((m for m in _FRAMES.finditer(_ONE_FRAME.sub(_blank, text)) if not _is_denied(text, m)), None)
    return quoted(text[found.start() : found.end()]) if found else None


def size_words(text: str, name: str) -> str | None:
    """Return the words of `text` that say that the integer `name` counts what the text is about; None without."""
    word = re.escape(name)
    found = re.search(
        rf"(?:\b(?:determined|given|defined|specified|counted|stated)\s+(?:by|in)\s+(?:the\s+)?|\bsee\s+)['\"`]?{word}\b"
        rf"|(?<![\w-]){word}['\"`]?\s+(?:octets|bytes)\b",
        text,
        re.IGNORECASE,
    )
    return quoted(found.group()) if found else None


def says_exact(text: str) -> bool:
    """Whether `text` says that letters are compared with case."""
    return any(not _is_denied(text, match) for match in _EXACT.finditer(text))


def says_folded(text: str) -> str | None:
    """Return the words of `text` that say that letters are compared without case; None without."""
    found = next((match for match in _FOLDED.finditer(text) if not _is_denied(text, match)), None)
    return found.group() if found else None


def shown_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word that `text` shows letter by letter or in quotes, and how it is shown.

    A quoted word in small letters is a term of the prose more often than the octets of a string.
    """
    for match in _SPACED.finditer(text):
        yield re.sub(r"[^A-Za-z]", "", match.group()), match.group()
    for match in _WORD.finditer(text):
        if not match[1].islower():
            yield match[1], match.group()


def quoted(text: str) -> str:
    """Return `text` in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1].rstrip()}…"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _is_denied(text: str, match: re.Match[str]) -> bool:
    """Whether the words before a match turn it into its opposite: ``not little-endian``."""
    return _DENIED.search(text, max(0, match.start() - 40), match.start()) is not None
