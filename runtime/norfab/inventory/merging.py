"""How layers become one: mappings merge, lists grow, anything else is replaced.

Neither side is changed, and the result shares no mapping or list that changes later: what is merged is made anew.
"""

from __future__ import annotations

from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return `below` with `above` laid over it."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = merge(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            merged[key] = _extend(before, value)
        else:
            merged[key] = value
    return merged


def _extend(below: list[Any], above: list[Any]) -> list[Any]:
    """Return `below` and of `above` what is not there yet; 1 and true, equal to Python, are two values."""
    there = {_ENCODER.encode(item) for item in below}
    merged = list(below)
    for item in above:
        octets = _ENCODER.encode(item)
        if octets not in there:
            there.add(octets)
            merged.append(item)
    return merged
