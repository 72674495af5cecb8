"""Security of sockets from the settings: key files, lists of clients, passwords.

A password comes from a file or the environment, never from a command line, which every user of the
machine can read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from specwire.runtime.filemq.access import (
    AccessError,
    Clients,
    ServerSecurity,
    load_clients,
    load_passwords,
    read_key,
    refuse_readable,
)
from specwire.runtime.transport.keys import KeyFileError, KeyPair, load_keys
from specwire.runtime.transport.security import NULL, CurveClient, CurveServer, Null, PlainClient, PlainServer

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
        server_key: the server's public key, or the path of its file; several if it will change its key.
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

    That is its public key, if it has one: the owner of the secret key is that server, wherever it is.
    Without CURVE it is the endpoint as the user gave it, because nothing else distinguishes two servers
    that prove nothing. So a server without a key that moves to another endpoint is another server, until
    `--origin` names the old endpoint.
    """
    return f"curve:{security.server_key}" if isinstance(security, CurveClient) else endpoint
