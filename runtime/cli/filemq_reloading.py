"""What `specwire filemq serve` reads again at SIGHUP: its list of clients and its keys."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.rekeying import Rekeying
from specwire.runtime.cli.reloading import Take
from specwire.runtime.filemq import FilemqServer
from specwire.runtime.filemq.access import ServerSecurity
from specwire.runtime.filemq.credentials import read_clients_again
from specwire.runtime.quantities import show_count
from specwire.runtime.transport.keys import KeyPair, load_keys
from specwire.runtime.transport.security import CurveServer


class ServerFiles:
    """The files about who may come in, by the options that name them.

    Args:
        curve, clients, plain: as for `read_server_security`.
        security: what was made of them.
    """

    def __init__(
        self,
        server: FilemqServer,
        log: PeerLog,
        security: ServerSecurity,
        *,
        curve: Path | None,
        clients: Path | None,
        plain: Path | None,
    ) -> None:
        self._server, self._log = server, log
        self._files = {"curve": curve, "clients": clients, "plain": plain}
        self._rekeying = None
        if isinstance(security, CurveServer):
            self._rekeying = Rekeying(self._load_keys, security.keys, server.change_keys, log.line)

    @property
    def any(self) -> bool:
        """Whether there is a file at all."""
        return any(file is not None for file in self._files.values())

    @property
    def takes(self) -> dict[str, Take]:
        """What takes another file of each option."""
        return {name: partial(self._take, name) for name in self._files}

    def reread(self) -> None:
        """Read the files again; one that cannot be used changes nothing."""
        if self._rekeying is not None:
            self._rekeying.reread()
        if self._files["clients"] is not None or self._files["plain"] is not None:
            self._take_clients()

    def _take(self, name: str, file: Path | None) -> str | None:
        if file is None or self._files[name] is None:
            # Whether anybody has to prove anything is settled when a socket is made.
            return f"{name} was set or unset, which holds from the next start on"
        self._files[name] = file
        return None

    def _load_keys(self) -> KeyPair:
        file = self._files["curve"]
        assert file is not None, (
            "there are keys only where a file was named, and another name is taken for it alone"
        )
        return load_keys(file)

    def _take_clients(self) -> None:
        try:
            clients = read_clients_again(clients=self._files["clients"], plain=self._files["plain"])
            if clients is not None:
                self._server.replace_clients(clients)
                self._log.line(f"the list of clients was read again: {show_count(len(clients), 'client')}")
        except ValueError as error:
            self._log.line(f"the list of clients stays as it was: {error}")
