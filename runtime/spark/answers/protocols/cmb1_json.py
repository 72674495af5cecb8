"""CMB1, earlier edition: without streams, and every request wants its response."""

from __future__ import annotations

from specwire.runtime.spark.answers.particulars import ALWAYS, Calls, Numbers, Particulars
from specwire.runtime.spark.answers.protocols.flux import CONNECTION

ENODATA = 61

PARTICULARS = Particulars(
    topics={"Request": "topic", "Response": "topic", "Event": "topic"},
    beats={"Keepalive": ALWAYS},
    calls=Calls(streaming=0, last=ENODATA),
    numbers=Numbers(
        columns={"Event": "nullif(sequence, 0)"},
        chosen_by={"Request": "topic = 'event.subscribe'"},
    ),
    connection=CONNECTION,
)
