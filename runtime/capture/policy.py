"""What a capture writes of the content that messages carry: all, its beginning, its digest, or nothing.

The word is ``keep``, ``cut:OCTETS``, ``hash`` or ``omit``. It stands in the metadata of each segment, so that a
reader knows that a short payload was not short on the wire.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

_WORD = re.compile(r"keep|hash|omit|cut:(\d{1,9})", re.ASCII)

Kind = Literal["keep", "cut", "hash", "omit"]


class Payload(msgspec.Struct, frozen=True):
    """What becomes of the content of each message; `octets` are those that ``cut`` leaves of it."""

    kind: Kind = "keep"
    octets: int = 0

    def __str__(self) -> str:
        return f"cut:{self.octets}" if self.kind == "cut" else self.kind


KEEP = Payload()


def parse_payload(word: str) -> Payload:
    """Return the policy that a word names; ValueError, with one sentence, where it names none."""
    found = _WORD.fullmatch(word)
    if found is None:
        raise ValueError(f"{word!r} is no policy for payloads: write keep, cut:OCTETS, hash or omit")
    if found[1] is not None:
        return Payload("cut", int(found[1]))
    return Payload(msgspec.convert(word, Kind))
