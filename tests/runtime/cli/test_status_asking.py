"""Status as text."""

from __future__ import annotations

from specwire.runtime.cli.status_asking import describe_status
from tests.runtime.kernel.test_log import house


def test_status_as_text() -> None:
    """One line for a field, a table for structs; names of peers cannot forge lines."""
    assert [*describe_status(house())] == [
        "name     house",
        "warm     yes",
        "came     3",
        "left     2",
        "by day   Monday=4",
        "rooms",
        "  room     open doors",
        "  kitchen  1",
        "  hall\\n   1,200",
        "visit s  3 values, 21.500 in all",
        "cellar",
        "  room        cellar",
        "  open doors  0",
    ]
