"""Reading of a document, with early rejection of files that are too large for a specification."""

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
    """Return the octets of a document, or the beginning of one that is too large.

    Raises:
        OSError: the document cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(LARGEST_DOCUMENT + 1)


def read_document(path: Path, octets: bytes, diagnostics: Diagnostics) -> Source:
    """Return the document as text; octets that are not UTF-8 are kept and reported later.

    Raises:
        SpecError: the document is not text, or is too large.
    """
    source = Source(path.as_posix(), "")
    whole = Span(source, 1, 1, 1, 2)
    nul = octets.find(b"\0")
    if len(octets) > LARGEST_DOCUMENT:
        message = f"the document has more than {LARGEST_DOCUMENT:,} octets"
        diagnostics.error("E703", whole, message, "pass the document itself, not an archive of it")
    elif nul >= 0:
        message = f"the document is not text: octet {nul} is NUL"
        diagnostics.error("E701", whole, message, "save the document as UTF-8 text")
    diagnostics.raise_errors()
    text = octets.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    source = Source(path.as_posix(), text)
    if sum(1 for line in text.split("\n") if RULE_START.match(line)) > MOST_RULES:
        message = f"the document has more than {MOST_RULES} lines that begin like rules"
        diagnostics.error(
            "E703",
            Span(Source(source.path, ""), 1, 1, 1, 2),
            message,
            "copy the grammar to a separate file and import that",
        )
    diagnostics.raise_errors()
    return source


def check_size(blocks: Sequence[Block], diagnostics: Diagnostics) -> None:
    """Report data that looks like rules but is too large to be a grammar (E703)."""
    size = rule = 0
    for block in blocks:
        for number, line in enumerate(block.lines, start=block.first_line):
            size += len(line)
            rule = len(line) if RULE_START.match(line) else rule + len(line)
            if rule > LONGEST_RULE or size > LARGEST_GRAMMAR:
                what = f"rule of {LONGEST_RULE}" if rule > LONGEST_RULE else f"grammar of {LARGEST_GRAMMAR}"
                span = Span(Source(block.source.path, ""), number, 1, number, 2)
                message = f"the document has a {what} characters or more, so this is data, not a grammar"
                diagnostics.error(
                    "E703", span, message, "copy the grammar to a separate file and import that"
                )
                diagnostics.raise_errors()
