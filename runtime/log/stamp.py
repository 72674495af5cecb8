"""Format of a log line: text with the time, or a JSON object.

A text line has the time and the message. A JSON line is an object in ASCII, which is safe to show
on a terminal. Its keys are ``time`` (UTC), ``level``, ``role`` and ``pid`` of the server, and
``message``. A line about one event also has ``event`` (its kind) and ``data`` (its fields). Texts
from the wire are cut at `LONGEST` characters, lists at `MOST` items.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

import msgspec

from specwire.runtime.log.form import LogForm
from specwire.runtime.log.text import show

Level = Literal["debug", "info", "warning", "error"]

LONGEST = 400
MOST = 100


class Stamp:
    """Formatter of one server's log lines.

    Args:
        role: kind of server, as in its metrics.
        form: text or JSON.
        mark: text after the time in a text line.
        about: further fields of each JSON object.
    """

    def __init__(
        self, role: str, form: LogForm, *, mark: str = "", about: Mapping[str, Any] | None = None
    ) -> None:
        self._form, self._mark = form, mark
        self._about = {"role": role, "pid": os.getpid(), **(about or {})}

    def line(self, text: str, level: Level = "info", event: msgspec.Struct | None = None) -> str:
        """Return the log line for a text about `event`, with unprintable characters escaped."""
        if self._form is LogForm.TEXT:
            return f"{time.strftime('%H:%M:%S')} {self._mark}{show(text)}"
        told = {} if event is None else {"event": type(event).__name__, "data": fields_of(event)}
        return self._object(level, text, told)

    def record(self, record: logging.LogRecord, text: str, trace: str) -> str:
        """Return the JSON object for a record of one of our loggers."""
        more = {"logger": record.name, **({"traceback": trace} if trace else {})}
        return self._object(record.levelname.lower(), text, more)

    def _object(self, level: str, text: str, more: Mapping[str, Any]) -> str:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return json.dumps({"time": now, "level": level, **self._about, "message": text, **more})


def fields_of(event: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of an event as JSON has them."""
    return {name: _plain(getattr(event, name)) for name in event.__struct_fields__}


def _plain(value: object) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case bytes():
            return _cut(value[: LONGEST + 1].decode(errors="backslashreplace"))
        case tuple() | list():
            return [_plain(one) for one in value[:MOST]]
        case Mapping():
            return {_cut(str(name)): _plain(one) for name, one in islice(value.items(), MOST)}
        case _:
            return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
