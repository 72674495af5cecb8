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
the state there is, so closed and open rows are one pass over the messages, and nothing is held in between.
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
from specwire.runtime.spark.answers.step import OPEN, Frames, Step
from specwire.runtime.spark.protocols import load_machine, load_schemas

GIVEN_UP_S = 86_400
"""A call of which nothing was heard for so long, by the tap's clock, is over."""

KEY = ("tap", "conversation", "asker", "requester", "matchtag")
"""Whose messages may belong together. They are partitioned and sorted by two hashes of it, which is what makes this quick: names
of taps and connections all begin alike. That two of ten thousand million keys agree in both has a chance of 10^-18."""

BEGUN = ("topic", "nodeid", "userid", "ts", "seq", "mono", "streaming", "first_mono")
"""What a call takes from the message that it begins with. Each goes along by itself: a struct would be copied with every
message."""

SUMMED = ("responses", "octets")
"""What is counted over all messages of a call."""

STAND_INS: Mapping[str, int | str] = {"topic": "\0", "nodeid": -1, "userid": -1, "first_mono": -1}
"""What goes along in the place of null, for which the value of the call before would be taken."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `requests`; see `specwire.runtime.spark.answers.step`."""
    calls = particulars_of(protocol).calls
    assert calls is not None, f"{protocol} has no requests"
    words = _words(typed, protocol, calls)
    carried = [_carry(rows) for rows in kept(state, "requests")]
    rows = _fold(together([words, *carried]), latest(words), calls)
    made = rows.withColumns({"service": F.substring_index("topic", ".", 1), **_durations()})
    table = shape(made, protocol, REQUESTS, is_open=F.col("outcome") == "open")
    return Step({"requests": table}, {"requests": table.where(OPEN).drop(OPEN)})


def _words(typed: Frames, protocol: str, calls: Calls) -> DataFrame:
    """Return requests and responses as rows of one kind; of those that cannot be paired `alone` says why."""
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
            "alone": f"case when flags & {silent} <> 0 then 'noresponse' when matchtag = 0 then 'untagged' end",
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
            "alone": "case when matchtag = 0 then 'untagged' end",
        },
    ).withColumns(
        {
            "asker": _other_side("sender", dialog.roles),
            "first_mono": F.col("mono"),
            "answered_ts": F.col("ts"),
        }
    )
    return together([asked, answered]).drop("message", "sender").withColumn("last_mono", F.col("mono"))


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
    """Return open calls as the messages that they begin with."""
    started = table.drop("protocol", "date", "service", "outcome", "first_us", "latency_us")
    return started.withColumns({"asks": F.col("nodeid").isNotNull(), "ends": F.lit(False)})


def _fold(words: DataFrame, taps: DataFrame, calls: Calls) -> DataFrame:
    """Cut the messages of each key into calls; the last message of each becomes its row.

    Every message learns in two steps over one order: from its neighbours whether it begins a call and whether it ends
    one, and then what its call began with. So the messages are sorted once, and nothing is grouped.
    """
    paired = F.col("alone").isNull()
    hashed = F.when(paired, F.xxhash64(*KEY)).otherwise(F.xxhash64("tap", "seq"))
    other = F.when(paired, F.xxhash64(F.lit("call"), *reversed(KEY))).otherwise(F.xxhash64("seq", "tap"))
    keyed = words.withColumns({"key": hashed, "key2": other})
    in_order = Window.partitionBy("key", "key2").orderBy("seq")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    limit = F.lit(GIVEN_UP_S * 1_000_000_000)
    beside = keyed.withColumns(
        {
            **{f"all_{name}": F.sum(name).over(so_far) for name in SUMMED},
            **{f"was_{name}": F.lag(name).over(in_order) for name in ("ends", "last_mono")},
            **{f"next_{name}": F.lead(name).over(in_order) for name in ("asks", "mono")},
        }
    )
    cut = beside.withColumns(
        {
            "begins": F.col("asks") | _is_over("was_ends", F.col("mono") - F.col("was_last_mono"), limit),
            "is_latest": F.col("next_asks").isNull(),
            "next_begins": F.col("next_asks")
            | _is_over("ends", F.col("next_mono") - F.col("last_mono"), limit),
        }
    ).withColumn("is_last", F.col("is_latest") | F.col("next_begins"))
    # Of a call that was carried over the first response is known; else it is the message after the request.
    follows = F.when(~F.col("is_last"), F.col("next_mono"))
    first = cut.withColumn("first_mono", F.coalesce("first_mono", follows))
    begun = {f"begun_{name}": _stand_in(name) for name in BEGUN}
    begun |= {f"before_{name}": F.col(f"all_{name}") - F.col(name) for name in SUMMED}
    told = first.withColumns(
        {
            name: F.last(F.when(F.col("begins"), value), ignorenulls=True).over(so_far)
            for name, value in begun.items()
        }
    )
    return _rows(told.where("is_last"), taps, limit, calls)


def _is_over(ends: str, silence: Column, limit: Column) -> Column:
    """Return whether the message that comes after one belongs to another call, whatever it is."""
    return F.coalesce(ends, F.lit(True)) | (silence > limit)


def _rows(ended: DataFrame, taps: DataFrame, limit: Column, calls: Calls) -> DataFrame:
    """Return the calls from their last messages."""
    begun = {name: F.col(f"begun_{name}") for name in BEGUN}
    begun |= {name: F.nullif(begun[name], F.lit(value)) for name, value in STAND_INS.items()}
    sums = ((F.col(f"all_{name}") - F.col(f"before_{name}")).alias(name) for name in SUMMED)
    rows = ended.join(F.broadcast(taps), "tap", "left").select(
        *KEY,
        "peer",
        *("hops", "alone"),
        *(value.alias(name) for name, value in begun.items()),
        *sums,
        "last_mono",
        "answered_ts",
        F.when(F.col("ends") | F.col("alone").isNotNull(), F.col("errnum")).alias("errnum"),
        F.col("ends").alias("ended"),
        "is_latest",
        "tap_mono",
    )
    return rows.withColumns({"asks": F.col("nodeid").isNotNull()}).withColumn(
        "outcome", _outcome(limit, calls)
    )


def _stand_in(name: str) -> Column:
    return F.coalesce(name, F.lit(STAND_INS[name])) if name in STAND_INS else F.col(name)


def _outcome(limit: Column, calls: Calls) -> Column:
    recent = F.col("is_latest") & ~F.coalesce(F.col("tap_mono") - F.col("last_mono") > limit, F.lit(False))
    well = (F.col("errnum") == 0) | (F.col("streaming") & (F.col("errnum") == calls.last))
    return (
        F.when(F.col("alone").isNotNull(), F.col("alone"))
        .when(~F.col("asks") & F.col("ended"), "unasked")
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
