"""Hypothesis strategies for values, records and messages, shared by the packages.

The ``strategies`` module of a package has a function for each class; this package draws what the
plan of the protocol allows. Every value that is drawn can be encoded, and every value that can be
encoded may be drawn, with two exceptions: floating-point numbers that are no number (NaN), which
are equal to nothing, and records in which many others contain each other. Values at a limit are
drawn often, such as a text of 255 octets after a length of one octet. Failing examples shrink to
empty texts, small numbers and no optional frames. Only these modules need hypothesis.
"""

from __future__ import annotations

try:
    from hypothesis.strategies import SearchStrategy
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "the strategies of generated packages need hypothesis: pip install 'specwire[testing]'",
        name="hypothesis",
    ) from None

from specwire.generated.strategies.frames import encoded, malformed, mutated
from specwire.generated.strategies.messages import Drawing, Given, instances
from specwire.generated.strategies.values import (
    bits,
    divided,
    integers,
    json_texts,
    lists,
    octets,
    one_of,
    one_value_of,
    pairs,
    texts,
)

__all__ = (
    "Drawing", "Given", "SearchStrategy", "bits", "divided", "encoded", "instances", "integers", "json_texts",
    "lists", "malformed", "mutated", "octets", "one_of", "one_value_of", "pairs", "texts",
)  # fmt: skip
