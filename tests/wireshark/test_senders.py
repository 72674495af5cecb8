"""A sender excludes in the dissector, too: the socket types of the handshake say which roles it can be."""

from __future__ import annotations

from pathlib import Path

from tests.generator.clone import EXPECTED, clone
from tests.wireshark.traffic import CLIENT, SERVER, Connection, message, write_pcap
from tests.wireshark.tshark import NEEDS_TSHARK, dissect, write_dissectors

SOCKETS = {"P": "DEALER", "S": "ROUTER", "M": "SUB", "X": "PUB"}
"""X is a socket of no role, which excludes nothing."""


@NEEDS_TSHARK
def test_messages_of_each_sender(tmp_path: Path) -> None:
    cases = [case for case in EXPECTED if case[1] in SOCKETS]
    connections = []
    for number, (frames, sender, _) in enumerate(cases):
        connections.append(Connection(port=CLIENT + number))
        connections[-1].greet(client=SOCKETS[sender or ""])
        connections[-1].send(message(frames))
    write_pcap(tmp_path / "all.pcap", connections)
    dissectors = write_dissectors(tmp_path, [clone(tmp_path)])
    packets = dissect(tmp_path / "all.pcap", dissectors, "-o", f"demo.ports:{SERVER}")
    shown = [packet for packet in packets if "demo" in packet.layers()]
    for packet, (frames, sender, expected) in zip(shown, cases, strict=True):
        names = packet.values("demo.message_name")
        if "found" not in expected:
            assert ([name.capitalize() for name in names], packet.faults) == ([expected], []), (
                frames,
                sender,
            )
        elif sender == "X":
            assert names == ["PUT"], "the first of those that look the same"
        else:
            assert not names and "expected a message that this side sends" in packet.faults[0]
