"""ZRE: peers that greet, ask for life with PING, and number what they send from 1, in two octets."""

from __future__ import annotations

from specwire.runtime.spark.answers.particulars import ALWAYS, Numbers, Particulars

MESSAGES = ("Hello", "Whisper", "Shout", "Join", "Leave", "Ping", "PingOk")

PARTICULARS = Particulars(
    topics={"Shout": "group", "Join": "group", "Leave": "group"},
    beats={"Ping": ALWAYS, "PingOk": ALWAYS},
    greetings={"Hello": ALWAYS},
    numbers=Numbers(
        columns={name: "sequence" for name in MESSAGES}, modulus=1 << 16, restarts={"Hello": ALWAYS}
    ),
)
