"""The file with the table of peers, in TOML: a table for each peer, under its name.

A key is 40 characters of Z85 or the path of a ``.key`` file, relative to the file::

    [ada]
    key = "ada.key"
    roles = ["client"]
    call = ["netmiko", "inventory:get_*"]
    see = ["bob"]

    [site-b]
    key = "site-b.key"
    roles = ["worker"]
    serve = ["netmiko"]
    names = ["site-b-*"]

A peer that is about to change its key has the other one as ``next-key``, and comes in by either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.norfab.security.table import Peer, Table
from specwire.runtime.toml_file import TomlFileError, read_toml
from specwire.runtime.transport.keys import PUBLIC_SUFFIX, KeyFileError, check_key, load_public_key

FIELDS = tuple(field for field in Peer.__struct_encode_fields__ if field != "name")
NEXT_KEY = "next-key"


class AccessError(ValueError):
    """The file with the table cannot be used; `str()` says where, what, and what to do."""


def load_table(file: Path) -> Table:
    """Return the table in `file`; raises AccessError."""
    tables = _read(file)
    if not tables:
        raise AccessError(f"{file} lists nobody: `specwire norfab keys NAME --role ROLE` adds a peer")
    peers = []
    for name, table in tables.items():
        try:
            peers.append(_read_peer(name, table, file.parent))
        except AccessError as error:
            raise AccessError(f"{file}: peer {name!r}: {error}") from None
    try:
        return Table(peers)
    except ValueError as error:
        raise AccessError(f"{file}: {error}") from None


def _read(file: Path) -> dict[str, Any]:
    try:
        return read_toml(file)
    except TomlFileError as error:
        raise AccessError(f"{file} {error}") from None


def _read_peer(name: str, table: object, folder: Path) -> Peer:
    if not isinstance(table, dict):
        raise AccessError(f"write a table [{name}] with key and roles")
    for entry in table:
        if entry not in FIELDS:
            raise AccessError(f"it has the unknown entry {entry!r}; known are {', '.join(FIELDS)}")
    key = table.get("key")
    if not isinstance(key, str) or not key:
        raise AccessError('it needs key = "..."')
    try:
        read = {**table, "name": name, "key": read_key(key, folder)}
        if isinstance(following := table.get(NEXT_KEY), str):
            read[NEXT_KEY] = read_key(following, folder)
        return msgspec.convert(read, Peer)
    except msgspec.ValidationError as error:
        raise AccessError(f"{error}; entries are lists of strings, such as roles = ['client']") from None


def read_key(text: str, folder: Path) -> str:
    """Return the public key that `text` is, or that the ``.key`` file of that path below `folder` holds.

    Raises:
        AccessError: it is neither.
    """
    try:
        return load_public_key(folder / text) if text.endswith(PUBLIC_SUFFIX) else check_key(text, "it")
    except KeyFileError as error:
        if text.endswith(PUBLIC_SUFFIX):
            raise AccessError(str(error)) from None
        wanted = f"40 characters of Z85 or the path of a file that ends with {PUBLIC_SUFFIX}"
        raise AccessError(f"{text!r} is no public key: {wanted} is wanted") from None


def describe_peer(peer: Peer, key: str) -> str:
    """Return the lines of a peer in such a file; `key` is what to write for its key."""
    lines = [f"[{_quote(peer.name)}]", f"key = {_quote(key)}"]
    for field in FIELDS[1:]:
        value = None if field == NEXT_KEY else getattr(peer, field)
        if value is not None:
            lines.append(f"{field} = [{', '.join(map(_quote, value))}]")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    # A JSON string is a TOML string, except for DEL. Bidirectional marks would mislead a reader.
    quoted = msgspec.json.encode(text).decode()
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)
