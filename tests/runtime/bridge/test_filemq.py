"""FILEMQ with the C implementation on either side: a sentence of its habits, one test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from specwire.generated import filemq, libfilemq
from specwire.runtime.bridge.filemq_old_client import CACHE_ENTRIES, OldClientTranslation
from specwire.runtime.bridge.filemq_old_server import OldServerTranslation
from specwire.runtime.bridge.translation import Hold, Send, Step, Unsaid, UnsayableError

OHAI = bytes.fromhex("aaa3010646494c454d5102")
OLD_OHAI = bytes.fromhex("aaa3010646494c454d510002")


def said(steps: Iterable[Step], package: Any, *, to_opener: bool) -> list[Any]:
    """Return the messages to one side, and see that nothing else is among them."""
    found = []
    for step in steps:
        assert isinstance(step, Send) and step.to_opener is to_opener
        found.append(package.decode(step.frames))
    return found


def chunk(package: Any, name: str, offset: int, content: bytes, sequence: int = 0, **more: int) -> Any:
    """CHEEZBURGER with content."""
    return package.Cheezburger(
        sequence=sequence, operation=1, filename=name, offset=offset, headers=(), chunk=content, **more
    )


def deletion(package: Any, name: str, sequence: int = 0, **more: int) -> Any:
    """CHEEZBURGER that deletes."""
    return package.Cheezburger(
        sequence=sequence, operation=2, filename=name, offset=0, headers=(), chunk=b"", **more
    )


class TestOldServer:
    """A client of FILEMQ v2 before a C server."""

    def open(self, *paths: str) -> OldServerTranslation:
        """A bridge whose client has subscribed."""
        bridge = OldServerTranslation()
        for path in paths:
            bridge.translate(filemq.Icanhaz(path=path, options=(), cache=()).encode(), from_opener=True)
        return bridge

    def test_the_version_is_written_in_two_octets(self) -> None:
        """By the C implementation's grammar."""
        assert OldServerTranslation().translate([OHAI], from_opener=True) == [Send(False, [OLD_OHAI])]

    def test_names_in_a_cache_are_full(self) -> None:
        """The C server renames those that are not."""
        asked = filemq.Icanhaz(path="/a", options=(("RESYNC", "1"),), cache=(("x", "00"), ("/b", "11")))
        (wanted,) = said(
            OldServerTranslation().translate(asked.encode(), from_opener=True), libfilemq, to_opener=False
        )
        assert wanted.cache == (("/a/x", "00"), ("/b", "11"))

    def test_the_server_is_granted_endless_credit_once(self) -> None:
        """It would stop for good when credit runs out."""
        bridge = self.open("/")
        nom = filemq.Nom(credit=5).encode()
        (granted,) = said(bridge.translate(nom, from_opener=True), libfilemq, to_opener=False)
        assert granted.credit == 2**62
        assert bridge.translate(nom, from_opener=True) == []

    def test_the_client_gets_no_more_than_it_granted(self) -> None:
        """A chunk is cut, the rest waits, and the server is held back meanwhile."""
        bridge = self.open("/")
        bridge.translate(filemq.Nom(credit=4).encode(), from_opener=True)
        whole = chunk(libfilemq, "/f", 0, b"abcdef", eof=0)
        *sent, hold = bridge.translate(whole.encode(), from_opener=False)
        assert said(sent, filemq, to_opener=True) == [chunk(filemq, "/f", 0, b"abcd", 0)]
        assert hold == Hold(opener=False, held=True)
        end = chunk(libfilemq, "/f", 6, b"", eof=1)
        assert bridge.translate(end.encode(), from_opener=False) == [], "order is kept"
        *sent, hold = bridge.translate(filemq.Nom(credit=10).encode(), from_opener=True)
        assert said(sent, filemq, to_opener=True) == [
            chunk(filemq, "/f", 4, b"ef", 1), chunk(filemq, "/f", 6, b"", 2),
        ]  # fmt: skip
        assert hold == Hold(opener=False, held=False)

    def test_a_client_without_credit_hears_that_the_server_lives(self) -> None:
        """The server's own answer is behind what waits; it is not passed on a second time."""
        bridge = self.open("/")
        bridge.translate(chunk(libfilemq, "/f", 0, b"abcdef", eof=0).encode(), from_opener=False)
        assert bridge.translate(filemq.Hugz().encode(), from_opener=True) == [
            Send(False, libfilemq.Hugz().encode()),
            Send(True, filemq.HugzOk().encode()),
        ]
        bridge.translate(libfilemq.HugzOk().encode(), from_opener=False)
        *sent, _ = bridge.translate(filemq.Nom(credit=10).encode(), from_opener=True)[1:]
        assert said(sent, filemq, to_opener=True) == [chunk(filemq, "/f", 0, b"abcdef", 0)]

    def test_a_last_chunk_with_content_is_two(self) -> None:
        """FILEMQ v2 has no end of file but an empty chunk."""
        bridge = self.open("/")
        bridge.translate(filemq.Nom(credit=9).encode(), from_opener=True)
        steps = bridge.translate(chunk(libfilemq, "/f", 0, b"ab", eof=1).encode(), from_opener=False)
        assert said(steps, filemq, to_opener=True) == [
            chunk(filemq, "/f", 0, b"ab", 0), chunk(filemq, "/f", 2, b"", 1),
        ]  # fmt: skip

    def test_files_outside_of_the_subscription_go_no_further(self) -> None:
        """The server sends whatever it publishes; numbers have no gap for it."""
        bridge = self.open("/foo")
        bridge.translate(filemq.Nom(credit=99).encode(), from_opener=True)
        sent: list[Step] = []
        for number, name in enumerate(("/foobar", "/foo/a", "/bar", "/foo")):
            sent += bridge.translate(deletion(libfilemq, name, number, eof=0).encode(), from_opener=False)
        assert said(sent, filemq, to_opener=True) == [
            deletion(filemq, "/foo/a", 0), deletion(filemq, "/foo", 1),
        ]  # fmt: skip

    def test_a_name_that_v2_has_no_room_for_is_told_and_left_out(self) -> None:
        """255 octets are the most there."""
        bridge = self.open("/")
        bridge.translate(filemq.Nom(credit=99).encode(), from_opener=True)
        (told,) = bridge.translate(deletion(libfilemq, "/" + "x" * 300, eof=0).encode(), from_opener=False)
        assert isinstance(told, Unsaid)
        assert told.reason.startswith("filemq has no word for it (CHEEZBURGER, filename")
        (next_,) = said(
            bridge.translate(deletion(libfilemq, "/y", eof=0).encode(), from_opener=False),
            filemq,
            to_opener=True,
        )
        assert next_.sequence == 0

    def test_wat_becomes_rtfm(self) -> None:
        """The C implementation has no WAT, and ends at it."""
        steps = OldServerTranslation().translate(filemq.Wat(reason="odd").encode(), from_opener=True)
        assert said(steps, libfilemq, to_opener=False) == [libfilemq.Rtfm(reason="odd")]

    def test_what_is_no_message_goes_no_further(self) -> None:
        """Any malformed frame ends the C server."""
        for frames in ([b"\xaa\xa3\x82"], [b""], [OHAI, b"more"]):
            with pytest.raises(UnsayableError, match="no message of filemq"):
                OldServerTranslation().translate(frames, from_opener=True)


class TestOldClient:
    """A C client before a server of FILEMQ v2."""

    def send(self, bridge: OldClientTranslation, *messages: filemq.Cheezburger) -> Sequence[Any]:
        """What the client gets for these."""
        steps = [step for one in messages for step in bridge.translate(one.encode(), from_opener=False)]
        return said(steps, libfilemq, to_opener=True)

    def ask(self, bridge: OldClientTranslation, **fields: Any) -> list[Any]:
        """What the server gets for a subscription."""
        asked = libfilemq.Icanhaz(**{"path": "/", "options": (), "cache": (), **fields})
        return said(bridge.translate(asked.encode(), from_opener=True), filemq, to_opener=False)

    def test_the_version_is_written_in_one_octet(self) -> None:
        """By the specification."""
        assert OldClientTranslation().translate([OLD_OHAI], from_opener=True) == [Send(False, [OHAI])]

    def test_the_files_that_there_are_are_asked_for(self) -> None:
        """The client has no way to do so; one that asks for something is left to it."""
        assert self.ask(OldClientTranslation())[0].options == (("RESYNC", "1"),)
        assert self.ask(OldClientTranslation(), options=(("X", "1"),))[0].options == (("X", "1"),)

    def test_a_large_cache_goes_in_parts(self) -> None:
        """A dictionary of v2 holds 255 entries; the client hears of one subscription."""
        bridge = OldClientTranslation()
        cache = tuple((f"/{number}", "00") for number in range(CACHE_ENTRIES + 1))
        parts = self.ask(bridge, cache=cache)
        assert [len(part.cache) for part in parts] == [255, 1]
        assert [part.options for part in parts] == [(), (("RESYNC", "1"),)]
        heard = [bridge.translate(filemq.IcanhazOk().encode(), from_opener=False) for _ in range(2)]
        assert heard == [[], [Send(True, libfilemq.IcanhazOk().encode())]]

    def test_the_bridge_says_that_the_client_lives(self) -> None:
        """A C client takes neither HUGZ nor KTHXBAI from a server."""
        bridge = OldClientTranslation()
        assert bridge.translate(filemq.Hugz().encode(), from_opener=False) == [
            Send(False, filemq.HugzOk().encode())
        ]
        assert bridge.translate(filemq.Kthxbai().encode(), from_opener=False) == []

    def test_a_file_ends_with_an_empty_chunk(self) -> None:
        """Which says so; nothing is deleted that the client does not have."""
        got = self.send(
            OldClientTranslation(), chunk(filemq, "/f", 0, b"ab", 7), chunk(filemq, "/f", 2, b"", 8)
        )
        assert got == [chunk(libfilemq, "/f", 0, b"ab", 0, eof=0), chunk(libfilemq, "/f", 2, b"", 1, eof=1)]

    def test_a_new_version_comes_after_a_deletion(self) -> None:
        """Of the old one the client would keep the tail; numbers stay without a gap."""
        bridge = OldClientTranslation()
        file = (chunk(filemq, "/f", 0, b"ab"), chunk(filemq, "/f", 2, b""))
        self.send(bridge, *file)
        assert self.send(bridge, file[0]) == [
            deletion(libfilemq, "/f", 2, eof=0), chunk(libfilemq, "/f", 0, b"ab", 3, eof=0),
        ]  # fmt: skip

    def test_so_does_one_that_the_client_said_it_has(self) -> None:
        """In its cache."""
        bridge = OldClientTranslation()
        self.ask(bridge, path="/d", cache=(("f", "00"),))
        first, *_ = self.send(bridge, chunk(filemq, "/d/f", 0, b"ab"))
        assert first == deletion(libfilemq, "/d/f", 0, eof=0)

    def test_a_file_that_is_given_up_is_ended_and_deleted(self) -> None:
        """Else the client would write the next one into it."""
        bridge = OldClientTranslation()
        got = self.send(bridge, chunk(filemq, "/f", 0, b"ab"), chunk(filemq, "/g", 0, b""))
        assert got == [
            chunk(libfilemq, "/f", 0, b"ab", 0, eof=0),
            chunk(libfilemq, "/f", 2, b"", 1, eof=1),
            deletion(libfilemq, "/f", 2, eof=0),
            chunk(libfilemq, "/g", 0, b"", 3, eof=1),
        ]

    def test_a_client_that_places_whole_files_is_spared_that(self) -> None:
        """It has said so with the option WHOLE."""
        bridge = OldClientTranslation()
        self.ask(bridge, options=(("WHOLE", "1"),))
        twice = [chunk(filemq, "/f", 0, b"ab"), chunk(filemq, "/f", 0, b"cd")]
        assert [one.operation for one in self.send(bridge, *twice)] == [1, 1]
