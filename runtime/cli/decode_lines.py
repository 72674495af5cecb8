"""Messages one after another, a line each: columns for a person, JSON for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

from specwire.generated.errors import CodecError
from specwire.generated.payloads import PayloadReading
from specwire.runtime.cli.console import output
from specwire.runtime.cli.decode_filter import peer_text
from specwire.runtime.cli.decode_message import (
    grammar_name,
    meaning,
    payload_object,
    payload_of,
    plain,
    preview,
)
from specwire.runtime.log.text import show, show_json
from specwire.runtime.pcap.rows import Row

SHOWN_OCTETS = 24
SHOWN_ITEMS = 6
SHOWN_TEXT = 120
_WIDTHS = {"time": 26, "peer": 22, "from": 4, "message": 14}
_DAY_WIDTH = 11
"""Columns that a terminal is spared by telling a day once."""
_RED, _DIM, _PLAIN = "\x1b[31m", "\x1b[2m", "\x1b[0m"


def time_text(ts: int | None) -> str:
    """Return microseconds since 1970 as a time of UTC to the microsecond, or a hyphen."""
    if ts is None:
        return "-"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ts)
    except OverflowError:
        return "-"
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")


class Lines:
    """Prints rows in columns.

    Args:
        packages: those whose messages may come, by name.
        at_once: whether every line is to be seen when it is written.
    """

    def __init__(self, packages: Mapping[str, ModuleType], *, at_once: bool) -> None:
        self._packages = packages
        self._at_once = at_once
        console = output()
        self._columns = console.width if console.is_terminal else None
        self._coloured = console.is_terminal and console.color_system is not None
        self._begun = False
        self._day = ""

    def show(self, row: Row) -> None:
        """Print one row."""
        if not self._begun:
            self._begun = True
            self._write(self._join([*_WIDTHS, "fields"]), _DIM)
        time = time_text(row.ts)
        if self._columns is not None and row.ts is not None:
            day, time = time[: _DAY_WIDTH - 1], time[_DAY_WIDTH:]
            if day != self._day:
                self._day = day
                self._write(day, _DIM)
        fields = str(row.error) if row.error is not None else self._fields(row)
        cells = [time, peer_text(row.peer) or "-", row.sender or "?", row.name or "?", fields]
        line = show(self._join(cells))
        if row.error is not None:
            self._write(line, _RED)
        else:
            self._write(self._cut(line))

    def _join(self, cells: list[str]) -> str:
        widths = [*_WIDTHS.values(), 0]
        if self._columns is not None:
            widths[0] -= _DAY_WIDTH
        return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()

    def _cut(self, line: str) -> str:
        """A message's line is cut at the terminal's edge; an error's is not."""
        fits = self._columns is None or len(line) <= self._columns
        return line if fits else line[: (self._columns or 1) - 1] + "…"

    def _write(self, line: str, colour: str = "") -> None:
        sys.stdout.write(f"{colour}{line}{_PLAIN}\n" if colour and self._coloured else line + "\n")
        if self._at_once:
            sys.stdout.flush()

    def _fields(self, row: Row) -> str:
        package = self._packages[str(row.protocol)]
        pairs = {name: value for name, value in row.message.to_dict().items() if not _is_empty(value)}
        found = payload_of(package, row.message)
        texts = []
        for name, value in pairs.items():
            if found is not None and found.value is not None and name == found.field:
                texts.append(_payload_text(found, {grammar_name(other) for other in pairs}))
            else:
                texts.append(f"{grammar_name(name)}={self._value(package, name, value)}")
        return " ".join([*filter(None, texts), *([f"({found.fault})"] if found and found.fault else [])])

    def _value(self, package: ModuleType, name: str, value: Any) -> str:
        # Bits are told by their names, numbers that have a name by it.
        called = meaning(package, name, value)
        return called.partition(": ")[2].replace(" ", "|") or called or _short(value)


def _payload_text(found: PayloadReading, taken: Collection[str]) -> str:
    """Return the keys of a payload; one that a field of the message has as well is ``payload.KEY``."""
    field = grammar_name(found.field)
    if not isinstance(found.value, dict):
        return f"{field}={_short(found.value)}"
    return " ".join(
        f"{f'{field}.{key}' if key in taken else key}={_short(value)}" for key, value in found.value.items()
    )


class JsonLines:
    """Prints rows as JSON, one object a line.

    Args:
        packages: those whose messages may come, by name.
        at_once: whether every line is to be seen when it is written.
    """

    def __init__(self, packages: Mapping[str, ModuleType], *, at_once: bool) -> None:
        self._packages = packages
        self._at_once = at_once

    def show(self, row: Row) -> None:
        """Print one row."""
        shown = row_object(row)
        package = self._packages.get(str(row.protocol))
        if package is not None and row.message is not None:
            found = payload_of(package, row.message)
            if found is not None:
                shown["payload"] = payload_object(found)
        sys.stdout.write(show_json(json.dumps(shown, ensure_ascii=False)) + "\n")
        if self._at_once:
            sys.stdout.flush()


def row_object(row: Row) -> dict[str, Any]:
    """Return a row as JSON has it; a message that could not be decoded has an `error`, and its frames."""
    found: dict[str, Any] = {
        "ts": None if row.ts is None else time_text(row.ts).replace(" ", "T") + "Z",
        "protocol": row.protocol,
        "conversation": row.conversation,
        "sender": row.sender,
        "peer": row.peer,
        "message": row.name or None,
        "fields": None if row.message is None else plain(row.message.to_dict()),
    }
    if row.error is not None:
        attributes = plain(row.error.attributes()) if isinstance(row.error, CodecError) else {}
        found["error"] = {"text": str(row.error), **attributes}
    found["frames"] = [frame.hex() for frame in row.frames]
    return found


def _is_empty(value: Any) -> bool:
    return value is None or value in (b"", "", ())


def _short(value: Any) -> str:
    match value:
        case bytes():
            return preview(value, SHOWN_OCTETS)
        case dict():
            return "{" + " ".join(f"{name}={_short(item)}" for name, item in value.items()) + "}"
        case tuple() | list():
            more = [f"... {len(value) - SHOWN_ITEMS} more"] if len(value) > SHOWN_ITEMS else []
            return "[" + ", ".join([*map(_item, value[:SHOWN_ITEMS]), *more]) + "]"
        case str() if len(value) > SHOWN_TEXT:
            return f"{value[:SHOWN_TEXT]}..."
    return str(value)


def _item(value: Any) -> str:
    """One of several values; pairs are told as NAME=VALUE."""
    match value:
        case (str(), str() | bytes()):
            return f"{value[0]}={_short(value[1])}"
    return _short(value)
