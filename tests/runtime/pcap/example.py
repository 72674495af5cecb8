"""The recording that docs/how-to/decode.md looks at: ``python -m tests.runtime.pcap.example FILE`` writes it.

A FILEMQ client fetches a file of eleven octets and sends something that is no command; another connection is encrypted.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specwire.generated import filemq
from tests.runtime.pcap.wire import Talk, greeting, message, pcap

NOON_NS = 1_772_366_400 * 10**9
"""1 March 2026 at 12:00 UTC."""


def write_example(file: Path) -> None:
    """Write the packets of both connections as a pcap file."""
    talk = Talk(start_ns=NOON_NS).handshake()
    said = [
        ("C", filemq.Ohai()),
        ("S", filemq.OhaiOk()),
        ("C", filemq.Nom(credit=1 << 20)),
        ("C", filemq.Icanhaz(path="/photos", options=(("RESYNC", "1"),))),
        ("S", filemq.IcanhazOk()),
        ("S", _cheezburger(0, 0, b"hello world")),
        ("S", _cheezburger(1, 11, b"")),
    ]
    for side, sent in said:
        talk.say(side, message(*sent.encode()))
    talk.say("C", message(b"\xaa\xa3\x63")).close()
    other = Talk(client=("127.0.0.1", 40_001), server=("127.0.0.1", 5671), start_ns=NOON_NS + 10**9).open()
    other.say("C", greeting(b"CURVE")).say("S", greeting(b"CURVE")).close()
    file.write_bytes(pcap([*talk.packets, *other.packets]))


def _cheezburger(sequence: int, offset: int, chunk: bytes) -> filemq.Cheezburger:
    return filemq.Cheezburger(
        sequence=sequence,
        operation=filemq.Operation.CREATE,
        filename="/photos/a.txt",
        offset=offset,
        headers=(),
        chunk=chunk,
    )


if __name__ == "__main__":
    write_example(Path(sys.argv[1]))
