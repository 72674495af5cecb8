"""What a proxy reads of the octets that pass by, written by hand from ZMTP 3 (ZeroMQ RFC 37)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated import filemq, norfab, norfab_ascii
from specwire.runtime.capture.proxy import ProxyWatch

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x02\xabc"
SERVER_READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"
NOM = bytes.fromhex("aaa3070000010000000000")
HUGZ = bytes.fromhex("aaa309")


def command(body: bytes) -> bytes:
    """A short command."""
    return bytes([4, len(body)]) + body


def message(*frames: bytes) -> bytes:
    """A message of short frames."""
    return b"".join(bytes([at + 1 < len(frames), len(frame)]) + frame for at, frame in enumerate(frames))


TOO_LONG = (
    "zmtp.framing at octet 1: expected at most 67108864 octets, found 1099511627785 "
    "[ZMTP v3.1 message framing]"
)


class At:
    """A connection from an address, of which nothing else is asked."""

    def __init__(self, address: str) -> None:
        self.address = address

    def send(self, octets: bytes, *, to_opener: bool) -> None:
        """A proxy says nothing."""
        raise AssertionError

    def hold(self, held: bool, *, opener: bool) -> None:
        """A proxy holds nobody back."""
        raise AssertionError

    def end(self) -> None:
        """A proxy ends nothing."""
        raise AssertionError


class Kept:
    """A recorder that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, tuple[bytes, ...]]] = []

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        self.rows.append((sender, peer, conversation, tuple(frames)))


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_are_recorded_however_the_octets_are_cut(size: int) -> None:
    """With the sender's role, and the identity that the client gave itself; the octets pass on as they are."""
    kept = Kept()
    watched = ProxyWatch({"filemq": kept}, [filemq])(At("10.0.0.7:4711"))
    client = GREETING + command(READY) + message(NOM) + message(HUGZ, b"")
    server = GREETING + command(SERVER_READY) + message(HUGZ)
    for octets, from_opener in ((client, True), (server, False)):
        cut = [octets[at : at + size] for at in range(0, len(octets), size)]
        assert [watched.pass_on(part, from_opener=from_opener) for part in cut] == cut
    assert [(sender, peer, frames) for sender, peer, _, frames in kept.rows] == [
        ("C", "ab63", (NOM,)),
        ("C", "ab63", (HUGZ, b"")),
        ("S", "ab63", (HUGZ,)),
    ]
    assert len({conversation for _, _, conversation, _ in kept.rows}) == 1


def test_connections_are_conversations() -> None:
    """A client without an identity goes by its address."""
    kept = Kept()
    watch = ProxyWatch({"filemq": kept}, [filemq])
    for port in (1, 2):
        watch(At(f"10.0.0.7:{port}")).pass_on(
            GREETING + command(SERVER_READY) + message(NOM), from_opener=True
        )
    assert [peer for _, peer, _, _ in kept.rows] == ["10.0.0.7:1", "10.0.0.7:2"]
    assert len({conversation for _, _, conversation, _ in kept.rows}) == 2
    assert watch.proxied.messages == {"C": 2}
    assert watch.proxied.octets == 2 * len(NOM)


def test_each_dialect_goes_to_its_own_recorder() -> None:
    """And who connects is a client or a worker by what it says."""
    octets, deployed = Kept(), Kept()
    watch = ProxyWatch({"norfab": octets, "norfab_ascii": deployed}, [norfab, norfab_ascii])
    worker = watch(At("10.0.0.7:1"))
    worker.pass_on(GREETING + command(READY), from_opener=True)
    worker.pass_on(message(b"", b"NFPW01", b"0x01", b"snmp"), from_opener=True)
    client = watch(At("10.0.0.7:2"))
    client.pass_on(GREETING + command(READY), from_opener=True)
    client.pass_on(message(b"", b"NFPC01", b"\x04", b"snmp", b"all", b"u1", b"{}"), from_opener=True)
    assert [row[0] for row in deployed.rows] == ["W"]
    assert [row[0] for row in octets.rows] == ["C"]


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (GREETING.replace(b"NULL\0", b"CURVE"), "it is encrypted (CURVE)"),
        (b"GET / HTTP/1.1\r\n\r\n", "it is no ZMTP"),
        (
            GREETING + command(READY) + b"\x02" + (1 << 40).to_bytes(8, "big"),
            TOO_LONG,
        ),
        (b"\xff" + bytes(8) + b"\x7f\x01\x05", "it is ZMTP 2 (libzmq 3)"),
    ],
)
def test_what_cannot_be_read_is_passed_on_and_told(
    octets: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once; what follows is not looked at."""
    kept = Kept()
    watch = ProxyWatch({"filemq": kept}, [filemq])
    watched = watch(At("10.0.0.7:1"))
    for part in (octets, bytes(100), message(NOM)):
        assert watched.pass_on(part, from_opener=True) == part
    assert kept.rows == []
    assert watch.proxied.unread == {why: 1}
    (entry,) = caplog.records
    assert entry.message == f"a connection of 10.0.0.7:1 is passed on and not recorded: {why}"


def test_a_fault_of_the_recorder_stops_the_recording_and_not_the_traffic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever it is."""

    class Broken(Kept):
        def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
            raise RuntimeError("no")

    watch = ProxyWatch({"filemq": Broken()}, [filemq])
    watched = watch(At("10.0.0.7:1"))
    for part in (GREETING, command(READY), message(NOM), message(NOM)):
        assert watched.pass_on(part, from_opener=True) == part
    assert "is no longer recorded" in caplog.text
    assert watch.proxied.unread == {"a fault of the proxy": 1}


@given(st.binary(max_size=400), st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_whatever_passes_passes_unchanged(octets: bytes, sizes: list[int]) -> None:
    """Behind a greeting too; nothing that a peer sends ends a connection, or is lost from it."""
    watched = ProxyWatch({"filemq": Kept()}, [filemq])(At("10.0.0.7:1"))
    rest, passed = GREETING + octets, b""
    for size in sizes:
        part, rest = rest[:size], rest[size:]
        passed += watched.pass_on(part, from_opener=True)
    assert passed + rest == GREETING + octets
