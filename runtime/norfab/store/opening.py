"""A store as its next process finds it: damaged or whole, with what the one before it has left in its redo log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from specwire.runtime.norfab.store.batch import Statement
from specwire.runtime.norfab.store.errors import StoreError, StoreInUseError
from specwire.runtime.norfab.store.keeper import Keeper, Ticket
from specwire.runtime.norfab.store.lock import StoreLock
from specwire.runtime.norfab.store.redo import read_redo, redo_file

logger = logging.getLogger(__name__)

Salvage = Callable[[Path], Sequence[Statement]]
"""Returns what puts into a new database what can be read of a damaged one."""

SALVAGED = 2000
"""Statements that are carried out together."""


def open_store(keeper: Keeper, path: Path, salvage: Salvage | None = None) -> int:
    """Open the database, and bring in what is left: of a damaged one first, then of the redo log, which is removed.

    In this order: the log may have the deletion of what is salvaged.

    Returns:
        The serial number of the last record of a redo log that the database has.

    Raises:
        StoreError: it cannot be opened, or does not take what must not be lost; the keeper is closed.
    """
    keeper.open()
    try:
        return _bring_in(keeper, path, salvage)
    except BaseException:
        keeper.close()
        raise


def _bring_in(keeper: Keeper, path: Path, salvage: Salvage | None) -> int:
    redo, last = redo_file(path), keeper.brought_in()
    aside = keeper.moved_aside
    saved = [*_tickets(salvage(aside))] if aside is not None and salvage is not None else []
    if saved:
        for _, why in keeper.keep(saved):
            raise StoreError(f"{path} does not take what can be read of {aside}: {why}")
    tickets = [Ticket.of(*record) for record in read_redo(redo, last)]
    if tickets:
        left, why = keeper.bring_in(tickets)
        if left:
            raise StoreError(f"{path} does not take what {redo} has, and must not lose: {why}")
        last = tickets[-1].number
    try:
        redo.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{redo} cannot be removed: {error.strerror}") from None
    return last


def _tickets(statements: Sequence[Statement]) -> Iterator[Ticket]:
    for at in range(0, len(statements), SALVAGED):
        yield Ticket.of(at, statements[at : at + SALVAGED])


def tidy_up(path: Path, schema: Sequence[str], version: int = 1) -> None:
    """Bring in what a process that was killed has left, for who only reads; nothing is done where a process has the store.

    Raises:
        StoreError: that is not possible.
    """
    if not redo_file(path).exists():
        return
    with suppress(StoreInUseError):
        lock = StoreLock(path)
        try:
            keeper = Keeper(path, schema, version, "process", logger.warning)
            open_store(keeper, path)
            keeper.close()
        finally:
            lock.release()
