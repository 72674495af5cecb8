"""Effects of the client's engine. The session performs them in order."""

from __future__ import annotations

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.client.events import Happening
from specwire.runtime.norfab.commands import Command


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command to the broker."""

    command: Command


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Close the connection, if there is one, and connect to this endpoint with a new routing id."""

    endpoint: str


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close the connection."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """Pass an event to the user of the client."""

    happening: Happening


Action = Send | Connect | Close | Commit | Report
"""`Commit` contains records of `specwire.runtime.norfab.client.records`."""
