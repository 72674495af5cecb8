"""Continued answers about the health of connections: silences and reconnects."""

from __future__ import annotations

from functools import partial

from pyspark.sql import functions as F

from specwire.runtime.spark.answers.messages import kept, message_tables, shape, together
from specwire.runtime.spark.answers.particulars import silence_s
from specwire.runtime.spark.answers.reconnects import (
    CONNECTIONS,
    connections,
    kept_connections,
    new_connections,
    second_greetings,
)
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.health import RECONNECTS, SILENCES
from specwire.runtime.spark.answers.silences import SIDES, kept_sides, side_words, silent_sides, watch
from specwire.runtime.spark.answers.step import Advance, Frames, Step


def advance(
    typed: Frames, protocol: str, state: Frames | None = None, *, after_s: float | None = None
) -> Step:
    """Continue the tables `silences` and `reconnects`.

    Args:
        after_s: the longest tolerated silence, in seconds; default: from the protocol's timers.
    """
    threshold_s = silence_s(protocol) if after_s is None else after_s
    words = side_words(typed, protocol)
    known = connections(words, kept(state, "connections")).persist()
    taps = known.groupBy("tap").agg(F.max("tap_mono").alias("tap_mono"))
    watched = watch(words, kept(state, "sides"), taps, threshold_s).persist()
    silent = silent_sides(watched, protocol, threshold_s)
    came = together([second_greetings(watched), new_connections(known)])
    return Step(
        rows={
            "silences": shape(silent, protocol, SILENCES, is_open=F.col("outcome") == "silent"),
            "reconnects": shape(came, protocol, RECONNECTS, is_open=~F.col("is_certain")),
        },
        state={
            "sides": kept_sides(watched),
            "connections": kept_connections(known),
        },
        cached=(watched, known),
    )


def silent_after(seconds: float) -> Advance:
    """Return `advance` with a different tolerated silence."""
    return partial(advance, after_s=seconds)


CONTINUED = (
    Continued(
        name="health",
        applies=lambda protocol: True,
        reads=message_tables,
        writes={"silences": SILENCES, "reconnects": RECONNECTS},
        keeps={"sides": SIDES, "connections": CONNECTIONS},
        advance=advance,
    ),
)
