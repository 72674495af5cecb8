"""Construct classes for numbers and UUIDs that Construct itself lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import construct as cs

if TYPE_CHECKING:
    # Generic in the stubs only: at run time Construct's classes accept no subscript.
    _Construct = cs.Construct[Any, Any]
    _Adapter = cs.Adapter[Any, Any, Any, Any]
else:
    _Construct, _Adapter = cs.Construct, cs.Adapter


class Bits(_Construct):
    """Integer whose bits are fields of the enclosing struct, the most significant first."""

    def __init__(self, *fields: cs.Construct[Any, Any], little: bool = False) -> None:
        super().__init__()
        struct = cs.BitStruct(*fields)
        self.inner = cs.ByteSwapped(struct) if little else struct
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self.inner._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        values = {name: value for name, value in context.items() if not name.startswith("_")}
        return self.inner._build(values, stream, context, path)


class Varint(_Construct):
    """Integer in groups of 7 bits, one in each octet; the high bit is set but in the last.

    Construct's own have any number of octets, and only the least significant group first. This one
    fits in 64 bits.
    """

    def __init__(
        self, maximum: int, *, big: bool = False, signed: Literal["zigzag", "complement"] | None = None
    ) -> None:
        super().__init__()
        self.maximum = maximum
        self.big = big
        self.signed = signed

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        octets: list[int] = []
        while not octets or octets[-1] >= 0x80:
            if len(octets) == self.maximum:
                raise cs.IntegerError(f"more than {self.maximum} octets", path=path)
            octets.append(cs.stream_read(stream, 1, path)[0])
        number, limit = 0, 128 ** len(octets)
        for octet in octets if self.big else reversed(octets):
            number = 128 * number + octet % 128
        if self.signed == "complement" and number >= limit // 2:
            number -= limit
        elif self.signed == "zigzag":
            number = -(number + 1) // 2 if number % 2 else number // 2
        return _in_64_bits(number, self.signed is not None, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        number = _in_64_bits(obj, self.signed is not None, path)
        if self.signed == "zigzag":
            number = 2 * number if number >= 0 else -2 * number - 1
        size = 1
        while not self._fits(number, 128**size):
            size += 1
        if size > self.maximum:
            raise cs.IntegerError(f"{obj} needs more than {self.maximum} octets", path=path)
        groups = [number // 128**place % 128 for place in range(size)]
        groups = groups[::-1] if self.big else groups
        stream.write(bytes([*(group + 128 for group in groups[:-1]), groups[-1]]))
        return obj

    def _fits(self, number: int, limit: int) -> bool:
        return -limit <= 2 * number < limit if self.signed == "complement" else number < limit


class Digits(_Construct):
    """Integer as text, up to the first octet that is no digit of its base."""

    def __init__(self, base: Literal[10, 16], minimum: int, maximum: int, *, signed: bool = False) -> None:
        super().__init__()
        self.base = base
        self.minimum = minimum
        self.maximum = maximum
        self.signed = signed

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        sign = "-" if self.signed and self._next(stream, "-") else ""
        digits = ""
        while len(digits) < self.maximum and (digit := self._next(stream, "0123456789abcdef"[: self.base])):
            digits += digit
        if len(digits) < self.minimum:
            raise cs.IntegerError(f"fewer than {self.minimum} digits", path=path)
        number = int(sign + digits, self.base)
        if sign and not number:
            raise cs.IntegerError("0 has no sign", path=path)
        return _in_64_bits(number, self.signed, path)

    def _next(self, stream: Any, characters: str) -> str:
        """Read the next character if it is one of `characters`, in lower or upper case."""
        start = stream.tell()
        character: str = stream.read(1).decode("latin-1").lower()
        if character and character in characters:
            return character
        stream.seek(start)
        return ""

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        number = _in_64_bits(obj, self.signed, path)
        digits = format(abs(number), "d" if self.base == 10 else "x").rjust(self.minimum, "0")
        if len(digits) > self.maximum:
            raise cs.IntegerError(f"{obj} has more than {self.maximum} digits", path=path)
        stream.write(("-" * (number < 0) + digits).encode())
        return obj


class Uuid(_Adapter):
    """UUID of 16 octets; with `little`, its first three parts are little-endian."""

    def __init__(self, *, little: bool = False) -> None:
        super().__init__(cs.Bytes(16))
        self.little = little

    def _decode(self, obj: bytes, context: Any, path: str) -> UUID:
        return UUID(bytes_le=obj) if self.little else UUID(bytes=obj)

    def _encode(self, obj: UUID, context: Any, path: str) -> bytes:
        return obj.bytes_le if self.little else obj.bytes


def _in_64_bits(number: Any, signed: bool, path: str) -> int:
    least, most = (-(2**63), 2**63 - 1) if signed else (0, 2**64 - 1)
    if not isinstance(number, int) or not least <= number <= most:
        raise cs.IntegerError(f"{number!r} is not {least} to {most}", path=path)
    return number
