"""Connections cut into what passes and what is translated; octets written by hand from ZMTP 3 (ZeroMQ RFC 37)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.bridge import units
from specwire.runtime.bridge.units import Units, UnreadableError, join_frames

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x06\x05READY"
PING = b"\x04\x07\x04PING\x00\x0a"
LONG = b"\x02" + (300).to_bytes(8, "big") + bytes(300)


@pytest.mark.parametrize("size", [1, 5, 64, 1000])
def test_commands_pass_and_messages_are_frames(size: int) -> None:
    """However the octets are cut."""
    octets = GREETING + READY + b"\x01\x01a\x00\x02bc" + PING + LONG + b"\x00\x00"
    reading = Units()
    found = [unit for at in range(0, len(octets), size) for unit in reading.feed(octets[at : at + size])]
    greeting = 0
    while b"".join(unit for unit in found[:greeting] if isinstance(unit, bytes)) != GREETING:
        greeting += 1
    assert found[greeting:] == [READY, [b"a", b"bc"], PING, [bytes(300)], [b""]]


def test_the_greeting_passes_as_it_comes() -> None:
    """A peer sends the rest of its own when it has the beginning of the other's."""
    reading = Units()
    assert list(reading.feed(GREETING[:10])) == [GREETING[:10]]
    assert list(reading.feed(GREETING[10:])) == [GREETING[10:]]


def test_frames_are_joined_as_they_were() -> None:
    """Short sizes in one octet, long ones in eight; all but the last say that more comes."""
    assert join_frames([b"a", b"bc"]) == b"\x01\x01a\x00\x02bc"
    assert join_frames([bytes(300)]) == LONG
    assert join_frames([bytes(255), bytes(256)])[:2] == b"\x01\xff"


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (GREETING.replace(b"NULL\0", b"CURVE"), "its mechanism is 'CURVE', and NULL or PLAIN is wanted"),
        (GREETING[:10] + b"\x01" + GREETING[11:], "it is ZMTP 1, and version 3 is wanted"),
        (b"GET / HTTP/1.1\r\n".ljust(64), "it is no ZMTP 3"),
        (GREETING + b"\x09\x01x", "this is no ZMTP: "),
        (GREETING + b"\x02" + b"\x7f" * 8, "this is no ZMTP: .*at most 67108864 octets"),
    ],
)
def test_what_cannot_be_read_is_refused(octets: bytes, reason: str) -> None:
    """Before anything is made of it; a size that is too large costs no memory."""
    with pytest.raises(UnreadableError, match=reason):
        list(Units().feed(octets))


def test_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In frames and in octets, all frames together."""
    for name, most in (("MAX_FRAMES", 3), ("MAX_OCTETS", 100)):
        with monkeypatch.context() as patched:
            patched.setattr(units, name, most)
            reading = Units()
            list(reading.feed(GREETING))
            with pytest.raises(UnreadableError, match="a message has more than"):
                list(reading.feed((b"\x01\x32" + bytes(50)) * 4))


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_octets_are_units_or_refused(octets: bytes, size: int) -> None:
    """No other error, and the same however they are cut."""
    found: list[list[bytes | list[bytes]]] = []
    for step in (size, len(octets) + 1):
        reading = Units()
        list(reading.feed(GREETING))
        units_found: list[bytes | list[bytes]] = []
        try:
            for at in range(0, len(octets), step):
                units_found += reading.feed(octets[at : at + step])
        except UnreadableError:
            pass
        found.append(units_found)
    assert found[0] == found[1]
