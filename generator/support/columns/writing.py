"""Encoders of columns of simple values: integers, texts, octets, words.

Each writer accepts an array without nulls and returns the octets of all elements and the mask of
doubtful ones. Doubtful elements go to the row codec, which raises the error. So a check here may be
stricter than that of the row codec, but never more lenient.
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
    """Octets of some elements, and the mask of wrong ones (None: none)."""

    components: tuple[Component, ...]
    wrong: Mask | None = None


def either(*masks: Mask | None) -> Mask | None:
    """Return the union of masks; None if it is empty."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None and mask.any():
            found = mask if found is None else found | mask
    return found


def write_scalar(type: Scalar, array: pa.Array[Any], strict: bool) -> Written:
    """Return the octets of the values of an array without nulls."""
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
            # Strict checks the text's content, which the row codec does.
            pieces, wrong = texts(array)
            return Written((pieces,), np.ones(len(array), np.bool_) if strict else wrong)


def write_text(type: Text, array: pa.Array[Any], strict: bool) -> Written:
    """Return the octets of texts with their length or terminator."""
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
    """Return texts as octets, and the mask of those that are not UTF-8.

    Arrow does not check UTF-8 when it builds an array from a buffer.
    """
    pieces = pieces_of(array)
    octets = pieces.octets
    if not len(octets) or octets.max() < 0x80:
        return pieces, None
    try:
        array.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        # Such arrays are rare, so search them one by one.
        return pieces, np.array([not _is_utf8(scalar.as_buffer()) for scalar in array], np.bool_)
    return pieces, None


def fitting(pattern: bytes, pieces: Pieces) -> Mask:
    """Return the mask of elements that match a pattern over octets; none if Arrow rejects the pattern."""
    whole = rf"(?s)\A(?:{pattern.decode('latin-1')})\z"
    try:
        found = pc.match_substring_regex(pieces.array(), whole)
    except pa.ArrowInvalid:
        return np.zeros(len(pieces.offsets) - 1, np.bool_)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def holding(pieces: Pieces, octet: int) -> Mask | None:
    """Return the mask of elements that contain `octet`, None if none does."""
    places = np.flatnonzero(pieces.octets == octet)
    if not len(places):
        return None
    wrong = np.zeros(len(pieces.offsets) - 1, np.bool_)
    wrong[np.searchsorted(pieces.offsets, places + int(pieces.offsets[0]), "right") - 1] = True
    return wrong


def spanned(span: Span, pieces: Pieces, wrong: Mask | None = None) -> Written:
    """Return the octets of elements with their length or terminator."""
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
    """Return the mask of values that are members; ignores members that do not fit the width."""
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
    """Return texts with padding; a text that ends like the padding would lose its end when read."""
    sizes = pieces.sizes
    ends = np.zeros(len(sizes), np.bool_)
    some = sizes > 0
    ends[some] = pieces.data[pieces.offsets[1:][some] - 1] == fill[0]
    return Written((cut(pieces, octets, fill[0]),), either(wrong, ends, sizes > octets))


def _ending_early(until: bytes, pieces: Pieces) -> Mask | None:
    """Return the mask of texts that contain their terminator or form it with the octets behind them."""
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
