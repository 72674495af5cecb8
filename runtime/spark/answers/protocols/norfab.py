"""NORFAB: jobs between clients, a broker and workers.

A broker's tap knows a peer by its routing id in hex, which is its name; the taps of clients and workers know the
broker's endpoint.
"""

from __future__ import annotations

from specwire.runtime.spark.answers.particulars import ALWAYS, Particulars

HEX_NAME = "coalesce(try_validate_utf8(try_to_binary(peer, 'hex')), peer)"

TOPICS = {
    name: "service"
    for name in (
        "Ready",
        "PostClient",
        "ResponseClient",
        "GetClient",
        "DeleteClient",
        "EventClient",
        "MmiClient",
        "MmiBroker",
    )
}

CONNECTION = r"""coalesce(
    decode(unhex(nullif(regexp_extract(
        conversation, '^[0-9a-f]{8}-(?:client|worker)-(?:[0-9a-f]{2})*2d((?:3[0-9]|6[1-6]){8})$', 1), '')), 'UTF-8'),
    nullif(regexp_extract(conversation, '^([0-9a-f]{8})[0-9a-f]{8}$', 1), ''),
    nullif(regexp_extract(conversation, '^[0-9a-f]{8}-(?:client|worker)-([0-9a-f]+)$', 1), ''),
    conversation
)"""
"""A client's routing id is its name and the first eight digits of what its own tap calls the conversation; a worker's is
its name, which stands in both (at the broker behind the role of the door, and one door may serve both)."""

PARTICULARS = Particulars(
    topics=TOPICS,
    peer_name=HEX_NAME,
    beats={"Keepalive": ALWAYS},
    beat="keepalive",
    greetings={"Ready": ALWAYS},
    farewells={"Disconnect": ALWAYS},
    jobs=True,
    connection=CONNECTION,
)
