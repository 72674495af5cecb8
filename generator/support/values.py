"""The values inside one frame, for the slow path of decoding: each is checked where it stands."""

from __future__ import annotations

import json
import re

from specwire.generated.layout import (
    Constant,
    Integer,
    Json,
    Keyword,
    ListOf,
    Octets,
    Pairs,
    Span,
    Text,
    Type,
)
from specwire.generated.place import Place
from specwire.generated.selection import spellings
from specwire.generated.words import octets_word, one_of, show


def fills_frame(type: Type) -> bool:
    """Whether a value of the type has a frame of its own."""
    if isinstance(type, Text | Octets):
        return type.span.kind == "rest"
    return isinstance(type, Keyword | Json | Constant)


def check_whole(place: Place, type: Type) -> None:
    """Check a value that fills its frame."""
    frame = place.frame
    match type:
        case Keyword() | Constant():
            options = spellings(type)
            if frame not in options:
                expected = type.words if isinstance(type, Constant) else one_of(options)
                place.refuse("constant", expected, show(frame), 0)
        case Octets(minimum=minimum):
            if len(frame) < minimum:
                place.refuse("length", f"at least {octets_word(minimum)}", str(len(frame)), 0)
        case Json():
            _check_utf8(place, frame, 0)
            _check_json(place, frame)
        case Text():
            _check_text(place, type, frame, 0)
        case _:
            check_value(place, type, 0)


def check_value(place: Place, type: Type, at: int) -> int:
    """Check the value at octet `at`; return where the next one begins."""
    match type:
        case Constant():
            return _check_constant(place, type, at)
        case Integer(octets=octets, members=members):
            value = int.from_bytes(place.take(at, octets), "big")
            if members and value not in members:
                place.refuse("range", " or ".join(map(str, members)), str(value), at)
            return at + octets
        case Text(span=span):
            start, raw = _spanned(place, span, at)
            _check_text(place, type, raw, start)
            return start + len(raw)
        case Octets(span=span, minimum=minimum):
            start, raw = _spanned(place, span, at)
            if len(raw) < minimum:
                place.refuse("length", f"at least {octets_word(minimum)}", str(len(raw)), at)
            return start + len(raw)
        case ListOf():
            return _check_list(place, type, at)
        case Pairs():
            return _check_pairs(place, type, at)
        case Json() | Keyword():
            raise AssertionError("fills a frame")


def _check_constant(place: Place, type: Constant, at: int) -> int:
    octets = type.octets
    found = place.frame[at : at + len(octets)]
    if found != octets:
        if len(found) < len(octets) and octets.startswith(found):
            place.refuse("length", octets_word(len(octets)), str(len(found)), at)
        place.refuse("constant", type.words, show(found), at)
    return at + len(octets)


def _check_list(place: Place, type: ListOf, at: int) -> int:
    name = place.path
    count, at = _count(place, type.count_octets, at)
    for index in range(count):
        place.path = f"{name}[{index}]"
        at = check_value(place, type.element, at)
    return at


def _check_pairs(place: Place, type: Pairs, at: int) -> int:
    name = place.path
    count, at = _count(place, type.count_octets, at)
    place.rule = type.rule
    for index in range(count):
        place.path = f"{name}[{index}]"
        if type.value is None:
            at = _check_divided(place, type, at)
            continue
        place.path = f"{name}[{index}].name"
        at = check_value(place, type.name, at)
        place.path = f"{name}[{index}].value"
        at = check_value(place, type.value, at)
    return at


def _check_divided(place: Place, type: Pairs, at: int) -> int:
    """Name and value in one text; a fault belongs to the side of the ``=`` that it is on."""
    start, raw = _spanned(place, type.name.span, at)
    equals = raw.find(b"=") if type.split == "first" else raw.rfind(b"=")
    place.divided = start + equals if equals >= 0 else None
    _check_text(place, type.name, raw, start)
    if equals < 0:
        place.refuse("text", "name=value", show(raw), start)
    place.divided = None
    return start + len(raw)


def _count(place: Place, octets: int, at: int) -> tuple[int, int]:
    """The number of entries, each of which takes an octet or more, and where they begin."""
    count = int.from_bytes(place.take(at, octets), "big")
    left = len(place.frame) - at - octets
    if count > left:
        place.refuse("count", f"at most {left} entries in the octets that are left", str(count), at)
    return count, at + octets


def _spanned(place: Place, span: Span, at: int) -> tuple[int, bytes]:
    """Where a value's octets begin, and the octets."""
    if span.kind == "rest":
        return at, place.frame[at:]
    if span.kind == "fixed":
        return at, place.take(at, span.octets)
    length = int.from_bytes(place.take(at, span.octets), "big")
    at += span.octets
    return at, place.take(at, length)


def _check_text(place: Place, type: Text, raw: bytes, at: int) -> None:
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


def _check_json(place: Place, raw: bytes) -> None:
    """The letter wants a JSON object; a NUL may end it."""
    if not place.strict:
        return
    text = raw.decode("utf-8").removesuffix("\0")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        # The position counts characters, an offset octets.
        at = len(text[: error.pos].encode()) if isinstance(error, json.JSONDecodeError) else 0
        place.refuse("text", "JSON", show(raw[at : at + 8]), at)
    if not isinstance(value, dict):
        place.refuse("text", "a JSON object", show(raw[:8]), 0)
