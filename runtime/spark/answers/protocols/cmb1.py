"""CMB1, later edition: as Flux v1, with a keepalive in the place of the control message."""

from __future__ import annotations

from specwire.generated.cmb1 import Flags
from specwire.runtime.spark.answers.particulars import ALWAYS, Calls, Numbers, Particulars
from specwire.runtime.spark.answers.protocols.flux import CONNECTION

ENODATA = 61

PARTICULARS = Particulars(
    topics={"Request": "topic", "Response": "topic", "Event": "topic"},
    beats={"Keepalive": ALWAYS},
    calls=Calls(streaming=int(Flags.STREAMING), last=ENODATA),
    numbers=Numbers(
        columns={"Event": "nullif(sequence, 0)"},
        chosen_by={"Request": "topic = 'event.subscribe'"},
    ),
    connection=CONNECTION,
)
