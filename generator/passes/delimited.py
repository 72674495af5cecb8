"""Texts that end where a constant begins: ``"SET" SP key SP value CRLF``.

A text of open length ends before the constant that follows it, if the text cannot contain the first octet of
the constant. Otherwise the end is ambiguous, and the text has no end (E409).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from specwire.generator import ir

_OCTETS = re.compile(r"\\x([0-9a-f]{2})(?:-\\x([0-9a-f]{2}))?")


def end_texts(fields: Iterable[ir.Field]) -> Iterator[ir.Field]:
    """Yield the fields of a run; an open text before a constant ends at that constant."""
    row = list(fields)
    for field, after in zip(row, (*row, None)[1:], strict=True):
        end = after.type.octets if after is not None and isinstance(after.type, ir.ConstantType) else b""
        if end and isinstance(field.type, ir.TextType) and _ends_before(field.type, end[0]):
            length = ir.Length("until", until=end.hex())
            field = msgspec.structs.replace(field, type=msgspec.structs.replace(field.type, length=length))
        yield field


def _ends_before(type: ir.TextType, octet: int) -> bool:
    """Whether a text is open and its characters do not include the octet."""
    if type.length.kind != "rest" or type.terminated or type.pattern is None:
        return False
    ranges = [(int(first, 16), int(last or first, 16)) for first, last in _OCTETS.findall(type.pattern)]
    return not any(first <= octet <= last for first, last in ranges)
