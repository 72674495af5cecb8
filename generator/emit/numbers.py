"""Spelling of numbers in Python source: codes of `struct`, and expressions for what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator.emit.python import STRUCT_CODES
from specwire.generator.support.layout import Boolean, Coding, Digits, Float, Integer
from specwire.generator.support.plan import Expect, Number, Op


def struct_order(ops: Sequence[Op]) -> str:
    """Return the byte order of a struct for a run: that of its first number with an order."""
    for op in ops:
        if isinstance(op, Number) and is_little(op.coding) is not None:
            return "<" if is_little(op.coding) else ">"
    return ">"


def is_little(coding: Coding) -> bool | None:
    """Return whether a number is little-endian; None if it has one octet or no byte order."""
    match coding:
        case Integer(octets=octets, order=order) | Boolean(octets=octets, order=order):
            return None if octets == 1 else order == "little"
        case Float(order=order):
            return order == "little"
    return None


def struct_code(coding: Coding) -> str:
    """Return the code with which `struct` reads a number; empty if there is none."""
    match coding:
        case Integer(octets=octets, signed=signed):
            code = STRUCT_CODES.get(octets, "")
            return code.lower() if signed else code
        case Boolean(octets=octets):
            return STRUCT_CODES.get(octets, "")
        case Float(octets=octets):
            return "f" if octets == 4 else "d"
    return ""


def code_in(op: Op, order: str) -> str:
    """Return the code of an operation in a struct of that byte order; empty for plain octets."""
    match op:
        case Number(coding=coding):
            little = is_little(coding)
            return struct_code(coding) if little is None or little == (order == "<") else ""
        case Expect(octets=octets, folded=False):
            return STRUCT_CODES.get(len(octets), "")
    return ""


def from_octets(coding: Coding, octets: str) -> str:
    """Return the expression for a number of fixed size from its octets."""
    match coding:
        case Integer(order=order, signed=True):
            return f'int.from_bytes({octets}, "{order}", signed=True)'
        case Integer(order=order) | Boolean(order=order):
            return f'int.from_bytes({octets}, "{order}")'
        case Digits(base=base, minimum=minimum):
            return f"read_digits({octets}, 0, {base}, {minimum}, {minimum}, False)[0]"
        case Float(octets=width, order=order):
            code = f"{'<' if order == 'little' else '>'}{'f' if width == 4 else 'd'}"
            return f'unpack("{code}", {octets})[0]'
    raise TypeError("a number of variable size")
