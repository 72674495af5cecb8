"""Checksums that a profile can name, and those of a user's function.

The parameters of the cyclic redundancy checks are those of the catalogue of Greg Cook (polynomial,
initial value, reflection, final exclusive or); each is tested with the checksum of ``123456789``
that the catalogue gives.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from importlib import import_module
from operator import xor
from types import MappingProxyType


def compute_checksum(algorithm: str, octets: bytes) -> int:
    """Return the checksum of octets.

    Raises:
        LookupError: there is no such algorithm.
    """
    return find_algorithm(algorithm)(octets)


@lru_cache(maxsize=64)
def find_algorithm(algorithm: str) -> Callable[[bytes], int]:
    """Return the function of a name in `ALGORITHMS`, or of ``module:function``.

    Raises:
        LookupError: there is none.
    """
    module, colon, name = algorithm.partition(":")
    if not colon:
        return ALGORITHMS[algorithm]
    try:
        found: Callable[[bytes], int] = getattr(import_module(module), name)
    except (AttributeError, ImportError) as error:
        raise LookupError(f"no checksum function {algorithm}: {error}") from None
    return found


def _crc(width: int, polynomial: int, start: int, final: int, *, reflected: bool) -> Callable[[bytes], int]:
    """Return a cyclic redundancy check; the polynomial of a reflected one is given reflected."""
    table = [_entry(octet, width, polynomial, reflected=reflected) for octet in range(256)]
    mask = (1 << width) - 1

    def crc(octets: bytes) -> int:
        value = start
        if reflected:
            for octet in octets:
                value = value >> 8 ^ table[(value ^ octet) & 0xFF]
        else:
            for octet in octets:
                value = (value << 8 & mask) ^ table[value >> width - 8 ^ octet]
        return value ^ final

    return crc


def _entry(octet: int, width: int, polynomial: int, *, reflected: bool) -> int:
    value = octet if reflected else octet << width - 8
    for _ in range(8):
        if reflected:
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        else:
            value = value << 1 ^ (polynomial if value >> width - 1 else 0)
            value &= (1 << width) - 1
    return value


def _internet(octets: bytes) -> int:
    """Return the checksum of RFC 1071: the complement of the one's complement sum of 16-bit
    words."""
    padded = octets + b"\0" * (len(octets) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


ALGORITHMS: Mapping[str, Callable[[bytes], int]] = MappingProxyType(
    {
        "adler32": zlib.adler32,
        "crc16-ccitt": _crc(16, 0x1021, 0xFFFF, 0, reflected=False),
        "crc16-modbus": _crc(16, 0xA001, 0xFFFF, 0, reflected=True),
        "crc16-xmodem": _crc(16, 0x1021, 0, 0, reflected=False),
        "crc32": zlib.crc32,
        "crc32c": _crc(32, 0x82F63B78, 0xFFFFFFFF, 0xFFFFFFFF, reflected=True),
        "internet": _internet,
        "sum8": lambda octets: sum(octets) & 0xFF,
        "xor8": lambda octets: reduce(xor, octets, 0),
    }
)
"""The named algorithms."""

OCTETS: Mapping[str, int] = MappingProxyType(
    {
        "adler32": 4, "crc16-ccitt": 2, "crc16-modbus": 2, "crc16-xmodem": 2, "crc32": 4, "crc32c": 4,
        "internet": 2, "sum8": 1, "xor8": 1,
    }
)  # fmt: skip
"""Number of octets of each named checksum."""
