"""Responses to a request: what is copied from it, what is said, and how text and objects become payloads.

A response has the topic, matchtag, routes and flags of its request; clients in C also need the route delimiter
and a rolemask that is not 0. A stream of responses ends with an error number, ENODATA where nothing went wrong.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec

from specwire.generated.flux import ENODATA, EPROTO, USERID_UNKNOWN, Request, Response
from specwire.runtime.flux.credentials import OWNER
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.flags import NORESPONSE, STREAMING

Type = TypeVar("Type")
_ENCODER = msgspec.json.Encoder()

COPY_LIMIT_OCTETS = 1024
"""To copy less than this is quicker than to make a view of it."""


@cache
def _decoder_of(type_: Any) -> msgspec.json.Decoder[Any]:
    """What a type means is looked into once; the types are those in the text of services."""
    return msgspec.json.Decoder(type_)


def pack(value: object) -> bytes:
    """Return the payload that carries a JSON object (Flux v1, "Payload Conventions", 4 and 5)."""
    return _ENCODER.encode(value) + b"\0"


def pack_text(text: str) -> bytes:
    """Return the payload that carries a string (Flux v1, "Payload Conventions", 1)."""
    return text.encode() + b"\0"


def unpack(payload: bytes | None, type_: type[Type]) -> Type:
    """Return what a JSON payload says, as `type_`.

    Raises:
        FluxError: EPROTO: there is none, it lacks the NUL, it is not JSON or not such an object.
    """
    if not payload or payload[-1] != 0:
        raise FluxError(EPROTO)
    wanted: Any = type_
    octets = payload[:-1] if len(payload) < COPY_LIMIT_OCTETS else memoryview(payload)[:-1]
    try:
        value: Type = _decoder_of(wanted).decode(octets)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise FluxError(EPROTO) from None
    return value


def unpack_object(payload: bytes | None) -> dict[str, Any]:
    """Return a JSON payload, which has to be an object; raises FluxError as `unpack` does."""
    return unpack(payload, dict[str, Any])


def respond(
    request: Request,
    payload: bytes | None = None,
    *,
    errnum: int = 0,
    userid: int = USERID_UNKNOWN,
    rolemask: int = OWNER,
) -> Response:
    """Return a response to `request`; by whom it is may be filled in by the broker that takes it."""
    return Response(
        request.routes or (),
        request.topic,
        payload,
        request.flags & ~NORESPONSE,
        userid,
        rolemask,
        errnum,
        request.matchtag,
    )


def fail(request: Request, errnum: int, text: str = "") -> Response:
    """Return the response that says what went wrong."""
    return respond(request, pack_text(text) if text else None, errnum=errnum)


def end(request: Request) -> Response:
    """Return the response that ends a stream."""
    return respond(request, errnum=ENODATA)


def is_last(request_flags: int, response: Response) -> bool:
    """Tell whether `response` is the final answer to a request with these flags."""
    return response.errnum != 0 or not (request_flags & response.flags & STREAMING)
