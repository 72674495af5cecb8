"""What a broker captures: each message at its sockets, as it was on the wire.

The one who connects has the role ``C``, the one who listens ``S``: a child at its parent, a client at its broker. A
message at the local socket is captured as the frames that it stands for; it is not where clients speak another protocol
than the brokers, for a capture has one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from specwire.generated.flux import AnyMessage
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.flux.encoding import Encoder
from specwire.runtime.flux.wire import Wire


class Capturing:
    """Hands messages to a tap, each in the conversation of its connection."""

    def __init__(self, tap: Recorder, wire: Wire) -> None:
        self._tap = tap
        self._encoder = Encoder(wire)
        self._takes_local = wire.local is wire
        self._session = os.urandom(4).hex()

    def take(self, sender: str, peer: str, frames: Sequence[bytes]) -> None:
        """Take a message of the overlay; `peer` is the uuid by which the other side, or this one, is known there."""
        self._tap.record(sender=sender, peer=peer, conversation=f"{self._session}-{peer}", frames=frames)

    def take_local(self, sender: str, client: str, message: AnyMessage) -> None:
        """Take a message from or to a client."""
        if self._takes_local:
            self.take(sender, client, self._encoder.frames_of(message))
