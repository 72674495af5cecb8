"""What both editions of CMB1, the protocol before Flux v1, have in common, and how it is said in Flux v1.

- Routes are identities of any octets, and text in the engine (`to_route`); every one comes out as it came in.
- Events are written without a route stack: "when the topic string part is first, it is compatible with ZeroMQ
  PUB-SUB sockets".
- KEEPALIVE has an error number and a status where Flux v1 has a control message's type and status. No error and no
  status is a heartbeat. A status is that of the sender's subtree. An error number ends the connection.
- The rank 2^32 - 2 "SHALL NOT appear in the nodeid slot of an encoded CMB1 message".
- CMB1 "is encapsulated in ZMTP" and knows no UNIX socket: clients there speak Flux v1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from specwire.generated import cmb1, cmb1_json, flux
from specwire.generated.cmb1 import EHOSTUNREACH, ENOSYS
from specwire.generated.errors import EncodeError
from specwire.runtime.flux.control import ControlType
from specwire.runtime.flux.topology import NODEID_UPSTREAM
from specwire.runtime.flux.wire import Rules

RULES = Rules(not_implemented=ENOSYS, above_root_unreachable=False, own_service_skipped=True)
"""By "Default Request Routing": upstream of the root there is nobody, so none of the conditions is met."""

PRIVATE_USE = 0x10FF00
"""The last 256 characters that there are: nobody gives them a meaning."""

Routed = flux.Request | flux.Response | flux.Event
RoutedBefore = (
    cmb1.Request | cmb1.Response | cmb1.Event | cmb1_json.Request | cmb1_json.Response | cmb1_json.Event
)
Made = TypeVar("Made")


class Kinds(NamedTuple, Generic[Made]):
    """The messages of an edition that are routed."""

    request: Callable[..., Made]
    response: Callable[..., Made]
    event: Callable[..., Made]


def to_flux(message: RoutedBefore, payload: bytes | None, flags: int) -> Routed:
    """Return a message that is routed as Flux v1 has it, with the payload and the flags that were found in it."""
    routes = tuple(map(to_route, message.routes or ()))
    common = (routes, message.topic, payload, flags, message.userid, message.rolemask)
    match message:
        case cmb1.Request() | cmb1_json.Request():
            return flux.Request(*common, message.nodeid, message.matchtag)
        case cmb1.Response() | cmb1_json.Response():
            return flux.Response(*common, message.errnum, message.matchtag)
        case cmb1.Event() | cmb1_json.Event():
            return flux.Event(*common, message.sequence)


def from_flux(
    message: Routed, kinds: Kinds[Made], protocol: str, flags: int, **content: bytes | str | None
) -> Made:
    """Return a message that is routed as an edition has it, with these flags and this content.

    Raises:
        EncodeError: CMB1 has no word for it.
    """
    routes = to_identities(message, protocol)
    common = {
        **content,
        "topic": topic_of(message, protocol),
        "flags": flags,
        "userid": message.userid,
        "rolemask": message.rolemask,
    }
    match message:
        case flux.Request(nodeid=nodeid, matchtag=matchtag):
            check_nodeid(nodeid, protocol)
            return kinds.request(routes=routes, nodeid=nodeid, matchtag=matchtag, **common)
        case flux.Response(errnum=errnum, matchtag=matchtag):
            return kinds.response(routes=routes, errnum=errnum, matchtag=matchtag, **common)
        case flux.Event(sequence=sequence):
            return kinds.event(routes=routes or None, sequence=sequence, **common)


def to_route(identity: bytes) -> str:
    """Return an identity as text without NUL, from which `to_identity` finds its octets again.

    It is the text that the octets are in UTF-8; else each octet is a character for private use.
    """
    try:
        text = identity.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or _stands_for_octets(text):
        return "".join(chr(PRIVATE_USE + octet) for octet in identity)
    return text


def to_identity(route: str) -> bytes:
    """Return the octets of a route; raises UnicodeEncodeError for what is no text."""
    return _unescaped(route) if _stands_for_octets(route) else route.encode()


def _stands_for_octets(text: str) -> bool:
    """Tell whether `to_route` made this text of octets that are no text."""
    if not text or any(ord(character) < PRIVATE_USE for character in text):
        return False
    return to_route(_unescaped(text)) == text


def _unescaped(text: str) -> bytes:
    return bytes(ord(character) - PRIVATE_USE for character in text)


def to_identities(message: Routed, protocol: str) -> tuple[bytes, ...]:
    """Return the identities of a route stack; raises EncodeError for text that is none."""
    try:
        return tuple(map(to_identity, message.routes or ()))
    except UnicodeEncodeError as error:
        raise unsayable(protocol, message.NAME, "routes", "text", ascii(error.object)) from None


def topic_of(message: Routed, protocol: str) -> str:
    """Return the topic, which every message but KEEPALIVE has; raises EncodeError."""
    if message.topic is None:
        raise unsayable(protocol, message.NAME, "topic", "a topic", "none")
    return message.topic


def check_nodeid(nodeid: int, protocol: str) -> None:
    """Refuse the number that is for interfaces of programs only; raises EncodeError."""
    if nodeid == NODEID_UPSTREAM:
        raise unsayable(protocol, "request", "nodeid", "a rank or any", "0xfffffffe, upstream")


def to_control(flags: int, userid: int, rolemask: int, errnum: int, status: int) -> flux.Control:
    """Return what a KEEPALIVE with these fields means."""
    if errnum:
        kind, status = ControlType.DISCONNECT, 0
    else:
        kind = ControlType.STATUS if status else ControlType.HEARTBEAT
    return flux.Control((), flags, userid, rolemask, int(kind), status)


def to_keepalive(control: flux.Control, protocol: str) -> tuple[int, int]:
    """Return error number and status of the KEEPALIVE for a control message; raises EncodeError for others."""
    match control.type_, control.status:
        case (ControlType.HEARTBEAT, 0):
            return 0, 0
        case (ControlType.STATUS, status) if status:
            return 0, status
        case (ControlType.DISCONNECT, 0):
            return EHOSTUNREACH, 0
    found = f"type {control.type_} with status {control.status}"
    raise unsayable(protocol, "keepalive", "errnum", "a heartbeat, a status or the end", found)


def unsayable(protocol: str, message: str, field: str, expected: str, found: str) -> EncodeError:
    """Return the error for what a message of Flux v1 says and one of `protocol` cannot."""
    return EncodeError(
        protocol=protocol,
        message_name=message,
        field=field,
        frame=None,
        offset=None,
        kind="range",
        expected=expected,
        found=found,
        rule=f"{protocol} {field}",
    )
