"""Framing of messages on a byte stream, as the profile declares or as the layouts allow."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.heads import find_units
from specwire.generator.profile.tables import LoadedProfile


def find_stream(
    loaded: LoadedProfile, messages: Sequence[ir.Message], diagnostics: Diagnostics
) -> ir.Stream | ir.UnitStream | None:
    """Return the framing of a stream: parts with sizes, or messages that define their length.

    The profile need not declare the latter if at least one message has a size that covers
    everything after it, and every other message has a size or a fixed length. E420 if the profile
    requires it and the layouts do not allow it.
    """
    table = loaded.profile.stream
    if table is None or table.units:
        units = find_units(messages)
        if table and units is None:
            diagnostics.error(
                "E420",
                loaded.place("stream", "units"),
                "the end of a message on a stream is not defined",
                "specwire can express it only for messages of one frame that begins with constants, then "
                "has a size of everything after it or a fixed length",
            )
        return units
    if table.units is False:
        return None
    return ir.Stream(table.magics, table.length_octets, table.escape, table.long_octets)
