"""Remote procedure calls of Flux and CMB1: every request with its responses, and what lacks the other half.

A tag is used again as soon as its call is over, by thousands of requesters, so a tag alone pairs nothing. The
messages of one requester with one tag, on one connection of one tap, are put in the tap's order and cut into
calls: a call begins with each request, and after each response that ends one. So a response without a request
makes a call of its own (*unasked*), and a request whose tag comes again before its answer is *unanswered*.

The requester is told by the route stack, which is the same in request and response wherever a tap sits: on the
way up the parent's ROUTER adds the child's uuid after, and takes it off before the tap's place; on the way down a
broker's own uuid is in both. Each side may ask (a broker asks a service client), so who asks is part of the key.
A request that passes through three brokers is three calls to their three taps, each with its own latency, and two
to one tap that sees it come and go on; `hops` and `conversation` tell them apart.

A call is open until its last response; after `GIVEN_UP_S` without a word it is given up. The open calls are all
the state there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.messages import kept, latest, shape, take, together
from specwire.runtime.spark.answers.particulars import Calls, particulars_of
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.requests import REQUESTS
from specwire.runtime.spark.answers.step import Frames, Step
from specwire.runtime.spark.protocols import load_machine, load_schemas

GIVEN_UP_S = 86_400
"""A call of which nothing was heard for so long, by the tap's clock, is over."""

KEY = ("key", "tap", "conversation", "peer", "asker", "requester", "matchtag")
"""Whose messages may belong together. The hash comes first because Spark compares 8 octets of the first column
quickly when it sorts, and the names of taps and connections all begin alike."""

ASKED = ("hops", "topic", "nodeid", "userid", "ts", "seq", "mono", "streaming")
"""What a call takes from the message that it begins with."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `requests`; see `specwire.runtime.spark.answers.step`."""
    calls = particulars_of(protocol).calls
    assert calls is not None, f"{protocol} has no requests"
    words = _words(typed, protocol, calls)
    paired = words.where("outcome is null")
    carried = [_carry(rows) for rows in kept(state, "requests")]
    rows = _fold(together([paired, *carried]), latest(words), calls)
    alone = words.where("outcome is not null").withColumn("open", F.lit(False))
    whole = together([rows, alone.drop("key", "asks", "ends")])
    made = whole.withColumns({"service": F.substring_index("topic", ".", 1), **_durations()})
    table = shape(made, protocol, REQUESTS).persist()
    still = F.col("outcome") == "open"
    opened = table.where(still)
    return Step({"requests": table.where(~still)}, {"requests": opened}, {"requests": opened}, (table,))


def _words(typed: Frames, protocol: str, calls: Calls) -> DataFrame:
    """Return requests and responses as rows of one kind; those that cannot be paired have their outcome already."""
    dialog = _dialog(protocol)
    silent = dialog.unanswered.get("flags", 0)
    streaming = f"flags & {calls.streaming} <> 0" if calls.streaming else "false"
    shared = {"requester": _requester(protocol), "hops": "coalesce(cast(size(routes) as bigint), 0)"}
    shared |= {"matchtag": "matchtag", "topic": "topic", "userid": "userid", "streaming": streaming}
    asked = take(
        typed,
        protocol,
        "Request",
        shared
        | {
            "nodeid": "nodeid",
            "asks": "true",
            "ends": "false",
            "responses": "0L",
            "outcome": f"case when flags & {silent} <> 0 then 'noresponse' when matchtag = 0 then 'untagged' end",
        },
    ).withColumn("asker", F.col("sender"))
    answered = take(
        typed,
        protocol,
        "Response",
        shared
        | {
            "errnum": "errnum",
            "asks": "false",
            "ends": f"not ({streaming}) or errnum <> 0",
            "responses": "1L",
            "outcome": "case when matchtag = 0 then 'untagged' end",
        },
    ).withColumns(
        {
            "asker": _other_side("sender", dialog.roles),
            "first_mono": F.col("mono"),
            "answered_ts": F.col("ts"),
        }
    )
    words = together([asked, answered]).drop("message", "sender")
    return words.withColumns({"last_mono": F.col("mono"), "key": F.xxhash64(*KEY[1:])})


def _dialog(protocol: str) -> Dialog:
    dialogs: Mapping[str, Dialog] = getattr(load_machine(protocol), "DIALOGS", {})
    return next(iter(dialogs.values()))


def _requester(protocol: str) -> str:
    """Return the SQL that makes a text of a route stack; identities that are octets and no UUID are shown in hex."""
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
    """Return open calls as the rows that they begin with."""
    started = table.drop("protocol", "date", "service", "outcome", "first_us", "latency_us")
    return started.withColumns(
        {
            "asks": F.col("nodeid").isNotNull(),
            "ends": F.lit(False),
            "key": F.xxhash64(*KEY[1:]),
        }
    )


def _fold(words: DataFrame, taps: DataFrame, calls: Calls) -> DataFrame:
    """Cut the messages of each key into calls, and make a row of each."""
    in_order = Window.partitionBy(*KEY).orderBy("seq")
    limit = F.lit(GIVEN_UP_S * 1_000_000_000)
    silent = F.col("mono") - F.lag("last_mono").over(in_order) > limit
    begins = F.col("asks") | F.coalesce(F.lag("ends").over(in_order), F.lit(True)) | silent
    cut = words.withColumns({"begins": begins, "is_latest": F.lead("seq").over(in_order).isNull()})
    numbered = cut.withColumn("call", F.count_if("begins").over(in_order))
    at_first = [F.max(F.when(F.col("begins"), F.col(name))).alias(name) for name in ASKED]
    rows = numbered.groupBy(*KEY, "call").agg(
        *at_first,
        F.max("asks").alias("asks"),
        F.max("ends").alias("ended"),
        F.max("is_latest").alias("is_latest"),
        F.sum("responses").alias("responses"),
        F.sum("octets").alias("octets"),
        F.min("first_mono").alias("first_mono"),
        F.max("last_mono").alias("last_mono"),
        F.max("answered_ts").alias("answered_ts"),
        F.max(F.when(F.col("ends"), F.col("errnum"))).alias("errnum"),
    )
    timed = rows.join(F.broadcast(taps), "tap", "left")
    return timed.withColumn("outcome", _outcome(limit, calls)).drop(
        "key", "call", "ended", "is_latest", "tap_mono"
    )


def _outcome(limit: Column, calls: Calls) -> Column:
    recent = F.col("is_latest") & ~F.coalesce(F.col("tap_mono") - F.col("last_mono") > limit, F.lit(False))
    well = (F.col("errnum") == 0) | (F.col("streaming") & (F.col("errnum") == calls.last))
    return (
        F.when(~F.col("asks") & F.col("ended"), "unasked")
        .when(F.col("ended") & well, "answered")
        .when(F.col("ended"), "error")
        .when(recent, "open")
        .when(F.col("asks"), "unanswered")
        .otherwise("unasked")
    )


def _durations() -> dict[str, Column]:
    asked = F.col("nodeid").isNotNull()
    over = F.col("outcome").isin("answered", "error")
    first, last = (F.col(name) - F.col("mono") for name in ("first_mono", "last_mono"))
    return {
        "first_us": F.when(asked, first / 1000),
        "latency_us": F.when(over, last / 1000),
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
