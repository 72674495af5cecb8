"""Where the faults of a message are, one behind the other: part, frame, field, as expressions of Spark's SQL."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.sql_faults import NO_NUMBER, NO_OCTETS, NO_TEXT, fault
from specwire.generator.emit.sql_text import Lets, Sum, quoted
from specwire.generator.support.errors import Kind


class Place:
    """A place in the frames of one message, and the faults that were looked for before it."""

    def __init__(self, message: ir.Message, protocol: ir.Protocol, lets: Lets) -> None:
        self.message, self.protocol, self.lets = message, protocol, lets
        self.rows: list[str] = []
        self.there = ""
        """The name of 1 where the part is there; empty where it always is."""
        self.frame = Sum()
        """The frame's index."""
        self.field = NO_TEXT
        self.rule = message.name

    def enter(self, field: str, rule: str | None) -> None:
        """Go on to a field: its path, and its rule where it has one."""
        self.field, self.rule = field, rule or self.message.name

    def enter_message(self) -> None:
        """Go on to what is no field's."""
        self.enter(NO_TEXT, None)

    def refuse(
        self,
        condition: str,
        kind: Kind,
        expected: str,
        *,
        found: str = NO_TEXT,
        octets: str = NO_OCTETS,
        offset: Sum | None = None,
        frame: str = "",
    ) -> None:
        """Add the fault that is there under a condition, at octet `offset` (None: no octet is meant)."""
        there = f"{self.there} = 1 AND " if self.there else ""
        told = fault(
            quoted(self.message.name), self.field, frame or str(self.frame), _place(offset), kind, expected,
            quoted(f"{self.protocol.edition} {self.rule}"), found=found, octets=octets,
        )  # fmt: skip
        self.rows.append(f"WHEN {there}{condition} THEN {told}")


def _place(offset: Sum | None) -> str:
    """Lengths are BIGINT; a place that is in a frame is not."""
    if offset is None:
        return NO_NUMBER
    return f"cast({offset} AS INT)" if offset.terms else str(offset)
