"""CMB1, the protocol before Flux v1, so that a broker speaks it to its neighbours.

Both editions have their messages in packages of their own, and what they have in common is here:

- Routes are identities of any octets, and text in the engine (`to_route`); every one comes out as it came in.
- Events are written without a route stack: "when the topic string part is first, it is compatible with ZeroMQ
  PUB-SUB sockets".
- KEEPALIVE has an error number and a status where Flux v1 has a control message's type and status. No error and no
  status is a heartbeat. A status is that of the sender's subtree. An error number ends the connection.
- The rank 2^32 - 2 "SHALL NOT appear in the nodeid slot of an encoded CMB1 message".
- CMB1 "is encapsulated in ZMTP" and knows no UNIX socket: clients there speak Flux v1.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated import cmb1, flux
from specwire.generated.cmb1 import EHOSTUNREACH, ENOSYS
from specwire.generated.errors import EncodeError
from specwire.runtime.flux.control import ControlType
from specwire.runtime.flux.topology import NODEID_UPSTREAM
from specwire.runtime.flux.wire import FLUX, Rules, Wire

RULES = Rules(not_implemented=ENOSYS, above_root_unreachable=False, own_service_skipped=True)
"""By "Default Request Routing": upstream of the root there is nobody, so none of the conditions is met."""


PRIVATE_USE = 0x10FF00
"""The last 256 characters that there are: nobody gives them a meaning."""


class Cmb1Wire:
    """The later edition, which has the flags of Flux v1."""

    name = "cmb1"
    edition = cmb1.EDITION
    rules = RULES
    local = FLUX

    def decode(self, frames: Sequence[bytes]) -> flux.AnyMessage:
        """See `Wire.decode`."""
        message = cmb1.decode(frames)
        if isinstance(message, cmb1.Keepalive):
            return to_control(message.flags, message.userid, message.rolemask, message.errnum, message.status)
        common = (
            to_routes(message.routes),
            message.topic,
            message.payload,
            message.flags,
            message.userid,
            message.rolemask,
        )
        match message:
            case cmb1.Request(nodeid=nodeid, matchtag=matchtag):
                return flux.Request(*common, nodeid, matchtag)
            case cmb1.Response(errnum=errnum, matchtag=matchtag):
                return flux.Response(*common, errnum, matchtag)
            case cmb1.Event(sequence=sequence):
                return flux.Event(*common, sequence)

    def encode(self, message: flux.AnyMessage) -> list[bytes]:
        """See `Wire.encode`."""
        return self._to_message(message).encode()

    def _to_message(self, message: flux.AnyMessage) -> cmb1.AnyMessage:
        userid, rolemask = message.userid, message.rolemask
        if isinstance(message, flux.Control):
            errnum, status = to_keepalive(message, self.name)
            return cmb1.Keepalive(message.flags, userid, rolemask, errnum, status)
        routes = to_identities(message, self.name)
        topic, payload, flags = topic_of(message, self.name), message.payload, message.flags
        match message:
            case flux.Request(nodeid=nodeid, matchtag=matchtag):
                check_nodeid(nodeid, self.name)
                return cmb1.Request(
                    routes=routes,
                    topic=topic,
                    payload=payload,
                    flags=flags,
                    userid=userid,
                    rolemask=rolemask,
                    nodeid=nodeid,
                    matchtag=matchtag,
                )
            case flux.Response(errnum=errnum, matchtag=matchtag):
                return cmb1.Response(
                    routes=routes,
                    topic=topic,
                    payload=payload,
                    flags=flags,
                    userid=userid,
                    rolemask=rolemask,
                    errnum=errnum,
                    matchtag=matchtag,
                )
            case flux.Event(sequence=sequence):
                return cmb1.Event(
                    routes=routes or None,
                    topic=topic,
                    payload=payload,
                    flags=flags,
                    userid=userid,
                    rolemask=rolemask,
                    sequence=sequence,
                )


def to_routes(identities: tuple[bytes, ...] | None) -> tuple[str, ...]:
    """Return a route stack as the engine has it."""
    return tuple(map(to_route, identities or ()))


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


def to_identities(message: flux.Request | flux.Response | flux.Event, protocol: str) -> tuple[bytes, ...]:
    """Return the identities of a route stack; raises EncodeError for text that is none."""
    try:
        return tuple(map(to_identity, message.routes or ()))
    except UnicodeEncodeError as error:
        raise unsayable(protocol, message.NAME, "routes", "text", ascii(error.object)) from None


def topic_of(message: flux.Request | flux.Response | flux.Event, protocol: str) -> str:
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


CMB1: Wire = Cmb1Wire()
