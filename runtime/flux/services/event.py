"""``event``: ``event.publish``, by which rank 0 publishes and says the event's number.

Subscriptions are the connector's (`specwire.runtime.flux.connection`): they are about a connection.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error

import msgspec

from specwire.generated.flux import EPROTO, Event
from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.flags import PRIVATE
from specwire.runtime.flux.services.service import Call, Service, serves


class Publication(msgspec.Struct):
    """The payload of ``event.publish``; its own payload is in base64."""

    topic: str
    flags: int = 0
    payload: str | None = None


class EventService(Service):
    """The events of an instance."""

    __slots__ = ()

    @serves("publish", USER)
    def publish(self, call: Call) -> None:
        """Publish, and tell the number of the event."""
        if self.broker.rank:
            raise FluxError(EPROTO, "this service is only available on rank 0")
        wanted, request = call.read(Publication), call.request
        if wanted.flags & ~PRIVATE or "\0" in wanted.topic:
            raise FluxError(EPROTO)
        wire = self.broker.settings.wire
        if wanted.flags & PRIVATE and not wire.rules.private_events:
            raise FluxError(EPROTO, f"{wire.edition} has no private events")
        try:
            payload = None if wanted.payload is None else b64decode(wanted.payload, validate=True)
        except (Error, ValueError):
            raise FluxError(EPROTO) from None
        publisher = self.broker.publisher
        publisher.submit(Event((), wanted.topic, payload, wanted.flags, request.userid, request.rolemask))
        call.respond({"seq": publisher.sequence})
