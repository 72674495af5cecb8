"""What differs from run to run by nature, taken out of a message so that two runs can be compared.

A message becomes plain values of its fields. In them, UUIDs, moments in time and endpoints become a word that says what
they are; so do numbers in JSON that are times, process ids and the like, by what they are called, and fractions and
numbers as large as a clock's. Fields that count what a peer has done before (`Habits.numbered`) are left out, so are
values that no rule can tell (`Habits.fleeting`), and what the user names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

import msgspec

from specwire.runtime.rehearsal.habits import Habits

CLOCK = 1_000_000_000
"""From here on a number is taken for a time or an address."""

TIMELY = frozenset(
    [
        "time",
        "timestamp",
        "started",
        "completed",
        "created",
        "finished",
        "duration",
        "uptime",
        "pid",
        "port",
        "starttime",
        "seconds",
        "age",
        "elapsed",
    ]
)
"""Words in the name of a value that say that it is another one each time."""

_MASKS = (
    (re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"), "<uuid>"),
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{32}(?![0-9A-Za-z])"), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?:tcp|ipc|local)://[^\s\"',]+"), "<endpoint>"),
    (re.compile(r"(?<![0-9])\d{10,}(?:\.\d+)?"), "<number>"),
)


class Ignored(msgspec.Struct, frozen=True):
    """What a user does not want compared: paths such as ``Response.payload.rank``, or ``*.userid`` in any message."""

    paths: frozenset[str] = frozenset()

    def covers(self, name: str, path: str) -> bool:
        """Whether the value at `path` of a message of the class `name` is not compared."""
        return f"{name}.{path}" in self.paths or f"*.{path}" in self.paths


def plain_fields(
    message: Any, habits: Habits, ignored: Ignored, *, leave: Collection[str] = ()
) -> dict[str, Any]:
    """Return the fields of a message by the grammar's names, without what differs by nature and those in `leave`."""
    name = type(message).__name__
    ignored = Ignored(ignored.paths | habits.fleeting)
    # Python has a `_` behind a name that means something else there.
    fields = {attribute.rstrip("_"): value for attribute, value in message.to_dict().items()}
    return {
        field: _plain(value, name, field, ignored)
        for field, value in fields.items()
        if field not in habits.numbered and field not in leave and not ignored.covers(name, field)
    }


def _plain(value: Any, name: str, path: str, ignored: Ignored) -> Any:
    match value:
        case bytes() | bytearray() | memoryview():
            return _plain_octets(bytes(value), name, path, ignored)
        case str():
            return mask_text(value)
        case dict():
            return {
                key: _plain_number(key, inner)
                if isinstance(inner, int | float)
                else _plain(inner, name, f"{path}.{key}", ignored)
                for key, inner in value.items()
                if not ignored.covers(name, f"{path}.{key}")
            }
        case tuple() | list():
            return [_plain(item, name, path, ignored) for item in value]
    return value


def _plain_octets(octets: bytes, name: str, path: str, ignored: Ignored) -> Any:
    """Return JSON as its values, other text as text, and what is neither as octets in hexadecimal."""
    try:
        text = octets.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return octets.hex()
    if text[:1] in ("{", "["):
        try:
            return _plain(json.loads(text), name, path, ignored)
        except (ValueError, RecursionError):
            return mask_text(text)
    return mask_text(text)


def _plain_number(key: str, value: float) -> Any:
    words = re.split(r"[^a-z]+", key.lower())
    if isinstance(value, bool):
        return value
    if isinstance(value, float) or abs(value) >= CLOCK or not TIMELY.isdisjoint(words):
        return "<number>"
    return value


def mask_text(text: str) -> str:
    """Return a text with a word in place of each UUID, time, endpoint and long number."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text
