"""Options of every server that listens with ZeroMQ: what peers may send without ending a message."""

from __future__ import annotations

from typing import Annotated

import typer

MESSAGE_OCTETS = 8 << 20
UNDELIVERED_OCTETS = 256 << 20
"""The defaults of `specwire.runtime.transport.inflow`, which takes long to import."""

MessageOctetsOption = Annotated[
    int,
    typer.Option(
        "--message-octets",
        metavar="OCTETS",
        min=1,
        help="Disconnect a peer whose first message has more. Later ones may be as large as the protocol allows.",
    ),
]

UndeliveredOctetsOption = Annotated[
    int,
    typer.Option(
        "--undelivered-octets",
        metavar="OCTETS",
        min=1,
        help="Octets of unfinished messages of all connections together; beyond it, the peer that has sent the most "
        "is disconnected.",
    ),
]
