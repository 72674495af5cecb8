"""Roll-ups `nodes` and `edges`: the peers and the traffic between them.

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

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.messages import message_tables, shape, take, together
from specwire.runtime.spark.answers.particulars import name_tap, particulars_of
from specwire.runtime.spark.answers.rates import counted
from specwire.runtime.spark.answers.registry import RollUp
from specwire.runtime.spark.answers.schemas.graph import EDGES, NODES
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.answers.taps import without_twins
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import load_machine

ENDS = ("source", "source_role", "target", "target_role")
SERVICE = "service"


def graph(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the tables `nodes` and `edges` of the dates that the frames have."""
    said = _said(typed, protocol)
    if "twins" in answers:
        said = without_twins(said, answers["twins"])
    calls = [make(counted(answers, name), protocol) for name, make in _CALLS.items() if name in answers]
    edges = together([_edges(said.withColumn("kind", F.lit("messages"))), *map(_edges, calls)])
    nodes = together([_peers(said), *map(_services, calls)])
    return {"nodes": shape(nodes, protocol, NODES), "edges": shape(edges, protocol, EDGES)}


def top_talkers(nodes: DataFrame, count: int = 10) -> DataFrame:
    """Return the nodes that sent the most octets, over all dates and taps given, in this order."""
    sums = [F.sum(name).alias(name) for name in ("sent_messages", "sent_octets", "received_octets", "errors")]
    talkers = nodes.where(F.col("role") != SERVICE).groupBy("protocol", "node", "role").agg(*sums)
    return talkers.orderBy(F.desc("sent_octets"), "node").limit(count)


# --- messages


def _said(typed: Frames, protocol: str) -> DataFrame:
    """Return what each side of each connection said on each day, with the names of both ends."""
    noted = ("tap", "conversation", "peer", "sender", "ts", "octets")
    words = together(
        take(typed, protocol, name, noted=noted) for name in message_tables(protocol) if name in typed
    )
    grouped = words.groupBy(F.to_date("ts").alias("date"), "tap", "conversation", "peer", "sender")
    summed = grouped.agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum("octets").alias("octets"),
        F.count_if(F.col("message") == ERRORS).alias("errors"),
        F.min("ts").alias("first_ts"),
        F.max("ts").alias("last_ts"),
    )
    listening, connecting = _roles(protocol)
    listens = F.col("sender").isin(*listening)
    seen = F.max(F.when(~listens, F.col("sender"))).over(
        Window.partitionBy("date", "tap", "conversation", "peer")
    )
    other = F.when(listens, F.coalesce(seen, F.lit(connecting))).otherwise(F.lit(listening[0]))
    by_peer = _is_peer(F.col("sender"), protocol)
    peer, own = F.expr(particulars_of(protocol).peer_name), name_tap()
    return summed.withColumns(
        {
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


LISTENERS = ("server", "broker", "receiver")


def _is_peer(role: Column, protocol: str) -> Column:
    """Whether a side is the one whose name `peer` is."""
    listens = role.isin(*_roles(protocol)[0])
    return F.when(F.col("peer").contains("://"), listens).otherwise(~listens)


def _edges(said: DataFrame) -> DataFrame:
    """Sum up what goes from one end to the other."""
    return said.groupBy("date", "tap", "kind", *ENDS).agg(
        *(F.sum(name).alias(name) for name in ("messages", "octets", "requests", "errors")),
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )


def _peers(said: DataFrame) -> DataFrame:
    """Return a node for each end of the connections."""
    none = F.lit(0).cast("long")
    shared = ("date", "tap", "conversation", "first_ts", "last_ts")
    sent = said.select(
        *shared,
        F.col("source").alias("node"),
        F.col("source_role").alias("role"),
        F.col("messages").alias("sent_messages"),
        F.col("octets").alias("sent_octets"),
        none.alias("received_messages"),
        none.alias("received_octets"),
        "errors",
    )
    received = said.select(
        *shared,
        F.col("target").alias("node"),
        F.col("target_role").alias("role"),
        none.alias("sent_messages"),
        none.alias("sent_octets"),
        F.col("messages").alias("received_messages"),
        F.col("octets").alias("received_octets"),
        none.alias("errors"),
    )
    return _nodes(sent.unionByName(received), F.count_distinct("conversation"))


def _nodes(rows: DataFrame, conversations: Column) -> DataFrame:
    names = ("sent_messages", "sent_octets", "received_messages", "received_octets", "errors")
    return rows.groupBy("date", "tap", "node", "role").agg(
        conversations.alias("conversations"),
        *(F.sum(name).alias(name) for name in names),
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )


# --- calls


def _requests(table: DataFrame, protocol: str) -> DataFrame:
    """Return the calls of Flux and CMB1 with their ends."""
    own = F.when(_is_peer(F.col("asker"), protocol), F.col("peer")).otherwise(name_tap())
    asked = F.col("nodeid").isNotNull().cast("long")
    return table.select(
        *("date", "tap"),
        F.when(F.col("hops") == 0, "calls").otherwise("relayed").alias("kind"),
        F.when(F.col("hops") == 0, own).otherwise(F.substring_index("requester", "!", -1)).alias("source"),
        F.col("asker").alias("source_role"),
        F.col("service").alias("target"),
        F.lit(SERVICE).alias("target_role"),
        (F.col("responses") + asked).alias("messages"),
        "octets",
        asked.alias("requests"),
        (F.col("outcome") == "error").cast("long").alias("errors"),
        F.col("ts").alias("first_ts"),
        F.coalesce("answered_ts", "ts").alias("last_ts"),
    )


def _jobs(table: DataFrame, protocol: str) -> DataFrame:
    """Return the jobs of NORFAB, from client to service."""
    return table.select(
        *("date", "tap"),
        F.lit("calls").alias("kind"),
        F.coalesce("client", name_tap()).alias("source"),
        F.lit("C").alias("source_role"),
        F.coalesce("service", F.lit("")).alias("target"),
        F.lit(SERVICE).alias("target_role"),
        *_uncounted(),
        F.col("outcome").isin("failed", "refused").cast("long").alias("errors"),
        *_began(),
    )


def _parts(table: DataFrame, protocol: str) -> DataFrame:
    """Return the workers' parts in the jobs, from service to worker."""
    return table.select(
        *("date", "tap"),
        F.lit("calls").alias("kind"),
        F.coalesce("service", F.lit("")).alias("source"),
        F.lit(SERVICE).alias("source_role"),
        F.col("worker").alias("target"),
        F.lit("W").alias("target_role"),
        *_uncounted(),
        F.coalesce(F.col("failed"), F.lit(False)).cast("long").alias("errors"),
        *_began(),
    )


def _uncounted() -> tuple[Column, ...]:
    """A job is one request; its messages are counted where peers send them."""
    none = F.lit(None).cast("long")
    return none.alias("messages"), none.alias("octets"), F.lit(1).cast("long").alias("requests")


def _began() -> tuple[Column, Column]:
    return F.col("ts").alias("first_ts"), F.col("ts").alias("last_ts")


_CALLS: Mapping[str, Callable[[DataFrame, str], DataFrame]] = {
    "requests": _requests,
    "jobs": _jobs,
    "job_parts": _parts,
}


def _services(calls: DataFrame) -> DataFrame:
    """Return a node for each service that was called."""
    rows = calls.where(F.col("target_role") == SERVICE).withColumns(
        {
            "node": F.col("target"),
            "role": F.col("target_role"),
            "sent_messages": F.col("messages") - F.col("requests"),
            "sent_octets": F.lit(None).cast("long"),
            "received_messages": F.col("requests"),
            "received_octets": F.lit(None).cast("long"),
        }
    )
    return _nodes(rows, F.lit(None).cast("long"))


ROLL_UPS = (
    RollUp(
        "graph",
        lambda protocol: True,
        message_tables,
        (*_CALLS, "twins"),
        {"nodes": NODES, "edges": EDGES},
        graph,
    ),
)
