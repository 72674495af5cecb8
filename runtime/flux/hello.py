"""How a broker comes into the tree and goes: ``overlay.hello`` and ``overlay.goodbye``.

Both are requests with matchtag 0 that only the neighbour above reads. They are by the owner's role and no user.
"""

from __future__ import annotations

import msgspec

from specwire.generated.flux import EPROTO, USERID_UNKNOWN, Request, Response
from specwire.runtime.flux.answering import pack, pack_text, unpack
from specwire.runtime.flux.credentials import OWNER
from specwire.runtime.flux.errors import EINVAL, EPERM, FluxError

HELLO = "overlay.hello"
GOODBYE = "overlay.goodbye"

MAX_UUID_LENGTH = 64
MAX_HOSTNAME_LENGTH = 255


class Hello(msgspec.Struct):
    """The payload of a hello."""

    rank: int
    version: int
    uuid: str
    status: int
    hostname: str = ""


class Welcome(msgspec.Struct):
    """The payload of the answer: the uuid of the parent."""

    uuid: str


def hello(word: Hello) -> Request:
    """Return the request that opens."""
    return Request(topic=HELLO, payload=pack(word), rolemask=OWNER)


def goodbye() -> Request:
    """Return the request that leaves."""
    return Request(topic=GOODBYE, rolemask=OWNER)


def reply(request: Request, welcome: Welcome | None = None, *, error: FluxError | None = None) -> Response:
    """Return the answer to a hello or goodbye."""
    payload = pack(welcome) if welcome is not None else None
    errnum = 0
    if error is not None:
        errnum, payload = error.errnum, pack_text(error.text) if error.text else None
    return Response(
        topic=request.topic, payload=payload, errnum=errnum, userid=USERID_UNKNOWN, matchtag=request.matchtag
    )


def check(request: Request, uuid: str, version: int, ranks: range) -> Hello:
    """Return the payload of a hello that came from the routing id `uuid`.

    Args:
        ranks: the ranks that may say hello here.

    Raises:
        FluxError: the peer is not let in, with what it is told.
    """
    if not request.rolemask & OWNER:
        raise FluxError(EPERM, "hello is for the instance's owner")
    word = unpack(request.payload, Hello)
    if word.uuid != uuid or not 0 < len(uuid) <= MAX_UUID_LENGTH:
        raise FluxError(EPROTO, "the uuid is not the identity of the connection")
    if word.version != version:
        raise FluxError(EINVAL, f"version {_spell(word.version)}, and the parent has {_spell(version)}")
    if word.rank not in ranks:
        raise FluxError(EINVAL, f"rank {word.rank} is not a child of this broker")
    word.hostname = word.hostname[:MAX_HOSTNAME_LENGTH]
    return word


def _spell(version: int) -> str:
    return f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}"
