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

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.answer import (
    MOMENT,
    OPEN,
    PLACE,
    Continued,
    Frames,
    Step,
    as_table,
    table_schema,
)
from specwire.runtime.spark.answers.messages import (
    in_order,
    latest_by_tap,
    select,
    stored_rows,
    union,
    with_sql,
)
from specwire.runtime.spark.answers.protocol_specifics import Calls, specifics_of
from specwire.runtime.spark.protocols import load_machine, load_schemas

REQUESTS = table_schema(
    *PLACE,
    "asker STRING: role letter of the side that asked on this connection",
    "requester STRING: who asked: the route stack, latest hop first, joined by '!'; empty on its own",
    "hops BIGINT: routes in that stack: brokers between who asked and this connection",
    "matchtag BIGINT: the tag that pairs request and responses",
    "topic STRING: service and method",
    "service STRING: the topic up to the first period",
    "nodeid BIGINT: the rank that was asked; null for responses without a request",
    "userid BIGINT: who asked, as the broker that let it in saw it",
    *MOMENT,
    "answered_ts TIMESTAMP: when the latest response came; null where there is none",
    "first_mono BIGINT (nanoseconds): when the first response came, the tap's monotonic clock",
    "last_mono BIGINT (nanoseconds): when the latest message came, the tap's monotonic clock",
    "responses BIGINT: responses so far",
    "streaming BOOLEAN: whether it is a call with a stream of responses",
    "errnum BIGINT: error number of the last response, 0 for success; ENODATA ends a stream well",
    "outcome STRING: answered, error, open (not over yet), unanswered (given up: its tag was used "
    "again, or too long ago), unasked (responses to a request that the tap did not see), noresponse "
    "(none is wanted), untagged (matchtag 0: cannot be paired)",
    "octets BIGINT (octets): octets of the request and its responses",
    "first_us BIGINT (microseconds): from the request to its first response",
    "latency_us BIGINT (microseconds): from the request to its last response; null unless answered or error",
)

GIVEN_UP_S = 86_400
"""Time without messages, by the tap's clock, after which a call is over."""

KEY = ("tap", "conversation", "asker", "requester", "matchtag")
"""Key of messages that may belong together.

Messages are partitioned and sorted by two hashes of the key. This is fast, because names of taps
and connections have equal prefixes. That two of ten thousand million keys agree in both has a
chance of 10^-18.
"""

IDENTITY = (*KEY, "peer", "hops", "alone")
"""Columns that accompany every message and are not used in between.

They are one struct column: each window writes its rows again, field by field, but a struct at once.
"""

BEGUN = ("topic", "nodeid", "userid", "ts", "seq", "mono", "streaming", "first_mono")
"""Columns of a call from its first message."""

SUMMED = ("responses", "octets")
"""Columns summed over all messages of a call."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `requests`; see `specwire.runtime.spark.answers.answer.Advance`."""
    calls = specifics_of(protocol).calls
    assert calls is not None, f"{protocol} has no requests"
    messages = _select_messages(typed, protocol, calls)
    rows = _cut_into_calls(_add_keys(messages, state), latest_by_tap(messages), calls)
    rows = with_sql(
        rows,
        service="substring_index(topic, '.', 1)",
        first_us=f"if({IS_REQUEST}, floor((first_mono - mono) / 1000), NULL)",
        latency_us="if(outcome IN ('answered', 'error'), floor((last_mono - mono) / 1000), NULL)",
    )
    table = as_table(rows, protocol, REQUESTS, is_open=F.col("outcome") == "open")
    return Step({"requests": table}, {"requests": table.where(OPEN).drop(OPEN)})


def _select_messages(typed: Frames, protocol: str, calls: Calls) -> DataFrame:
    """Return requests and responses as rows of one kind; there may be no table of either.

    For messages that cannot be paired, `alone` has the reason. A request has no `errnum`, a
    response no `nodeid`. Columns that follow from these are not here, because each column goes
    through the exchange with every message.
    """
    dialogs: Mapping[str, Dialog] = getattr(load_machine(protocol), "DIALOGS", {})
    dialog = next(iter(dialogs.values()))
    here, there = dialog.roles
    no_response = dialog.unanswered.get("flags", 0)
    untagged = "when matchtag = 0 then 'untagged' end"
    fields = {
        "requester": _requester(protocol),
        "hops": "coalesce(cast(size(routes) as bigint), 0)",
        "streaming": f"flags & {calls.streaming} <> 0" if calls.streaming else "false",
        **{name: name for name in ("matchtag", "topic", "userid")},
    }
    own = {
        "Request": {
            "nodeid": "nodeid",
            "errnum": "CAST(NULL AS bigint)",
            "alone": f"case when flags & {no_response} <> 0 then 'noresponse' {untagged}",
        },
        "Response": {"nodeid": "CAST(NULL AS bigint)", "errnum": "errnum", "alone": f"case {untagged}"},
    }
    other_side = f"CASE sender WHEN '{here}' THEN '{there}' WHEN '{there}' THEN '{here}' ELSE sender END"
    asker = {"Request": "sender", "Response": other_side}
    both = (
        with_sql(select(typed, protocol, name, fields | own[name]), asker=asker[name])
        for name in own
        if name in typed
    )
    return union(both).drop("message", "sender")


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


def _add_keys(messages: DataFrame, state: Frames | None) -> DataFrame:
    """Return messages and open calls of the state, with two hashes of their keys and `identity`.

    An open call is a row like the message that it begins with.
    """
    derived = ("protocol", "date", "service", "outcome", "first_us", "latency_us", "conversation_name")
    calls = [table.drop(*derived) for table in stored_rows(state, "requests")]
    rows = union([messages.withColumn("last_mono", F.col("mono")), *calls]) if calls else messages
    paired = F.col("alone").isNull()
    hashed = F.when(paired, F.xxhash64(*KEY)).otherwise(F.xxhash64("tap", "seq"))
    other = F.when(paired, F.xxhash64(F.lit("call"), *reversed(KEY))).otherwise(F.xxhash64("seq", "tap"))
    keyed = rows.withColumns({"key": hashed, "key2": other, "identity": F.struct(*IDENTITY)})
    return keyed.drop(*IDENTITY)


IS_REQUEST = "nodeid IS NOT NULL"


def _ends_call(which: str = "") -> str:
    """Return the SQL for whether a message, or the one before it (`before_`), ends its call.

    A request has no `errnum`.
    """
    streaming = f"coalesce({which}streaming, false)"
    return f"({which}errnum IS NOT NULL AND (NOT {streaming} OR {which}errnum <> 0))"


def _cut_into_calls(rows: DataFrame, taps: DataFrame, calls: Calls) -> DataFrame:
    """Cut the messages of each key into calls; the last message of each becomes its row.

    The neighbours of a message show whether it begins a call and whether it ends one. All other
    messages are then dropped. So the first message of a call is the row before its last row, or
    that row. The messages are sorted once, and nothing is grouped. Windows use plain columns only:
    any other expression adds a column to the exchange.
    """
    window = in_order("key", "key2")
    so_far = in_order("key", "key2", rows="UNBOUNDED PRECEDING AND CURRENT ROW")
    limit = GIVEN_UP_S * 1_000_000_000

    def stored_or(name: str, sql: str) -> str:
        """Return a column of an open call from the state, or a value for a message."""
        return f"coalesce({name}, {sql})" if name in rows.columns else sql

    last_mono = stored_or("last_mono", "mono")
    heard = "last_mono" if "last_mono" in rows.columns else "mono"
    stored_responses = f" + coalesce(sum(responses) {so_far}, 0)" if "responses" in rows.columns else ""
    beside = with_sql(
        rows,
        all_responses=f"count(errnum) {so_far}{stored_responses}",
        all_octets=f"sum(octets) {so_far}",
        **{f"before_{name}": f"lag({name}) {window}" for name in ("errnum", "streaming", heard)},
        **{f"next_{name}": f"lead({name}) {window}" for name in ("nodeid", "mono")},
    )
    long_before, long_after = f"mono - before_{heard} > {limit}", f"next_mono - {heard} > {limit}"
    cut = with_sql(
        beside,
        is_first=f"{IS_REQUEST} OR before_{heard} IS NULL OR {_ends_call('before_')} OR {long_before}",
        is_latest="next_mono IS NULL",
        is_last=f"next_mono IS NULL OR next_nodeid IS NOT NULL OR {_ends_call()} OR {long_after}",
    ).where("is_first OR is_last")
    # The first response of an open call is known. Else it is the message after the request.
    response = f"if({IS_REQUEST}, if(is_last, NULL, next_mono), mono)"
    first = with_sql(
        cut,
        first_mono=stored_or("first_mono", response),
        earlier_responses=f"all_responses - {stored_or('responses', f'if({IS_REQUEST}, 0, 1)')}",
        earlier_octets="all_octets - octets",
    )
    taken = (*BEGUN, *(f"earlier_{name}" for name in SUMMED))
    ended = with_sql(first, **{f"begun_{name}": f"lag({name}) {window}" for name in taken}).where("is_last")
    begun = {name: f"if(is_first, {name}, begun_{name})" for name in taken}
    given_up = f"coalesce(tap_mono - {last_mono} > {limit}, false)"
    made = (
        ended.select("*", "identity.*")
        .join(F.broadcast(taps), "tap", "left")
        .selectExpr(
            *IDENTITY,
            *(f"{begun[name]} AS {name}" for name in BEGUN),
            *(f"all_{name} - {begun[f'earlier_{name}']} AS {name}" for name in SUMMED),
            f"{last_mono} AS last_mono",
            f"{stored_or('answered_ts', f'if({IS_REQUEST}, NULL, ts)')} AS answered_ts",
            f"if({_ends_call()} OR alone IS NOT NULL, errnum, NULL) AS errnum",
            f"{_ends_call()} AS ended",
            f"is_latest AND NOT {given_up} AS may_continue",
        )
    )
    well = f"(errnum = 0 OR (streaming AND errnum = {calls.end_of_stream}))"
    return with_sql(
        made,
        outcome=f"""CASE
            WHEN alone IS NOT NULL THEN alone
            WHEN ended AND NOT ({IS_REQUEST}) THEN 'unasked'
            WHEN ended AND {well} THEN 'answered'
            WHEN ended THEN 'error'
            WHEN may_continue THEN 'open'
            WHEN {IS_REQUEST} THEN 'unanswered'
            ELSE 'unasked'
        END""",
    )


def _reads(protocol: str) -> tuple[str, ...]:
    return ("Request", "Response") if specifics_of(protocol).calls else ()


CONTINUED = Continued("requests", _reads, {"requests": REQUESTS}, {"requests": REQUESTS}, advance)
