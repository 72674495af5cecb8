"""One message as it was recorded, in whatever container, and what its protocol's package makes of it."""

from __future__ import annotations

from typing import Any

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One message.

    Attributes:
        ts: wall clock, microseconds since 1970 UTC; None where that is not known.
        protocol: name of the package that reads it; None where none does.
        edition: edition of that package, if a capture stated its protocol; empty otherwise.
        conversation: the same for all messages of one connection.
        sender: role letter of the side that sent it, empty where that is not known.
        peer: the side that connected, by its identity or address.
        listener: the address that accepted the connection, empty where that is not known.
        frames: the multipart message.
        message: what the package decoded, None where it could not.
        error: why there is no `message`.
        mono: a clock that never goes back, nanoseconds; 0 where there is none.
    """

    frames: tuple[bytes, ...]
    ts: int | None = None
    mono: int = 0
    protocol: str | None = None
    edition: str = ""
    conversation: str = ""
    sender: str = ""
    peer: str = ""
    listener: str = ""
    message: Any = None
    error: Exception | str | None = None

    @property
    def name(self) -> str:
        """Class name of the message, empty where it could not be decoded."""
        return "" if self.message is None else type(self.message).__name__
