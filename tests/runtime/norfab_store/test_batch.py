"""Many statements with few calls: whatever is asked for, the tables are as if it had been done one by one."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.norfab.store.batch import Statement, carry_out

KINDS = (
    "INSERT INTO thing VALUES (?, ?)",
    "INSERT OR REPLACE INTO thing (number, text) VALUES ( ?,? )",
    "insert or ignore into thing\nvalues (?, ?)",
    "INSERT INTO thing VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET text = 'again'",
    "INSERT INTO thing SELECT ?, ?",
    "UPDATE thing SET text = ?2 WHERE number <= ?1",
    "DELETE FROM thing WHERE number = ? AND text <> ?",
)
"""The first one fails where a number is there already, as it is to."""


def tables_after(statements: list[Statement], *, singly: bool) -> object:
    """Return what is in the table afterwards, or the fault."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE thing (number INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("BEGIN")
    try:
        if singly:
            for sql, row in statements:
                connection.execute(sql, row)
        else:
            carry_out(connection, statements)
    except sqlite3.IntegrityError:
        return "fails"
    finally:
        rows = connection.execute("SELECT * FROM thing ORDER BY number").fetchall()
        connection.close()
    return rows


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS[1:]),
            st.tuples(st.integers(0, 30), st.sampled_from("abc")),
            st.integers(1, 40),
        ),
        max_size=12,
    )
)
def test_the_same_as_one_by_one(runs: list[tuple[str, tuple[int, str], int]]) -> None:
    """Runs of any length, of statements that are widened and of others, in any order."""
    statements: list[Statement] = [
        (sql, (first + step, text)) for sql, (first, text), times in runs for step in range(times)
    ]
    assert tables_after(statements, singly=False) == tables_after(statements, singly=True)


@pytest.mark.parametrize("rows", [1, 2, 3, 127, 128, 129, 1023, 1700])
def test_long_runs_are_few_calls(rows: int) -> None:
    """Every row is there once, and far fewer statements than rows were run."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE thing (number INTEGER PRIMARY KEY, text TEXT)")
    calls: list[str] = []
    connection.set_trace_callback(calls.append)
    carry_out(connection, [(KINDS[0], (number, "x")) for number in range(rows)])
    connection.set_trace_callback(None)
    assert len(calls) <= 9 + rows // 512
    assert connection.execute("SELECT count(*) FROM thing").fetchone() == (rows,)
    connection.close()


def test_wide_rows_stay_within_sqlites_variables() -> None:
    """A row of a thousand columns is not multiplied beyond what a statement may have."""
    columns = ", ".join(f"c{number}" for number in range(1000))
    marks = ", ".join("?" * 1000)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE wide ({columns})")
    carry_out(connection, [(f"INSERT INTO wide VALUES ({marks})", tuple(range(1000)))] * 600)
    assert connection.execute("SELECT count(*), max(c999) FROM wide").fetchone() == (600, 999)
    connection.close()
