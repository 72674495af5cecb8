"""Reading of a document, with early rejection of files that are too large for a specification."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
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

_SAMPLE = 4096
"""Octets by which UTF-16 without a mark is recognised."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def read_octets(path: Path) -> bytes:
    """Return the octets of a document, or the beginning of one that is too large.

    Raises:
        OSError: the document cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(LARGEST_DOCUMENT + 1)


def read_document(path: Path, octets: bytes, diagnostics: Diagnostics) -> Source:
    """Return the document as text.

    UTF-16 and Windows-1252, which includes Latin-1, are recognised and reported (W721). Other octets
    that are not UTF-8 are kept, and reported later if they are in a rule.

    Raises:
        SpecError: the document is not text, or is too large.
    """
    source = Source(path.as_posix(), "")
    whole = Span(source, 1, 1, 1, 2)
    if len(octets) > LARGEST_DOCUMENT:
        message = f"the document has more than {LARGEST_DOCUMENT:,} octets"
        diagnostics.error("E703", whole, message, "pass the document itself, not an archive of it")
        diagnostics.raise_errors()
    text, encoding = _decoded(octets)
    nul = text.find("\0")
    if nul >= 0:
        message = f"the document is not text: {'character' if encoding else 'octet'} {nul} is NUL"
        diagnostics.error("E701", whole, message, "save the document as UTF-8 text")
    diagnostics.raise_errors()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if encoding:
        first = next((n for n, line in enumerate(text.split("\n"), 1) if not line.isascii()), 1)
        message = f"the document is not UTF-8 and is read as {encoding}"
        span = Span(Source(source.path, text), first, 1, first, 2)
        diagnostics.warning("W721", span, message, "if letters are wrong, save the document as UTF-8")
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


def _decoded(octets: bytes) -> tuple[str, str]:
    """Return the text of a document, and the name of its encoding; empty for UTF-8."""
    for encoding in _utf_16(octets):
        try:
            return octets.decode(encoding).removeprefix("\ufeff"), "UTF-16"
        except UnicodeDecodeError:
            pass
    text = octets.decode("utf-8-sig", "surrogateescape")
    beyond = _NOT_ASCII.findall(text)
    if beyond and all("\udc80" <= character <= "\udcff" for character in beyond):
        # No letter is UTF-8, so this is no damaged UTF-8.
        try:
            return octets.decode("cp1252"), "Windows-1252"
        except UnicodeDecodeError:
            pass
    return text, ""


def _utf_16(octets: bytes) -> Iterator[str]:
    """Yield the order of octets in which a document can be UTF-16: by its mark, or by its NUL octets."""
    if octets.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield "utf-16"
    sample = octets[:_SAMPLE]
    for encoding, high in (("utf-16-be", sample[::2]), ("utf-16-le", sample[1::2])):
        if high.count(0) * 2 > len(high):
            yield encoding


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
