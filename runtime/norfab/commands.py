"""The commands of NORFAB, free of how a peer writes them.

The specification writes a command's number in one octet, deployed peers write it as text, and both have a form for
each leg of the way: between client and broker a message names the service, between broker and worker it names
the client. A command here has the fields of both legs; what a leg does not have is empty. `specwire.runtime.norfab.wire`
turns frames into these and back, so that no engine knows how a peer writes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["client", "broker", "worker"]


class Open(msgspec.Struct, frozen=True, gc=False):
    """A peer introduces itself; the broker confirms."""

    body: bytes = b""


class Ready(msgspec.Struct, frozen=True, gc=False):
    """A worker offers its service."""

    service: str


class Keepalive(msgspec.Struct, frozen=True, gc=False):
    """Heartbeat between broker and worker."""

    service: str


class Disconnect(msgspec.Struct, frozen=True, gc=False):
    """Broker or worker ends the connection."""

    service: str = ""
    body: bytes = b""


class Post(msgspec.Struct, frozen=True, gc=False):
    """A job. `service` and `target` on the client's leg, `client` on the worker's."""

    uuid: str
    body: bytes
    service: str = ""
    target: str = ""
    client: bytes = b""


class Get(msgspec.Struct, frozen=True, gc=False):
    """A question for the result of a job; fields as in `Post`."""

    uuid: str
    body: bytes = b"{}"
    service: str = ""
    target: str = ""
    client: bytes = b""


class Delete(msgspec.Struct, frozen=True, gc=False):
    """A wish to drop a job; fields as in `Post`."""

    uuid: str
    body: bytes = b"{}"
    service: str = ""
    target: str = ""
    client: bytes = b""


class Put(msgspec.Struct, frozen=True, gc=False):
    """Input for a job that runs; fields as in `Post`. Deployed peers only."""

    uuid: str
    body: bytes
    service: str = ""
    target: str = ""
    client: bytes = b""


class Response(msgspec.Struct, frozen=True, gc=False):
    """State or result of a job. `status` is what the first three digits say; `client` on the worker's leg."""

    uuid: str
    status: int
    body: bytes
    service: str = ""
    client: bytes = b""


class Event(msgspec.Struct, frozen=True, gc=False):
    """What happens in a job; fields as in `Response`."""

    uuid: str
    status: int
    body: bytes
    service: str = ""
    client: bytes = b""


class Stream(msgspec.Struct, frozen=True, gc=False):
    """A piece of a file; fields as in `Response`. Deployed peers only."""

    uuid: str
    status: int
    body: bytes
    service: str = ""
    client: bytes = b""


class Mmi(msgspec.Struct, frozen=True, gc=False):
    """A management request. `service` and `target` on the client's leg, `client` on the worker's."""

    uuid: str
    body: bytes
    service: str = ""
    target: str = ""
    client: bytes = b""


class MmiReply(msgspec.Struct, frozen=True, gc=False):
    """The broker's answer to a management request; a worker answers one with `Response`."""

    uuid: str
    status: int
    body: bytes
    service: str


Request = Post | Get | Delete | Put
Reply = Response | Event | Stream
Command = Open | Ready | Keepalive | Disconnect | Request | Reply | Mmi | MmiReply
