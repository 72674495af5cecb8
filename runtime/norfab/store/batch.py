"""The statements of many tickets, carried out with few calls of SQLite.

Each call of SQLite lets go of Python's lock, and where the event loop is busy it takes long to get it back: up to 5 ms for
a row. So rows that follow each other in the same INSERT become one INSERT with many rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

Parameters = Sequence[Any]
Statement = tuple[str, Parameters]

_ROWS = (512, 256, 128, 64, 32, 16, 8, 4, 2)
"""How many rows an INSERT has; each makes a statement that SQLite has prepared from then on."""

MAX_VARIABLES = 30_000
_INSERT = re.compile(
    r"\s*(INSERT|REPLACE)\b.*\bVALUES\s*(\(\s*\?(?:\s*,\s*\?)*\s*\))\s*", re.IGNORECASE | re.DOTALL
)


@lru_cache(maxsize=256)
def _widen(sql: str, rows: int) -> str | None:
    """Return an INSERT of this many rows, None where `sql` is no INSERT of one row of plain parameters."""
    found = _INSERT.fullmatch(sql)
    return None if found is None else sql.rstrip() + f", {found[2]}" * (rows - 1)


def carry_out(connection: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    """Execute the statements in order."""
    run: list[Parameters] = []
    last = ""
    for sql, parameters in statements:
        if run and sql != last:
            _execute(connection, last, run)
            run = []
        last = sql
        run.append(parameters)
    if run:
        _execute(connection, last, run)


def _execute(connection: sqlite3.Connection, sql: str, run: list[Parameters]) -> None:
    at = 0
    for rows in _ROWS:
        if len(run) - at < rows or rows * len(run[at]) > MAX_VARIABLES:
            continue
        wide = _widen(sql, rows)
        if wide is None:
            break
        while len(run) - at >= rows:
            connection.execute(wide, tuple(chain.from_iterable(run[at : at + rows])))
            at += rows
    for parameters in run[at:]:
        connection.execute(sql, parameters)
