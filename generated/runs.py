# Written by specwire from generator/support/runs.py. Do not edit; change that file and run `make generate`.
"""Checks of runs of fields and of nested values, for the slow path of decoding.

A run is a sequence of adjacent values: the fields of a frame, or of a record inside one. It ends
with the frame, or where a `Size` in it says. `Place.end` is the end of the innermost run, and no
value extends beyond it. Types do not contain themselves, so the depth of the walk is bounded by the
grammar, not by the octets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from specwire.generated.errors import Kind
from specwire.generated.layout import Field, ListOf, Pairs, Record, Size, Type, Union
from specwire.generated.place import Place
from specwire.generated.values import check_scalar, check_text, spanned
from specwire.generated.words import number_of, octets_word, one_of, show


def check_frame(place: Place, fields: tuple[Field, ...]) -> int:
    """Check the fields of a frame from its start; return where they end."""
    at = 0
    for field in fields:
        place.enter(field, field.name)
        if field.optional and at == place.end:
            break
        if isinstance(field.type, Size):
            start, size, at = _read_size(place, field.type, at)
            if size != place.end - at:
                left = place.end - at
                place.refuse("length", f"{left}, the number of octets behind it", str(size), start)
        else:
            at = check_value(place, field.type, at)
    return at


def check_value(place: Place, type: Type, at: int) -> int:
    """Check the value at octet `at`; return where the next one begins."""
    match type:
        case ListOf():
            return _check_list(place, type, at)
        case Pairs():
            return _check_pairs(place, type, at)
        case Record():
            return _check_record(place, type, at)
        case Union():
            return _check_record(place, _option(place, type, at), at)
        case Size():
            raise AssertionError("belongs to a run")
        case _:
            return check_scalar(place, type, at)


def _check_record(place: Place, type: Record, at: int) -> int:
    """Check the fields of a record; its run ends where its size says."""
    whole, path, outer, bounded = place.field, place.path, place.end, False
    for field in type.fields:
        place.enter(field, f"{path}.{field.name}")
        if field.optional and at == place.end:
            break
        if isinstance(field.type, Size):
            start, size, at = _read_size(place, field.type, at)
            left = place.end - at
            if size > left:
                place.refuse("length", f"at most {left}, the number of octets left", str(size), start)
            if bounded and size < left:
                place.refuse("length", f"{left}, the number of octets behind it", str(size), start)
            place.end, bounded = at + size, True
        else:
            at = check_value(place, field.type, at)
    place.enter(whole, path)
    if bounded and at < place.end:
        place.rule = type.rule
        place.refuse("trailing", f"the end of {path}", number_of(place.end - at, "more octet"), at)
    place.end = outer
    return at


def _read_size(place: Place, type: Size, at: int) -> tuple[int, int, int]:
    """Return where the integer of a size begins, its value, and where the counted octets begin."""
    # A form without a tag must not begin like any other form.
    for tag, octets in sorted(type.forms, key=lambda form: not form[0]):
        if place.peek(at, len(tag)) == tag:
            at += len(tag)
            return at, int.from_bytes(place.take(at, octets), "big"), at + octets
    tags = [tag for tag, _ in type.forms]
    _refuse_tag(place, tags, at, "constant")


def _option(place: Place, type: Union, at: int) -> Record:
    """Return the record that begins at octet `at`."""
    for tag, option in zip(type.tags, type.options, strict=True):
        if place.peek(at, len(tag)) == tag:
            return option
    _refuse_tag(place, type.tags, at, "tag")


def _refuse_tag(place: Place, tags: Sequence[bytes], at: int, kind: Kind) -> NoReturn:
    found = place.peek(at, max(map(len, tags)))
    cut = any(tag.startswith(found) for tag in tags)
    place.refuse("length" if cut else kind, one_of(tags), show(found), at)


def _check_list(place: Place, type: ListOf, at: int) -> int:
    name, field, start = place.path, place.field, at
    count, at = _count(place, type, at)
    number = 0
    while at < place.end if count is None else number < count:
        place.enter(field, f"{name}[{number}]")
        at = check_value(place, type.element, at)
        number += 1
    place.enter(field, name)
    _check_number(place, type, number, start)
    return at


def _check_pairs(place: Place, type: Pairs, at: int) -> int:
    name, start = place.path, at
    count, at = _count(place, type, at)
    place.rule = type.rule
    number = 0
    while at < place.end if count is None else number < count:
        place.path = f"{name}[{number}]"
        at = _check_pair(place, type, at)
        number += 1
    place.path = name
    _check_number(place, type, number, start)
    return at


def _check_pair(place: Place, type: Pairs, at: int) -> int:
    if type.value is None:
        return _check_divided(place, type, at)
    entry = place.path
    place.path = f"{entry}.name"
    at = check_scalar(place, type.name, at)
    place.path = f"{entry}.value"
    return check_scalar(place, type.value, at)


def _check_divided(place: Place, type: Pairs, at: int) -> int:
    """Check name and value in one text; a fault is assigned to its side of the ``=``."""
    start, raw = spanned(place, type.name.span, at)
    equals = raw.find(b"=") if type.split == "first" else raw.rfind(b"=")
    place.divided = start + equals if equals >= 0 else None
    check_text(place, type.name, raw, start)
    if equals < 0:
        place.refuse("text", "name=value", show(raw), start)
    place.divided = None
    return start + len(raw)


def _count(place: Place, type: ListOf | Pairs, at: int) -> tuple[int | None, int]:
    """Return the number of entries and where they begin; None means up to the end of the run.

    Each entry has at least one octet.
    """
    octets = type.count_octets
    if not octets:
        return None, at
    count = int.from_bytes(place.take(at, octets), "big")
    left = place.end - at - octets
    if count > left:
        place.refuse("count", f"at most {left} entries in {octets_word(left)}", str(count), at)
    _check_number(place, type, count, at)
    return count, at + octets


def _check_number(place: Place, type: ListOf | Pairs, number: int, at: int) -> None:
    if number < type.minimum:
        place.refuse("count", f"at least {type.minimum}", str(number), at)
