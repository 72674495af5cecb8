"""One direction of ZMTP: handshakes, messages, what cannot be read, and finding the way again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.pcap import zmtp_side as zmtp_module
from specwire.runtime.pcap.zmtp_side import (
    Broken,
    Command,
    Event,
    Greeted,
    Introduced,
    Message,
    Unreadable,
    ZmtpSide,
    is_greeting,
)
from tests.runtime.pcap.wire import command, greeting, message, ready

LONG = bytes(range(256)) * 3


def good(frames: Sequence[bytes]) -> bool:
    return frames[0].startswith(b"good")


def side(*, is_whole: bool = True) -> ZmtpSide:
    return ZmtpSide(is_whole=is_whole, plausible=good)


def read(octets: bytes, cut: int | None = None) -> list[Event]:
    reader = side()
    size = cut or len(octets)
    return [event for at in range(0, len(octets), size) for event in reader.feed(octets[at : at + size])]


@pytest.mark.parametrize("cut", [None, 1, 10, 13])
@pytest.mark.parametrize("minor", [0, 1, 7])
def test_null_handshake_and_messages(minor: int, cut: int | None) -> None:
    octets = greeting(minor=minor) + ready(b"DEALER", b"me") + message(b"one") + message(b"", LONG, b"three")
    assert read(octets, cut) == [
        Greeted(f"3.{minor}", "NULL"),
        Introduced("DEALER", b"me"),
        Message((b"one",)),
        Message((b"", LONG, b"three")),
    ]


def test_plain_client_is_introduced_by_initiate() -> None:
    """HELLO has the password: its name is all that is told of it."""
    data = b"\x0bSocket-Type\0\0\0\x03SUB"
    octets = greeting(b"PLAIN") + command(b"HELLO", b"\x05alice\x06secret") + command(b"INITIATE", data)
    octets += command(b"WELCOME") + message(b"x")
    found = read(octets)
    assert found == [
        Greeted("3.1", "PLAIN"),
        Command("HELLO"),
        Introduced("SUB", b""),
        Command("WELCOME"),
        Message((b"x",)),
    ]
    assert "secret" not in repr(found)


def test_subscriptions_are_no_messages() -> None:
    """ZMTP 3.1 has commands for them, 3.0 messages that begin with 1 or 0."""
    octets = (
        greeting()
        + ready(b"SUB")
        + command(b"SUBSCRIBE", b"topic")
        + message(b"\x01topic")
        + message(b"\x00topic")
    )
    octets += command(b"PING", b"\0\x0a") + message(b"\x02")
    assert read(octets)[2:] == [
        Command("SUBSCRIBE"),
        Command("SUBSCRIBE"),
        Command("CANCEL"),
        Command("PING"),
        Message((b"\x02",)),
    ]


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (greeting(b"CURVE") + b"\x04\xff", "it is encrypted (CURVE)"),
        (greeting(b"GSSAPI"), "its mechanism is 'GSSAPI', which is not known"),
        (b"\xff" + bytes(8) + b"\x7f\x01\x05", "it is ZMTP 2 (libzmq 3)"),
        (b"\xff" + bytes(7) + b"\x0a\x00identity", "it is ZMTP 1 (libzmq 2)"),
        (b"\x01\x00", "it is ZMTP 1 (libzmq 2), or no ZMTP"),
        (b"GET / HTTP/1.1\r\n", "it is no ZMTP"),
        (greeting() + command(b"ERROR", b"\x06denied"), "it was refused: 'denied'"),
        (greeting(b"\xfe\xff"), "the greeting is damaged: greeting.mechanism"),
        (greeting()[:-1] + b"x" + bytes(9), "the greeting is damaged: zmtp.filler"),
    ],
)
@pytest.mark.parametrize("cut", [None, 1])
def test_what_cannot_be_read_says_why(octets: bytes, why: str, cut: int | None) -> None:
    unreadable = [event for event in read(octets, cut) if isinstance(event, Unreadable)]
    assert unreadable and unreadable[0].why.startswith(why)


def test_after_a_loss_it_goes_on_where_units_begin_with_a_segment() -> None:
    reader = side()
    assert list(reader.feed(greeting() + ready(b"DEALER") + message(b"good 1")[:4]))[-1] == Introduced(
        "DEALER", b""
    )
    assert list(reader.feed(b"the middle of something", lost=100)) == []
    assert list(reader.feed(message(b"bad"))) == [], "whole units, but no message that may be here"
    assert list(reader.feed(message(b"good 2") + message(b"good 3"))) == [
        Message((b"good 2",), after_loss=True),
        Message((b"good 3",)),
    ]
    half = message(b"good 4")
    assert list(reader.feed(half[:3])) == [] and list(reader.feed(half[3:])) == [Message((b"good 4",))]


def test_message_without_its_beginning_says_so() -> None:
    """The first frames were lost; the message behind is what makes the place plausible."""
    reader = side(is_whole=False)
    assert list(reader.feed(message(b"rest") + message(b"good"))) == [
        Message((b"rest",), after_loss=True),
        Message((b"good",)),
    ]


def test_recording_that_begins_in_the_middle_of_an_encrypted_connection() -> None:
    assert list(side(is_whole=False).feed(command(b"MESSAGE", bytes(60)))) == [
        Unreadable("it is encrypted (CURVE)")
    ]


def test_greeting_after_a_loss_is_a_greeting() -> None:
    reader = side(is_whole=False)
    assert list(reader.feed(greeting()[:11])) == []
    assert list(reader.feed(greeting()[11:])) == [Greeted("3.1", "NULL")]


def test_octets_that_are_no_zmtp() -> None:
    """What came before the fault is given, and what comes after it is found again."""
    reader = side()
    list(reader.feed(greeting() + ready(b"DEALER")))
    found = list(reader.feed(message(b"good 1") + b"\x99\x99"))
    assert found[0] == Message((b"good 1",)) and isinstance(found[1], Broken) and "0x99" in found[1].why
    assert list(reader.feed(message(b"good 2"))) == [Message((b"good 2",), after_loss=True)]


def test_length_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    octets = greeting() + b"\x02" + b"\x7f" + b"\xff" * 7
    (broken,) = read(octets)[1:]
    assert isinstance(broken, Broken) and "at most 268435456 octets" in broken.why
    monkeypatch.setattr(zmtp_module, "MAX_FRAMES", 3)
    (broken,) = read(greeting() + message(*[b"x"] * 4) + b"")[1:2]
    assert isinstance(broken, Broken) and "more than 3 frames" in broken.why


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (greeting()[:20], "it ends in the middle of the greeting"),
        (greeting() + message(b"a", b"b")[:3], "it ends between the frames of a message"),
        (greeting() + b"\x00\x05abc", "it ends in the middle of a frame, 5 octets after its beginning"),
        (greeting() + message(b"a"), None),
    ],
)
def test_what_is_left_at_the_end(octets: bytes, why: str | None) -> None:
    reader = side()
    list(reader.feed(octets))
    assert reader.end() == why


def test_beginnings_of_streams() -> None:
    assert is_greeting(greeting()) and is_greeting(greeting()[:10])
    assert (
        not is_greeting(b"\xff") and not is_greeting(b"\xff" * 8 + b"\0\0") and not is_greeting(b"\x00" * 20)
    )


@given(
    st.booleans(), st.lists(st.tuples(st.binary(max_size=90), st.integers(0, 3)), max_size=6), st.booleans()
)
def test_any_octets_give_events(is_whole: bool, pieces: list[tuple[bytes, int]], greets: bool) -> None:
    reader = side(is_whole=is_whole)
    if greets:
        list(reader.feed(greeting()))
    for octets, lost in pieces:
        assert all(isinstance(event, Event) for event in reader.feed(octets, lost=lost))
    reader.end()
