"""Payloads on the command line: what the user writes, and what is printed of what comes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from specwire.runtime.cli.console import fail
from specwire.runtime.log.text import show_json

if TYPE_CHECKING:
    from specwire.runtime.flux.views import Notice, Reply

SPACES = str.maketrans("\t\r\n", "   ")
MAX_INPUT_OCTETS = 1 << 30
"""Octets that standard input may have, which become one message."""


def read_content(words: list[str] | None, *, raw: bool, from_input: bool = False) -> str | bytes | None:
    """Return the payload that the user wants sent: octets where it is `raw`, else the text of a JSON object.

    `from_input` reads standard input where there are no words and it is no terminal. None is for no payload; what is no
    JSON object ends the command.
    """
    if words:
        octets = " ".join(words).encode("utf-8", "surrogateescape")
    elif from_input and sys.stdin is not None and not sys.stdin.isatty():
        octets = sys.stdin.buffer.read(MAX_INPUT_OCTETS + 1)
        if len(octets) > MAX_INPUT_OCTETS:
            fail(f"standard input has more than {MAX_INPUT_OCTETS:,} octets: a payload is one message")
    else:
        return None
    return octets or None if raw else _check_json(octets.strip())


def _check_json(octets: bytes) -> str | None:
    import msgspec

    if not octets:
        return None
    try:
        msgspec.json.decode(octets, type=dict[str, msgspec.Raw])
        return octets.decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        fail(f"the payload is no JSON object: {error}; --raw sends it as it is")


def describe_payload(message: Notice | Reply) -> dict[str, Any]:
    """Return the payload as JSON, as text or as octets in hexadecimal: the first that it can be read as."""
    from specwire.runtime.flux.errors import FluxError

    if message.payload is None:
        return {"payload": None}
    try:
        return {"payload": message.read(object)}
    except FluxError:
        pass
    try:
        return {"text": message.text}
    except FluxError:
        return {"octets": message.payload.hex()}


def on_one_line(text: str) -> str:
    """Return a JSON text from the wire as one line, with unprintable characters escaped.

    Tabs and line ends become spaces: in JSON they can only be whitespace between tokens.
    """
    return show_json(text.translate(SPACES))
