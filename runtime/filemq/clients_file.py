"""The files that list a server's clients, in TOML: a table for each client, under its name.

For CURVE each has a public key, as 40 characters of Z85 or as the path of a ``.key`` file (relative to the list)::

    [site-b]
    key = "keys/site-b.key"
    paths = ["/photos", "/docs/public"]

A client that is about to change its key has the other one as ``next-key``, and comes in by either.

For PLAIN each has a password, so that such a file is for its owner alone::

    [ada]
    password = "..."
    paths = ["/"]
"""

from __future__ import annotations

import stat
from pathlib import Path

from specwire.runtime.filemq.access import Client, Clients
from specwire.runtime.toml_file import TomlFileError, read_toml
from specwire.runtime.transport.keys import PUBLIC_SUFFIX, KeyFileError, check_key, load_public_key

MAX_PASSWORD_OCTETS = 255
NEXT_KEY = "next-key"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class AccessError(ValueError):
    """A file about access, or what was said besides it, cannot be used; `str()` says where, what, and what to do."""


def load_clients(file: Path) -> Clients:
    """Return the clients of CURVE listed in `file`; raises AccessError."""
    return _load(file, "key")


def load_passwords(file: Path) -> Clients:
    """Return the users of PLAIN listed in `file`, which nobody else may read; raises AccessError."""
    refuse_readable(file)
    return _load(file, "password")


def read_key(text: str, folder: Path) -> str:
    """Return the public key that `text` is, or that the ``.key`` file of that path below `folder` holds.

    Raises:
        AccessError: it is neither.
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
    """Raise AccessError where others may read a file with a password, or nobody can."""
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
            raise AccessError(f'{NEXT_KEY} is to be a key: {NEXT_KEY} = "..."')
        next_key = read_key(following, folder) if following else ""
        return Client(name, tuple(paths), key=read_key(given, folder), next_key=next_key)
    if len(given.encode()) > MAX_PASSWORD_OCTETS:
        raise AccessError(f"its password is longer than {MAX_PASSWORD_OCTETS} octets")
    return Client(name, tuple(paths), password=given)
