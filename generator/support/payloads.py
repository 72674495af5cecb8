"""Payloads of messages: which type the JSON in a field has, and reading of it.

The module `payloads` of a generated package has a `Payload` for each ``[[payload]]`` of the profile.
If several apply to a message, its payload has one of their types.

A payload that is not JSON is not judged: a response may carry the text of an error. JSON that is cut
off does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

MAX_OCTETS = 16 << 20
"""Octets of a payload that is read; larger ones are not."""


class Payload(msgspec.Struct, frozen=True):
    """Payload of some messages.

    Attributes:
        topic: value of the field `by`; ``*`` matches any characters.
        by: field that distinguishes the payloads.
        places: for each message class, the field with the payload.
        type: type of the JSON.
    """

    topic: str
    by: str
    places: Mapping[str, str]
    type: Any

    def has(self, message: Any) -> bool:
        """Return whether a message may have this payload."""
        if type(message).__name__ not in self.places:
            return False
        topic = getattr(message, self.by)
        return isinstance(topic, str) and _pattern(self.topic).fullmatch(topic) is not None


class PayloadReading(msgspec.Struct, frozen=True):
    """What a message has as its payload.

    Attributes:
        topic: topic of the payload's description, which may have ``*`` in it.
        field: field of the message with the payload.
        value: the JSON; None if it could not be read.
        typed: the same as its type; None if it does not fit.
        fault: why it does not fit; empty if it does.
    """

    topic: str
    field: str
    value: Any = None
    typed: Any = None
    fault: str = ""


def read_payload(payloads: Sequence[Payload], message: Any) -> PayloadReading | None:
    """Return the payload of a message; None if none of `payloads` describes it, or it is not JSON."""
    known = [payload for payload in payloads if payload.has(message)]
    if not known:
        return None
    topic, field = known[0].topic, known[0].places[type(message).__name__]
    content = getattr(message, field)
    if content is None or len(content) > MAX_OCTETS:
        return None
    octets = content.encode() if isinstance(content, str) else bytes(content)
    octets = octets.rstrip(b"\0")
    try:
        value = msgspec.json.decode(octets)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_json = octets.lstrip()[:1] in (b"{", b"[")
        return PayloadReading(topic, field, fault=_fault(topic, error)) if is_json else None
    fault = ""
    for payload in known:
        try:
            typed = msgspec.json.decode(octets, type=payload.type)
        except (msgspec.DecodeError, RecursionError) as error:
            fault = fault or _fault(payload.topic, error)
        else:
            return PayloadReading(payload.topic, field, value, typed)
    return PayloadReading(topic, field, value, fault=fault)


def _fault(topic: str, error: Exception) -> str:
    return f"payload does not fit {topic}: {error}"


@lru_cache(maxsize=1024)
def _pattern(topic: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, topic.split("*"))), re.DOTALL)
