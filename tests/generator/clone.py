"""Protocol in which the sender selects and excludes messages, with the expected class for each sender.

The rows of `EXPECTED` are derived by hand from the grammar and the profile:

- PUT and GIVE are two frames of any content. Only the sender tells them apart, so `decode` takes a sender.
- KVSYNC has a constant in its second frame, where KVPUB has any octets. Only the server sends KVSYNC.
- STOP has a constant in its first frame, where NOTE has any octets. Both roles send NOTE, only the server sends STOP.
- OPEN has five frames, and its senders are unknown.
- M is a role that sends no message with declared senders, and X is no role.
"""

from __future__ import annotations

from pathlib import Path

from specwire.generator import ir
from tests.generator.compiling import compiled

GRAMMAR = """
demo    = *( PUT / GIVE / KVPUB / KVSYNC / NOTE / STOP / OPEN )
PUT     = key body
GIVE    = key body
KVPUB   = key uuid body
KVSYNC  = key no-uuid body
NOTE    = topic first second third
STOP    = word first second third
OPEN     = topic first second third fourth
key     = *OCTET   ; a ZeroMQ frame
body    = *OCTET   ; a ZeroMQ frame
uuid    = *OCTET   ; a ZeroMQ frame
no-uuid = %x00     ; a ZeroMQ frame
topic   = *OCTET   ; a ZeroMQ frame
word    = "STOP"   ; a ZeroMQ frame
first   = *OCTET   ; a ZeroMQ frame
second  = *OCTET   ; a ZeroMQ frame
third   = *OCTET   ; a ZeroMQ frame
fourth  = *OCTET   ; a ZeroMQ frame
"""

PROFILE = """
name = "demo"
messages = ["PUT", "GIVE", "KVPUB", "KVSYNC", "NOTE", "STOP", "OPEN"]
[roles.P]
name = "peer"
socket = "DEALER"
[roles.S]
name = "server"
socket = "ROUTER"
[roles.M]
name = "monitor"
socket = "SUB"
[message.PUT]
senders = ["P"]
[message.GIVE]
senders = ["S"]
[message.KVPUB]
senders = ["P"]
[message.KVSYNC]
senders = ["S"]
[message.NOTE]
senders = ["P", "S"]
[message.STOP]
senders = ["S"]
"""

SENDERS = ("P", "S", "M", "X", None)

TWO = [b"k", b"b"]
SYNCED = [b"k", b"\0", b"b"]
PUBLISHED = [b"k", b"u", b"b"]
STOPPED = [b"STOP", b"1", b"2", b"3"]
NOTED = [b"note", b"1", b"2", b"3"]
FIVE = [b"t", b"1", b"2", b"3", b"4"]

EXPECTED: tuple[tuple[list[bytes], str | None, str], ...] = (
    (TWO, "P", "Put"),
    (TWO, "S", "Give"),
    (TWO, "M", "a sender: P for Put or S for Give, found 'M'"),
    (TWO, "X", "a sender: P for Put or S for Give, found 'X'"),
    (TWO, None, "a sender: P for Put or S for Give, found none"),
    (SYNCED, "P", "Kvpub"),
    (SYNCED, "S", "Kvsync"),
    (SYNCED, "M", "a sender: S for Kvsync or P for Kvpub, found 'M'"),
    (SYNCED, "X", "Kvsync"),
    (SYNCED, None, "Kvsync"),
    (PUBLISHED, "P", "Kvpub"),
    (PUBLISHED, "S", "a sender: P for Kvpub, found 'S'"),
    (PUBLISHED, "M", "a sender: P for Kvpub, found 'M'"),
    (PUBLISHED, "X", "Kvpub"),
    (PUBLISHED, None, "Kvpub"),
    (STOPPED, "P", "Note"),
    (STOPPED, "S", "Stop"),
    (STOPPED, "M", "a sender: S for Stop or P for Note, found 'M'"),
    (STOPPED, "X", "Stop"),
    (STOPPED, None, "Stop"),
    (NOTED, "P", "Note"),
    (NOTED, "S", "Note"),
    (NOTED, "M", "a sender: P or S for Note, found 'M'"),
    (NOTED, "X", "Note"),
    (NOTED, None, "Note"),
    (FIVE, "P", "Open"),
    (FIVE, "S", "Open"),
    (FIVE, "M", "Open"),
    (FIVE, "X", "Open"),
    (FIVE, None, "Open"),
)
"""Frames, sender, and the expected class or end of the error."""


def clone(folder: Path) -> ir.Protocol:
    """Compile the protocol."""
    return compiled(folder, GRAMMAR, PROFILE).protocol
