"""Columns of values without values inside to octets: integers, texts, octets, words.

Each writer takes an array without nulls and returns the octets of all its elements, and which elements it is not
sure of. Those are given to the row codec, which says what is wrong with them; so a check here may be stricter
than the row codec's, never more lenient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specwire.generated.columns.intake import integers
from specwire.generated.columns.joining import joined
from specwire.generated.columns.pieces import (
    Component,
    Mask,
    Numbers,
    Pieces,
    Whole,
    cut,
    pieces_of,
)
from specwire.generated.layout import Constant, Integer, Json, Keyword, Octets, Padding, Span, Text

Scalar = Constant | Padding | Integer | Keyword | Text | Octets | Json

EQUALS = ord("=")


@dataclass(frozen=True, slots=True)
class Written:
    """The octets of some elements, and which of them are wrong; None: none is."""

    components: tuple[Component, ...]
    wrong: Mask | None = None


def either(*masks: Mask | None) -> Mask | None:
    """Return where any of the masks is true; None where none is."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None and mask.any():
            found = mask if found is None else found | mask
    return found


def write_scalar(type: Scalar, array: pa.Array[Any], strict: bool) -> Written:
    """Return the octets of the values in an array without nulls."""
    match type:
        case Constant(octets=octets):
            return Written((octets,))
        case Padding(octets=number, fill=fill):
            return Written((fill * number,))
        case Integer():
            return _integers(type, array)
        case Keyword(options=options):
            return _keywords(options, array)
        case Text():
            return write_text(type, array, strict)
        case Octets():
            return _octets(type, array)
        case Json():
            # Strict reads the text; that is the row codec's to do.
            pieces, wrong = texts(array)
            return Written((pieces,), np.ones(len(array), np.bool_) if strict else wrong)


def write_text(type: Text, array: pa.Array[Any], strict: bool) -> Written:
    """Return the octets of texts, with what says where they end."""
    pieces, wrong = texts(array)
    if strict and type.pattern is not None:
        wrong = either(wrong, ~fitting(type.pattern, pieces))
    if type.terminated:
        wrong = either(wrong, holding(pieces, 0))
        if strict:
            pieces = joined((pieces, b"\0"), len(array))
    if type.padding is not None:
        return _padded(type.padding, type.span.octets, pieces, wrong)
    return spanned(type.span, pieces, wrong)


def texts(array: pa.Array[Any]) -> tuple[Pieces, Mask | None]:
    """Return texts as octets, and which are not UTF-8: Arrow does not look when it is given a buffer."""
    pieces = pieces_of(array)
    octets = pieces.octets
    if not len(octets) or octets.max() < 0x80:
        return pieces, None
    try:
        array.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        # Which of them it is, is found one by one: nobody writes such arrays twice.
        return pieces, np.array([not _is_utf8(scalar.as_buffer()) for scalar in array], np.bool_)
    return pieces, None


def fitting(pattern: bytes, pieces: Pieces) -> Mask:
    """Return which elements are what a pattern over octets says; none where Arrow cannot read the pattern."""
    whole = rf"(?s)\A(?:{pattern.decode('latin-1')})\z"
    try:
        found = pc.match_substring_regex(pieces.array(), whole)
    except pa.ArrowInvalid:
        return np.zeros(len(pieces.offsets) - 1, np.bool_)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def holding(pieces: Pieces, octet: int) -> Mask | None:
    """Return which elements have an octet somewhere, None where none has."""
    places = np.flatnonzero(pieces.octets == octet)
    if not len(places):
        return None
    wrong = np.zeros(len(pieces.offsets) - 1, np.bool_)
    wrong[np.searchsorted(pieces.offsets, places + int(pieces.offsets[0]), "right") - 1] = True
    return wrong


def spanned(span: Span, pieces: Pieces, wrong: Mask | None = None) -> Written:
    """Return the octets of elements with what says where they end."""
    if span.kind == "rest":
        return Written((pieces,), wrong)
    if span.kind == "until":
        return Written((pieces,), either(wrong, _ending_early(span.until, pieces)))
    sizes = pieces.sizes
    if span.kind == "fixed":
        return Written((cut(pieces, span.octets, 0),), either(wrong, sizes != span.octets))
    long = sizes >= 256**span.octets if span.octets < 8 else None
    return Written((Numbers(sizes, span.octets), pieces), either(wrong, long))


def _integers(type: Integer, array: pa.Array[Any]) -> Written:
    values, wrong = integers(array, 256**type.octets - 1)
    if type.members:
        wrong = either(wrong, ~_among(values, type.members))
    return Written((Numbers(values, type.octets),), wrong)


def _among(values: Whole, members: tuple[int, ...]) -> Mask:
    """Where the values are members; a member that no value of this width can be is none."""
    found = np.zeros(len(values), np.bool_)
    most = np.iinfo(values.dtype).max
    for member in members:
        if member <= most:
            found |= values == member
    return found


def _keywords(options: tuple[str, ...], array: pa.Array[Any]) -> Written:
    pieces, _ = texts(array)
    kind = pieces.array().type
    spelled = pa.array([option.encode() for option in options], kind)
    good = pc.is_in(pieces.array(), value_set=spelled).to_numpy(zero_copy_only=False)
    return Written((pieces,), ~np.asarray(good, np.bool_))


def _octets(type: Octets, array: pa.Array[Any]) -> Written:
    pieces = pieces_of(array)
    wrong: Mask | None = None
    if type.span.kind != "fixed" and (type.minimum or type.maximum is not None):
        sizes = pieces.sizes
        long = sizes > type.maximum if type.maximum is not None else None
        wrong = either(sizes < type.minimum, long)
    return spanned(type.span, pieces, wrong)


def _padded(fill: bytes, octets: int, pieces: Pieces, wrong: Mask | None) -> Written:
    """Texts with padding behind; one that ends as padding does would be read without."""
    sizes = pieces.sizes
    ends = np.zeros(len(sizes), np.bool_)
    some = sizes > 0
    ends[some] = pieces.data[pieces.offsets[1:][some] - 1] == fill[0]
    return Written((cut(pieces, octets, fill[0]),), either(wrong, ends, sizes > octets))


def _ending_early(until: bytes, pieces: Pieces) -> Mask | None:
    """Where the octets that end a text are already in it, or begin in it."""
    if len(until) == 1:
        return holding(pieces, until[0])
    ended = joined((pieces, until), len(pieces.offsets) - 1)
    find: Any = pc.find_substring
    first = find(ended.array(), pattern=until).to_numpy(zero_copy_only=False)
    return np.asarray(first != pieces.sizes, np.bool_)


def _is_utf8(octets: pa.Buffer) -> bool:
    try:
        str(octets, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
