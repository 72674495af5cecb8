"""Roll-ups of all messages: how many there were, which did not decode, and who sent them to whom.

- `traffic` counts messages by minute, `errors` those that did not decode by their error.
- `nodes` and `edges` have the peers and the traffic between them.

A tap records a connection's peer: at a server or broker the peer that connected, at a client the
endpoint that it connected to (which contains ``://``). The other end is the tap's own side,
represented by the tap's name. So an edge of messages leads from the peer to the tap's name or back,
depending on the sender.

Edges of calls lead from the requester to the service, and for jobs from the service to the workers.
A call that a broker forwards is seen again on the next connection, with one more route. It counts
as `calls` only on its requester's connection, and as `relayed` on all others. The requester is the
bottom of the route stack.

A broker of Flux identifies the connection to its parent by its own uuid, and so does the parent's
tap. So that edge is the same from both taps, except for the tap's name. Connections that two taps
saw count once.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import (
    CONNECTION,
    STORED,
    TAP,
    Frames,
    RollUp,
    Sums,
    as_table,
    group,
    sums,
    table_schema,
)
from specwire.runtime.spark.answers.durations import (
    ENDED,
    IS_TIMED,
    OUTCOMES,
    PER_DECADE,
    SUBJECT,
    TIMED,
    TOOK_US,
    TOPICS,
)
from specwire.runtime.spark.answers.messages import message_tables, select, union
from specwire.runtime.spark.answers.protocol_specifics import specifics_of, takes_time, tap_name
from specwire.runtime.spark.answers.taps import without_second_views
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import load_machine

TRAFFIC = table_schema(
    *STORED,
    "minute TIMESTAMP: the minute in which it began, UTC",
    TAP,
    "message STRING: class of the messages; _errors where they did not decode",
    "sender STRING: role letter of the side that sent them",
    "topic STRING: topic, service or group of the messages; null where they have none",
    "messages BIGINT: messages",
    "octets BIGINT (octets): octets of all frames",
    "errors BIGINT: messages that did not decode",
)

ERRORS_FOUND = table_schema(
    *STORED,
    TAP,
    "sender STRING: role letter of the side in question",
    "message STRING: message that the octets seem to be; null where not even that is known",
    "field STRING: path of the field at fault",
    "kind STRING: what is wrong with it: length, text, range, ...",
    "messages BIGINT: messages that did not decode for this reason",
    "octets BIGINT (octets): their octets",
    "first_ts TIMESTAMP: when the first came",
    "last_ts TIMESTAMP: when the last came",
    "first_seq BIGINT: seq of the first of them",
    "text STRING: the finding of that one, as a sentence",
)


_SPAN = (
    "first_ts TIMESTAMP: when the first message came",
    "last_ts TIMESTAMP: when the last message came",
)

NODES = table_schema(
    *STORED,
    TAP,
    "node STRING: a peer's identity, the tap's name for its own side, or a service's name",
    "role STRING: role letter of a peer, or service",
    "conversations BIGINT: connections that it had that day; null for services",
    "sent_messages BIGINT: messages that it sent",
    "sent_octets BIGINT (octets): octets that it sent",
    "received_messages BIGINT: messages that it got",
    "received_octets BIGINT (octets): octets that it got",
    "errors BIGINT: messages that it sent and that did not decode; of a service, calls with an error",
    *_SPAN,
)

EDGES = table_schema(
    *STORED,
    TAP,
    "kind STRING: messages (who sends to whom), calls (who asks which service, which service asks "
    "which worker) or relayed (calls that a broker passes on)",
    "source STRING: the source's name: a peer's identity, a tap's name, or a service's",
    "source_role STRING: role letter of a peer, or service",
    "target STRING: the target's name: a peer's identity, a tap's name, or a service's",
    "target_role STRING: role letter of a peer, or service",
    "messages BIGINT: messages from source to target; of calls, requests and responses; null for jobs",
    "octets BIGINT (octets): their octets",
    "requests BIGINT: requests or jobs; 0 for messages",
    "errors BIGINT: messages that did not decode; of calls, those that ended with an error",
    *_SPAN,
)


SENT = table_schema(
    *STORED,
    *CONNECTION,
    *(TRAFFIC[name] for name in ("sender", "messages", "octets", "errors")),
    *_SPAN,
)
"""State: what each side of each connection sent."""

_EDGE = ("source", "source_role", "target", "target_role")

CALLS = table_schema(
    *STORED,
    *(TAP, CONNECTION["conversation"]),
    *(TOPICS[name] for name in SUBJECT),
    "edge STRING: kind of the edge; null without",
    *(EDGES[name] for name in _EDGE),
    "bin BIGINT: bin of `topics.spread`; null unless answered",
    *(TOPICS[name] for name in ("begun", *OUTCOMES, "octets", "total_us", "max_us")),
    *(EDGES[name] for name in ("requests", "messages")),
    *_SPAN,
)
"""State: closed calls, jobs and files, for `topics` and, as messages that are not calls, for edges."""


def _select_messages(typed: Frames, answers: Frames, protocol: str) -> DataFrame:
    """Return messages as rows of `traffic` and of `sent`. Columns that are not used are not read."""
    topics = specifics_of(protocol).topics
    messages = union(
        select(typed, protocol, name, {"topic": topics.get(name, "cast(null as string)")})
        for name in message_tables(protocol)
        if name in typed
    )
    return messages.selectExpr(
        *("to_date(ts) AS date", "date_trunc('minute', ts) AS minute", "ts AS first_ts", "ts AS last_ts"),
        *(*CONNECTION.names, "sender", "message", "topic"),
        *("1L AS messages", "octets", f"if(message = '{ERRORS}', 1L, 0L) AS errors"),
    )


def _select_errors(typed: Frames, answers: Frames, protocol: str) -> DataFrame:
    fields = {"found": "message", "field": "field", "kind": "kind", "text": "text"}
    messages = select(typed, protocol, ERRORS, fields, ("tap", "sender", "ts", "seq", "octets"))
    return messages.selectExpr(
        *("to_date(ts) AS date", "tap", "sender", "found AS message", "field", "kind"),
        *("1L AS messages", "octets", "ts AS first_ts", "ts AS last_ts", "seq AS first_seq", "text"),
    )


# --- nodes and edges

LISTENERS = ("server", "broker", "receiver")
"""Roles that others connect to."""


def graph(sums_of: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the tables `nodes` and `edges` of the dates that the frames have."""
    sent = _add_ends(without_second_views(sums_of["sent"], answers), protocol)
    rows = [sent]
    if "calls" in sums_of:
        calls = without_second_views(sums_of["calls"], answers).where("edge IS NOT NULL")
        rows.append(calls.drop("kind").withColumnRenamed("edge", "kind"))
    span = ("min(first_ts) AS first_ts", "max(last_ts) AS last_ts")
    edges = group(
        union(rows),
        ("date", "tap", "kind", *_EDGE),
        *sums("messages", "octets", "requests", "errors"),
        *span,
    )
    # Each end of a connection is a node, and so is each service that was called.
    ends = [sent.selectExpr(*columns) for columns in (_SOURCE, _TARGET)]
    ends += [calls.where("target_role = 'service'").selectExpr(*_SERVICE) for calls in rows[1:]]
    nodes = group(
        union(ends),
        ("date", "tap", "node", "role"),
        "if(role = 'service', NULL, count(DISTINCT conversation)) AS conversations",
        *sums("sent_messages", "sent_octets", "received_messages", "received_octets", "errors"),
        *span,
    )
    return {"nodes": as_table(nodes, protocol, NODES), "edges": as_table(edges, protocol, EDGES)}


_SOURCE = (
    *("date", "tap", "conversation", "first_ts", "last_ts", "source AS node", "source_role AS role"),
    *("messages AS sent_messages", "octets AS sent_octets", "errors"),
    *("0L AS received_messages", "0L AS received_octets"),
)
_TARGET = (
    *("date", "tap", "conversation", "first_ts", "last_ts", "target AS node", "target_role AS role"),
    *("messages AS received_messages", "octets AS received_octets", "0L AS errors"),
    *("0L AS sent_messages", "0L AS sent_octets"),
)
_SERVICE = (
    *("date", "tap", "first_ts", "last_ts", "target AS node", "target_role AS role"),
    *("requests AS received_messages", "messages - requests AS sent_messages", "errors"),
)


def _add_ends(sent: DataFrame, protocol: str) -> DataFrame:
    """Return the sums `sent` with both ends of the connection, as edges."""
    listening, connecting = _roles(protocol)
    listens = f"sender IN ({', '.join(listening)})"
    others = f"max(if({listens}, NULL, sender)) OVER (PARTITION BY date, {', '.join(CONNECTION.names)})"
    by_peer, peer = _is_peer("sender", protocol), specifics_of(protocol).peer_name
    return sent.selectExpr(
        "*",
        "'messages' AS kind",
        f"if({by_peer}, {peer}, {tap_name()}) AS source",
        "sender AS source_role",
        f"if({by_peer}, {tap_name()}, {peer}) AS target",
        f"if({listens}, coalesce({others}, {connecting}), {listening[0]}) AS target_role",
        "0L AS requests",
    )


def _roles(protocol: str) -> tuple[list[str], str]:
    """Return the roles that others connect to, and one of those that connect, as SQL texts."""
    roles: Mapping[str, str] = getattr(load_machine(protocol), "ROLES", {})
    listening = [f"'{letter}'" for letter, name in roles.items() if name in LISTENERS]
    connecting = (f"'{letter}'" for letter, name in roles.items() if name not in LISTENERS)
    return listening or ["''"], next(connecting, "''")


def _is_peer(role: str, protocol: str) -> str:
    """Return the SQL for whether the side of a role is the one that `peer` names."""
    listens = f"{role} IN ({', '.join(_roles(protocol)[0])})"
    return f"if(contains(peer, '://'), {listens}, NOT {listens})"


def _select_calls(typed: Frames, answers: Frames, protocol: str) -> DataFrame:
    """Return calls, jobs and files of the answer tables, each as a row of `calls`."""
    rows = union(
        answers[name].selectExpr(*("date", "tap", "conversation"), *TIMED.get(name, ()), *columns)
        for name, columns in _edges_of(protocol).items()
        if name in answers
    )
    # Jobs and messages that are not calls only make edges.
    timed = rows.withColumn("kind", F.expr(f"if({IS_TIMED}, kind, NULL)"))
    return timed.selectExpr(
        *("date", "tap", "conversation", "kind", "service", "topic"),
        *("edge", *_EDGE),
        f"if({ENDED}, floor(log10(greatest(took_us, 1D)) * {PER_DECADE}), NULL) AS bin",
        "1L AS begun",
        *(f"if({is_so}, 1L, 0L) AS {name}" for name, is_so in OUTCOMES.items()),
        *("requests", "messages", "octets", "first_ts", "last_ts"),
        *(f"{TOOK_US} AS {name}" for name in ("total_us", "max_us")),
    )


def _edges_of(protocol: str) -> dict[str, tuple[str, ...]]:
    """Return the answer tables with calls, each with the SQL of the columns of an edge.

    `requests` are those of Flux and CMB1. A job of NORFAB leads from client to service, its parts
    from service to worker. It is one request; its messages are counted where peers send them.
    Transfers have no edges.
    """
    own = f"if({_is_peer('asker', protocol)}, peer, {tap_name()})"
    moment = ("ts AS first_ts", "ts AS last_ts")
    job = ("'calls' AS edge", "1L AS requests", "CAST(NULL AS bigint) AS messages", *moment)
    return {
        "requests": (
            "if(hops = 0, 'calls', 'relayed') AS edge",
            f"if(hops = 0, {own}, substring_index(requester, '!', -1)) AS source",
            *("asker AS source_role", "service AS target", "'service' AS target_role"),
            "responses + if(nodeid IS NULL, 0L, 1L) AS messages",
            "if(nodeid IS NULL, 0L, 1L) AS requests",
            *("ts AS first_ts", "coalesce(answered_ts, ts) AS last_ts"),
        ),
        "jobs": (
            *job,
            f"coalesce(client, {tap_name()}) AS source",
            *("'C' AS source_role", "coalesce(service, '') AS target", "'service' AS target_role"),
            "if(outcome IN ('failed', 'refused'), 'error', NULL) AS outcome",
        ),
        "job_parts": (
            *job,
            *("coalesce(service, '') AS source", "'service' AS source_role"),
            *("worker AS target", "'W' AS target_role"),
        ),
        "transfers": (
            *moment,
            *(f"CAST(NULL AS string) AS {name}" for name in ("edge", *_EDGE)),
            *(f"CAST(NULL AS bigint) AS {name}" for name in ("requests", "messages")),
        ),
    }


# --- the answers


def _always(protocol: str) -> bool:
    return True


_COUNTED = sums("messages", "octets", "errors")
_ENDS = ("min(first_ts) AS first_ts", "max(last_ts) AS last_ts")

SUMS = (
    Sums("traffic", _always, message_tables, (), TRAFFIC, _COUNTED, _select_messages, is_answer=True),
    Sums(
        "errors",
        _always,
        lambda protocol: (ERRORS,),
        (),
        ERRORS_FOUND,
        (
            *sums("messages", "octets"),
            *_ENDS,
            *("min(first_seq) AS first_seq", "min_by(text, first_seq) AS text"),
        ),
        _select_errors,
        is_answer=True,
    ),
    Sums("sent", _always, message_tables, (), SENT, (*_COUNTED, *_ENDS), _select_messages),
    Sums(
        "calls",
        takes_time,
        lambda protocol: (),
        ("requests", "jobs", "job_parts", "transfers"),
        CALLS,
        (
            *sums("begun", *OUTCOMES, "requests", "messages", "octets", "total_us"),
            "max(max_us) AS max_us",
            *_ENDS,
        ),
        _select_calls,
    ),
)
ROLL_UPS = (RollUp("graph", _always, ("sent", "calls"), ("twins",), {"nodes": NODES, "edges": EDGES}, graph),)
