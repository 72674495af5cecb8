"""Number values and repeat counts: from ABNF text (``%x41-5A``, ``2*4``) to integers.

A value above the last code point of Unicode, 10FFFF, is not a character and is an error.
``%xFFFFFFFF`` usually means four octets, ``%xFF.FF.FF.FF``.
"""

from __future__ import annotations

import re

LAST_CHARACTER = 0x10FFFF
_BASES = {"b": 2, "d": 10, "x": 16}
_COUNT_DIGITS = 20
"""Maximum digits of a repeat count, enough for 64 bits. Python does not parse thousands of digits."""


class ValueFault(Exception):
    """Raised for an invalid value, with the code, message and help of its diagnostic."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def read_values(written: str) -> tuple[tuple[int, ...], bool]:
    """Return the values of a number value and whether they are the two ends of a range.

    Raises:
        ValueFault: a value is too large, or the range is in reverse order.
    """
    base, digits = _base_and_digits(written)
    parts = re.split(r"[.-]", digits)
    values = tuple(_value(part, base) for part in parts)
    if "-" not in digits:
        return values, False
    check_range(values[0], values[1], written)
    return values, True


def check_range(first: int, last: int, written: str) -> None:
    """Raise `ValueFault` if a range ends before it begins."""
    if first > last:
        raise ValueFault("E131", f"the range {written} is in reverse order", "write the lower value first")


def read_counts(written: str) -> tuple[int, int | None]:
    """Return the least and the greatest count of a repeat; None is no bound.

    Raises:
        ValueFault: a count has too many digits, or the counts are in reverse order.
    """
    low, star, high = written.partition("*")
    least = _count(low) if low else 0
    greatest = (_count(high) if high else None) if star else least
    if greatest is not None and greatest < least:
        message = f"the repeat {written} has a minimum of {least} and a maximum of {greatest}"
        raise ValueFault("E132", message, "write the lower count first")
    return least, greatest


def _base_and_digits(written: str) -> tuple[int, str]:
    if written[:2].lower() == "0x":
        return 16, written[2:]
    base = _BASES.get(written[1].lower())
    # 'b' and 'd' are hexadecimal digits too: a value without base letter has two digits at a time.
    if base is None or (base != 16 and re.search(r"[A-F]", written[2:], re.IGNORECASE)):
        return 16, written[1:]
    return base, written[2:]


def _value(digits: str, base: int) -> int:
    significant = digits.lstrip("0") or "0"
    value = int(significant, base) if len(significant) <= 24 else LAST_CHARACTER + 1
    if value > LAST_CHARACTER:
        help = "write single octets, such as %xFF.FF.FF.FF"
        raise ValueFault("E130", "a value is beyond the last character, 10FFFF", help)
    return value


def _count(digits: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _COUNT_DIGITS:
        help = "omit the upper bound if there is none: '1*OCTET'"
        raise ValueFault("E133", f"the repeat count has {len(significant)} digits", help)
    return int(significant)
