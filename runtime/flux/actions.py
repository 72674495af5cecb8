"""What the broker's engine wants done. A shell performs these values in order and tells the engine how it went.

Messages are those of `specwire.generated.flux`, as the engine thinks of them: **without** what a transport adds
and removes. A ROUTER takes the child's uuid as the routing id from `ToChild.child`, so it is not in the
message's routes; and a message from a child is given to the engine without the routing id that ROUTER put in
front (`BrokerEngine.from_child` has it as an argument).

One message may be in many actions, as one and the same object: a shell may keep the frames of the latest.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specwire.generated.flux import AnyMessage, Request
from specwire.runtime.flux.events import Event


class ToParent(msgspec.Struct, frozen=True, gc=False):
    """Send on the DEALER to the parent."""

    message: AnyMessage


class ToChild(msgspec.Struct, frozen=True, gc=False):
    """Send on the ROUTER; `child` is the uuid of that broker, which is its routing id.

    It may be the uuid of a peer that was not let in: that one is told so. Where the ROUTER has no such peer, or
    none that takes messages, the shell calls `BrokerEngine.child_gone`.
    """

    child: str
    message: AnyMessage


class ToClient(msgspec.Struct, frozen=True, gc=False):
    """Send to a local client; a request goes to a client that registered a service."""

    client: str
    message: AnyMessage


class ToService(msgspec.Struct, frozen=True, gc=False):
    """Give a request to a service in Python that `BrokerEngine.add_service` registered.

    Answered by `BrokerEngine.from_service` with what `specwire.runtime.flux.answering` makes of the request:
    one response, or with the flag STREAMING any number and at last one with an error number (ENODATA at the
    natural end). None is awaited for a request with NORESPONSE, such as ``<service>.disconnect``.
    """

    service: str
    request: Request


class CloseClient(msgspec.Struct, frozen=True):
    """Close the connection of a client. The engine has forgotten it already: no `client_gone`."""

    client: str
    reason: str


class DropChild(msgspec.Struct, frozen=True):
    """Forget what waits to be sent to this child, after what was sent before. No `child_gone`."""

    child: str
    reason: str


class LeaveParent(msgspec.Struct, frozen=True):
    """Close the connection to the parent. No `parent_gone`.

    The broker keeps serving its local clients; the shell ends the process, or opens a connection anew and calls
    `BrokerEngine.rejoin` with a fresh uuid. A shell that does the latter waits longer each time: a parent that is
    stopping, or does not want this broker, says so to every hello.
    """

    reason: str


class Stopped(msgspec.Struct, frozen=True):
    """The broker has ended as `BrokerEngine.stop` wanted it; nothing follows."""

    reason: str


class Report(msgspec.Struct, frozen=True):
    """Tell whoever runs this broker."""

    event: Event


Action = ToParent | ToChild | ToClient | ToService | CloseClient | DropChild | LeaveParent | Stopped | Report


class Link(msgspec.Struct, frozen=True):
    """Where something came from; `peer` is the uuid of a child or a client."""

    kind: Literal["parent", "child", "client"]
    peer: str = ""


PARENT = Link("parent")
