# Written by specwire from generator/support/expressions.py. Do not edit; change that file and run `make generate`.
"""Messages as Spark SQL expressions, for tables of captured frames.

The expressions are texts. They work with DataFrames (`pyspark.sql.functions.expr`), Spark Connect,
views and plain SQL. They need Spark 4 and never fail, whatever the frames are. The query reports no
errors: a row that is not a covered message is NULL in every column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Expressions(NamedTuple):
    """Covered messages of a protocol.

    Attributes:
        levels: names and expressions over ``_frames`` that the others use. Those of a level use
            names of the levels before it.
        message: name of the row's message class; NULL if it is none of the covered messages.
        structs: for each class, the struct of its fields, to be evaluated in rows of that class
            only.
        error: column `_error` of a row that is no message, to be evaluated in such rows only; empty
            if the expressions do not cover all messages.
    """

    levels: tuple[Mapping[str, str], ...]
    message: str
    structs: Mapping[str, str]
    error: str = ""

    def query(self, relation: str, frames: str = "frames") -> str:
        """Return a query that decodes the rows of a table, a view, or a query in parentheses.

        The result has the columns of `relation`, then ``_message``, ``_frames`` (for rows that are
        no covered message) and a struct for each class.

        Args:
            relation: name of a table or view, or a query in parentheses.
            frames: name of the column of type ``array<binary>``.
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
