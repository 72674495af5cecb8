"""Access: how servers and clients prove who they are, which clients are admitted, and to which paths.

The transport authenticates a client by its key or password and gives it a name. This module reads
keys, lists and passwords from the settings, and decides on subscriptions under that name. A path is
permitted if it is one of the client's paths or below one, on path boundaries: ``/foo`` permits
``/foo/bar``, but neither ``/foobar`` nor ``/``.

A list of clients is a TOML file with a table for each client. For CURVE each has a public key, as
40 characters of Z85 or as the path of a ``.key`` file, relative to the list:

    [site-b]
    key = "keys/site-b.key"
    paths = ["/photos", "/docs/public"]

A client that will change its key has the other one as ``next-key``, and is admitted with either.
For PLAIN each has a ``password`` instead, so only the owner may read such a file. A subscriber's
password comes from a file or the environment, never from a command line, which every user of the
machine can read.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, covers, fault_in_path, normalise_path
from specwire.runtime.filemq.peering import Authorise
from specwire.runtime.toml_file import TomlFileError, read_toml
from specwire.runtime.transport.keys import (
    PUBLIC_SUFFIX,
    KeyFileError,
    KeyPair,
    check_key,
    load_keys,
    load_public_key,
)
from specwire.runtime.transport.security import (
    NULL,
    CurveClient,
    CurveServer,
    Null,
    PlainClient,
    PlainServer,
    Security,
)

ServerSecurity = Null | PlainServer | CurveServer

MAX_NAME_OCTETS = 255


class Client(msgspec.Struct, frozen=True):
    """A client: its name, the paths it may subscribe to, and its public key (CURVE) or password (PLAIN).

    `next_key` is the public key that it will have next; both are accepted.
    """

    name: str
    paths: tuple[str, ...]
    key: str = ""
    password: str = ""
    next_key: str = ""

    def __repr__(self) -> str:
        return f"Client(name={self.name!r}, paths={self.paths!r}, key={self.key!r}, password=...)"


class Clients:
    """The clients that are admitted.

    Attributes:
        names: name by public key, of the clients that have one.
        passwords: password by name, of the clients that have one.

    Raises:
        ValueError: a client is invalid, or two have the same name or key.
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

    def replace_with(self, others: Clients) -> None:
        """Replace the content by that of `others`, for every user of this object."""
        for mine, theirs in ((self.names, others.names), (self.passwords, others.passwords)):
            mine.clear()
            mine.update(theirs)
        self._paths = dict(others._paths)

    def refusal(self, user: str, path: str) -> str | None:
        """Return why `user` may not subscribe to `path` (normalised); None if it may."""
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
    """Return the fault in a client's name or paths, and its correction; None if there is none."""
    # libzmq returns the name as a C string: a NUL would truncate it to the name of another client.
    if not client.name or not client.name.isprintable() or len(client.name.encode()) > MAX_NAME_OCTETS:
        return f"its name must have 1 to {MAX_NAME_OCTETS} octets of printable text"
    if not client.paths:
        return "it may subscribe to nothing; give it a path, or '/' for everything"
    for path in client.paths:
        if fault := fault_in_path(normalise_path(path), LONGEST_NAME_OCTETS):
            return f"its path {path!r} {fault}; write a whole virtual path such as '/photos'"
    return None


def fault_in_security(security: Security, clients: Clients | None) -> str | None:
    """Return why a server cannot use this security with these clients; None if it can."""
    match security:
        case Null():
            return None if clients is None else "a list of clients needs CURVE or PLAIN to prove their names"
        case PlainServer():
            return None if clients is not None and clients.passwords else "PLAIN needs clients with passwords"
        case CurveServer():
            return None if clients is None or clients.names else "CURVE needs clients with keys"
        case _:
            return f"{type(security).__name__} is for clients, not for servers"


def judge_by(clients: Clients | None, authorise: Authorise) -> Authorise:
    """Return a function that allows what both the list of clients and `authorise` allow."""
    if clients is None:
        return authorise
    return lambda user, path: clients.refusal(user, path) or authorise(user, path)


MAX_PASSWORD_OCTETS = 255
NEXT_KEY = "next-key"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class AccessError(ValueError):
    """Access settings, or one of their files, are invalid; `str()` names the place, fault and correction."""


def load_clients(file: Path) -> Clients:
    """Return the clients of CURVE listed in `file`; raises AccessError."""
    return _load(file, "key")


def load_passwords(file: Path) -> Clients:
    """Return the users of PLAIN listed in `file`, which only its owner may read; raises AccessError."""
    refuse_readable(file)
    return _load(file, "password")


def read_key(text: str, folder: Path) -> str:
    """Return the public key in `text`, or in the ``.key`` file with that path below `folder`.

    Raises:
        AccessError: `text` is neither.
    """
    try:
        if text.endswith(PUBLIC_SUFFIX):
            return load_public_key(folder / text)
        return check_key(text, "it")
    except KeyFileError as error:
        if text.endswith(PUBLIC_SUFFIX):
            raise AccessError(str(error)) from None
        wanted = f"40 characters of Z85 or the path of a file that ends with {PUBLIC_SUFFIX}"
        raise AccessError(f"{text!r} is no public key: {wanted} is wanted") from None


def refuse_readable(file: Path) -> None:
    """Raise AccessError if other users can read a file with a password, or this one cannot."""
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise AccessError(f"{file} cannot be read: {error.strerror}") from None
    if mode & _OTHERS:
        raise AccessError(
            f"{file} can be read by others: chmod 600 it, and change passwords that were not safe"
        )


def _load(file: Path, proof: str) -> Clients:
    tables = _read(file)
    if not tables:
        raise AccessError(f"{file} lists nobody: add a table [NAME] with {proof} and paths for each client")
    clients = []
    for name, table in tables.items():
        try:
            clients.append(_read_client(name, table, proof, file.parent))
        except AccessError as error:
            raise AccessError(f"{file}: client {name!r}: {error}") from None
    try:
        return Clients(clients)
    except ValueError as error:
        raise AccessError(f"{file}: {error}") from None


def _read(file: Path) -> dict[str, object]:
    try:
        return read_toml(file)
    except TomlFileError as error:
        raise AccessError(f"{file} {error}") from None


def _read_client(name: str, table: object, proof: str, folder: Path) -> Client:
    if not isinstance(table, dict):
        raise AccessError(f"write a table [{name}] with {proof} and paths")
    for key in table:
        if key not in (proof, "paths", *([NEXT_KEY] if proof == "key" else [])):
            raise AccessError(f"it has the unknown entry {key!r}; only {proof} and paths are known")
    given = table.get(proof)
    if not isinstance(given, str) or not given:
        raise AccessError(f'it needs {proof} = "..."')
    paths = table.get("paths")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise AccessError('it needs paths = ["/..."], or ["/"] for everything')
    if proof == "key":
        following = table.get(NEXT_KEY, "")
        if not isinstance(following, str):
            raise AccessError(f'{NEXT_KEY} must be a key: {NEXT_KEY} = "..."')
        next_key = read_key(following, folder) if following else ""
        return Client(name, tuple(paths), key=read_key(given, folder), next_key=next_key)
    if len(given.encode()) > MAX_PASSWORD_OCTETS:
        raise AccessError(f"its password is longer than {MAX_PASSWORD_OCTETS} octets")
    return Client(name, tuple(paths), password=given)


ClientSecurity = Null | PlainClient | CurveClient

PASSWORD_VARIABLE = "SPECWIRE_PASSWORD"


def read_server_security(
    *, curve: Path | None, clients: Path | None, plain: Path | None
) -> tuple[ServerSecurity, Clients | None]:
    """Return how clients authenticate, and the list of clients (None: all that know the server's key).

    Args:
        curve: file of the server's secret key.
        clients: list of the clients' keys.
        plain: list of users with passwords.

    Raises:
        AccessError: a file cannot be used, or two arguments exclude each other.
    """
    check_server_security(curve=curve, clients=clients, plain=plain)
    if plain is not None:
        return PlainServer(), load_passwords(plain)
    if curve is None:
        return NULL, None
    return CurveServer(_load_pair(curve)), None if clients is None else load_clients(clients)


def check_server_security(*, curve: Path | None, clients: Path | None, plain: Path | None) -> None:
    """Raise AccessError if these settings of a server exclude each other."""
    if curve is not None and plain is not None:
        raise AccessError("curve and plain are two ways to prove a name: choose one")
    if plain is not None and clients is not None:
        raise AccessError("clients lists keys, which need curve; plain has the paths of its users")
    if clients is not None and curve is None:
        raise AccessError("clients needs curve: without it no client can prove its name")


def read_clients_again(*, clients: Path | None, plain: Path | None) -> Clients | None:
    """Read the list of clients again; None if there is none. Raises AccessError."""
    if plain is not None:
        return load_passwords(plain)
    return None if clients is None else load_clients(clients)


def read_client_security(
    *,
    curve: Path | None,
    server_key: str | Sequence[str] | None,
    user: str | None,
    password_file: Path | None,
    environment: Mapping[str, str],
) -> ClientSecurity:
    """Return how a client authenticates, and which server it expects.

    Args:
        curve: file of the client's secret key.
        server_key: the server's public key, or the path of its file; several if it will change its
            key.
        password_file: the password is its first line.
        environment: has the password as `PASSWORD_VARIABLE` if there is no file.

    Raises:
        AccessError: a file cannot be used, or two arguments exclude each other.
    """
    check_client_security(curve=curve, server_key=server_key, user=user, password_file=password_file)
    expected = [server_key] if isinstance(server_key, str) else [*(server_key or ())]
    if curve is not None:
        first, *others = (read_key(key, Path()) for key in expected)
        return CurveClient(_load_pair(curve), first, tuple(others))
    if user is None:
        return NULL
    return PlainClient(user, _read_password(password_file, environment))


def check_client_security(
    *,
    curve: Path | None,
    server_key: str | Sequence[str] | None,
    user: str | None,
    password_file: Path | None,
) -> None:
    """Raise AccessError if these settings of a client exclude or lack each other."""
    if curve is not None and user is not None:
        raise AccessError("curve and user are two ways to prove a name: choose one")
    if (curve is None) != (not server_key):
        raise AccessError("curve (the client's secret key) and server-key go together: name both")
    if password_file is not None and user is None:
        raise AccessError("password-file needs user: whose password is it?")


def _load_pair(file: Path) -> KeyPair:
    try:
        return load_keys(file)
    except KeyFileError as error:
        raise AccessError(str(error)) from None


def _read_password(file: Path | None, environment: Mapping[str, str]) -> str:
    if file is None:
        password = environment.get(PASSWORD_VARIABLE, "")
        if not password:
            raise AccessError(f"--user needs a password: name --password-file, or set {PASSWORD_VARIABLE}")
        return password
    refuse_readable(file)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise AccessError(f"{file} cannot be read as UTF-8 text") from None
    if not lines or not lines[0]:
        raise AccessError(f"{file} has no password in its first line")
    return lines[0]


def origin_of(endpoint: str, security: ClientSecurity) -> str:
    """Return how an inbox knows the server: only the server that sent a file may have it deleted.

    That is its public key, if it has one: the owner of the secret key is that server, wherever it
    is. Without CURVE it is the endpoint as the user gave it, because nothing else distinguishes two
    servers that prove nothing. So a server without a key that moves to another endpoint is another
    server, until `--origin` names the old endpoint.
    """
    return f"curve:{security.server_key}" if isinstance(security, CurveClient) else endpoint
