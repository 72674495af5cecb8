"""How a peer writes its commands, and both ways of turning frames into `specwire.runtime.norfab.commands`.

There are three dialects, told apart by what a peer sends. The specification's command is one octet (`NORFAB`),
that of deployed peers four ASCII octets (`DEPLOYED`, as norfab 0.25 writes them). Version 0.6 of that package
(`DEPLOYED_06`) demands its own header from the broker: ``NFPC01`` on messages to clients, ``NFPW01`` on jobs for workers.
Nothing in its frames says which version it is, but its JSON does: it puts a space after a colon, and 0.25 does not.

Status codes 102, 201 and 404 are no part of the specification: peers that write by it are told 300, 202 and 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import msgspec

from specwire.generated import norfab, norfab_ascii
from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.norfab import commands
from specwire.runtime.norfab.commands import Command, Role

COMMAND_FRAME = 2
DEPLOYED_COMMAND_OCTETS = 4
SPECIFIED_STATUS = {102: 300, 201: 202, 404: 400}
_SPACED_JSON = re.compile(rb'\{"[^"\\]{0,64}": ')


class Dialect(Enum):
    """How a peer writes."""

    NORFAB = "norfab"
    DEPLOYED = "norfab_ascii"
    DEPLOYED_06 = "norfab_ascii 0.6"


class Received(msgspec.Struct, frozen=True):
    """A message as its receiver sees it. `sender` is the role in which it was sent, by header and layout."""

    sender: Role
    dialect: Dialect
    command: Command


_HEADERS: dict[str, Role] = {"NFPC01": "client", "NFPB01": "broker", "NFPW01": "worker"}
_OWN_HEADER: dict[Role, str] = {role: header for header, role in _HEADERS.items()}

_REQUESTS: dict[str, type[commands.Post | commands.Get | commands.Delete | commands.Put]] = {
    "POST": commands.Post,
    "GET": commands.Get,
    "DELETE": commands.Delete,
    "PUT": commands.Put,
}
_REPLIES: dict[str, type[commands.Response | commands.Event | commands.Stream]] = {
    "RESPONSE": commands.Response,
    "EVENT": commands.Event,
    "STREAM": commands.Stream,
}


def decode(frames: Sequence[bytes]) -> Received:
    """Return what `frames` say, without a routing id in front; raises DecodeError.

    Frames beyond the seven of a request or reply are read and left out: they are not passed on.
    """
    deployed = len(frames) > COMMAND_FRAME and len(frames[COMMAND_FRAME]) == DEPLOYED_COMMAND_OCTETS
    message: Any = (norfab_ascii if deployed else norfab).decode(frames)
    sender, command = _neutral(message)
    if not deployed:
        return Received(sender, Dialect.NORFAB, command)
    spaced = _SPACED_JSON.match(getattr(command, "body", b""))
    return Received(sender, Dialect.DEPLOYED_06 if spaced else Dialect.DEPLOYED, command)


def _neutral(message: Any) -> tuple[Role, Command]:
    kind, _, leg = message.NAME.partition("-")
    if kind in _REQUESTS:
        request = _REQUESTS[kind]
        if leg == "client":
            return "client", request(message.uuid, message.body, message.service, message.target)
        return "broker", request(message.uuid, message.body, client=message.client_address)
    if kind in _REPLIES:
        reply, status = _REPLIES[kind], _read_status(message)
        if leg == "client":
            return "broker", reply(message.uuid, status, message.body, message.service)
        return "worker", reply(message.uuid, status, message.body, client=message.client_address)
    if kind == "MMI":
        if leg == "client":
            return "client", commands.Mmi(message.uuid, message.body, message.service, message.target)
        if leg == "worker":
            return "broker", commands.Mmi(message.uuid, message.body, client=message.client_address)
        return "broker", commands.MmiReply(message.uuid, _read_status(message), message.body, message.service)
    sender = _HEADERS[message.header]
    if kind == "OPEN":
        return sender, commands.Open(message.body)
    if kind == "READY":
        return sender, commands.Ready(message.service)
    if kind == "KEEPALIVE":
        return sender, commands.Keepalive(message.service)
    return sender, commands.Disconnect(message.service or "", getattr(message, "body", None) or b"")


def _read_status(message: Any) -> int:
    """Return what the three digits say that begin a status; raises DecodeError where they do not."""
    digits: str = message.status[:3]
    if len(digits) == 3 and digits.isascii() and digits.isdigit():
        return int(digits)
    raise DecodeError(
        protocol=message.PROTOCOL,
        message_name=message.NAME,
        field="status",
        frame=None,
        offset=0,
        kind="text",
        expected="three digits",
        found=repr(message.status[:20]),
        rule="NORFAB status",
    )


def encode(command: Command, dialect: Dialect, sender: Role, receiver: Role) -> list[bytes]:
    """Return the frames of `command`; raises EncodeError, also where the dialect has no such command."""
    package: Any = norfab if dialect is Dialect.NORFAB else norfab_ascii
    kind = type(command).__name__
    leg = "Worker" if "worker" in (sender, receiver) else "Client"
    make: Callable[..., Any] | None = getattr(package, _CLASS.get(kind, kind + leg), None)
    if make is None:
        raise EncodeError(
            protocol=dialect.value,
            message_name=kind,
            field=None,
            frame=None,
            offset=None,
            kind="tag",
            expected="a command of this dialect",
            found=kind,
            rule=package.EDITION,
        )
    message = make(**_fields(command, dialect, sender, receiver))
    frames: list[bytes] = message.encode()
    return frames


_CLASS = {
    "Open": "Open",
    "Ready": "Ready",
    "Keepalive": "Keepalive",
    "Disconnect": "Disconnect",
    "MmiReply": "MmiBroker",
}


def _fields(command: Command, dialect: Dialect, sender: Role, receiver: Role) -> dict[str, Any]:
    """Return the arguments of the generated class."""
    own = _OWN_HEADER[sender]
    match command:
        case commands.Open():
            return {"header": own, "body": command.body}
        case commands.Ready():
            return {"service": command.service}
        case commands.Keepalive():
            return {"header": own, "service": command.service}
        case commands.Disconnect():
            fields: dict[str, Any] = {"header": own, "service": command.service}
            return fields | ({"body": command.body} if dialect is Dialect.NORFAB else {})
        case commands.MmiReply():
            return msgspec.structs.asdict(command) | {"status": str(command.status)}
    fields = {"uuid": command.uuid, "body": command.body}
    if isinstance(command, commands.Response | commands.Event | commands.Stream):
        fields["status"] = str(_status(command.status, dialect))
    elif sender == "client":
        fields["target"] = command.target
    if "worker" in (sender, receiver):
        fields["client_address"] = command.client
    else:
        fields["service"] = command.service
    if dialect is Dialect.DEPLOYED_06 and sender == "broker" and not isinstance(command, commands.Mmi):
        fields["header"] = _OWN_HEADER[receiver]
    return fields


def _status(status: int, dialect: Dialect) -> int:
    return SPECIFIED_STATUS.get(status, status) if dialect is Dialect.NORFAB else status


class Dialects:
    """The dialect of each peer of a broker, by what it sent; bounded, the peer heard longest ago is forgotten."""

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._known: dict[tuple[Role, bytes], Dialect] = {}

    def __len__(self) -> int:
        return len(self._known)

    def decode(self, peer: bytes, frames: Sequence[bytes]) -> Received:
        """Return what `peer` says and remember how it writes; raises DecodeError."""
        received = decode(frames)
        key = (received.sender, peer)
        before = self._known.pop(key, None)
        dialect = received.dialect
        if before is Dialect.DEPLOYED_06 and dialect is Dialect.DEPLOYED:
            dialect = before  # a message without JSON says nothing about the version
        self._known[key] = dialect
        if len(self._known) > self._limit:
            del self._known[next(iter(self._known))]
        return received

    def encode(self, peer: bytes, role: Role, command: Command) -> list[bytes]:
        """Return the frames of `command` from the broker as `peer` reads them; raises EncodeError."""
        dialect = self._known.get((role, peer), Dialect.DEPLOYED)
        return encode(command, dialect, "broker", role)


__all__ = ["DecodeError", "Dialect", "Dialects", "EncodeError", "Received", "decode", "encode"]
