"""Octets of columns of texts, words and opaque octets.

Each function accepts an array without nulls and returns the octets of all elements and the mask of
doubtful ones. Doubtful elements go to the row codec, which raises the error. So a check here may be
stricter than that of the row codec, but never more lenient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specwire.generated.columns.arrow import Mask, either
from specwire.generated.columns.building import not_utf8
from specwire.generated.columns.codings import uuid_octets
from specwire.generated.columns.pieces import Component, Pieces, cut, joined, pieces_of
from specwire.generated.columns.runs import differs, gather
from specwire.generated.plan import Extent, TakeOctets, TakeText, Word

EQUALS = ord("=")

Written = tuple[tuple[Component, ...], Mask | None]
"""Octets of some elements, and the mask of wrong ones (None: none)."""


def write_text(op: TakeText, array: pa.Array[Any], strict: bool) -> Written:
    """Return the octets of texts."""
    pieces, wrong = texts(array)
    if strict and op.json:
        # Strict encoding checks the text's content, which the row codec does.
        return (pieces,), np.ones(len(array), np.bool_)
    if strict and op.pattern is not None:
        wrong = either(wrong, ~fitting(op.pattern, pieces))
    if op.terminated:
        wrong = either(wrong, holding(pieces, 0))
        if strict:
            pieces = joined((pieces, b"\0"), len(array))
    if op.padding is not None:
        return _padded(op.padding, op.extent.octets, pieces, wrong)
    return _extended(op.extent, pieces, wrong)


def write_octets(op: TakeOctets, array: pa.Array[Any]) -> Written:
    """Return opaque octets, or those of UUIDs in canonical form."""
    pieces = pieces_of(array)
    if op.uuid is not None:
        block, other = uuid_octets(pieces, op.uuid)
        return (block,), other
    wrong: Mask | None = None
    if op.minimum or op.maximum is not None:
        sizes = pieces.sizes
        wrong = either(sizes < op.minimum, None if op.maximum is None else sizes > op.maximum)
    return _extended(op.extent, pieces, wrong)


def write_words(op: Word, array: pa.Array[Any]) -> Written:
    """Return the octets of words."""
    pieces, _ = texts(array)
    spelled = pa.array([option.encode() for option in op.options], pieces.array().type)
    good = pc.is_in(pieces.array(), value_set=spelled).to_numpy(zero_copy_only=False)
    return (pieces,), ~np.asarray(good, np.bool_)


def write_divided(
    op: TakeText, last: bool, names: pa.Array[Any], values: pa.Array[Any], strict: bool
) -> Written:
    """Return names and values as one text each, which reading divides at the same ``=``."""
    (name, wrong_name), (value, wrong_value) = texts(names), texts(values)
    wrong = either(wrong_name, wrong_value, holding(value if last else name, EQUALS))
    if op.extent.kind == "slot" and not strict and not op.terminated:
        return (name, b"=", value), wrong
    text = joined((name, b"=", value), len(names)).array()
    components, outside = write_text(op, text, strict)
    return components, either(wrong, outside)


def texts(array: pa.Array[Any]) -> tuple[Pieces, Mask | None]:
    """Return texts as octets, and the mask of those that are not UTF-8.

    Arrow does not check UTF-8 when it builds an array from a buffer.
    """
    pieces = pieces_of(array)
    return pieces, not_utf8(pieces.octets, pieces.offsets - pieces.offsets[0])


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
    return _having(pieces, pieces.octets == octet)


def beginning(pieces: Pieces, octets: bytes) -> Mask:
    """Return the mask of elements that begin with `octets`."""
    fits = np.asarray(pieces.sizes >= len(octets), np.bool_)
    begin = np.where(fits, pieces.offsets[:-1], 0)
    return fits & ~differs(gather(pieces.data, begin, len(octets)), octets)


def _having(pieces: Pieces, found: Mask) -> Mask | None:
    """Return the mask of elements with an octet in the mask `found`, None if there is none."""
    places = np.flatnonzero(found)
    if not len(places):
        return None
    wrong = np.zeros(len(pieces.offsets) - 1, np.bool_)
    wrong[np.searchsorted(pieces.offsets, places + int(pieces.offsets[0]), "right") - 1] = True
    return wrong


def _extended(extent: Extent, pieces: Pieces, wrong: Mask | None) -> Written:
    """Return octets of the extent of their operation."""
    match extent.kind:
        case "until":
            return (pieces,), either(wrong, _ending_early(extent.until, pieces))
        case "run":
            other = np.ones(256, np.bool_)
            other[list(extent.among)] = False
            outside = _having(pieces, other[pieces.octets])
            return (pieces,), either(wrong, outside, pieces.sizes < extent.octets)
        case "fixed":
            return (cut(pieces, extent.octets, 0),), either(wrong, pieces.sizes != extent.octets)
    return (pieces,), wrong


def _padded(fill: bytes, octets: int, pieces: Pieces, wrong: Mask | None) -> Written:
    """Return texts with padding; a text that ends like the padding would lose its end when read."""
    sizes = pieces.sizes
    ends = np.zeros(len(sizes), np.bool_)
    some = sizes > 0
    ends[some] = pieces.data[pieces.offsets[1:][some] - 1] == fill[0]
    return (cut(pieces, octets, fill[0]),), either(wrong, ends, sizes > octets)


def _ending_early(until: bytes, pieces: Pieces) -> Mask | None:
    """Return the mask of texts that contain their terminator or form it with the octets behind them."""
    if len(until) == 1:
        return holding(pieces, until[0])
    ended = joined((pieces, until), len(pieces.offsets) - 1)
    find: Any = pc.find_substring
    first = find(ended.array(), pattern=until).to_numpy(zero_copy_only=False)
    return np.asarray(first != pieces.sizes, np.bool_)
