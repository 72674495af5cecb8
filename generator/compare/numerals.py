"""Check whether a number written as one type is read as the same number by another.

Octets alone do not show it: the same four octets are another number in the other byte order. A reader also
computes counts and checksums, and refuses others. `specwire.generator.compare.values` judges everything else.
"""

from __future__ import annotations

from typing import TypeGuard

from specwire.generator import ir
from specwire.generator.compare.comparison import Judgement, Verdict, depends, no, yes
from specwire.generator.emit.python import fixed_size

Numeral = ir.NumberType | ir.UuidType | ir.CounterType | ir.ChecksumType

_ORDER = no("the number is read in another byte order")
_FINE = yes("every number that is written can be read")
_OTHER_NAMES = depends("correct if these are the same fields under other names")


def reads_numeral(writer: ir.Type, reader: ir.Type) -> Judgement | None:
    """Return how the numbers of one type are read as another; None if the octets alone decide."""
    if isinstance(writer, ir.UuidType) and isinstance(reader, ir.UuidType):
        return no("the first three parts of the UUID are in another byte order")
    one, other = number_in(writer), number_in(reader)
    number = _reads_number(one, other) if _is_number(one) and _is_number(other) else None
    if number is None and fixed_size(writer) != fixed_size(reader):
        return None
    found = [judgement for judgement in (number, reads_derived(writer, reader)) if judgement]
    return max(found, key=lambda judgement: list(Verdict).index(judgement.verdict), default=None)


def number_in(type: ir.Type) -> ir.Type:
    """Return the number of a counter or checksum; of another type, the type."""
    return type.number if isinstance(type, ir.CounterType | ir.ChecksumType) else type


def _is_number(type: ir.Type) -> TypeGuard[ir.NumberType]:
    return isinstance(type, ir.NumberType)


def _reads_number(writer: ir.NumberType, reader: ir.NumberType) -> Judgement | None:
    match writer, reader:
        case (ir.IntegerType() | ir.BooleanType(), ir.IntegerType() | ir.BooleanType()):
            return _reads_integer(writer, reader)
        case ir.FloatType(), ir.FloatType():
            return _ORDER if writer.octets == reader.octets and writer.order != reader.order else None
        case ir.VarintType(), ir.VarintType():
            return _reads_varint(writer, reader)
        case ir.DigitsType(), ir.DigitsType():
            return _reads_digits(writer, reader)
    return no("the octets are read as another kind of number")


def _reads_integer(
    writer: ir.IntegerType | ir.BooleanType, reader: ir.IntegerType | ir.BooleanType
) -> Judgement | None:
    if writer.octets != reader.octets:
        return None
    if writer.order != reader.order and writer.octets > 1:
        return _ORDER
    if _is_signed(writer) != _is_signed(reader):
        return no("a number whose highest bit is set is negative in one edition only")
    return None


def _is_signed(type: ir.IntegerType | ir.BooleanType) -> bool:
    return isinstance(type, ir.IntegerType) and type.signed


def _reads_varint(writer: ir.VarintType, reader: ir.VarintType) -> Judgement:
    if writer.order != reader.order:
        return no("the groups of 7 bits are read in another order")
    if writer.signed != reader.signed:
        return no("negative numbers are written in another way")
    if writer.maximum > reader.maximum:
        return depends(f"correct if it has at most {reader.maximum} octets")
    return _FINE


def _reads_digits(writer: ir.DigitsType, reader: ir.DigitsType) -> Judgement:
    if writer.base != reader.base:
        return no("the digits are read in another base")
    conditions: list[str] = []
    if writer.signed and not reader.signed:
        conditions.append("it is not negative")
    if writer.minimum < reader.minimum:
        conditions.append(f"it has at least {reader.minimum} digits")
    if writer.maximum > reader.maximum:
        conditions.append(f"it has at most {reader.maximum} digits")
    return depends(f"correct if {' and '.join(conditions)}") if conditions else _FINE


def reads_derived(writer: ir.Type, reader: ir.Type) -> Judgement | None:
    """Return how a number is read by a reader that computes it."""
    match writer, reader:
        case ir.CounterType(), ir.CounterType():
            if writer.plus != reader.plus or len(writer.counts) != len(reader.counts):
                return no("it counts other octets or items")
            return None if writer.counts == reader.counts else _OTHER_NAMES
        case ir.ChecksumType(), ir.ChecksumType():
            if writer.algorithm != reader.algorithm or len(writer.over) != len(reader.over):
                return no("the checksum is computed in another way, so the reader rejects it")
            return None if writer.over == reader.over else _OTHER_NAMES
        case _, ir.CounterType(counts=counts):
            return depends(f"correct if it is the number of octets or items of {' and '.join(counts)}")
        case _, ir.ChecksumType(algorithm=algorithm):
            return depends(f"correct if it is the checksum {algorithm}")
    return None
