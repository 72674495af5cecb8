"""What `specwire norfab broker` reads again at SIGHUP: its table of peers, its keys, and its limits."""

from __future__ import annotations

from pathlib import Path

from specwire.runtime.cli.norfab_limits import read_settings
from specwire.runtime.cli.norfab_running import BrokerLog
from specwire.runtime.cli.rekeying import Rekeying
from specwire.runtime.cli.reloading import Apply
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.security.keyring import Keyring
from specwire.runtime.norfab.security.table import Table
from specwire.runtime.norfab.security.tablefile import AccessError, load_table
from specwire.runtime.norfab.serve import NorfabBroker

FIXED = ("clients", "message_octets", "undelivered_octets")
"""Limits that a broker looks at when it starts."""


class BrokerFiles:
    """The table of peers and the keys of a broker, read again.

    Args:
        table: who may do what; becomes what the file says.
        file: of the table.
        ring: has the keys.
    """

    def __init__(self, broker: NorfabBroker, log: BrokerLog, table: Table, file: Path, ring: Keyring) -> None:
        self._log, self._table, self._file = log, table, file
        self._rekeying = Rekeying(
            lambda: ring.server().keys, ring.server().keys, broker.change_keys, log.line
        )

    def take_access(self, file: Path | None) -> None:
        """Have another file be that of the table; raises ValueError where it was taken away."""
        if file is None:
            raise ValueError("to go back to the table in the folder needs a restart")
        self._file = file

    def reread(self) -> None:
        """Read both again; what cannot be used changes nothing."""
        self._rekeying.reread()
        try:
            self._table.become(load_table(self._file))
        except AccessError as error:
            self._log.line(f"the table of peers stays as it was: {error}")
            return
        self._log.line(f"the table of peers was read again: {len(self._table)} peers")


def appliers_of(
    broker: NorfabBroker, log: BrokerLog, settings: Settings, words: list[str] | None
) -> dict[str, Apply]:
    """Return functions that apply other settings while the broker runs.

    Args:
        settings: those that it has.
        words: the options `--limit` that they are made of.
    """
    keepalive_s = settings.keepalive_s

    def change() -> str | None:
        nonlocal settings
        wanted = read_settings(words, keepalive_s=keepalive_s)
        late = [name for name in FIXED if getattr(wanted, name) != getattr(settings, name)]
        broker.change_settings(wanted)
        settings = wanted
        if not late:
            return None
        return f"the limits hold from now on, but {' and '.join(late)} from the next start on"

    def take_keepalive(seconds: float) -> str | None:
        nonlocal keepalive_s
        keepalive_s = seconds
        return change()

    def take_limit(limits: list[str] | None) -> str | None:
        nonlocal words
        words = limits
        return change()

    return {"keepalive": take_keepalive, "limit": take_limit, "verbose": log.set_jobs}
