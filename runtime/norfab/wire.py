"""How a peer writes its commands, and both ways of turning frames into `specwire.runtime.norfab.commands`.

There are three dialects, told apart by what a peer sends. The specification's command is one octet (`NORFAB`),
that of deployed peers four ASCII octets (`DEPLOYED`, as norfab 0.25 writes them). Version 0.6 of that package
(`DEPLOYED_06`) demands its own header from the broker: ``NFPC01`` on messages to clients, ``NFPW01`` on jobs for workers.
Nothing in its frames says which version it is, but its JSON does: it puts a space after a colon, and 0.25 does not.

Status codes 102, 201 and 404 are no part of the specification: peers that write by it are told 300, 202 and 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from specwire.generated import norfab, norfab_ascii
from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.norfab import commands
from specwire.runtime.norfab.commands import Command, Role

COMMAND_FRAME = 2
NORFAB_COMMAND_OCTETS = 1
DEPLOYED_COMMAND_OCTETS = 4
SPECIFIED_STATUS = {102: 300, 201: 202, 404: 400}
_STATUSES = {str(status): status for status in (102, 200, 201, 202, 300, 400, 404, 408, 417, 500)}
"""Those that peers write, as most of them write them."""

_SPACED_JSON = re.compile(rb'\{"[^"\\]{0,64}": ')
_SPACED_WITHIN = 72
_COLON = b'": '
"""What such JSON has within so many octets: to look for it is quicker than to match."""


Writer = Callable[[Any], Any]
"""Makes the message of a command."""


class Dialect(Enum):
    """How a peer writes."""

    NORFAB = "norfab"
    DEPLOYED = "norfab_ascii"
    DEPLOYED_06 = "norfab_ascii 0.6"

    def __init__(self, name: str) -> None:
        roles: tuple[Role, ...] = ("client", "broker", "worker")
        self.writers: dict[Role, dict[Role, dict[type[Command], Writer]]] = {
            sender: {receiver: {} for receiver in roles} for sender in roles
        }
        """What makes a message of a command, by sender, receiver and kind; made when the first one is written."""


# A name costs a tenth of the look-up of a member in its class, as Python 3.11 does that.
_NORFAB, _DEPLOYED, _DEPLOYED_06 = Dialect


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message as its receiver sees it. `sender` is the role in which it was sent, by header and layout."""

    sender: Role
    command: Command
    dialect: Dialect


_BODILESS = frozenset((commands.Ready, commands.Keepalive, commands.Disconnect))
"""Commands in which deployed peers write no JSON."""

_HEADERS: dict[str, Role] = {"NFPC01": "client", "NFPB01": "broker", "NFPW01": "worker"}
_OWN_HEADER: dict[Role, str] = {role: header for header, role in _HEADERS.items()}

_REQUESTS: dict[str, type[commands.Post | commands.Get | commands.Delete | commands.Put | commands.Mmi]] = {
    "POST": commands.Post,
    "GET": commands.Get,
    "DELETE": commands.Delete,
    "PUT": commands.Put,
    "MMI": commands.Mmi,
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
    if len(frames) <= COMMAND_FRAME or len(frames[COMMAND_FRAME]) != DEPLOYED_COMMAND_OCTETS:
        message: Any = norfab.decode(frames)
        return Received(*_READERS[type(message)](message), _NORFAB)
    message = norfab_ascii.decode(frames)
    sender, command = _READERS[type(message)](message)
    if type(command) in _BODILESS:
        return Received(sender, command, _DEPLOYED)
    body = message.body
    spaced = body.find(_COLON, 0, _SPACED_WITHIN) >= 0 and _SPACED_JSON.match(body)
    return Received(sender, command, _DEPLOYED_06 if spaced else _DEPLOYED)


def read(frames: Sequence[bytes]) -> Command:
    """Return what `frames` say to a peer that does not ask how it is written; raises DecodeError."""
    deployed = len(frames) > COMMAND_FRAME and len(frames[COMMAND_FRAME]) == DEPLOYED_COMMAND_OCTETS
    message: Any = (norfab_ascii if deployed else norfab).decode(frames)
    return _READERS[type(message)](message)[1]


Reader = Callable[[Any], tuple[Role, Command]]


def _make_readers() -> Iterator[tuple[str, Reader]]:
    """Return how each message becomes a command, and who sends it, by the message's name."""
    for name, request in _REQUESTS.items():
        yield f"{name}-client", _clients_request_reader(request)
        yield f"{name}-worker", _brokers_request_reader(request)
    for name, reply in _REPLIES.items():
        yield f"{name}-client", _brokers_reply_reader(reply)
        yield f"{name}-worker", _workers_reply_reader(reply)
    yield "MMI-broker", _brokers_reply_reader(commands.MmiReply)
    yield "OPEN", lambda message: (_HEADERS[message.header], commands.Open(message.body))
    yield "READY", lambda message: ("worker", commands.Ready(message.service))
    yield "KEEPALIVE", lambda message: (_HEADERS[message.header], commands.Keepalive(message.service))
    yield "DISCONNECT", _read_disconnect


def _clients_request_reader(kind: Callable[..., Command]) -> Reader:
    return lambda message: ("client", kind(message.uuid, message.body, message.service, message.target))


def _brokers_request_reader(kind: Callable[..., Command]) -> Reader:
    return lambda message: ("broker", kind(message.uuid, message.body, "", "", message.client_address))


def _brokers_reply_reader(kind: Callable[..., Command]) -> Reader:
    return lambda message: (
        "broker",
        kind(message.uuid, _read_status(message), message.body, message.service),
    )


def _workers_reply_reader(kind: Callable[..., Command]) -> Reader:
    return lambda message: (
        "worker",
        kind(message.uuid, _read_status(message), message.body, "", message.client_address),
    )


def _read_disconnect(message: Any) -> tuple[Role, Command]:
    body = getattr(message, "body", None) or b""
    return _HEADERS[message.header], commands.Disconnect(message.service or "", body)


def _read_status(message: Any) -> int:
    """Return what the three digits say that begin a status; raises DecodeError where they do not."""
    known = _STATUSES.get(message.status)
    if known is not None:
        return known
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


_BY_NAME = dict(_make_readers())
_READERS: dict[type[Any], Reader] = {
    message: _BY_NAME[message.NAME]
    for messages in (norfab.MESSAGES, norfab_ascii.MESSAGES)
    for message in messages.values()
}


def encode(command: Command, dialect: Dialect, sender: Role, receiver: Role) -> list[bytes]:
    """Return the frames of `command`; raises EncodeError, also where the dialect has no such command."""
    writers = dialect.writers[sender][receiver]
    write = writers.get(type(command))
    if write is None:
        write = writers[type(command)] = _make_writer(type(command), dialect, sender, receiver)
    frames: list[bytes] = write(command).encode()
    return frames


def _make_writer(kind: type[Command], dialect: Dialect, sender: Role, receiver: Role) -> Writer:
    """Return what makes a message of a command of this kind."""
    package: Any = norfab if dialect is Dialect.NORFAB else norfab_ascii
    name, make_writer = _FORMS[kind, "worker" in (sender, receiver)]
    message = getattr(package, name, None)
    if message is None:
        raise EncodeError(
            protocol=dialect.value,
            message_name=kind.__name__,
            field=None,
            frame=None,
            offset=None,
            kind="tag",
            expected="a command of this dialect",
            found=kind.__name__,
            rule=package.EDITION,
        )
    if dialect is Dialect.DEPLOYED_06 and sender == "broker" and name in _HEADED_06:
        message = partial(message, header=_OWN_HEADER[receiver])
    return make_writer(message, dialect, sender)


def _request_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    return lambda command: message(
        service=command.service, target=command.target, uuid=command.uuid, body=command.body
    )


def _workers_request_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    return lambda command: message(client_address=command.client, uuid=command.uuid, body=command.body)


def _reply_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    written = _status_texts(dialect)
    return lambda command: message(
        service=command.service,
        uuid=command.uuid,
        status=written.get(command.status) or str(command.status),
        body=command.body,
    )


def _workers_reply_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    written = _status_texts(dialect)
    return lambda command: message(
        client_address=command.client,
        uuid=command.uuid,
        status=written.get(command.status) or str(command.status),
        body=command.body,
    )


def _status_texts(dialect: Dialect) -> dict[int, str]:
    """Return how the dialect writes the statuses that are common; others are written as they are."""
    specified = SPECIFIED_STATUS if dialect is Dialect.NORFAB else {}
    return {status: str(specified.get(status, status)) for status in _STATUSES.values()}


def _open_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    return lambda command: message(header=_OWN_HEADER[sender], body=command.body)


def _ready_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    return lambda command: message(service=command.service)


def _keepalive_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    return lambda command: message(header=_OWN_HEADER[sender], service=command.service)


def _disconnect_writer(message: Any, dialect: Dialect, sender: Role) -> Writer:
    header = _OWN_HEADER[sender]
    if dialect is Dialect.NORFAB:
        return lambda command: message(header=header, service=command.service, body=command.body)
    return lambda command: message(header=header, service=command.service)


def _make_forms() -> Iterator[tuple[tuple[type[Command], bool], tuple[str, Callable[..., Writer]]]]:
    """Return the class of the message, and who fills it, by kind of command and whether a worker sends or gets it."""
    for request in _REQUESTS.values():
        yield (request, False), (f"{request.__name__}Client", _request_writer)
        yield (request, True), (f"{request.__name__}Worker", _workers_request_writer)
    for reply in _REPLIES.values():
        yield (reply, False), (f"{reply.__name__}Client", _reply_writer)
        yield (reply, True), (f"{reply.__name__}Worker", _workers_reply_writer)
    for on_workers_leg in (False, True):
        yield (commands.MmiReply, on_workers_leg), ("MmiBroker", _reply_writer)
        yield (commands.Open, on_workers_leg), ("Open", _open_writer)
        yield (commands.Ready, on_workers_leg), ("Ready", _ready_writer)
        yield (commands.Keepalive, on_workers_leg), ("Keepalive", _keepalive_writer)
        yield (commands.Disconnect, on_workers_leg), ("Disconnect", _disconnect_writer)


_FORMS = dict(_make_forms())
_HEADED_06 = frozenset(
    name
    for (kind, on_workers_leg), (name, _) in _FORMS.items()
    if (kind in _REQUESTS.values() and on_workers_leg and kind is not commands.Mmi)
    or (kind in _REPLIES.values() and not on_workers_leg)
)
"""Messages of the broker that version 0.6 of the package wants under another header."""


class Dialects:
    """The dialect of each peer of a broker, by what it sent.

    Bounded: beyond `limit` peers of a role the one heard longest ago is forgotten.
    """

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._known: dict[Role, dict[bytes, Dialect]] = {"client": {}, "broker": {}, "worker": {}}

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def decode(self, peer: bytes, frames: Sequence[bytes]) -> Received:
        """Return what `peer` says and remember how it writes; raises DecodeError."""
        try:
            received = decode(frames)
        except DecodeError:
            self._guess(peer, frames)
            raise
        known, dialect = self._known[received.sender], received.dialect
        before = known.pop(peer, None)
        if before is _DEPLOYED_06 and dialect is _DEPLOYED:
            dialect = before  # a message without JSON says nothing about the version
        known[peer] = dialect
        if before is None:
            self._keep_bounded(known)
        return received

    def _guess(self, peer: bytes, frames: Sequence[bytes]) -> None:
        """Remember how a stranger seems to write that said nothing readable yet, so that it can read the answer."""
        if len(frames) > COMMAND_FRAME and len(frames[COMMAND_FRAME]) == NORFAB_COMMAND_OCTETS:
            role = _HEADERS.get(bytes(frames[COMMAND_FRAME - 1]).decode(errors="replace"))
            if role is not None:
                self._known[role].setdefault(peer, Dialect.NORFAB)
                self._keep_bounded(self._known[role])

    def _keep_bounded(self, known: dict[bytes, Dialect]) -> None:
        if len(known) > self._limit:
            del known[next(iter(known))]

    def of(self, peer: bytes, role: Role) -> Dialect:
        """Return how a peer writes, and reads; who has said nothing yet is taken for a deployed one."""
        return self._known[role].get(peer, _DEPLOYED)


__all__ = ["DecodeError", "Dialect", "Dialects", "EncodeError", "Received", "decode", "encode", "read"]
