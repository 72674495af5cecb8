"""Flux v1: topics, the pulse of the tree, calls with streams, numbered events.

Rank 0 publishes `heartbeat.pulse`; a child that has nothing else to say sends a control message of type 0. Rank 0
alone numbers events, from 1; a client that has subscribed to prefixes gets a choice of them, and a bare event that
a client sends has number 0.
"""

from __future__ import annotations

from specwire.generated.flux import ENODATA, Flags
from specwire.runtime.spark.answers.particulars import Calls, Numbers, Particulars

CONNECTION = "regexp_replace(conversation, '^[0-9a-f]{8}-(?=[0-9a-f-]{32,36}$)', '')"
"""A parent's tap and a child's both name their connection by the child's uuid, after a number of the tap's own."""

PARTICULARS = Particulars(
    topics={"Request": "topic", "Response": "topic", "Event": "topic"},
    beats={"Control": "type = 0", "Event": "topic = 'heartbeat.pulse'"},
    silence="torpid",
    greetings={"Request": "topic = 'overlay.hello'"},
    farewells={"Request": "topic = 'overlay.goodbye'", "Control": "type = 2"},
    calls=Calls(streaming=int(Flags.STREAMING), last=ENODATA),
    numbers=Numbers(
        columns={"Event": "nullif(sequence, 0)"},
        chosen_by={"Request": "topic = 'event.subscribe'"},
    ),
    connection=CONNECTION,
)
