"""Remote procedure calls of Flux and CMB1: pairs of requests and responses, and unpaired messages.

Thousands of requesters reuse a tag as soon as its call is over, so the tag alone does not identify
a call. The messages of one requester with one tag, on one connection of one tap, are put in the
tap's order and cut into calls. A call begins with each request, and after each response that ends
one. So a response without a request is a separate call (*unasked*), and a request whose tag comes
again before its answer is *unanswered*.

The route stack identifies the requester. It is the same in request and response at every tap: on
the way up the parent's ROUTER adds the child's uuid after, and takes it off before the tap's place;
on the way down a broker's own uuid is in both. Each side may ask (a broker asks a service client),
so the asking side is part of the key. A request that passes through three brokers is three calls at
their three taps, each with its own latency. At one tap that sees it arrive and leave, it is two
calls. They differ in `hops` and `conversation`.

A call is open until its last response; after `GIVEN_UP_S` without a message it is given up. The
open calls are the only state. So one pass over the messages gives closed and open rows, without
intermediate storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.messages import kept, latest, shape, take, together
from specwire.runtime.spark.answers.particulars import Calls, particulars_of
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.requests import REQUESTS
from specwire.runtime.spark.answers.step import OPEN, Frames, Step
from specwire.runtime.spark.protocols import load_machine, load_schemas

GIVEN_UP_S = 86_400
"""Time without messages, by the tap's clock, after which a call is over."""

KEY = ("tap", "conversation", "asker", "requester", "matchtag")
"""Key of messages that may belong together.

Messages are partitioned and sorted by two hashes of the key. This is fast, because names of taps
and connections have equal prefixes. That two of ten thousand million keys agree in both has a
chance of 10^-18.
"""

WHO = (*KEY, "peer", "hops", "alone")
"""Columns that accompany every message and are not used in between.

They are one struct column: each window writes its rows again, field by field, but a struct at once.
"""

BEGUN = ("topic", "nodeid", "userid", "ts", "seq", "mono", "streaming", "first_mono")
"""Columns of a call from its first message."""

SUMMED = ("responses", "octets")
"""Columns summed over all messages of a call."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `requests`; see `specwire.runtime.spark.answers.step`."""
    calls = particulars_of(protocol).calls
    assert calls is not None, f"{protocol} has no requests"
    words = _words(typed, protocol, calls)
    carried = [_carry(rows) for rows in kept(state, "requests")]
    rows = _fold(_together(words, carried), latest(words), calls)
    made = rows.withColumns({"service": F.substring_index("topic", ".", 1), **_durations()})
    table = shape(made, protocol, REQUESTS, is_open=F.col("outcome") == "open")
    return Step({"requests": table}, {"requests": table.where(OPEN).drop(OPEN)})


def _words(typed: Frames, protocol: str, calls: Calls) -> DataFrame:
    """Return requests and responses as rows of one kind.

    For messages that cannot be paired, `alone` has the reason.

    A request has no `errnum`, a response no `nodeid`. What follows from these is not here: each
    column goes through the exchange with every message.
    """
    dialog = _dialog(protocol)
    silent = dialog.unanswered.get("flags", 0)
    streaming = f"flags & {calls.streaming} <> 0" if calls.streaming else "false"
    shared = {"requester": _requester(protocol), "hops": "coalesce(cast(size(routes) as bigint), 0)"}
    shared |= {"matchtag": "matchtag", "topic": "topic", "userid": "userid", "streaming": streaming}
    untagged = "matchtag = 0 then 'untagged' end"
    alone = f"case when flags & {silent} <> 0 then 'noresponse' when {untagged}"
    asked = take(typed, protocol, "Request", shared | {"nodeid": "nodeid", "alone": alone})
    answered = take(
        typed, protocol, "Response", shared | {"errnum": "errnum", "alone": f"case when {untagged}"}
    )
    asker = {"Request": F.col("sender"), "Response": _other_side("sender", dialog.roles)}
    both = (
        rows.withColumn("asker", asker[name]) for name, rows in (("Request", asked), ("Response", answered))
    )
    return together(both).drop("message", "sender")


def _dialog(protocol: str) -> Dialog:
    dialogs: Mapping[str, Dialog] = getattr(load_machine(protocol), "DIALOGS", {})
    return next(iter(dialogs.values()))


def _requester(protocol: str) -> str:
    """Return the SQL that makes a text of a route stack.

    Identities that are octets and no UUID are shown in hex.
    """
    routes = load_schemas(protocol).SCHEMAS["Request"]["routes"].dataType
    assert isinstance(routes, ArrayType)
    if isinstance(routes.elementType, BinaryType):
        text = "coalesce(if(octet_length(r) = 36, try_validate_utf8(cast(r as string)), null), lower(hex(r)))"
        return f"coalesce(array_join(transform(routes, r -> {text}), '!'), '')"
    return "coalesce(array_join(routes, '!'), '')"


def _other_side(sender: str, roles: tuple[str, ...]) -> Column:
    here, there = roles
    return F.when(F.col(sender) == here, there).when(F.col(sender) == there, here).otherwise(F.col(sender))


def _carry(table: DataFrame) -> DataFrame:
    """Return open calls as the messages that they begin with."""
    computed = ("service", "outcome", "first_us", "latency_us", "conversation_name")
    return table.drop("protocol", "date", *computed)


def _together(words: DataFrame, carried: Sequence[DataFrame]) -> DataFrame:
    """Return messages and calls carried over, with two hashes of their keys and `WHO`."""
    rows = together([words.withColumn("last_mono", F.col("mono")), *carried]) if carried else words
    paired = F.col("alone").isNull()
    hashed = F.when(paired, F.xxhash64(*KEY)).otherwise(F.xxhash64("tap", "seq"))
    other = F.when(paired, F.xxhash64(F.lit("call"), *reversed(KEY))).otherwise(F.xxhash64("seq", "tap"))
    keyed = rows.withColumns({"key": hashed, "key2": other, "who": F.struct(*WHO)})
    return keyed.drop(*WHO)


def _asks() -> Column:
    return F.col("nodeid").isNotNull()


def _known(rows: DataFrame, name: str, message: Column) -> Column:
    """Return the value from the earlier messages of a call carried over, or from a message."""
    return F.coalesce(name, message) if name in rows.columns else message


def _fold(words: DataFrame, taps: DataFrame, calls: Calls) -> DataFrame:
    """Cut the messages of each key into calls; the last message of each becomes its row.

    The neighbours of a message show whether it begins a call and whether it ends one. All other
    messages are then dropped. So the first message of a call is the row before its last row, or
    that row. The messages are sorted once, and nothing is grouped. Windows use plain columns only:
    any other expression adds a column to the exchange.
    """
    in_order = Window.partitionBy("key", "key2").orderBy("seq")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    limit = F.lit(GIVEN_UP_S * 1_000_000_000)
    heard = "last_mono" if "last_mono" in words.columns else "mono"
    responses = F.count("errnum").over(so_far)
    if "responses" in words.columns:
        responses += F.coalesce(F.sum("responses").over(so_far), F.lit(0))
    beside = words.withColumns(
        {
            "all_responses": responses,
            "all_octets": F.sum("octets").over(so_far),
            **{f"was_{name}": F.lag(name).over(in_order) for name in ("errnum", "streaming", heard)},
            **{f"next_{name}": F.lead(name).over(in_order) for name in ("nodeid", "mono")},
        }
    )
    was_silent = F.col("mono") - F.col(f"was_{heard}")
    is_silent = F.col("next_mono") - F.col(heard)
    is_latest = is_silent.isNull()
    cut = beside.withColumns(
        {
            "begins": _asks() | was_silent.isNull() | _ends("was_") | (was_silent > limit),
            "is_latest": is_latest,
            "is_last": is_latest | F.col("next_nodeid").isNotNull() | _ends() | (is_silent > limit),
        }
    ).where("begins or is_last")
    # Of a call that was carried over the first response is known; else it is the message after the
    # request.
    answer = F.when(_asks(), F.when(~F.col("is_last"), F.col("next_mono"))).otherwise(F.col("mono"))
    own = {"responses": _known(cut, "responses", F.when(_asks(), 0).otherwise(1)), "octets": F.col("octets")}
    first = cut.withColumns(
        {
            "first_mono": _known(cut, "first_mono", answer),
            **{f"before_{name}": F.col(f"all_{name}") - value for name, value in own.items()},
        }
    )
    taken = (*BEGUN, *(f"before_{name}" for name in SUMMED))
    told = first.withColumns({f"begun_{name}": F.lag(name).over(in_order) for name in taken})
    return _rows(told.where("is_last"), taps, limit, calls)


def _ends(which: str = "") -> Column:
    """Return whether nothing comes after a message, or after the one before it (`was_`).

    A request has no `errnum`.
    """
    errnum, goes_on = F.col(f"{which}errnum"), F.coalesce(f"{which}streaming", F.lit(False))
    return errnum.isNotNull() & (~goes_on | (errnum != 0))


def _rows(ended: DataFrame, taps: DataFrame, limit: Column, calls: Calls) -> DataFrame:
    """Return the calls from their last messages."""
    ended = ended.select("*", *(F.col(f"who.{name}").alias(name) for name in WHO))
    rows = ended.join(F.broadcast(taps), "tap", "left").select(
        *WHO,
        *(_begun(name).alias(name) for name in BEGUN),
        *((F.col(f"all_{name}") - _begun(f"before_{name}")).alias(name) for name in SUMMED),
        _known(ended, "last_mono", F.col("mono")).alias("last_mono"),
        _known(ended, "answered_ts", F.when(~_asks(), F.col("ts"))).alias("answered_ts"),
        F.when(_ends() | F.col("alone").isNotNull(), F.col("errnum")).alias("errnum"),
        _ends().alias("ended"),
        "is_latest",
        "tap_mono",
    )
    return rows.withColumn("outcome", _outcome(limit, calls))


def _begun(name: str) -> Column:
    return F.when(F.col("begins"), F.col(name)).otherwise(F.col(f"begun_{name}"))


def _outcome(limit: Column, calls: Calls) -> Column:
    recent = F.col("is_latest") & ~F.coalesce(F.col("tap_mono") - F.col("last_mono") > limit, F.lit(False))
    well = (F.col("errnum") == 0) | (F.col("streaming") & (F.col("errnum") == calls.last))
    return (
        F.when(F.col("alone").isNotNull(), F.col("alone"))
        .when(~_asks() & F.col("ended"), "unasked")
        .when(F.col("ended") & well, "answered")
        .when(F.col("ended"), "error")
        .when(recent, "open")
        .when(_asks(), "unanswered")
        .otherwise("unasked")
    )


def _durations() -> dict[str, Column]:
    over = F.col("outcome").isin("answered", "error")
    first, last = (F.col(name) - F.col("mono") for name in ("first_mono", "last_mono"))
    return {
        "first_us": F.when(_asks(), F.floor(first / 1000)),
        "latency_us": F.when(over, F.floor(last / 1000)),
    }


def _applies(protocol: str) -> bool:
    return particulars_of(protocol).calls is not None


CONTINUED = (
    Continued(
        name="requests",
        applies=_applies,
        reads=lambda protocol: ("Request", "Response"),
        writes={"requests": REQUESTS},
        keeps={"requests": REQUESTS},
        advance=advance,
    ),
)
