"""Playbooks for the server's engine: one rule of FILEMQ v2, or of our reading of it, in each test."""

from __future__ import annotations

import msgspec
import pytest

from specwire.generated import filemq
from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    IcanhazOk,
    Kthxbai,
    Nom,
    Ohai,
    OhaiOk,
    Operation,
    Rtfm,
    Srsly,
    Wat,
)
from specwire.runtime.filemq.catalogue import Doubt, Gone, Put, ReadChunk, Signature, Trust, Unfit
from specwire.runtime.filemq.codec import Command, OutOfTurnError
from specwire.runtime.filemq.events import (
    FilePublished,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    PeerOpened,
    Subscribed,
)
from specwire.runtime.filemq.outflow import (
    BATCH,
    LONGEST_SETTLE_S,
    MAX_CREDIT,
    RENAMED_FROM_OCTETS,
    SETTLE_S,
    SMALL_OCTETS,
    Outflow,
)
from specwire.runtime.filemq.resync import ATTRIBUTES, RENAMES
from specwire.runtime.filemq.server import FilesChanged
from specwire.runtime.kernel.effects import AwaitRoom, CancelAsk, DropPeer, HostEffect, Log, Send, Stop
from specwire.runtime.kernel.events import Noticed, PeerId
from specwire.runtime.kernel.log import Refused
from tests.runtime.filemq.server_driver import (
    LABEL,
    LASTING,
    OTHER,
    PEER,
    PRUNE,
    RESYNC,
    ServerDriver,
    asked,
    connect,
    content,
    drops,
    entry,
    logged,
    one_check,
    one_read,
    peered,
    reads,
    sent,
    subscription,
)

SHA1 = "B" * 40


def chunk(
    sequence: int, name: str, offset: int, octets: bytes, *, size: int = 10, sha1: str = "AA"
) -> Cheezburger:
    return Cheezburger(
        sequence=sequence,
        operation=Operation.CREATE,
        filename=name,
        offset=offset,
        headers=(("size", str(size)), ("sha-1", sha1)),
        chunk=octets,
    )


def deletion(sequence: int, name: str) -> Cheezburger:
    return Cheezburger(
        sequence=sequence, operation=Operation.DELETE, filename=name, offset=0, headers=(), chunk=b""
    )


# ---- opening


def test_ohai_is_answered_with_ohai_ok() -> None:
    """A server that accepts OHAI answers OHAI-OK."""
    effects = ServerDriver().receive(Ohai().encode(), user="ada")
    assert sent(effects) == [OhaiOk()]
    assert logged(effects) == [PeerOpened(LABEL, "ada")]


def test_another_version_is_answered_with_rtfm() -> None:
    """A version that the server does not speak is answered with RTFM, and opens nothing."""
    driver = ServerDriver()
    [signed] = Ohai().encode()
    [answer] = sent(driver.receive([signed[:-1] + b"\x03"]))
    assert isinstance(answer, Rtfm)
    assert driver.clients == 0


@pytest.mark.parametrize("frames", [[b""], [b"\xaa"], [b"GET / HTTP/1.0\r\n"], [b"\xaa\xa4\x01"]])
def test_foreign_messages_are_ignored(frames: list[bytes]) -> None:
    """A message without the signature is logged and gets no answer."""
    [effect] = ServerDriver().receive(frames)
    assert isinstance(effect, Log) and isinstance(effect.event, Refused)


def test_malformed_command_is_answered_with_wat() -> None:
    """A malformed command is answered with WAT, which ends the peering like every error."""
    driver = peered(entry("/a"), path=None)
    effects = driver.receive([b"\xaa\xa3\x07\x00"])
    [answer] = sent(effects)
    assert isinstance(answer, Wat)
    assert drops(effects) == [PEER]
    assert driver.clients == 0


def test_command_before_ohai_is_unexpected() -> None:
    """A server answers an unexpected command with RTFM. A peer without a peering costs no memory."""
    driver = ServerDriver()
    [answer] = sent(driver.handle(Nom(credit=1)))
    assert isinstance(answer, Rtfm)
    assert driver.clients == driver.suspended == 0


def test_unexpected_command_ends_the_peering() -> None:
    """A command of the server, sent by a client, is unexpected: RTFM, and the client must begin again."""
    driver = peered()
    effects = driver.handle(OhaiOk())
    assert isinstance(sent(effects)[0], Rtfm)
    assert drops(effects) == [PEER]
    assert driver.suspended == 0
    assert sent(driver.handle(Ohai())) == [OhaiOk()]


def test_more_clients_than_allowed_are_refused() -> None:
    """OHAI that is not accepted for other reasons than its version is answered with SRSLY."""
    driver = ServerDriver(max_clients=1)
    driver.handle(Ohai())
    [answer] = sent(driver.handle(Ohai(), peer=OTHER), OTHER)
    assert isinstance(answer, Srsly)
    assert driver.clients == 1


# ---- subscriptions


def test_subscription_is_confirmed() -> None:
    """A server that accepts a subscription answers ICANHAZ-OK; the path need not exist."""
    driver = peered(path=None)
    effects = driver.handle(subscription("/future"))
    assert sent(effects) == [IcanhazOk()]
    assert logged(effects) == [Subscribed("/future", LABEL)]


@pytest.mark.parametrize("path", ["relative", "", "/a/../b", "//a", "/a\0b"])
def test_commands_of_a_refused_client_are_ignored(path: str) -> None:
    """After SRSLY for a subscription the server ignores every further command of that client."""
    driver = peered(entry("/a"), path=None)
    [answer] = sent(driver.handle(subscription(path)))
    assert isinstance(answer, Srsly)
    assert driver.handle(subscription("/", (RESYNC,))) == []
    assert driver.handle(Hugz()) == []
    [refused] = logged(driver.receive([b"\xaa\xa3\x07"]))
    assert isinstance(refused, Refused)
    assert driver.publish(entry("/b")) == [Log(FilePublished("/b", 10, "AA"))]


def test_refused_client_may_begin_again() -> None:
    """A client that got SRSLY may connect again ("The SRSLY Command"), also with the same routing id."""
    driver = peered(entry("/a"), path=None)
    assert isinstance(sent(driver.handle(subscription("relative")))[0], Srsly)
    effects = driver.handle(Ohai())
    assert sent(effects) == [OhaiOk()]
    assert logged(effects) == [PeerClosed(LABEL, "begins again after SRSLY"), PeerOpened(LABEL)]
    assert sent(driver.handle(subscription("/"))) == [IcanhazOk()]
    assert driver.clients == 1


def test_access_rules_decide_on_subscriptions() -> None:
    """A failed attempt to access a resource is answered with SRSLY."""
    driver = peered(path=None, authorise=lambda peer, path: "is private" if path == "/private" else None)
    assert sent(driver.handle(subscription("/public"))) == [IcanhazOk()]
    effects = driver.handle(subscription("/private"))
    assert sent(effects) == [Srsly(reason="/private is private")]
    assert logged(effects) == [Refused("/private", "is private", LABEL)]


def test_other_rules_of_access_refuse_a_subscribed_client() -> None:
    """A subscription that is not allowed any more is refused with SRSLY; other clients keep theirs."""
    closed: set[str] = set()
    driver = peered(path="/a", authorise=lambda user, path: "is closed" if path in closed else None)
    connect(driver, path="/b", peer=OTHER)
    assert driver.review() == []
    closed.add("/a")
    effects = driver.review()
    assert (sent(effects), sent(effects, OTHER)) == ([Srsly(reason="/a is closed")], [])
    assert driver.review() == [], "the refused client has no subscription any more"
    assert reads(driver.change(Put(entry("/a/x")), Put(entry("/b/x")))) == [("/b/x", 0, 10)]


@pytest.mark.parametrize(
    ("path", "name", "covered"),
    [
        ("/foo", "/foo", True),
        ("/foo", "/foo/bar", True),
        ("/foo", "/foobar", False),
        ("/", "/foo", True),
        ("/", "/x/y", True),
        ("/foo/", "/foo/bar", True),  # a slash at the end changes nothing
    ],
)
def test_a_path_covers_itself_and_what_is_below_it(path: str, name: str, covered: bool) -> None:
    """`/foo` covers `/foo` and `/foo/bar`, not `/foobar`; `/` covers everything."""
    assert len(content(peered(path=path).publish(entry(name, 0)))) == covered


def test_without_resync_only_changes_are_sent() -> None:
    """The full contents are sent only if RESYNC asks for them."""
    driver = peered(entry("/a"), path=None)
    effects = driver.handle(subscription("/"))
    assert sent(effects) == [IcanhazOk()]
    assert reads(effects) == []


def test_resync_sends_what_the_cache_lacks() -> None:
    """RESYNC sends everything under the path, except files that the cache has with the same digest."""
    driver = peered(entry("/p/a", 0, "A1"), entry("/p/b", 0, "B1"), entry("/p/c", 0, "C1"), path=None)
    cache = (("a", "a1"), ("/p/b", "OLD"))
    effects = driver.handle(subscription("/p", (RESYNC,), cache))
    assert sent(effects)[0] == IcanhazOk()
    assert [command.filename for command in content(effects)] == ["/p/b", "/p/c"]


def test_absolute_cache_names_outside_the_path_are_ignored() -> None:
    """A cache name that begins with a slash counts only under the subscription's path."""
    driver = peered(entry("/p/a", 0, "A1"), entry("/q/a", 0, "A1"), path=None)
    driver.handle(subscription("/p", (RESYNC, PRUNE), (("/q/a", "A1"), ("/q/z", "Z1"))))
    effects = driver.handle(subscription("/q", (RESYNC,)))
    assert [command.filename for command in content(effects)] == ["/q/a"]


def test_caches_of_one_path_add_up() -> None:
    """A cache that does not fit one ICANHAZ comes in several; only the last asks for RESYNC."""
    driver = peered(entry("/a", 0, "A1"), entry("/b", 0, "B1"), entry("/c", 0, "C1"), path=None)
    assert sent(driver.handle(subscription("/", (), (("a", "A1"),)))) == [IcanhazOk()]
    assert sent(driver.handle(subscription("/", (), (("b", "B1"),)))) == [IcanhazOk()]
    effects = driver.handle(subscription("/", (RESYNC,)))
    assert [command.filename for command in content(effects)] == ["/c"]


def test_a_file_that_changes_between_two_parts_of_a_cache_is_sent() -> None:
    """A change after the client listed the file is a change like any other."""
    driver = peered(entry("/a", 0, "A1"), path=None)
    driver.handle(subscription("/", (), (("a", "A1"),)))
    assert sent(driver.publish(entry("/a", 0, "A2"))) == [chunk(0, "/a", 0, b"", size=0, sha1="A2")]


def test_stale_cache_names_are_deleted_only_on_request() -> None:
    """PRUNE=1, an option of our own, turns cache names that are not published into deletions."""
    cache = (("gone", "A1"),)
    driver = peered(path=None)
    assert sent(driver.handle(subscription("/", (RESYNC,), cache))) == [IcanhazOk()]
    assert sent(driver.handle(subscription("/", (RESYNC, PRUNE), cache))) == [
        IcanhazOk(),
        deletion(0, "/gone"),
    ]


def test_a_doubtful_file_is_not_deleted() -> None:
    """The disk does not say whether the file is there: it is deleted when the disk says that it is not."""
    driver = peered(path=None)
    cache = (("d/a", "A1"),)
    assert logged(driver.change(Doubt("/d", "cannot be read"))) == [
        Refused("/d", "cannot be read; what was known there stays as it was")
    ]
    assert content(driver.handle(subscription("/", (RESYNC, PRUNE), cache))) == []
    assert driver.change(Trust("/d")) == []
    assert content(driver.handle(subscription("/", (RESYNC, PRUNE), cache))) == [deletion(0, "/d/a")]


# ---- credit and chunks


def test_nothing_is_sent_without_credit() -> None:
    """The server sends only as much content as it has credit for."""
    driver = peered(entry("/a"), credit=0)
    effects = driver.publish(entry("/b"))
    assert reads(effects) == []
    assert logged(effects) == [FilePublished("/b", 10, "AA")]
    assert driver.peering().describe(0.0).waits_for == "credit"
    assert reads(driver.handle(Nom(credit=100))) == [("/b", 0, 10)]


def test_nom_gets_no_answer() -> None:
    """The server does not respond to NOM."""
    assert peered().handle(Nom(credit=5)) == []


def test_chunk_is_limited_by_the_credit() -> None:
    """Credit is exact to the octet: a chunk has at most what is left of it."""
    driver = peered(credit=4)
    effects = driver.publish(entry("/a", 10))
    assert reads(effects) == [("/a", 0, 4)]
    assert driver.read(one_read(effects), b"0123") == [Send(PEER, chunk(0, "/a", 0, b"0123"))]
    assert driver.credit() == 0
    assert reads(driver.handle(Nom(credit=100))) == [("/a", 4, 6)]


def test_credit_that_comes_while_a_chunk_is_read_is_for_the_next_chunk() -> None:
    """The size of a chunk is fixed when it is asked for."""
    driver = peered(credit=4)
    request = one_read(driver.publish(entry("/a", 10)))
    assert driver.handle(Nom(credit=3)) == []
    assert reads(driver.read(request, b"0123")) == [("/a", 4, 3)]
    assert driver.credit() == 3


def test_large_file_is_sent_in_chunks() -> None:
    """Each command has a chunk and its offset."""
    driver = peered(chunk_octets=6)
    effects = driver.read(one_read(driver.publish(entry("/a", 10))), b"012345")
    assert sent(effects) == [chunk(0, "/a", 0, b"012345")]
    assert reads(effects) == [("/a", 6, 4)]


def test_file_ends_with_an_empty_chunk_at_its_size() -> None:
    """The end of a file is an empty chunk at offset = size, with size and digest like every chunk."""
    driver = peered()
    effects = driver.read(one_read(driver.publish(entry("/a", 4))), b"0123")
    assert sent(effects) == [chunk(0, "/a", 0, b"0123", size=4), chunk(1, "/a", 4, b"", size=4)]
    assert logged(effects) == [FileSent("/a", 4, LABEL)]


def test_empty_file_is_one_empty_chunk() -> None:
    """An empty file needs no credit."""
    driver = peered(credit=0)
    assert sent(driver.publish(entry("/empty", 0))) == [chunk(0, "/empty", 0, b"", size=0)]


def test_deletion_is_operation_two() -> None:
    """The deletion of a file has the delete operation and no content."""
    driver = peered(entry("/a"))
    effects = driver.withdraw("/a")
    assert sent(effects) == [deletion(0, "/a")]
    assert logged(effects) == [FileWithdrawn("/a")]


def test_file_that_was_not_published_is_not_withdrawn() -> None:
    """A file that cannot be published is logged only."""
    driver = peered()
    assert driver.withdraw("/a") == []
    assert driver.change(Unfit("/a", "is no file")) == [Log(Refused("/a", "is no file"))]


def test_sequence_counts_every_command_of_a_client() -> None:
    """Our sequence counts from 0 for each client, deletions included."""
    driver = peered(credit=0)
    effects = [*driver.publish(entry("/a", 0)), *driver.withdraw("/a"), *driver.publish(entry("/b", 0))]
    assert [command.sequence for command in content(effects)] == [0, 1, 2]


def test_refused_client_gets_no_goodbye() -> None:
    """SRSLY ended the dialog, so KTHXBAI may not follow it when the server stops."""
    driver = peered(path=None)
    assert isinstance(sent(driver.handle(subscription("")))[0], Srsly)
    assert sent(driver.stop()) == []
    assert driver.clients == 0


def test_engine_sends_nothing_out_of_turn() -> None:
    """A command that the dialog does not allow now is a fault of ours, and fails at once."""
    driver = peered(path=None)
    with pytest.raises(OutOfTurnError, match=r"^S:Ohai in state USE: expected "):
        driver.peering().outflow.send(Ohai(), 0.0)


def test_credit_that_does_not_fit_64_bits_is_refused() -> None:
    """A sum of credit never wraps: the client is refused."""
    driver = peered(credit=MAX_CREDIT)
    [answer] = sent(driver.handle(Nom(credit=1)))
    assert isinstance(answer, Srsly)
    assert driver.handle(Hugz()) == []


def test_largest_credit_is_accepted() -> None:
    """Credit up to 2^64 - 1 is a number like any other."""
    driver = peered(credit=MAX_CREDIT - 1)
    assert driver.handle(Nom(credit=1)) == []
    assert driver.credit() == MAX_CREDIT


def test_chunks_of_a_file_are_consecutive() -> None:
    """Between the chunks of one file nothing else is sent, not even a deletion."""
    driver = peered(entry("/x"), chunk_octets=6)
    request = one_read(driver.publish(entry("/a", 10)))
    assert sent(driver.publish(entry("/b", 0))) == []
    assert sent(driver.withdraw("/x")) == []
    effects = driver.read(one_read(driver.read(request, b"012345")), b"6789")
    assert sent(effects) == [
        chunk(1, "/a", 6, b"6789"),
        chunk(2, "/a", 10, b""),
        chunk(3, "/b", 0, b"", size=0),
        deletion(4, "/x"),
    ]


def test_file_that_changes_while_it_is_sent_begins_again() -> None:
    """Two versions are never mixed: the file begins again at offset 0, with nothing in between."""
    driver = peered(chunk_octets=6)
    effects = driver.read(one_read(driver.publish(entry("/a", 10))), b"012345")
    assert driver.publish(entry("/a", 8, "BB")) == [Log(FilePublished("/a", 8, "BB"))]
    again = driver.read(one_read(effects), b"6789")
    assert sent(again) == [], "the old chunk is not sent"
    assert reads(again) == [("/a", 0, 6)]
    first = driver.read(one_read(again), b"abcdef")
    assert sent(first) == [chunk(1, "/a", 0, b"abcdef", size=8, sha1="BB")]


def test_file_that_changes_without_credit_begins_again_at_once() -> None:
    """No chunk is being read then."""
    driver = peered(credit=6)
    driver.read(one_read(driver.publish(entry("/a", 10))), b"012345")
    driver.publish(entry("/a", 0, "BB"))
    driver.publish(entry("/a", 4, "CC"))
    effects = driver.handle(Nom(credit=10))
    assert reads(effects) == [("/a", 0, 4)]


def test_file_that_is_touched_while_it_is_sent_goes_on() -> None:
    """The same content with another time is no change."""
    driver = peered(chunk_octets=6)
    effects = driver.publish(entry("/a", 10))
    assert driver.publish(entry("/a", 10)) == []
    assert reads(driver.read(one_read(effects), b"012345")) == [("/a", 6, 4)]


def test_file_that_cannot_be_read_as_published_begins_again_later() -> None:
    """It is being written, or the disk has failed: it is read again after a delay that doubles."""
    driver = peered(timers=LASTING)
    effects = driver.publish(entry("/a", 10))
    for delay in (0.05, 0.1, 0.2, 0.4, 0.8, LONGEST_SETTLE_S, LONGEST_SETTLE_S):
        assert driver.fail(one_read(effects)) == []
        assert driver.peering().describe(0.0).waits_for == "the file, which cannot be read"
        assert driver.tick(driver.now + 0.9 * delay) == []
        effects = driver.tick(driver.now + 0.11 * delay)
        assert reads(effects) == [("/a", 0, 10)]
    connect(driver, path=None, peer=OTHER)
    other = one_read(driver.handle(subscription("/", (RESYNC,)), peer=OTHER))
    assert driver.fail(other) == []
    assert reads(driver.tick(driver.now + SETTLE_S)) == [("/a", 0, 10)], "each client has its own delay"


def test_file_that_was_published_again_when_it_could_not_be_read_begins_again_at_once() -> None:
    """The reader has updated the list of files before it answers."""
    driver = peered(chunk_octets=6)
    effects = driver.read(one_read(driver.publish(entry("/a", 10))), b"012345")
    driver.publish(entry("/a", 8, "BB"))
    assert reads(driver.fail(one_read(effects))) == [("/a", 0, 6)]


def test_mode_and_modification_time_are_sent_on_request() -> None:
    """As headers of every chunk."""
    driver = peered(path=None, credit=0)
    file = msgspec.structs.replace(entry("/a", 0), mode=0o640, signature=Signature(0, 123456789, 1))
    driver.handle(subscription("/", (ATTRIBUTES,)))
    [command] = content(driver.publish(file))
    assert command.headers[2:] == (("mode", "0640"), ("mtime", "123456789"))
    driver.handle(subscription("/"))
    assert content(driver.publish(entry("/b", 0))) == [chunk(1, "/b", 0, b"", size=0)]


@pytest.mark.parametrize(("size", "options", "is_short"), [
    (RENAMED_FROM_OCTETS, (RENAMES,), True),
    (RENAMED_FROM_OCTETS - 1, (RENAMES,), False),
    (RENAMED_FROM_OCTETS, (), False),
])  # fmt: skip
def test_renamed_file_is_sent_without_its_content(
    size: int, options: tuple[tuple[str, str], ...], is_short: bool
) -> None:
    """To a client that keeps deleted files; a small file is not worth it."""
    driver = peered(entry("/old", size), path=None)
    driver.handle(subscription("/", options))
    assert content(driver.withdraw("/old")) == [deletion(0, "/old")]
    effects = driver.publish(entry("/new", size))
    if is_short:
        [end] = content(effects)
        assert (end.filename, end.offset, end.chunk) == ("/new", size, b"")
        assert ("renamed", "1") in end.headers
        assert FileSent("/new", size, LABEL) in logged(effects)
    else:
        assert content(effects) == []
        assert len(asked(effects, ReadChunk)) == 1


def test_only_a_client_that_had_the_file_is_not_sent_its_content() -> None:
    """One that comes later, or was still to be sent the old file, has nothing to take the content from."""
    large = RENAMED_FROM_OCTETS
    driver = peered(entry("/old", large), path=None)
    driver.handle(subscription("/", (RESYNC, RENAMES)))  # it lacks /old, and a chunk of it is being read
    driver.handle(Ohai(), peer=OTHER)
    driver.handle(subscription("/", (RESYNC, RENAMES), (("old", "AA"),)), Nom(credit=10 * large), peer=OTHER)
    driver.withdraw("/old")
    effects = driver.publish(entry("/new", large))
    assert [offset for _, offset, _ in reads(effects)] in ([], [0])
    [end] = content(effects, OTHER)
    assert (end.filename, end.offset, end.chunk) == ("/new", large, b"")
    third = PeerId("clients", b"third")
    driver.handle(Ohai(), peer=third)
    effects = driver.handle(subscription("/", (RESYNC, RENAMES)), Nom(credit=large), peer=third)
    assert content(effects, third) == []
    assert [(one.request.entry.name, one.request.offset) for one in asked(effects, ReadChunk)] == [
        ("/new", 0)
    ]


def test_fault_while_files_are_sent_ends_the_peering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the client would wait for files for ever."""
    driver = peered()
    monkeypatch.setattr(Outflow, "_send_cheezburger", lambda outflow, name, operation: iter([1 // 0]))
    effects: list[HostEffect] = []
    changes = Noticed(FilesChanged("/", [Put(entry("/a", 1)), Gone("/a")]))
    with pytest.raises(ZeroDivisionError):
        effects.extend(driver.engine.handle(changes, 0.0))
    assert drops(effects) == [PEER]
    assert driver.clients == 0


def test_touched_file_that_could_not_be_read_begins_again_at_once() -> None:
    """Its content is the same, and its state another one."""
    driver = peered()
    effects = driver.publish(entry("/a", 10))
    touched = entry("/a", 10)
    driver.publish(touched)
    again = driver.fail(one_read(effects))
    assert reads(again) == [("/a", 0, 10)]
    assert one_read(again).request.entry is touched


@pytest.mark.parametrize("change", ["publish", "withdraw", "refuse", "stop"])
def test_change_ends_the_delay_of_a_file_that_cannot_be_read(change: str) -> None:
    """There is something else to do with it, or nothing."""
    driver = peered()
    driver.fail(one_read(driver.publish(entry("/a", 10))))
    match change:
        case "publish":
            assert reads(driver.publish(entry("/a", 8, "BB"))) == [("/a", 0, 8)]
        case "withdraw":
            assert sent(driver.withdraw("/a")) == [deletion(0, "/a")]
        case "refuse":
            assert isinstance(sent(driver.handle(subscription("")))[0], Srsly)
            assert driver.suspended == 1, "only the timer of the client"
        case "stop":
            assert sent(driver.stop()) == [Kthxbai()]
            assert driver.engine.suspended == 0


def test_file_that_always_changes_lets_others_pass() -> None:
    """It goes to the end of the queue."""
    driver = peered(chunk_octets=6)
    effects = driver.publish(entry("/log", 10))
    driver.publish(entry("/b", 0))
    driver.publish(entry("/log", 10, "L1"))
    effects = driver.read(one_read(effects), b"012345")
    assert sent(effects) == [chunk(0, "/b", 0, b"", size=0)]
    assert reads(effects) == [("/log", 0, 6)]


def test_file_that_is_deleted_while_it_is_sent_is_given_up() -> None:
    """Its deletion is sent when the chunk that is being read has come."""
    driver = peered(entry("/x"), chunk_octets=6)
    effects = driver.read(one_read(driver.publish(entry("/a", 10))), b"012345")
    driver.withdraw("/x")
    assert sent(driver.withdraw("/a")) == []
    assert sent(driver.read(one_read(effects), b"6789")) == [deletion(1, "/a"), deletion(2, "/x")]


def test_file_that_is_deleted_and_published_while_it_is_sent_begins_again() -> None:
    """The newest change of a name counts."""
    driver = peered(chunk_octets=6)
    effects = driver.read(one_read(driver.publish(entry("/a", 10))), b"012345")
    driver.withdraw("/a")
    driver.publish(entry("/a", 8, "BB"))
    again = driver.read(one_read(effects), b"6789")
    assert (sent(again), reads(again)) == ([], [("/a", 0, 6)])


def test_newest_change_of_a_name_counts() -> None:
    """For a file that is changed and deleted before it was sent, only the deletion is sent."""
    driver = peered(chunk_octets=6)
    effects = driver.publish(entry("/a", 2))
    driver.publish(entry("/b", 5))
    driver.withdraw("/b")
    assert sent(driver.read(one_read(effects), b"01"))[-1] == deletion(2, "/b")


def test_slow_client_is_waited_for() -> None:
    """After a batch of commands the engine waits until the socket has taken them."""
    driver = peered(*(entry(f"/{i:03}", 0) for i in range(3 * BATCH)), path=None)
    effects = driver.handle(subscription("/", (RESYNC,)))
    sizes = []
    while effects:
        assert effects[-1] == AwaitRoom(PEER, 0)
        sizes.append(len(content(effects)))
        assert driver.peering().describe(0.0).waits_for == "the client to receive"
        effects = driver.make_room()
    assert sizes == [BATCH, BATCH, BATCH]


def test_large_chunk_is_read_when_there_is_room_for_it() -> None:
    """So that it need not wait in memory. The client may have room for less than the chunk."""
    size = SMALL_OCTETS + 1
    driver = peered(credit=10 * size)
    effects = driver.publish(entry("/a", size))
    assert (effects[1:], reads(effects)) == ([AwaitRoom(PEER, size)], [])
    read = driver.make_room(1000)
    assert reads(read) == [("/a", 0, 1000)]
    effects = driver.read(one_read(read), bytes(1000))
    assert reads(effects) == [("/a", 1000, SMALL_OCTETS - 999)], "the rest is small"
    assert driver.credit() == 10 * size - 1000


@pytest.mark.parametrize("change", ["publish", "withdraw", "refuse"])
def test_change_while_a_client_is_waited_for(change: str) -> None:
    """Nothing is read for a version that is not published any more."""
    size = SMALL_OCTETS + 1
    driver = peered(credit=10 * size)
    driver.publish(entry("/a", size))
    match change:
        case "publish":
            driver.publish(entry("/a", 10, "BB"))
            assert reads(driver.make_room(size)) == [("/a", 0, 10)]
        case "withdraw":
            driver.withdraw("/a")
            assert driver.make_room(size) == [Send(PEER, deletion(0, "/a"))]
        case "refuse":
            driver.handle(subscription(""))
            assert driver.make_room(size) == []
            assert driver.suspended == 1, "only the timer of the client"


@pytest.mark.parametrize("deletions", range(BATCH - 3, BATCH + 3))
def test_full_client_gets_everything_when_it_has_room(deletions: int) -> None:
    """For some of these numbers the last command of a batch is followed by the first read of a file."""
    driver = peered(entry("/file", 7), path=None)
    stale = tuple((f"stale {i}", "0" * 40) for i in range(deletions))
    effects = driver.play_out(driver.handle(subscription("/", (RESYNC, PRUNE), stale)))
    assert [command.operation for command in content(effects)] == [2] * deletions + [1, 1]
    assert b"".join(command.chunk for command in content(effects)) == b"x" * 7


def test_clients_get_room_in_any_order() -> None:
    """Each one waits for its own room only."""
    size = SMALL_OCTETS + 1
    driver = peered(credit=10 * size)
    connect(driver, credit=10 * size, peer=OTHER)
    effects = driver.publish(entry("/a", size))
    assert effects[1:] == [AwaitRoom(PEER, size), AwaitRoom(OTHER, size)]
    effects = driver.make_room(size, peer=OTHER)
    assert reads(effects) == [("/a", 0, size)]
    driver.read(one_read(effects), bytes(size))
    assert driver.state.under_way()[0].octets == 0
    assert reads(driver.make_room(size)) == [("/a", 0, size)]


def test_each_client_has_its_own_credit() -> None:
    """Credit of one client is not used for another."""
    driver = peered(credit=0)
    connect(driver, credit=7, peer=OTHER)
    effects = driver.publish(entry("/a"))
    assert reads(effects) == [("/a", 0, 7)]
    assert sent(driver.read(one_read(effects), b"0123456"), OTHER) == [chunk(0, "/a", 0, b"0123456")]


# ---- life and end


def test_hugz_is_answered() -> None:
    """A peer responds to HUGZ with HUGZ-OK."""
    assert sent(peered().handle(Hugz())) == [HugzOk()]


def test_idle_client_is_asked_for_life_once() -> None:
    """HUGZ goes to a peer to which nothing else was sent, and again only when it was answered."""
    driver = peered()
    assert driver.tick(0.9) == []
    assert sent(driver.tick(1.0)) == [Hugz()]
    assert driver.tick(2.0) == []
    driver.now = 2.1
    assert sent(driver.handle(HugzOk())) == [Hugz()]


def test_silent_client_is_dropped() -> None:
    """A client that sends nothing for the expiry time is gone; its next command is unexpected."""
    driver = peered()
    assert sent(driver.tick(1.0)) == [Hugz()]
    effects = driver.tick(4.0)
    assert effects == [DropPeer(PEER, discard=True), Log(PeerClosed(LABEL, "silent for 4.0 s"))]
    assert driver.clients == driver.suspended == 0
    driver.now = 4.1
    assert isinstance(sent(driver.handle(Nom(credit=1)))[0], Rtfm)


def test_every_command_is_a_sign_of_life() -> None:
    """Any command shows that the peer is alive."""
    driver = peered()
    for now in range(1, 20):
        driver.now = float(now)
        driver.handle(Nom(credit=1))
        assert drops(driver.tick(now + 0.5)) == []


def test_kthxbai_gets_no_answer() -> None:
    """The server does not respond to KTHXBAI, and does not send what still waits."""
    driver = peered()
    assert driver.handle(Kthxbai()) == [
        DropPeer(PEER, discard=True),
        Log(PeerClosed(LABEL, "said KTHXBAI")),
    ]
    assert driver.clients == driver.suspended == 0


def test_stop_says_kthxbai_to_every_client() -> None:
    """A server that stops says goodbye to its clients."""
    driver = peered()
    driver.handle(Ohai(), peer=OTHER)
    effects = driver.stop()
    assert (sent(effects), sent(effects, OTHER)) == ([Kthxbai()], [Kthxbai()])
    assert effects[-1] == Stop("the server stops")
    assert driver.clients == driver.engine.suspended == 0


def waiting_for(what: str) -> ServerDriver:
    """Return a driver with a client whose story is in this state."""
    size = SMALL_OCTETS + 1
    match what:
        case "nothing":
            return peered()
        case "credit":
            driver = peered(credit=0)
            driver.publish(entry("/a"))
        case "a chunk":
            driver = peered()
            driver.publish(entry("/a"))
        case "room":
            driver = peered(credit=size)
            driver.publish(entry("/a", size))
        case "a full batch":
            driver = peered(*(entry(f"/{i}", 0) for i in range(BATCH)), path=None)
            driver.handle(subscription("/", (RESYNC,)))
        case "a delay":
            driver = peered()
            driver.fail(one_read(driver.publish(entry("/a"))))
        case "a check":
            driver = peered(entry("/a"))
            driver.handle(subscription("/a", (("RESUME", f"6:{SHA1}"),)))
        case "an end":
            driver = peered()
            driver.handle(subscription(""))
    return driver


STATES = ["nothing", "credit", "a chunk", "room", "a full batch", "a delay", "a check", "an end"]


@pytest.mark.parametrize("what", STATES)
def test_stop_in_every_state(what: str) -> None:
    """KTHXBAI is the last command, except after SRSLY; no story is left, and later events have no effect."""
    driver = waiting_for(what)
    effects = driver.stop()
    assert sent(effects) == ([] if what == "an end" else [Kthxbai()])
    assert effects[-1] == Stop("the server stops")
    assert driver.engine.suspended == 0 and driver.engine.deadline() is None
    assert driver.clients == 0
    assert driver.make_room(100) == []


ENDS = ["leaves", "says KTHXBAI", "is silent", "is malformed", "is displaced"]
IGNORED = ["says KTHXBAI", "is malformed"]
"""What has no effect if the client was refused."""


@pytest.mark.parametrize(
    ("what", "how"),
    [(what, how) for what in STATES for how in ENDS if what != "an end" or how not in IGNORED],
)
def test_client_that_leaves_in_every_state(what: str, how: str) -> None:
    """No story is left, what was being read or computed is cancelled, and its answer has no effect."""
    driver = waiting_for(what)
    match how:
        case "leaves":
            effects = driver.leave("has disconnected")
        case "says KTHXBAI":
            effects = driver.handle(Kthxbai())
        case "is silent":
            effects = driver.tick(100.0)
        case "is malformed":
            effects = driver.receive([b"\xaa\xa3\x07"])
        case "is displaced":
            effects = driver.handle(Kthxbai(), user="another")
            assert isinstance(sent(effects)[0], Rtfm)
    assert driver.clients == driver.suspended == 0
    assert PEER in drops(effects)
    cancelled = [effect.ticket for effect in effects if isinstance(effect, CancelAsk)]
    late = [effect.ticket for effect in asked(effects, ReadChunk)]  # the end of the delay was due, too
    assert late == cancelled if late else len(cancelled) == (what in ("a chunk", "a check"))
    assert driver.make_room(100) == []
    assert sent(driver.handle(Ohai())) == [OhaiOk()]


def test_answer_for_a_client_that_has_gone_is_ignored() -> None:
    """Also if another client has its routing id now."""
    driver = peered()
    request = one_read(driver.publish(entry("/a")))
    assert driver.leave() == [
        CancelAsk(request.ticket),
        DropPeer(PEER, discard=True),
        Log(PeerClosed(LABEL, "has disconnected")),
    ]
    connect(driver)
    assert driver.read(request, b"0123456789") == []
    assert reads(driver.publish(entry("/b"))) == [("/b", 0, 10)]


def test_check_of_a_client_that_has_gone_is_cancelled() -> None:
    """It may take minutes otherwise."""
    driver = peered(entry("/a"))
    request = one_check(driver.handle(subscription("/a", (("RESUME", f"6:{SHA1}"),))))
    assert driver.leave()[0] == CancelAsk(request.ticket)
    assert driver.check(request, SHA1) == []


def test_every_message_of_the_protocol_is_handled_in_every_state() -> None:
    """Any command at any time gets an answer, silence or an end, never an exception."""
    for opened in (False, True):
        for command in every_command():
            driver = peered() if opened else ServerDriver()
            driver.handle(command)


def every_command() -> list[Command]:
    commands: list[Command] = [
        Ohai(), OhaiOk(), subscription("/"), IcanhazOk(), Nom(credit=1), chunk(0, "/a", 0, b""), Hugz(), HugzOk(),
        Kthxbai(), Srsly(reason=""), Rtfm(reason=""), Wat(reason=""),
    ]  # fmt: skip
    assert {type(command).__name__ for command in commands} == set(filemq.MESSAGES)
    return commands
