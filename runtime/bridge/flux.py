"""Flux v1 and the two editions of CMB1, the protocol before it.

Every message of the one has a like in the other but for what `specwire.runtime.flux.cmb1_forms` and `cmb1_json` name: a
request to the rank that means upstream, for one. The sender of such a request is told so with EPROTO, by a response as its
own broker could send it; other messages of this kind go no further.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated import flux
from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.flux import EPROTO
from specwire.runtime.bridge.translation import Send, UnsayableError
from specwire.runtime.flux.wire import Wire
from specwire.runtime.flux.wires import find_wire

NAMES = ("flux", "cmb1", "cmb1_json")


class FluxTranslation:
    """Between a broker that connects and one that listens; it remembers nothing."""

    def __init__(self, opener: str, listener: str) -> None:
        self._wires: dict[bool, Wire] = {True: find_wire(opener), False: find_wire(listener)}

    def translate(self, frames: Sequence[bytes], *, from_opener: bool) -> Sequence[Send]:
        """See `Translation.translate`."""
        spoken, wanted = self._wires[from_opener], self._wires[not from_opener]
        try:
            message = spoken.decode(frames)
        except DecodeError as error:
            raise UnsayableError(f"no message of {spoken.name} ({error.field}: {error.kind})") from None
        try:
            return (Send(not from_opener, wanted.encode(message)),)
        except EncodeError as error:
            reason = f"{wanted.name} has no word for it ({message.NAME}, {error.field})"
            raise UnsayableError(reason, self._answer(message, from_opener)) from None

    def _answer(self, message: flux.AnyMessage, from_opener: bool) -> Send | None:
        """What the sender of a request is told, if it waits for an answer."""
        if (
            not isinstance(message, flux.Request)
            or message.flags & flux.Flags.NORESPONSE
            or not message.matchtag
        ):
            return None
        answer = flux.Response(
            routes=message.routes, topic=message.topic, errnum=EPROTO, matchtag=message.matchtag
        )
        try:
            return Send(from_opener, self._wires[from_opener].encode(answer))
        except EncodeError:
            return None
