"""The roll-ups `nodes` and `edges`: who talks to whom.

A tap names a connection's peer: at a server or broker the one that connected, at a client the endpoint that it
connected to (which has ``://`` in it). The other end is the tap's own side, for which the tap's name stands. So an edge of
messages leads from the peer to the tap's name or back, as the sender says. Edges of calls lead from who asks to the
service that is asked, and for jobs on to the workers.

A broker of Flux knows the connection to its parent by its own uuid, as the parent's tap does: that edge is the same from
both taps, but for the tap's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.messages import message_tables, shape, take, together
from specwire.runtime.spark.answers.particulars import particulars_of
from specwire.runtime.spark.answers.registry import RollUp
from specwire.runtime.spark.answers.schemas.graph import EDGES, NODES
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import load_machine

TAP_NAME = r"regexp_replace(tap, '-\\d+-[^-]+$', '')"
"""A tap's name in its id, which goes on with a process id and a time."""

SPAN = ("first_ts", "last_ts")


def graph(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the tables `nodes` and `edges` of the dates that the frames have."""
    said = _said(typed, protocol)
    messages = _message_edges(said)
    calls = _calls(answers)
    edges = together([messages, *calls])
    nodes = together([_peers(said), *(_services(frame) for frame in calls)])
    return {"nodes": shape(nodes, protocol, NODES), "edges": shape(edges, protocol, EDGES)}


def top_talkers(nodes: DataFrame, count: int = 10) -> DataFrame:
    """Return the nodes that sent the most octets, over all dates and taps given, the first one first."""
    sums = [F.sum(name).alias(name) for name in ("sent_messages", "sent_octets", "received_octets", "errors")]
    talkers = nodes.where("role <> 'service'").groupBy("protocol", "node", "role").agg(*sums)
    return talkers.orderBy(F.desc("sent_octets"), "node").limit(count)


def _said(typed: Frames, protocol: str) -> DataFrame:
    """Return what each side of each connection said on each day, with the names of both ends."""
    noted = ("tap", "conversation", "peer", "sender", "ts", "octets")
    words = together(take(typed, protocol, name, noted=noted) for name in message_tables(protocol))
    grouped = words.groupBy(F.to_date("ts").alias("date"), "tap", "conversation", "peer", "sender")
    summed = grouped.agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum("octets").alias("octets"),
        F.count_if(F.col("message") == ERRORS).alias("errors"),
        F.min("ts").alias("first_ts"),
        F.max("ts").alias("last_ts"),
    )
    by_peer = _is_peer(protocol)
    peer, own = F.expr(particulars_of(protocol).peer_name), F.expr(TAP_NAME)
    return summed.withColumns(
        {
            "source": F.when(by_peer, peer).otherwise(own),
            "target": F.when(by_peer, own).otherwise(peer),
            "source_role": F.col("sender"),
            "target_role": _other_role(protocol),
        }
    )


def _is_peer(protocol: str) -> Column:
    """Whether the sender is the side whose name `peer` is."""
    listens = F.col("sender").isin(*_listening(protocol))
    return F.when(F.col("peer").contains("://"), listens).otherwise(~listens)


def _listening(protocol: str) -> tuple[str, ...]:
    """Return the letters of the roles that others connect to."""
    roles: Mapping[str, str] = getattr(load_machine(protocol), "ROLES", {})
    return tuple(letter for letter, name in roles.items() if name in ("server", "broker", "receiver")) or ("S", "B")


def _other_role(protocol: str) -> Column:
    """Return the role of who got the message; of a broker's connection it is the one that the peer has elsewhere."""
    listening = _listening(protocol)
    return F.when(F.col("sender").isin(*listening), F.lit("")).otherwise(F.lit(listening[0]))
