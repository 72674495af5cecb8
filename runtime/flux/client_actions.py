"""What a client's engine wants done; a shell performs these values in order."""

from __future__ import annotations

import msgspec

from specwire.generated.flux import AnyMessage, Event, Request, Response
from specwire.runtime.flux.calls import PendingCall
from specwire.runtime.flux.errors import FluxError


class Subscription:
    """One listener to the events whose topics begin with `prefix`; as itself, not by its prefix."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send to the broker."""

    message: AnyMessage


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A response came, without an error; the call is over unless it is streaming and the response is not `last`."""

    call: PendingCall
    response: Response
    last: bool


class Finished(msgspec.Struct, frozen=True, gc=False):
    """A stream came to its end, without an error."""

    call: PendingCall


class Failed(msgspec.Struct, frozen=True):
    """A call is over: the response was an error, none came in time, or the connection is lost."""

    call: PendingCall
    error: FluxError


class Subscribed(msgspec.Struct, frozen=True, gc=False):
    """The broker sends these events from now on."""

    subscription: Subscription


class Ended(msgspec.Struct, frozen=True):
    """There will be no more events: the broker refused, or the connection is lost."""

    subscription: Subscription
    error: FluxError


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """An event came for this listener."""

    subscription: Subscription
    event: Event


class Requested(msgspec.Struct, frozen=True, gc=False):
    """A request came to a service that this client has registered."""

    request: Request


ClientAction = Send | Answered | Finished | Failed | Subscribed | Ended | Arrived | Requested
