"""NORFAB as the specification has it and as the deployed package speaks it.

The broker of specwire speaks both at once and needs no bridge; this is for a broker that speaks one of them. What the other
side is, client or worker, is told by what it says. STREAM and PUT are no part of the specification, and go no further in that
direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.bridge.translation import Send, UnsayableError
from specwire.runtime.norfab.commands import Role
from specwire.runtime.norfab.wire import Dialect, decode, encode

NAMES = ("norfab", "norfab_ascii")


class NorfabTranslation:
    """Between a client or worker that connects and a broker that listens."""

    def __init__(self, opener: str, listener: str) -> None:
        self._dialects = {True: Dialect(opener), False: Dialect(listener)}
        self._role: Role = "client"

    def translate(self, frames: Sequence[bytes], *, from_opener: bool) -> Sequence[Send]:
        """See `Translation.translate`."""
        try:
            received = decode(frames)
        except DecodeError as error:
            raise UnsayableError(f"no message of NORFAB ({error.field}: {error.kind})") from None
        if from_opener:
            if received.sender == "broker":
                raise UnsayableError("a broker's message from who connects")
            self._role = received.sender
            if received.dialect is Dialect.DEPLOYED_06 and self._dialects[True] is Dialect.DEPLOYED:
                self._dialects[True] = Dialect.DEPLOYED_06  # it wants its own header from the broker
        wanted = self._dialects[not from_opener]
        ends: tuple[Role, Role] = (self._role, "broker") if from_opener else ("broker", self._role)
        try:
            return (Send(not from_opener, encode(received.command, wanted, *ends)),)
        except EncodeError as error:
            name = type(received.command).__name__.upper()
            raise UnsayableError(f"{wanted.value} has no word for it ({name}, {error.kind})") from None
