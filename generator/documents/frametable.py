"""Parser for frame tables: the frames of one command, each described on one line of a document.

Statements in the lines are kept with their places, so that contradictions can be quoted: the number
of octets of a constant (``six bytes``), and the command that it represents (``representing POST``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from specwire.generator.abnf.lines import Places
from specwire.generator.diagnostics import Diagnostics, Source, Span

_COUNTS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
)
_SIZE = re.compile(rf"\b(\d+|{'|'.join(_COUNTS)})[ \t-]+(?:bytes?|octets?)\b", re.IGNORECASE)
_TEXT = re.compile(r"\b(?:printable|string|text|characters)\b", re.IGNORECASE)
_OCTETS = re.compile(
    r"\b(?:opaque|binary|blob|octets|bytes|envelope|routing[ -]id|msgpack\w*)\b", re.IGNORECASE
)
_CONDITION = re.compile(r"\b(?:if|optional(?:ly)?|when)\b", re.IGNORECASE)
_STANDS_FOR = re.compile(r"\brepresenting[ \t]+(?:the[ \t]+)?([A-Z][A-Z0-9_-]*)\b(?!/)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of the table.

    `constants` are the possible octets of the frame, empty if it is not constant. `label` is the
    text before any parenthesis; `size_octets` and `stands_for` are the statements inside the
    parentheses.
    """

    number: int
    repeated: bool
    """``Frames 6:``, ``Frame 6+:``: this frame and perhaps more."""
    kind: str
    """``empty``, ``constant``, ``text``, ``octets``, or ``unknown`` if the line does not define it."""
    constants: tuple[bytes, ...]
    quoted: bool
    """The constants are written as text, not as numbers."""
    digits: bool
    """The constant is written as a run of zeros without prefix; each zero is read as one octet."""
    conditional: bool
    """The line states that the frame is not always present: ``if OK``, ``optional``."""
    label: str
    size_octets: int | None
    stands_for: str | None
    text: str
    span: Span
    name: str = ""
    """The name of the frame, if the document gives it one."""
    may_be_empty: bool = False
    """A sentence below the table states that the frame of a fixed size may be empty."""


@dataclass(frozen=True, slots=True)
class FrameTable:
    """A table with its title, which is empty if the block has none."""

    title: str
    frames: tuple[Frame, ...]
    span: Span


def parse_frame_table(source: Source, text: str, diagnostics: Diagnostics) -> FrameTable | None:
    """Return the table in `text`, which has the lines of `source`; None after E704 if it cannot be read."""
    places = Places(source, text)
    try:
        tree = _parser().parse(text.rstrip() + "\n")
    except UnexpectedInput as error:
        at = min(error.pos_in_stream or 0, max(len(text.rstrip()) - 1, 0))
        end = text.find("\n", at)
        message = "this line of a frame table cannot be read"
        help = "write 'Frame N:', then 'Empty', \"text\", 0xNN, or a name with its type in parentheses"
        diagnostics.error("E704", places.span(at, max(end, at + 1)), message, help)
        return None
    title = next((_words(child) for child in tree.find_data("title")), "")
    frames = tuple(_frame(child, text, places) for child in tree.find_data("frame"))
    ordered = tuple(sorted(frames, key=lambda frame: (frame.span.line, frame.span.column)))
    first = next(iter(tree.scan_values(lambda value: isinstance(value, Token))))
    return FrameTable(title, ordered, _span(first, places))


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("frametable.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", start="table", propagate_positions=True)


def _frame(tree: Tree[Token], text: str, places: Places) -> Frame:
    head, content = tree.children
    assert isinstance(head, Token) and isinstance(content, Tree)
    number = re.search(r"\d+", head)
    assert number is not None
    tokens = [token for token in content.children if isinstance(token, Token)]
    notes = " ".join(str(token) for rest in content.find_data("rest") for token in rest.children)
    notes = re.sub(r"\s+", " ", notes)
    size = _SIZE.search(notes)
    stands_for = _STANDS_FOR.search(notes)
    constants = [token for token in tokens if token.type in ("QUOTED", "OCTETS", "ZEROS")]
    assert head.start_pos is not None
    end = text.find("\n", head.start_pos)
    end = end if end >= 0 else len(text)
    return Frame(
        number=int(number.group()),
        repeated=bool(re.search(r"Frames|\+|and up|-|\bto\b", head, re.IGNORECASE)),
        kind=_kind(content, notes, size),
        constants=tuple(_octets(token) for token in constants),
        quoted=any(token.type == "QUOTED" for token in constants),
        digits=any(token.type == "ZEROS" for token in constants),
        conditional=bool(_CONDITION.search(notes)),
        label=_label(tokens) if content.data == "described" else "",
        size_octets=_count(size[1]) if size else None,
        stands_for=stands_for[1] if stands_for else None,
        text=text[head.start_pos : end].strip(),
        span=places.span(head.start_pos, head.start_pos + len(text[head.start_pos : end].rstrip())),
    )


def _kind(content: Tree[Token], notes: str, size: re.Match[str] | None) -> str:
    if content.data == "empty":
        return "empty"
    if content.data == "constants":
        return "constant"
    return kind_of_words(notes, _count(size[1]) if size else None)


def kind_of_words(words: str, size_octets: int | None) -> str:
    """Return the kind of a frame from words such as ``opaque binary`` or ``printable string``."""
    if _TEXT.search(words):
        return "text"
    return "octets" if size_octets is not None or _OCTETS.search(words) else "unknown"


def size_of_words(words: str) -> int | None:
    """Return the number of octets from words such as ``four octets`` or ``16 bytes``."""
    size = _SIZE.search(words)
    return _count(size[1]) if size else None


def _octets(token: Token) -> bytes:
    if token.type == "QUOTED":
        # Octets that are not UTF-8 are preserved.
        return str(token)[1:-1].encode("utf-8", "surrogateescape")
    return bytes(len(token)) if token.type == "ZEROS" else bytes.fromhex(token[2:])


def _label(tokens: list[Token]) -> str:
    return " ".join(str(token) for token in tokens).strip(" \t,;.:`'\"")


def _count(written: str) -> int:
    return int(written) if written.isdigit() else _COUNTS.index(written.lower())


def _words(tree: Tree[Token]) -> str:
    return " ".join(str(token).strip() for token in tree.scan_values(lambda value: isinstance(value, Token)))


def _span(token: Token, places: Places) -> Span:
    assert token.start_pos is not None
    return places.span(token.start_pos, token.start_pos + len(str(token).rstrip()))
