"""How messages travel on a byte stream: as the profile says, else as their layouts allow."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.heads import find_units
from specwire.generator.profile import LoadedProfile


def find_stream(
    loaded: LoadedProfile, messages: Sequence[ir.Message], diagnostics: Diagnostics
) -> ir.Stream | ir.UnitStream | None:
    """Return the framing of a stream: parts with sizes, or messages that tell their own length.

    The latter needs no word in the profile where at least one message has a size that covers all behind it
    and every other one has a size or is always as long. E420 where the profile wants it and it cannot be.
    """
    table = loaded.profile.stream
    if table is None or table.units:
        units = find_units(messages)
        if table and units is None:
            diagnostics.error(
                "E420", loaded.place("stream", "units"), "the messages do not say where they end on a stream",
                "each is one frame that begins with constants, then has a size of all behind it or is always as long",
            )  # fmt: skip
        return units
    if table.units is False:
        return None
    return ir.Stream(table.magics, table.length_octets, table.escape, table.long_octets)
