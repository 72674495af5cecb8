"""Durations as Flux writes them (Flux Standard Duration): ``1.5``, ``500ms``, ``2m``, ``1h``, ``7d``; seconds without a unit."""

from __future__ import annotations

import re
from math import isinf

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SHORT_S = 0.1
"""What is shorter is written in milliseconds."""

_DURATION = re.compile(r"(\d+\.?\d*|\.\d+|inf(?:inity)?)(ms|[smhd])?", re.ASCII)


def parse_duration(text: str) -> float:
    """Return the seconds that `text` says, infinity where it says so; raises ValueError, with one sentence."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration; write 1.5, 500ms, 2m, 1h or 7d")
    return float(found[1]) * UNITS[found[2] or "s"]


def format_duration(seconds: float) -> str:
    """Return a duration as tools of Flux print it, with six digits."""
    if isinf(seconds):
        return "infinity"
    if 0 < seconds < SHORT_S:
        return f"{seconds * 1000:g}ms"
    unit = (
        "s" if seconds < UNITS["m"] else "m" if seconds < UNITS["h"] else "h" if seconds < UNITS["d"] else "d"
    )
    return f"{seconds / UNITS[unit]:g}{unit}"
