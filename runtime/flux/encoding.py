"""Messages to frames, once for each message, to however many neighbours it goes."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated.flux import AnyMessage
from specwire.runtime.flux.wire import Wire


class Encoder:
    """Keeps the frames of the latest message: an event goes to one child after the other."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._latest: AnyMessage | None = None
        self._frames: Sequence[bytes] = ()

    def frames_of(self, message: AnyMessage) -> Sequence[bytes]:
        """Return the frames of `message`; raises EncodeError."""
        if message is not self._latest:
            self._frames = self._wire.encode(message)
            self._latest = message
        return self._frames
