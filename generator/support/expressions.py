"""Messages as expressions of Spark's SQL, for tables of captured frames.

The expressions are texts, so that they do for DataFrames (`pyspark.sql.functions.expr`), for Spark Connect, for views
and for plain SQL. They are of Spark 4, never fail whatever the frames are, and the query says nothing of errors: a
row that is none of the covered messages is NULL everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Expressions(NamedTuple):
    """The covered messages of a protocol.

    Attributes:
        levels: names and expressions that the others use, over ``_frames``; those of a level use names of the levels
            before it.
        message: the name of the row's message class, NULL where it is none of them.
        structs: for each class the struct of its fields, to be computed in rows of that class only.
        error: the column `_error` of a row that is no message, to be computed in such rows only; empty where SQL does
            not say it, because it does not cover all messages.
    """

    levels: tuple[Mapping[str, str], ...]
    message: str
    structs: Mapping[str, str]
    error: str = ""

    def query(self, relation: str, frames: str = "frames") -> str:
        """Return a query that decodes the rows of a table, view or query in parentheses.

        It has the columns of `relation`, then ``_message``, ``_frames`` (of the rows that are no covered message)
        and a struct for each class. `frames` is the column of type ``array<binary>``.
        """
        found = f"SELECT *, {frames} AS _frames FROM {relation}"
        for level in self.levels:
            named = ",\n  ".join(f"{expression} AS {name}" for name, expression in level.items())
            found = f"SELECT *,\n  {named}\nFROM ({found})"
        found = f"SELECT *,\n{self.message} AS _message\nFROM ({found})"
        helpers = ", ".join([name for level in self.levels for name in level] + ["_frames", "_message"])
        structs = "".join(
            f",\n  CASE WHEN _message = '{name}' THEN {struct} END AS {name}"
            for name, struct in self.structs.items()
        )
        frames_left = "if(_message IS NULL, _frames, NULL) AS _frames"
        return f"SELECT * EXCEPT ({helpers}),\n  _message,\n  {frames_left}{structs}\nFROM ({found})"
