"""A folder with the keys of a broker and its peers, and the table that says who they are.

``broker.key`` and ``broker.key_secret`` are the broker's, ``NAME.key`` and ``NAME.key_secret`` those of a peer, and
``access.toml`` is the table. Where a broker finds none of it, it makes keys for itself and for three peers, one of each
role, so that everything on one machine is encrypted and authenticated without a word from anybody. A peer on
another machine needs three files: its own two, and ``broker.key``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from specwire.runtime.norfab.security.table import Peer, Table, fault_in_peer
from specwire.runtime.norfab.security.tablefile import AccessError, describe_peer, load_table
from specwire.runtime.transport.keys import (
    PUBLIC_SUFFIX,
    SECRET_SUFFIX,
    KeyPair,
    load_keys,
    load_public_key,
    make_keys,
)
from specwire.runtime.transport.security import CurveClient, CurveServer

BROKER = "broker"
NEXT = "broker.next"
"""The key that the broker is about to take: a peer that has it comes in before and after that."""
TABLE = "access.toml"

_FIRST = (
    Peer(name="admin", key="", roles=("admin",)),
    Peer(name="client", key="", roles=("client",), call=("*",)),
    Peer(name="worker", key="", roles=("worker",), serve=("*",), names=("*",)),
)
"""Whom a new folder knows."""


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return where a broker of this user keeps what it has where nothing else is said."""
    data = environment.get("XDG_DATA_HOME", "")
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "specwire" / "norfab"


class Keyring:
    """The keys in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table_file = folder / TABLE

    def prepare(self) -> list[str]:
        """Make what a broker needs and is not there; return the names of the peers that were made.

        Raises:
            KeyFileError: a key cannot be written.
            AccessError: the table cannot be written.
        """
        if not (self.folder / (BROKER + SECRET_SUFFIX)).exists():
            self._secure_folder()
            make_keys(self.folder, BROKER)
        if self.table_file.exists():
            return []
        for peer in _FIRST:
            self.add(peer)
        return [peer.name for peer in _FIRST]

    def add(self, peer: Peer) -> Peer:
        """Make keys for a peer, and put it into the table; return it with its key.

        Raises:
            KeyFileError: there is a key of that name, or it cannot be written.
            AccessError: the peer is not well described, or in the table, or the table cannot be written.
        """
        if peer.name in (BROKER, NEXT) or "/" in peer.name:
            raise AccessError(f"a peer cannot be called {peer.name!r}")
        if fault := fault_in_peer(peer):
            raise AccessError(fault)
        if self.table_file.exists() and peer.name in load_table(self.table_file).names.values():
            raise AccessError(f"{self.table_file} has a peer {peer.name!r} already")
        self._secure_folder()
        public, _ = make_keys(self.folder, peer.name)
        entry = describe_peer(peer, public.name)
        try:
            self._append(entry)
        except OSError as error:
            raise AccessError(f"{self.table_file} cannot be written: {error.strerror}") from None
        return Peer(
            name=peer.name,
            key=load_public_key(public),
            roles=peer.roles,
            names=peer.names,
            call=peer.call,
            serve=peer.serve,
            see=peer.see,
            manage=peer.manage,
        )

    def server(self) -> CurveServer:
        """Return how the broker proves itself; raises KeyFileError."""
        return CurveServer(self._pair(BROKER))

    def table(self) -> Table:
        """Return who may do what; raises AccessError."""
        return load_table(self.table_file)

    def peer(self, name: str) -> CurveClient:
        """Return how the peer `name` proves itself to the broker, which may have its next key already.

        Raises:
            KeyFileError: a key cannot be read.
        """
        following = self.folder / (NEXT + PUBLIC_SUFFIX)
        others = (load_public_key(following),) if following.exists() else ()
        return CurveClient(self._pair(name), load_public_key(self.folder / (BROKER + PUBLIC_SUFFIX)), others)

    def _pair(self, name: str) -> KeyPair:
        return load_keys(self.folder / (name + SECRET_SUFFIX))

    def _secure_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise AccessError(f"{self.folder} cannot be made: {error.strerror}") from None

    def _append(self, entry: str) -> None:
        descriptor = os.open(self.table_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            if os.fstat(descriptor).st_size:
                stream.write("\n")
            stream.write(entry)
            stream.flush()
            os.fsync(stream.fileno())
