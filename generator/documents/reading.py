"""Read a document, and refuse early what would take long to read and is no specification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.documents.blocks import Block
from specwire.generator.documents.kinds import RULE_START

LARGEST_DOCUMENT = 8 * 2**20
"""Octets; a specification with every figure drawn in it has not a tenth of that."""
MOST_RULES = 4000
"""Lines that begin like rules; the largest published grammars have some hundred."""
LARGEST_GRAMMAR = 200_000
"""Characters in all blocks together."""
LONGEST_RULE = 10_000
"""Characters of one rule with its comments."""


def read_octets(path: Path) -> bytes:
    """Return the octets of a document; of one that is too large no more than shows that. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(LARGEST_DOCUMENT + 1)


def read_document(path: Path, octets: bytes, diagnostics: Diagnostics) -> Source:
    """Return the document as text; octets that are not UTF-8 stay what they are, and are pointed at later.

    Raises:
        SpecError: it is no text, or more of it than any specification has.
    """
    source = Source(path.as_posix(), "")
    whole = Span(source, 1, 1, 1, 2)
    nul = octets.find(b"\0")
    if len(octets) > LARGEST_DOCUMENT:
        message = f"more than {LARGEST_DOCUMENT:,} octets, which no specification has"
        diagnostics.error("E703", whole, message, "import the document itself, not an archive of it")
    elif nul >= 0:
        message = f"this is not a text: octet {nul} is NUL"
        diagnostics.error("E701", whole, message, "save the document as UTF-8 text")
    diagnostics.raise_errors()
    text = octets.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    source = Source(path.as_posix(), text)
    if sum(1 for line in text.split("\n") if RULE_START.match(line)) > MOST_RULES:
        message = f"more than {MOST_RULES} lines begin like rules"
        diagnostics.error(
            "E703", Span(Source(source.path, ""), 1, 1, 1, 2), message, "cut the grammar out of it by hand"
        )
    diagnostics.raise_errors()
    return source


def check_size(blocks: Sequence[Block], diagnostics: Diagnostics) -> None:
    """Refuse what would take long to read and is no grammar: data that happens to look like rules."""
    size = rule = 0
    for block in blocks:
        for number, line in enumerate(block.lines, start=block.first_line):
            size += len(line)
            rule = len(line) if RULE_START.match(line) else rule + len(line)
            if rule > LONGEST_RULE or size > LARGEST_GRAMMAR:
                what = f"rule of {LONGEST_RULE}" if rule > LONGEST_RULE else f"grammar of {LARGEST_GRAMMAR}"
                span = Span(Source(block.source.path, ""), number, 1, number, 2)
                message = f"a {what} characters and more is data, not something to read"
                diagnostics.error("E703", span, message, "cut the grammar out of the document by hand")
                diagnostics.raise_errors()
