"""Options of a Flux broker: bounds on unfinished messages."""

from __future__ import annotations

from typing import Annotated

import typer

from specwire.runtime.kernel.settings_groups import FIRST_MESSAGE_BOUND, UNFINISHED_BOUND

MESSAGE_OCTETS = 8 << 20
UNDELIVERED_OCTETS = 256 << 20
"""Defaults, equal to those of `specwire.runtime.transport.inflow`, which is slow to import."""

MessageOctetsOption = Annotated[
    int, typer.Option("--message-octets", metavar="OCTETS", min=1, help=FIRST_MESSAGE_BOUND.help)
]

UndeliveredOctetsOption = Annotated[
    int, typer.Option("--undelivered-octets", metavar="OCTETS", min=1, help=UNFINISHED_BOUND.help)
]
