"""The statements of many tickets, carried out with few calls of SQLite.

Each call of SQLite lets go of Python's lock, and where the event loop is busy it takes long to get it back: up to 5 ms for
a row. So rows that follow each other in the same INSERT become one INSERT with many rows.

Values are best what `sqlite3` takes as they are: int, float, str and bytearray. For any other, bytes, bool and None among
them, it asks around for an adapter first, which takes longer than to store a small one; see `blob`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

Parameters = Sequence[Any]
Statement = tuple[str, Parameters]

_ROWS = (512, 256, 128, 64, 32, 16, 8, 4, 2)
"""How many rows an INSERT has; each makes a statement that SQLite has prepared from then on."""

MAX_VARIABLES = 30_000

_SIZED = frozenset((bytes, bytearray, str))

COPIED_OCTETS = 4096
"""Below this size octets are copied sooner than an adapter is looked for."""

_INSERT = re.compile(
    r"\s*(INSERT|REPLACE)\b.*\bVALUES\s*(\(\s*\?(?:\s*,\s*\?)*\s*\))\s*", re.IGNORECASE | re.DOTALL
)


@lru_cache(maxsize=256)
def _widen(sql: str, rows: int) -> str | None:
    """Return an INSERT of this many rows, None where `sql` is no INSERT of one row of plain parameters."""
    found = _INSERT.fullmatch(sql)
    return None if found is None else sql.rstrip() + f", {found[2]}" * (rows - 1)


def blob(octets: bytes) -> bytes | bytearray:
    """Return `octets` as a value of a row."""
    return bytearray(octets) if len(octets) < COPIED_OCTETS else octets


def weigh(row: Parameters) -> int:
    """Return about how many octets a row has, those of its texts and blobs."""
    return sum([len(value) for value in row if type(value) in _SIZED])


def carry_out(connection: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    """Execute the statements in order."""
    for sql, run in groupby(statements, key=itemgetter(0)):
        _execute(connection, sql, [parameters for _, parameters in run])


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
