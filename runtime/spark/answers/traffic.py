"""Roll-ups of all messages: how many there were, which did not decode, and who sent them to whom.

- `traffic` counts messages by minute, `errors` those that did not decode by what is wrong with them.
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

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import (
    STORED,
    TAP,
    Frames,
    RollUp,
    as_table,
    table_schema,
)
from specwire.runtime.spark.answers.durations import without_second_views
from specwire.runtime.spark.answers.messages import message_tables, select, union
from specwire.runtime.spark.answers.protocol_specifics import specifics_of
from specwire.runtime.spark.answers.taps import without_twins
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
    "text STRING: the finding of the first of them by seq, as a sentence",
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


def traffic(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `traffic`; its messages add up to the rows of the typed tables."""
    topics = specifics_of(protocol).topics
    messages = union(
        select(
            typed,
            protocol,
            name,
            {"topic": topics.get(name, "cast(null as string)")},
            ("tap", "sender", "ts", "octets"),
        )
        for name in message_tables(protocol)
    )
    minute = F.date_trunc("minute", "ts").alias("minute")
    rows = messages.groupBy("tap", "message", "sender", "topic", minute).agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum("octets").alias("octets"),
        F.count_if(F.col("message") == ERRORS).alias("errors"),
    )
    return {"traffic": as_table(rows, protocol, TRAFFIC, date=F.to_date("minute"))}


def errors(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `errors`; its messages add up to the rows of `_errors`."""
    fields = {"found": "message", "field": "field", "kind": "kind", "text": "text"}
    tap_columns = ("tap", "sender", "ts", "seq", "octets")
    messages = select(typed, protocol, ERRORS, fields, tap_columns).drop("message")
    grouped = messages.withColumnRenamed("found", "message").groupBy(
        F.to_date("ts").alias("date"), "tap", "sender", "message", "field", "kind"
    )
    rows = grouped.agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum("octets").alias("octets"),
        F.min("ts").alias("first_ts"),
        F.max("ts").alias("last_ts"),
        F.min_by("text", "seq").alias("text"),
    )
    return {"errors": as_table(rows, protocol, ERRORS_FOUND)}


# --- nodes and edges

TAP_NAME = r"regexp_replace(tap, '-\\d+-[^-]+$', '')"
"""SQL for the tap's name in its id, without the process id and time that follow."""

ENDS = ("source", "source_role", "target", "target_role")
LISTENERS = ("server", "broker", "receiver")
"""Roles that others connect to."""


def graph(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the tables `nodes` and `edges` of the dates that the frames have."""
    sent = _messages(typed, protocol)
    if "twins" in answers:
        sent = without_twins(sent, answers["twins"])
    calls = [
        without_second_views(answers, name).select(
            "date", "tap", *(F.expr(sql).alias(alias) for alias, sql in columns.items())
        )
        for name, columns in _call_tables(protocol).items()
        if name in answers
    ]
    edges = union(map(_edges, [sent, *calls]))
    nodes = union([_peers(sent), *map(_services, calls)])
    return {"nodes": as_table(nodes, protocol, NODES), "edges": as_table(edges, protocol, EDGES)}


def _messages(typed: Frames, protocol: str) -> DataFrame:
    """Return what each side of each connection sent on each day, with both ends."""
    place = ("tap", "conversation", "peer")
    messages = union(
        select(typed, protocol, name, tap_columns=(*place, "sender", "ts", "octets"))
        for name in message_tables(protocol)
    )
    summed = messages.groupBy(F.to_date("ts").alias("date"), *place, "sender").agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum("octets").alias("octets"),
        F.count_if(F.col("message") == ERRORS).alias("errors"),
        F.min("ts").alias("first_ts"),
        F.max("ts").alias("last_ts"),
    )
    listening, connecting = _roles(protocol)
    listens = F.col("sender").isin(*listening)
    connected = F.max(F.when(~listens, F.col("sender"))).over(Window.partitionBy("date", *place))
    other = F.when(listens, F.coalesce(connected, F.lit(connecting))).otherwise(F.lit(listening[0]))
    by_peer = F.expr(_is_peer("sender", protocol))
    peer, own = F.expr(specifics_of(protocol).peer_name), F.expr(TAP_NAME)
    return summed.withColumns(
        {
            "kind": F.lit("messages"),
            "source": F.when(by_peer, peer).otherwise(own),
            "source_role": F.col("sender"),
            "target": F.when(by_peer, own).otherwise(peer),
            "target_role": other,
            "requests": F.lit(0),
        }
    )


def _roles(protocol: str) -> tuple[tuple[str, ...], str]:
    """Return the letters of the roles that others connect to, and one of those that connect."""
    roles: Mapping[str, str] = getattr(load_machine(protocol), "ROLES", {})
    listening = tuple(letter for letter, name in roles.items() if name in LISTENERS)
    connecting = next((letter for letter in roles if letter not in listening), "")
    return listening or ("",), connecting


def _is_peer(role: str, protocol: str) -> str:
    """Return the SQL for whether the side of a role is the one that `peer` names."""
    listening = ", ".join(f"'{letter}'" for letter in _roles(protocol)[0])
    return f"if(contains(peer, '://'), {role} in ({listening}), {role} not in ({listening}))"


def _call_tables(protocol: str) -> dict[str, dict[str, str]]:
    """Return the answer tables with calls, each with the SQL of the columns of an edge.

    `requests` are those of Flux and CMB1. A job of NORFAB leads from client to service, its parts
    from service to worker. It is one request; its messages are counted where peers send them.
    """
    own = f"if({_is_peer('asker', protocol)}, peer, {TAP_NAME})"
    job = {
        "kind": "'calls'",
        "messages": "cast(null as bigint)",
        "octets": "cast(null as bigint)",
        "requests": "1L",
        "first_ts": "ts",
        "last_ts": "ts",
    }
    service = "coalesce(service, '')"
    return {
        "requests": {
            "kind": "if(hops = 0, 'calls', 'relayed')",
            "source": f"if(hops = 0, {own}, substring_index(requester, '!', -1))",
            "source_role": "asker",
            "target": "service",
            "target_role": "'service'",
            "messages": "responses + if(nodeid is null, 0L, 1L)",
            "octets": "octets",
            "requests": "if(nodeid is null, 0L, 1L)",
            "errors": "if(outcome = 'error', 1L, 0L)",
            "first_ts": "ts",
            "last_ts": "coalesce(answered_ts, ts)",
        },
        "jobs": job
        | {
            "source": f"coalesce(client, {TAP_NAME})",
            "source_role": "'C'",
            "target": service,
            "target_role": "'service'",
            "errors": "if(outcome in ('failed', 'refused'), 1L, 0L)",
        },
        "job_parts": job
        | {
            "source": service,
            "source_role": "'service'",
            "target": "worker",
            "target_role": "'W'",
            "errors": "if(failed, 1L, 0L)",
        },
    }


def _sums(*names: str) -> list[Column]:
    sums = [F.sum(name).alias(name) for name in (*names, "errors")]
    return [*sums, F.min("first_ts").alias("first_ts"), F.max("last_ts").alias("last_ts")]


def _edges(sent: DataFrame) -> DataFrame:
    return sent.groupBy("date", "tap", "kind", *ENDS).agg(*_sums("messages", "octets", "requests"))


def _peers(sent: DataFrame) -> DataFrame:
    """Return a node for each end of the connections."""
    shared = ("date", "tap", "conversation", "first_ts", "last_ts")
    none = F.lit(0).cast("long")
    ends = [
        sent.select(
            *shared,
            F.col(end).alias("node"),
            F.col(f"{end}_role").alias("role"),
            F.col("errors") if end == "source" else none.alias("errors"),
            *(
                (F.col(name) if way == its_way else none).alias(f"{way}_{name}")
                for way in ("sent", "received")
                for name in ("messages", "octets")
            ),
        )
        for end, its_way in (("source", "sent"), ("target", "received"))
    ]
    return _nodes(union(ends), F.count_distinct("conversation"))


def _services(calls: DataFrame) -> DataFrame:
    """Return a node for each service that was called."""
    none = F.lit(None).cast("long")
    rows = calls.where("target_role = 'service'").withColumns(
        {
            "node": F.col("target"),
            "role": F.col("target_role"),
            "sent_messages": F.col("messages") - F.col("requests"),
            "sent_octets": none,
            "received_messages": F.col("requests"),
            "received_octets": none,
        }
    )
    return _nodes(rows, none)


def _nodes(rows: DataFrame, conversations: Column) -> DataFrame:
    sums = _sums("sent_messages", "sent_octets", "received_messages", "received_octets")
    return rows.groupBy("date", "tap", "node", "role").agg(conversations.alias("conversations"), *sums)


ROLL_UPS = (
    RollUp("traffic", lambda protocol: True, message_tables, (), {"traffic": TRAFFIC}, traffic),
    RollUp("errors", lambda protocol: True, lambda protocol: (ERRORS,), (), {"errors": ERRORS_FOUND}, errors),
    RollUp(
        name="graph",
        applies=lambda protocol: True,
        reads=message_tables,
        reads_answers=("requests", "jobs", "job_parts", "twins"),
        writes={"nodes": NODES, "edges": EDGES},
        compute=graph,
    ),
)
