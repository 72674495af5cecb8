"""Ages and sizes as a person writes them: ``90s``, ``30m``, ``12h``, ``7d``, ``2w``; ``500M``, ``20G``, ``1.5TB``.

Sizes are in powers of 1000, with or without a ``B``; ``Ki``, ``Mi``, ``Gi`` and ``Ti`` are powers of 1024.
"""

from __future__ import annotations

import re

AGES = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZES |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGT", 1)}

_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw])", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([KMGT]i?|)B?", re.ASCII | re.IGNORECASE)


def parse_age(text: str) -> float:
    """Return the seconds that a text says; ValueError, with one sentence, where it says none."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no age: write 90s, 30m, 12h, 7d or 2w")
    return float(found[1]) * AGES[found[2]]


def parse_size(text: str) -> int:
    """Return the octets that a text says; ValueError, with one sentence, where it says none."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no size: write 500M, 20G, 1.5T or 512Mi")
    return int(float(found[1]) * SIZES[found[2][:1].upper() + found[2][1:].lower()])
