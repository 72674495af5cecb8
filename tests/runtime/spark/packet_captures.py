"""Packet captures made by hand: FILEMQ over ZMTP over TCP, laid out by dpkt."""

from __future__ import annotations

from pathlib import Path

from tests.runtime.pcap.wire import Talk, message, pcap
from tests.runtime.spark.captures import HUGZ, OHAI, OHAI_OK

PEERING = [("C", OHAI[0]), ("S", OHAI_OK[0]), ("C", HUGZ[0])]
"""The three messages of a `peering`."""


def peering(port: int = 40_000, hugz: int = 1) -> Talk:
    """A client that says OHAI and HUGZ to a server that says OHAI-OK."""
    talk = Talk(client=("127.0.0.1", port)).handshake(b"me")
    talk.say("C", message(OHAI[0])).say("S", message(OHAI_OK[0]))
    for _ in range(hugz):
        talk.say("C", message(HUGZ[0]))
    return talk


def write_packets(path: Path, *talks: Talk) -> Path:
    """Write the packets of connections to a file, one connection after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pcap([packet for talk in talks for packet in talk.packets]))
    return path
