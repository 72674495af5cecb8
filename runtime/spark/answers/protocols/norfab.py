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

PARTICULARS = Particulars(
    topics=TOPICS,
    peer_name=HEX_NAME,
    beats={"Keepalive": ALWAYS},
    beat="keepalive",
    greetings={"Ready": ALWAYS},
    farewells={"Disconnect": ALWAYS},
    jobs=True,
)
