"""How a socket proves who it is and asks others to: ZMTP's mechanisms NULL, PLAIN and CURVE.

A client's socket states its own keys (or name and password) and, with CURVE, the key of the server that it expects.
A server's socket asks the `Guard` of its context about each client. NULL proves nothing, so a server that uses
it listens on this machine only, unless it is told otherwise.
"""

from __future__ import annotations

import ipaddress

import msgspec
import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import ExposureError, TransportError
from specwire.runtime.transport.keys import KeyFileError, KeyPair, check_key


class Null(msgspec.Struct, frozen=True):
    """Nobody proves anything."""


class PlainClient(msgspec.Struct, frozen=True):
    """A name and a password, readable by whoever reads the line."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"PlainClient(username={self.username!r}, password=...)"


class PlainServer(msgspec.Struct, frozen=True):
    """Asks each client for a name and a password; a `Guard` knows them."""


class CurveClient(msgspec.Struct, frozen=True):
    """The client's own keys, and the public key of the server that it expects.

    A server that is about to change its key may prove one of `other_server_keys` instead (see `ServerKeys`).
    """

    keys: KeyPair
    server_key: str
    other_server_keys: tuple[str, ...] = ()


class CurveServer(msgspec.Struct, frozen=True):
    """The server's own keys, and the domain that the `Guard`, who knows the clients, is told."""

    keys: KeyPair
    domain: str = ""


Security = Null | PlainClient | PlainServer | CurveClient | CurveServer

NULL = Null()


def apply_security(socket: zmq.Socket[bytes], security: Security) -> None:
    """Set the mechanism of a socket that is not bound or connected yet.

    Raises:
        TransportError: libzmq does not take a name, a password or a key; the socket is closed then.
    """
    try:
        _apply(socket, security)
    except (zmq.ZMQError, ValueError) as error:
        socket.close(linger=0)  # an open socket would keep its context from ending
        raise TransportError(f"not usable as credentials: {_describe(security)} ({error})") from None


def check_credentials(context: TransportContext, security: Security) -> None:
    """Raise TransportError if libzmq does not accept a name, a password or a key."""
    if security == NULL:
        return
    try:
        socket = context.zmq.socket(zmq.DEALER)
    except zmq.ZMQError:  # too few descriptors, which each connection reports
        return
    apply_security(socket, security)
    socket.close(linger=0)


def set_server_keys(socket: zmq.Socket[bytes], keys: KeyPair) -> None:
    """Have the socket of a CURVE server prove itself by other keys wherever it is bound from now on.

    Raises:
        TransportError: libzmq does not take the keys; those before stay.
    """
    try:
        for key in (keys.public, keys.secret):  # both are looked at before one of them is set
            check_key(key, "the pair of keys")
    except KeyFileError as error:
        raise TransportError(f"not usable as credentials: {error}") from None
    _set_keys(socket, keys)


def _describe(security: Security) -> str:
    match security:
        case PlainClient():
            return "name and password, each of 1 to 255 octets"
        case _:
            return "CURVE keys, each of 40 characters"


def _apply(socket: zmq.Socket[bytes], security: Security) -> None:
    match security:
        case PlainClient(username=username, password=password):
            socket.setsockopt_string(zmq.PLAIN_USERNAME, username)
            socket.setsockopt_string(zmq.PLAIN_PASSWORD, password)
        case PlainServer():
            socket.setsockopt(zmq.PLAIN_SERVER, 1)
        case CurveClient(keys=keys, server_key=server_key):
            _set_keys(socket, keys)
            socket.setsockopt_string(zmq.CURVE_SERVERKEY, server_key)
        case CurveServer(keys=keys, domain=domain):
            if domain:
                socket.setsockopt_string(zmq.ZAP_DOMAIN, domain)
            _set_keys(socket, keys)
            socket.setsockopt(zmq.CURVE_SERVER, 1)


def _set_keys(socket: zmq.Socket[bytes], keys: KeyPair) -> None:
    socket.setsockopt_string(zmq.CURVE_PUBLICKEY, keys.public)
    socket.setsockopt_string(zmq.CURVE_SECRETKEY, keys.secret)


def refuse_exposure(endpoint: str, security: Security, *, insecure: bool | None = False) -> None:
    """Refuse to listen where others can reach it without CURVE.

    Args:
        insecure: the user has said that it is meant so; None where that cannot be said.

    Raises:
        ExposureError: the endpoint is beyond this machine and `security` is not CURVE.
    """
    if insecure or isinstance(security, CurveServer) or not is_exposed(endpoint):
        return
    kind = (
        "with passwords that anybody on the way can read"
        if isinstance(security, PlainServer)
        else "to anybody"
    )
    ways = ["use CURVE (`specwire keys` makes the keys)", "listen on 127.0.0.1"]
    if insecure is not None:
        ways.append("say --insecure")
    raise ExposureError(
        f"{endpoint} would be open {kind}: {', '.join(ways[:-1])}{',' * (len(ways) > 2)} or {ways[-1]}"
    )


def is_exposed(endpoint: str) -> bool:
    """Tell whether other machines can reach what listens on `endpoint`."""
    scheme, _, address = endpoint.partition("://")
    if scheme in ("ipc", "inproc"):
        return False
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return True  # a name, an interface or `*`: it may be reachable
