"""The tables of who talks to whom. A node is known by `node` and `role`; an edge has a direction."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from specwire.runtime.spark.answers.schemas.shared import LONG, STORED, TAP, TEXT, TIMESTAMP, column

_SPAN = (
    column("first_ts", TIMESTAMP, "when the first message came"),
    column("last_ts", TIMESTAMP, "when the last message came"),
)


def _end(which: str) -> tuple[StructField, StructField]:
    return (
        column(which, TEXT, f"the {which}'s name: a peer's identity, a tap's name, or a service's"),
        column(f"{which}_role", TEXT, "role letter of a peer, or service"),
    )


NODES = StructType(
    [
        *STORED,
        TAP,
        column("node", TEXT, "a peer's identity, the tap's name for its own side, or a service's name"),
        column("role", TEXT, "role letter of a peer, or service"),
        column("conversations", LONG, "connections that it had that day; null for services"),
        column("sent_messages", LONG, "messages that it sent"),
        column("sent_octets", LONG, "octets that it sent", "octets"),
        column("received_messages", LONG, "messages that it got"),
        column("received_octets", LONG, "octets that it got", "octets"),
        column(
            "errors", LONG, "messages that it sent and that did not decode; of a service, calls with an error"
        ),
        *_SPAN,
    ]
)

EDGES = StructType(
    [
        *STORED,
        TAP,
        column(
            "kind",
            TEXT,
            "messages (who sends to whom), calls (who asks which service, which service asks "
            "which worker) or relayed (calls that a broker passes on)",
        ),
        *_end("source"),
        *_end("target"),
        column(
            "messages",
            LONG,
            "messages from source to target; of calls, requests and responses; null for jobs",
        ),
        column("octets", LONG, "their octets", "octets"),
        column("requests", LONG, "requests or jobs; 0 for messages"),
        column("errors", LONG, "messages that did not decode; of calls, those that ended with an error"),
        *_SPAN,
    ]
)
