"""Who may subscribe to what: the clients that a server knows, how each proves its name, and its paths.

The `Guard` of the transport lets a client in by its key or password and gives it a name; this module has what the
guard asks for, and judges the subscriptions that come under that name. A path is permitted when it is one of the
client's paths or below one, on path boundaries: who may have ``/foo`` may have ``/foo/bar`` and not ``/foobar``,
nor ``/``, which is more.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, covers, fault_in_path, normalise_path
from specwire.runtime.filemq.peering import Authorise
from specwire.runtime.transport.security import CurveServer, Null, PlainServer, Security

ServerSecurity = Null | PlainServer | CurveServer

MAX_NAME_OCTETS = 255


class Client(msgspec.Struct, frozen=True):
    """A client by name: the paths that it may subscribe to, and its public key (CURVE) or password (PLAIN).

    `next_key` is the public key that it is about to take: it comes in by either.
    """

    name: str
    paths: tuple[str, ...]
    key: str = ""
    password: str = ""
    next_key: str = ""

    def __repr__(self) -> str:
        return f"Client(name={self.name!r}, paths={self.paths!r}, key={self.key!r}, password=...)"


class Clients:
    """The clients that are let in, and nobody else.

    Attributes:
        names: name by public key, of the clients that have one.
        passwords: password by name, of the clients that have one.

    Raises:
        ValueError: a client is not well described, or two have a name or a key in common.
    """

    def __init__(self, clients: Iterable[Client]) -> None:
        self.names: dict[str, str] = {}
        self.passwords: dict[str, str] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        for client in clients:
            if fault := fault_in_client(client) or self._clash(client):
                raise ValueError(f"client {client.name!r}: {fault}")
            self._add(client)

    def __len__(self) -> int:
        return len(self._paths)

    def become(self, others: Clients) -> None:
        """Be the list that `others` is, for everyone who has this one."""
        for mine, theirs in ((self.names, others.names), (self.passwords, others.passwords)):
            mine.clear()
            mine.update(theirs)
        self._paths = dict(others._paths)

    def refusal(self, user: str, path: str) -> str | None:
        """Return why `user` may not subscribe to `path` (normalised), None where it may."""
        if any(covers(permitted, path) for permitted in self._paths.get(user, ())):
            return None
        return f"is not permitted to {user!r}"

    def _clash(self, client: Client) -> str | None:
        if client.name in self._paths:
            return "the name is another client's too; give each its own"
        for key in client.key, client.next_key:
            if key and key in self.names:
                return f"the key is that of {self.names[key]!r} too; make one for each with `specwire keys`"
        return None

    def _add(self, client: Client) -> None:
        self._paths[client.name] = tuple(map(normalise_path, client.paths))
        for key in client.key, client.next_key:
            if key:
                self.names[key] = client.name
        if client.password:
            self.passwords[client.name] = client.password


def fault_in_client(client: Client) -> str | None:
    """Return what is wrong with a client's name or paths and what to do, None where nothing is."""
    # libzmq hands the name over as a C string: a NUL would end it early, and make it another client's.
    if not client.name or not client.name.isprintable() or len(client.name.encode()) > MAX_NAME_OCTETS:
        return f"its name is to be 1 to {MAX_NAME_OCTETS} octets of printable text"
    if not client.paths:
        return "it may subscribe to nothing; give it a path, or '/' for everything"
    for path in client.paths:
        if fault := fault_in_path(normalise_path(path), LONGEST_NAME_OCTETS):
            return f"its path {path!r} {fault}; write a whole virtual path such as '/photos'"
    return None


def fault_in_security(security: Security, clients: Clients | None) -> str | None:
    """Return why a server cannot guard itself so, None where it can."""
    match security:
        case Null():
            return None if clients is None else "a list of clients needs CURVE or PLAIN to prove their names"
        case PlainServer():
            return None if clients is not None and clients.passwords else "PLAIN needs clients with passwords"
        case CurveServer():
            return None if clients is None or clients.names else "CURVE needs clients with keys"
        case _:
            return f"{type(security).__name__} is a client's way to prove itself, not a server's"


def judge_by(clients: Clients | None, authorise: Authorise) -> Authorise:
    """Return what allows a subscription that both the list of clients and `authorise` allow."""
    if clients is None:
        return authorise
    return lambda user, path: clients.refusal(user, path) or authorise(user, path)
