"""Positions of a message's faults, in order: part, frame, field, as Spark SQL expressions."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.sql_faults import NO_NUMBER, NO_OCTETS, NO_TEXT, fault
from specwire.generator.emit.sql_text import Lets, Sum, quoted
from specwire.generator.support.errors import Kind


class Place:
    """Position in the frames of one message, and the faults checked before it."""

    def __init__(self, message: ir.Message, protocol: ir.Protocol, lets: Lets) -> None:
        self.message, self.protocol, self.lets = message, protocol, lets
        self.rows: list[str] = []
        self.there = ""
        """Name of the expression that is 1 if the part is present; empty if it always is."""
        self.frame = Sum()
        """Index of the frame."""
        self.field = NO_TEXT
        self.rule = message.name

    def enter(self, field: str, rule: str | None) -> None:
        """Move to a field: its path, and its rule if it has one."""
        self.field, self.rule = field, rule or self.message.name

    def enter_message(self) -> None:
        """Move to a position that belongs to no field."""
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
        """Add the fault for a condition, at octet `offset` (None: no octet is at fault)."""
        there = f"{self.there} = 1 AND " if self.there else ""
        told = fault(
            quoted(self.message.name), self.field, frame or str(self.frame), _place(offset), kind, expected,
            quoted(f"{self.protocol.edition} {self.rule}"), found=found, octets=octets,
        )  # fmt: skip
        self.rows.append(f"WHEN {there}{condition} THEN {told}")


def _place(offset: Sum | None) -> str:
    """Lengths are BIGINT; a position inside a frame is an INT."""
    if offset is None:
        return NO_NUMBER
    return f"cast({offset} AS INT)" if offset.terms else str(offset)
