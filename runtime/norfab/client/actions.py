"""What the client's engine wants done. A shell performs these values in order."""

from __future__ import annotations

import msgspec

from specwire.runtime.norfab.client.events import Happening
from specwire.runtime.norfab.client.records import Record
from specwire.runtime.norfab.commands import Command


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command to the broker."""

    command: Command


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Drop the connection there is, and make one to this endpoint, with a routing id that was never used."""

    endpoint: str


class Close(msgspec.Struct, frozen=True, gc=False):
    """Drop the connection there is."""


class Store(msgspec.Struct, frozen=True, gc=False):
    """Keep these records, together or not at all. Tickets count up; see `ClientEngine.stored`."""

    ticket: int
    records: tuple[Record, ...]


class Report(msgspec.Struct, frozen=True, gc=False):
    """Tell whoever runs this client."""

    happening: Happening


Action = Send | Connect | Close | Store | Report
