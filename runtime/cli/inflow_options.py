"""Options of servers that listen with ZeroMQ: bounds on unfinished messages."""

from __future__ import annotations

from typing import Annotated

import typer

MESSAGE_OCTETS = 8 << 20
UNDELIVERED_OCTETS = 256 << 20
"""Defaults, equal to those of `specwire.runtime.transport.inflow`, which is slow to import."""

MessageOctetsOption = Annotated[
    int,
    typer.Option(
        "--message-octets",
        metavar="OCTETS",
        min=1,
        help="Disconnect a peer whose first message is larger. Later messages may be as large as "
        "the protocol allows.",
    ),
]

UndeliveredOctetsOption = Annotated[
    int,
    typer.Option(
        "--undelivered-octets",
        metavar="OCTETS",
        min=1,
        help="Bound of the unfinished messages of all connections together. Above it, the peer "
        "that sent the most is disconnected.",
    ),
]
