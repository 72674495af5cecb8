"""Silences of the sides of connections, and reconnects of peers.

Silences: any message is a sign of life. A silence longer than the protocol tolerates (its timer, or
the caller's value) is a row. `beats` counts the heartbeats that the side had sent. Without
heartbeats a silence may be normal: a client of a Flux broker that makes no requests is silent.
After a farewell, no sign of life is expected. The messages of each side are put in the tap's order,
and each is compared with the one before. The last message of a side is kept for the next step.

Reconnects: a peer comes back on a new connection, or with a second greeting on the old one. A
connection counts as following another if the same tap records the same peer for both, and the
first had no more messages when the second began. Two overlapping connections are not a reconnect.
The first and the last message of each connection are enough for this.

A connection is over once it has been silent for `OVER_S`, by the tap's clock: what comes later
under its name is another one. So it is certain which connection a new one follows when those before
it are over. Of the connections of a peer that are over only the latest is kept, for a day, so the
state has an hour's connections of a peer that connects each second. These are rules about the
messages and not about portions.

Where a tap names a connection after the peer's own name (a NORFAB broker, a Flux parent), a new
connection is the same conversation to it; there the second greeting shows the reconnect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import (
    CONNECTION,
    MOMENT,
    PLACE,
    TAP,
    Advance,
    Continued,
    Frames,
    Step,
    as_table,
    group,
    table_schema,
)
from specwire.runtime.spark.answers.messages import (
    in_order,
    message_tables,
    select,
    stored_rows,
    union,
    with_sql,
)
from specwire.runtime.spark.answers.protocol_specifics import heartbeat_s, silence_s, specifics_of

SILENCES = table_schema(
    *PLACE,
    "sender STRING: role letter of the side in question",
    *MOMENT,
    "until_ts TIMESTAMP: when it spoke again; null where it has not",
    "until_seq BIGINT: the tap's count of that message",
    "silent_s DOUBLE (seconds): how long, to its next message or to the tap's latest",
    "threshold_s DOUBLE (seconds): the silence that was let pass",
    "beats BIGINT: heartbeats that the side had sent in this conversation before",
    "missed BIGINT: heartbeats that would have fitted into the silence",
    "outcome STRING: again (it spoke again), silent (not yet), gone (given up)",
)
"""`ts`, `seq` and `mono` are those of the last message before the silence."""

RECONNECTS = table_schema(
    *PLACE,
    *MOMENT,
    "kind STRING: connection (a new one of the peer after its last one) or greeting (a second one)",
    "before STRING: the conversation before; the same one for a greeting",
    "away_s DOUBLE (seconds): since the latest message of the conversation before",
)
"""`ts`, `seq` and `mono` are those of the first message of the new connection, or of the greeting."""

SIDES = table_schema(
    *CONNECTION,
    "sender STRING: role letter of the side",
    "ts TIMESTAMP: when its latest message came",
    "seq BIGINT: the tap's count of that message",
    "mono BIGINT (nanoseconds): when that was, the tap's monotonic clock",
    "beats BIGINT: heartbeats that it has sent",
    "greetings BIGINT: greetings that it has sent",
    "left BOOLEAN: whether its latest message was a farewell",
)
"""State: the latest message of each side."""

CONNECTIONS = table_schema(
    TAP,
    CONNECTION["peer"],
    CONNECTION["conversation"],
    "ts TIMESTAMP: when its first message came",
    "seq BIGINT: the tap's count of that message",
    "mono BIGINT (nanoseconds): when that was, the tap's monotonic clock",
    "last_seq BIGINT: the tap's count of its latest message",
    "last_mono BIGINT (nanoseconds): when that was, the tap's monotonic clock",
    "told BOOLEAN: whether it is certain that it came after another, or that it did not",
)
"""State: the connections that are not over, and of each peer the last that is."""

GIVEN_UP_S = 86_400
"""Silence, by the tap's clock, after which a side is gone. Later messages are of a new side."""

OVER_S = 3600
"""Silence on both sides after which a connection is over.

It is much longer than any heartbeat interval and any pause of a client between two requests.
"""

GIVEN_UP_NS, OVER_NS = GIVEN_UP_S * 1_000_000_000, OVER_S * 1_000_000_000

SIDE = ("tap", "conversation", "peer", "sender")
CONNECTION_KEY = ("tap", "peer", "conversation")
COUNTED = ("beats", "greetings")


def advance(
    typed: Frames, protocol: str, state: Frames | None = None, *, after_s: float | None = None
) -> Step:
    """Continue the tables `silences` and `reconnects`.

    Args:
        after_s: the longest tolerated silence, in seconds; default: from the protocol's timers.
    """
    threshold_s = silence_s(protocol) if after_s is None else after_s
    messages = _select_messages(typed, protocol)
    connections = _find_connections(messages, stored_rows(state, "connections")).persist()
    taps = connections.groupBy("tap").agg(F.max("tap_mono").alias("tap_mono"))
    sides = _follow_sides(messages, stored_rows(state, "sides"), taps, threshold_s).persist()
    return Step(
        rows={
            "silences": _silences(sides, protocol, threshold_s),
            "reconnects": _reconnects(sides, connections, protocol),
        },
        state={"sides": _sides_to_keep(sides), "connections": _connections_to_keep(connections)},
        cached=(sides, connections),
    )


def silent_after(seconds: float) -> Advance:
    """Return `advance` with a different tolerated silence."""
    return partial(advance, after_s=seconds)


def _select_messages(typed: Frames, protocol: str) -> DataFrame:
    """Return every message, and whether it is a heartbeat, a greeting or a farewell."""
    specifics = specifics_of(protocol)

    def fields(message: str) -> dict[str, str]:
        heartbeat, greeting, farewell = (
            conditions.get(message, "false")
            for conditions in (specifics.heartbeats, specifics.greetings, specifics.farewells)
        )
        return {
            "beats": f"if({heartbeat}, 1L, 0L)",
            "greetings": f"if({greeting}, 1L, 0L)",
            "left": f"coalesce({farewell}, false)",
        }

    names = (name for name in message_tables(protocol) if name in typed)
    return union(select(typed, protocol, name, fields(name)) for name in names)


# --- silences


def _follow_sides(
    messages: DataFrame, sides: Sequence[DataFrame], taps: DataFrame, threshold_s: float
) -> DataFrame:
    """Return messages before a silence, greetings after the first, and each side's latest message.

    Each row also has the message before (`was_mono`) and after (`next_ts`, `next_seq`, `next_mono`;
    null after the latest), how long the side is silent after it (`silent_ns`), by the latest time
    of its tap in `taps` (`tap_mono`), and how many heartbeats and greetings there were so far, this
    one included (`all_beats`, `all_greetings`).
    """
    known = [rows.withColumn("is_known", F.lit(True)) for rows in sides]
    both = union([messages.withColumn("is_known", F.lit(False)), *known])
    window = in_order("key", *SIDE)
    so_far = in_order("key", *SIDE, rows="UNBOUNDED PRECEDING AND CURRENT ROW")
    beside = with_sql(
        both.withColumn("key", F.xxhash64(*SIDE)),
        was_mono=f"lag(mono) {window}",
        **{f"next_{name}": f"lead({name}) {window}" for name in ("ts", "seq", "mono")},
        **{f"all_{name}": f"sum({name}) {so_far}" for name in COUNTED},
    )
    # A side that was given up and returns is counted from 0.
    is_new = f"coalesce(mono - was_mono > {GIVEN_UP_NS}, true)"
    earlier = {
        f"old_{name}": f"last(if({is_new}, all_{name} - {name}, NULL), true) {so_far}" for name in COUNTED
    }
    counted = with_sql(
        with_sql(beside, **earlier), **{f"all_{name}": f"all_{name} - old_{name}" for name in COUNTED}
    )
    timed = counted.join(F.broadcast(taps), "tap")
    silent_ns = "coalesce(next_mono, tap_mono) - mono"
    return with_sql(
        timed,
        silent_ns=silent_ns,
        is_silent=f"{silent_ns} > {round(threshold_s * 1e9)} AND NOT `left`",
        greets_again="NOT is_known AND greetings > 0 AND all_greetings > 1",
    ).where("is_silent OR greets_again OR next_seq IS NULL")


def _silences(sides: DataFrame, protocol: str, threshold_s: float) -> DataFrame:
    gone, every_s = f"silent_ns > {GIVEN_UP_NS}", heartbeat_s(protocol)
    silent_s = f"if({gone}, {GIVEN_UP_S}D, silent_ns / 1e9)"
    rows = with_sql(
        sides.where("is_silent").withColumn("threshold_s", F.lit(threshold_s)),
        until_ts=f"if({gone}, NULL, next_ts)",
        until_seq=f"if({gone}, NULL, next_seq)",
        silent_s=silent_s,
        beats="all_beats",
        missed=f"floor({silent_s} / {every_s}D)" if every_s else "NULL",
        outcome=f"if({gone}, 'gone', if(next_seq IS NULL, 'silent', 'again'))",
    )
    return as_table(rows, protocol, SILENCES, is_open=F.col("outcome") == "silent")


def _sides_to_keep(sides: DataFrame) -> DataFrame:
    """Return the latest message of each side that is not given up."""
    latest = sides.where(f"next_seq IS NULL AND silent_ns <= {GIVEN_UP_NS}")
    return with_sql(latest, **{name: f"all_{name}" for name in COUNTED}).select(*SIDES.fieldNames())


# --- reconnects


def _reconnects(sides: DataFrame, connections: DataFrame, protocol: str) -> DataFrame:
    """Return second greetings, and connections that followed another and are not reported yet."""
    shared = (*CONNECTION_KEY, "ts", "seq", "mono")
    greetings = sides.where("greets_again").selectExpr(
        *shared,
        "'greeting' AS kind",
        "conversation AS before",
        "(mono - was_mono) / 1e9 AS away_s",
        "true AS is_certain",
    )
    away = "mono - last.last_mono"
    came_back = "last.last_seq < seq AND last.conversation <> conversation"
    new_connections = connections.where(f"NOT told AND {came_back} AND {away} <= {GIVEN_UP_NS}").selectExpr(
        *shared,
        "'connection' AS kind",
        "last.conversation AS before",
        f"({away}) / 1e9 AS away_s",
        "is_certain",
    )
    rows = union([greetings, new_connections])
    return as_table(rows, protocol, RECONNECTS, is_open=~F.col("is_certain"))


def _find_connections(messages: DataFrame, stored: Sequence[DataFrame]) -> DataFrame:
    """Return each connection's first and latest message, and the connection that it follows.

    Besides the columns of the state, rows have the tap's latest time (`tap_mono`), the peer's
    latest connection of those that began before (`last`), whether it is over (`is_over`), and
    whether it is certain which connection this one came after, if any (`is_certain`); `told` says
    whether that was certain before these messages.
    """
    span = ("min_by(ts, seq) AS ts", "min(seq) AS seq", "min(mono) AS mono")
    # By the hour, so that what is silent for longer can be seen without sorting all messages.
    hours = group(
        messages,
        (*CONNECTION_KEY, f"floor(mono / {OVER_NS}) AS hour"),
        *span,
        *("max(seq) AS last_seq", "max(mono) AS last_mono", "false AS told"),
    )
    window = in_order(*CONNECTION_KEY)
    begins = f"int(coalesce(mono - lag(last_mono) {window} > {OVER_NS}, true))"
    parts = with_sql(with_sql(union([hours, *stored]), begins=begins), life=f"sum(begins) {window}")
    connections = group(
        parts,
        (*CONNECTION_KEY, "life"),
        *span,
        *("max(last_seq) AS last_seq", "max(last_mono) AS last_mono"),
        "coalesce(max(told), false) AS told",
    )
    earlier = in_order("tap", "peer", rows="UNBOUNDED PRECEDING AND 1 PRECEDING")
    timed = with_sql(
        connections,
        tap_mono="max(last_mono) OVER (PARTITION BY tap)",
        last=f"max(struct(last_seq, last_mono, conversation)) {earlier}",
    )
    return with_sql(
        timed,
        is_over=f"tap_mono - last_mono > {OVER_NS}",
        is_certain=f"coalesce(tap_mono - last.last_mono > {OVER_NS}, true) OR last.last_seq > seq",
    )


def _connections_to_keep(connections: DataFrame) -> DataFrame:
    """Return the connections that the next messages may belong to or come after."""
    last_over = "max(if(is_over, last_seq, NULL)) OVER (PARTITION BY tap, peer)"
    recent = f"tap_mono - last_mono <= {GIVEN_UP_NS}"
    kept = with_sql(connections, is_last=f"last_seq = {last_over} AND {recent}").where(
        "NOT is_over OR is_last"
    )
    return with_sql(kept, told="told OR is_certain").select(*CONNECTIONS.fieldNames())


CONTINUED = Continued(
    "health",
    message_tables,
    {"silences": SILENCES, "reconnects": RECONNECTS},
    {"sides": SIDES, "connections": CONNECTIONS},
    advance,
)
