"""Checks of simple values, for the slow path of decoding.

A value ends where its type says, or at the end of its run, `Place.end`.
"""

from __future__ import annotations

import json
import re

from specwire.generated.layout import Constant, Integer, Json, Keyword, Octets, Padding, Span, Text
from specwire.generated.place import Place
from specwire.generated.selection import spellings
from specwire.generated.words import either, octets_word, one_of, show

Scalar = Constant | Keyword | Padding | Integer | Text | Octets | Json
"""Type whose values contain no other values."""


def check_scalar(place: Place, type: Scalar, at: int) -> int:
    """Check the value at octet `at`; return where the next one begins."""
    match type:
        case Constant():
            return _check_constant(place, type, at)
        case Integer(octets=octets, members=members):
            value = int.from_bytes(place.take(at, octets), "big")
            if members and value not in members:
                place.refuse("range", either(map(str, members)), str(value), at)
            return at + octets
        case Text(span=span):
            start, raw = spanned(place, span, at)
            check_text(place, type, raw, start)
            return start + len(raw)
        case Octets():
            return _check_octets(place, type, at)
        case Padding(octets=octets):
            return at + len(place.take(at, octets))
        case Json():
            _check_json(place, place.take(at, place.end - at), at)
            return place.end
        case Keyword():
            raise AssertionError("fills a frame")


def check_words(place: Place, type: Keyword | Constant) -> None:
    """Check a word or constant that fills its frame."""
    options = spellings(type)
    if place.frame not in options:
        expected = type.words if isinstance(type, Constant) else one_of(options)
        place.refuse("constant", expected, show(place.frame), 0)


def spanned(place: Place, span: Span, at: int) -> tuple[int, bytes]:
    """Return where the octets of a value begin, and the octets."""
    if span.kind == "rest":
        return at, place.take(at, place.end - at)
    if span.kind == "fixed":
        return at, place.take(at, span.octets)
    if span.kind == "until":
        left = place.take(at, place.end - at)
        if span.until not in left:
            place.refuse("text", f"{show(span.until)} behind it", show(left), at)
        return at, left[: left.index(span.until)]
    length = int.from_bytes(place.take(at, span.octets), "big")
    at += span.octets
    return at, place.take(at, length)


def _check_constant(place: Place, type: Constant, at: int) -> int:
    octets = type.octets
    found = place.peek(at, len(octets))
    if found != octets:
        if len(found) < len(octets) and octets.startswith(found):
            place.refuse("length", octets_word(len(octets)), str(len(found)), at)
        place.refuse("constant", *_unlike(type, found), at)
    return at + len(octets)


def _unlike(type: Constant, found: bytes) -> tuple[str, str]:
    """Return the expected constant and what was found, in words; omit the length prefix of a text."""
    text = type.words.strip("'").encode()
    length = type.octets.removesuffix(text)
    if length in (b"", type.octets):
        return type.words, show(found)
    if found.startswith(length):
        return type.words, show(found.removeprefix(length))
    return f"0x{type.octets.hex()} ({type.words})", f"0x{found.hex()}"


def _check_octets(place: Place, type: Octets, at: int) -> int:
    start, raw = spanned(place, type.span, at)
    if len(raw) < type.minimum:
        place.refuse("length", f"at least {octets_word(type.minimum)}", str(len(raw)), at)
    if type.maximum is not None and len(raw) > type.maximum:
        place.refuse("length", f"at most {octets_word(type.maximum)}", str(len(raw)), at)
    return start + len(raw)


def check_text(place: Place, type: Text, raw: bytes, at: int) -> None:
    """Check the octets of a text, which begin at octet `at`."""
    if type.padding is not None:
        raw = raw.rstrip(type.padding)
    _check_utf8(place, raw, at)
    if type.terminated:
        ended = raw.endswith(b"\0")
        raw = raw[:-1] if ended else raw
        if b"\0" in raw:
            place.refuse("text", "text without NUL", "0x00", at + raw.index(b"\0"))
        if place.strict and not ended:
            place.refuse("text", "a NUL at the end", "none", at + len(raw))
    if place.strict and type.pattern is not None and not re.fullmatch(type.pattern, raw, re.DOTALL):
        fits = re.match(type.pattern, raw, re.DOTALL)
        good = fits.end() if fits else 0
        wrong = raw[good : good + 1] if fits else raw
        place.refuse("text", f"characters that the rule {place.rule_name} allows", show(wrong), at + good)


def _check_utf8(place: Place, raw: bytes, at: int) -> None:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place.refuse("text", "UTF-8", show(raw[error.start : error.end]), at + error.start)


def _check_json(place: Place, raw: bytes, start: int) -> None:
    """Check JSON text, which must be UTF-8; strict requires an object and allows a NUL at the end."""
    _check_utf8(place, raw, start)
    if not place.strict:
        return
    text = raw.decode("utf-8").removesuffix("\0")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        # The position counts characters, an offset octets.
        at = len(text[: error.pos].encode()) if isinstance(error, json.JSONDecodeError) else 0
        place.refuse("text", "JSON", show(raw[at : at + 8]), start + at)
    if not isinstance(value, dict):
        place.refuse("text", "a JSON object", show(raw[:8]), start)
