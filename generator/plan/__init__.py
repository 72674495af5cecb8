"""Plan: the IR of a protocol, lowered once to the operations that every back end spells.

`layout_of` drops what only people read, and `specwire.generated.lowering.lower` makes operations of the
layout.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.plan.layouts import layout_of
from specwire.generator.support.lowering import lower
from specwire.generator.support.plan import Plan


def plan_of(protocol: ir.Protocol) -> Plan:
    """Return the operations of all messages of a protocol."""
    return lower(layout_of(protocol))
