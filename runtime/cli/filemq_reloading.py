"""Files that `specwire filemq serve` reads again at SIGHUP: the list of clients and the keys."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.rekeying import Rekeying
from specwire.runtime.cli.reloading import Apply
from specwire.runtime.filemq import FilemqServer
from specwire.runtime.filemq.access import read_clients_again, read_server_security
from specwire.runtime.filemq.settings import ServeSettings
from specwire.runtime.quantities import show_count
from specwire.runtime.transport.keys import KeyPair, load_keys
from specwire.runtime.transport.security import CurveServer


class ServerFiles:
    """Who may connect, as the files of the settings say.

    Attributes:
        security: how clients prove who they are.
        clients: who is admitted; None: whoever knows the server's key.

    Raises:
        AccessError: a file cannot be used, or two settings exclude each other.
    """

    def __init__(self, settings: ServeSettings, log: PeerLog) -> None:
        self._log = log
        self._files = {"curve": settings.curve, "clients": settings.clients, "plain": settings.plain}
        self.security, self.clients = read_server_security(**self._files)
        self._server: FilemqServer | None = None
        self._rekeying: Rekeying | None = None

    def attach(self, server: FilemqServer) -> None:
        """Apply changes to this server."""
        self._server = server
        if isinstance(self.security, CurveServer):
            self._rekeying = Rekeying(self._load_keys, self.security.keys, server.change_keys, self._log.line)

    @property
    def any(self) -> bool:
        """Whether there is a file at all."""
        return any(file is not None for file in self._files.values())

    @property
    def appliers(self) -> dict[str, Apply]:
        """Functions that apply another file, by setting."""
        return {name: partial(self._change, name) for name in self._files}

    def reread(self) -> None:
        """Read the files again; one that cannot be used changes nothing."""
        if self._rekeying is not None:
            self._rekeying.reread()
        if self._files["clients"] is not None or self._files["plain"] is not None:
            self._reread_clients()

    def _change(self, name: str, file: Path | None) -> str | None:
        if file is None or self._files[name] is None:
            # The security of a socket is settled when it is made.
            return f"{name} was set or unset, which holds from the next start on"
        self._files[name] = file
        return None

    def _load_keys(self) -> KeyPair:
        file = self._files["curve"]
        assert file is not None, "a server has keys only if the settings name a file"
        return load_keys(file)

    def _reread_clients(self) -> None:
        assert self._server is not None, "attach comes before any reload"
        try:
            clients = read_clients_again(clients=self._files["clients"], plain=self._files["plain"])
            if clients is not None:
                self._server.replace_clients(clients)
                self._log.line(f"the list of clients was read again: {show_count(len(clients), 'client')}")
        except ValueError as error:
            self._log.line(f"the list of clients stays as it was: {error}")
