"""A bridge on one connection: what goes on, what goes back, what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specwire.runtime.bridge.bridging import MAX_REASONS, MAX_SAID, Bridged, BridgeWatch
from specwire.runtime.bridge.pairs import find_bridge
from specwire.runtime.bridge.translation import Hold, Send, Step, Unsaid, UnsayableError
from tests.runtime.bridge.test_units import GREETING, READY


class At:
    """A connection that keeps what is asked of it."""

    address = "10.0.0.7:1"

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def send(self, octets: bytes, *, to_opener: bool) -> None:
        """Note it."""
        self.asked.append(("send", octets, to_opener))

    def hold(self, held: bool, *, opener: bool) -> None:
        """Note it."""
        self.asked.append(("hold", held, opener))

    def end(self) -> None:
        """Note it."""
        self.asked.append(("end",))


class Turned:
    """Turns the last frame around; some messages ask for more."""

    def translate(self, frames: Sequence[bytes], *, from_opener: bool) -> Sequence[Step]:
        """See `Translation.translate`."""
        last = frames[-1]
        if last == b"no":
            raise UnsayableError("it says no", Send(from_opener, [b"sorry"]))
        if last == b"wait":
            return [Hold(opener=False, held=True), Unsaid("a part")]
        return [Send(not from_opener, [*frames[:-1], last[::-1]])]


def test_what_goes_on_and_what_goes_back(caplog: pytest.LogCaptureFixture) -> None:
    """The handshake as it is; messages translated; an answer to who cannot be understood; each reason told once."""
    at, watch = At(), BridgeWatch(Turned)
    bridging = watch(at)
    assert bridging.pass_on(GREETING + READY + b"\x01\x01a\x00\x02bc", from_opener=True) == (
        GREETING + READY + b"\x01\x01a\x00\x02cb"
    )
    assert bridging.pass_on(GREETING + b"\x00\x02no\x00\x02no", from_opener=False) == GREETING
    assert at.asked == [("send", b"\x00\x05sorry", False)] * 2
    assert bridging.pass_on(b"\x00\x04wait", from_opener=True) == b""
    assert at.asked[2:] == [("hold", True, False)]
    assert watch.bridged.unsaid == {"it says no": 2, "a part": 1}
    assert (watch.bridged.to_listener, watch.bridged.to_opener) == (3, 0)
    assert [entry.message for entry in caplog.records] == [
        "10.0.0.7:1: not passed on: it says no",
        "10.0.0.7:1: not passed on: a part",
    ]


def test_what_cannot_be_read_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """What was whole before goes on."""
    at, watch = At(), BridgeWatch(Turned)
    bridging = watch(at)
    assert bridging.pass_on(GREETING + b"\x00\x02ab\x09", from_opener=True) == GREETING + b"\x00\x02ba"
    assert bridging.pass_on(b"\x00", from_opener=True) == b""
    assert (at.asked, watch.bridged.ended) == ([("end",)], 1)
    assert "a connection of 10.0.0.7:1 is ended, who connects: this is no ZMTP" in caplog.text


def test_the_log_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever connects with something else a thousand times is counted, and told of some times."""
    watch = BridgeWatch(Turned)
    for _ in range(10 * MAX_SAID):
        watch(At()).pass_on(b"GET / HTTP/1.1\r\n".ljust(64), from_opener=True)
    assert (watch.bridged.ended, len(caplog.records)) == (10 * MAX_SAID, MAX_SAID)


def test_reasons_are_bounded() -> None:
    """A peer cannot fill the memory with them."""
    bridged = Bridged()
    for number in range(2 * MAX_REASONS):
        bridged.note_unsaid(f"{number}")
    assert len(bridged.unsaid) == MAX_REASONS + 1
    assert bridged.unsaid["other reasons"] == MAX_REASONS


@pytest.mark.parametrize(
    ("clients", "server", "sentence"),
    [
        ("flux", "flux", "both sides speak flux: they need no bridge"),
        (
            "flux",
            "filemq",
            "there is no bridge between flux and filemq; there are bridges between flux and cmb1",
        ),
        ("zre", "zre", "there is no bridge between zre and zre"),
    ],
)
def test_there_is_not_a_bridge_between_any_two(clients: str, server: str, sentence: str) -> None:
    """The sentence says which there are."""
    with pytest.raises(ValueError, match=sentence):
        find_bridge(clients, server)
