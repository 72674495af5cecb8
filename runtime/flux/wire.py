"""The wire format that a broker speaks, behind one interface.

The engines think in the messages of Flux v1 (`specwire.generated.flux`). A `Wire` turns frames into those
messages and back. Another edition of the protocol is another `Wire`, which converts its own messages to these;
the engines do not change, and never ask which it is. What its edition wants of a broker beyond the octets is
data, `Rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from specwire.generated import flux
from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.flux import ENOSYS, AnyMessage
from specwire.generated.flux.stream import FRAMING
from specwire.generated.stream import PartFraming


class Rules(msgspec.Struct, frozen=True):
    """What an edition asks of a broker; the defaults are what deployed brokers do."""

    not_implemented: int = ENOSYS
    """The error number for a service or method that is not there."""
    above_root_unreachable: bool = True
    """What is sent upstream of rank 0 cannot be reached. Else it has found no service: by the specifications such a
    request is routed as one to any rank, which ends there."""
    own_service_skipped: bool = False
    """A request to any rank is not delivered to the client that sent it, where this client has the service
    (CMB1, "Default Request Routing", 1). Deployed brokers need the flag UPSTREAM for that."""
    private_events: bool = True
    """Messages can say that an event is private; else none is published."""
    streams: bool = True
    """Messages can ask for a stream; else such a request goes no further than the broker where it comes in."""


class Wire(Protocol):
    """What a shell and the engines need to know of a wire format."""

    @property
    def name(self) -> str:
        """Name of the generated package."""

    @property
    def edition(self) -> str:
        """Edition of the specification, as captures state it."""

    @property
    def rules(self) -> Rules:
        """What a broker does by this edition."""

    @property
    def local(self) -> LocalWire:
        """What clients speak to a broker that speaks this to its neighbours."""

    def decode(self, frames: Sequence[bytes]) -> AnyMessage:
        """Return what `frames` say; raises DecodeError."""

    def encode(self, message: AnyMessage) -> list[bytes]:
        """Return the frames of `message`; raises EncodeError."""


class LocalWire(Wire, Protocol):
    """A wire format that clients speak, too."""

    @property
    def framing(self) -> PartFraming:
        """How the frames of a message are put on a UNIX socket."""


class FluxWire:
    """Flux v1 as deployed brokers speak it."""

    name = "flux"
    edition = flux.EDITION
    rules = Rules()
    framing = FRAMING

    @property
    def local(self) -> LocalWire:
        """See `Wire.local`."""
        return self

    decode = staticmethod(flux.decode)
    """See `Wire.decode`: both ways of writing are read, whichever is written."""

    def encode(self, message: AnyMessage) -> list[bytes]:
        """See `Wire.encode`."""
        return message.encode()


class LetterFraming(PartFraming):
    """The framing whose magic is in the specification's order on every machine; either order is read."""

    __slots__ = ()

    @property
    def native(self) -> bytes:
        """The magic as it is written."""
        return self.magics[0]


class LetterWire:
    """Flux v1 by the letter of the specification.

    Topics and routes end with NUL, events and control messages have no delimiter, the error number of a service
    that is not there is 39, and the magic on a UNIX socket is FF EE 00 12.
    """

    name = "flux"
    edition = flux.EDITION
    rules = Rules(not_implemented=39, above_root_unreachable=False)
    framing = LetterFraming(
        FRAMING.protocol,
        FRAMING.edition,
        FRAMING.magics,
        FRAMING.length_octets,
        FRAMING.escape,
        FRAMING.long_octets,
    )

    @property
    def local(self) -> LocalWire:
        """See `Wire.local`."""
        return self

    def decode(self, frames: Sequence[bytes]) -> AnyMessage:
        """See `Wire.decode`.

        What deployed peers write is read: text without NUL, delimiters too many or too few. What could not be passed
        on by the letter even so is refused: topics of other characters, routes that are no UUIDs.
        """
        message = flux.decode(frames)
        try:
            self.encode(message)
        except EncodeError as error:
            raise DecodeError(**error.attributes()) from None
        return message

    def encode(self, message: AnyMessage) -> list[bytes]:
        """See `Wire.encode`."""
        if message.routes is None:
            message = message.replace(routes=())
        return message.encode(strict=True)


FLUX: LocalWire = FluxWire()
LETTER: LocalWire = LetterWire()
