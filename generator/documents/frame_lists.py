"""Parser for lists that describe the frames of a message in sentences, one frame for each item.

    The order message must consist of these frames:

    * A gap frame, of length of zero.
    * The edition frame, to hold the two octets "v1".
    * The *shop*, a string of letters.
    * The *loaves*, zero or more opaque frames.

The item begins with the name of the frame; the text after the comma describes its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from specwire.generator.diagnostics import Span
from specwire.generator.documents.blocks import Block
from specwire.generator.documents.frametable import Frame, FrameTable, kind_of_words, size_of_words

_ITEM = re.compile(r"[ \t]*[*+-][ \t]+(?P<text>\S.*)")
_NAME = re.compile(
    r"(?:An?|The)\s+(?:[*_`]+(?P<marked>[^*_`]+)[*_`]+|(?P<plain>[^,.;]+?)(?:\s+frames?)?)"
    r"(?=[,.;]|\s*$|\s+frame)"
)
_EMPTY = re.compile(
    r"\blength of zero\b|\bzero[- ](?:length|sized?)\b|(?<!may )(?<!MAY )\bbe empty\b|\ban empty frame\b"
)
_CONSTANT = re.compile(
    r"\b(?:contain|be|hold)s?\b[^,.;\"“]*?"
    r"(?:[\"“](?P<text>[^\"”]+)[\"”]|0x(?P<hex>(?:[0-9A-Fa-f]{2})+)\b)"
)
_BOUNDED = re.compile(r"\b(?:between|at most|at least|up to|no (?:longer|more) than|maximum|minimum)\b")
_ANY_NUMBER = re.compile(r"\b(?:zero|one) or more\b")


def parse_frame_list(block: Block) -> FrameTable:
    """Return the frames of the items of `block`; the title is empty."""
    return FrameTable("", tuple(_frames(block)), block.span)


def _frames(block: Block) -> Iterator[Frame]:
    for number, (text, span) in enumerate(_items(block)):
        named = _NAME.match(text)
        label = (named["marked"] or named["plain"]) if named else text
        said = text[named.end() :] if named else text
        constant = _CONSTANT.search(said)
        octets = (
            (
                constant["text"].encode("utf-8", "surrogateescape")
                if constant["text"]
                else bytes.fromhex(constant["hex"])
            )
            if constant
            else b""
        )
        size = None if _BOUNDED.search(said) else size_of_words(said)
        yield Frame(
            number=number,
            repeated=bool(_ANY_NUMBER.search(said)),
            kind="constant" if constant else "empty" if _EMPTY.search(said) else kind_of_words(said, size),
            constants=(octets,) if constant else (),
            quoted=bool(constant and constant["text"]),
            digits=False,
            conditional="zero or more" in said,
            label=label.strip(),
            size_octets=size,
            stands_for=None,
            text=text,
            span=span,
            name="-".join(re.findall(r"[a-z][a-z0-9]*", label.lower())[:4]),
        )


def _items(block: Block) -> Iterator[tuple[str, Span]]:
    """Yield the items, each in one line, with the place of its first."""
    open_item: tuple[str, Span] | None = None
    for number, line in enumerate(block.lines, start=block.first_line):
        if item := _ITEM.match(line):
            if open_item:
                yield open_item
            open_item = (
                item["text"],
                Span(block.source, number, item.start("text") + 1, number, len(line.rstrip()) + 1),
            )
        elif open_item and line.strip():
            open_item = f"{open_item[0]} {line.strip()}", open_item[1]
    if open_item:
        yield open_item
