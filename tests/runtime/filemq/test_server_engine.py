"""Playbooks for the server's engine: one sentence of FILEMQ v2, or of our reading of it, in each test."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from specwire.generated import filemq
from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    Icanhaz,
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
from specwire.runtime.filemq.actions import Abandon, Close, Pause, ReadChunk, Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Catalogue, Entry, Signature
from specwire.runtime.filemq.dialect import Command, OutOfTurnError
from specwire.runtime.filemq.events import PeerClosed, PeerOpened
from specwire.runtime.filemq.outflow import BATCH, MAX_CREDIT, MAX_RESTARTS
from specwire.runtime.filemq.server import ServerEngine

PEER = b"\x00peer"
OTHER = b"\x00other"
TIMES = {"heartbeat": 1.0, "expiry": 4.0}
RESYNC = (("RESYNC", "1"),)
RESYNC_AND_PRUNE = (("RESYNC", "1"), ("PRUNE", "1"))


def entry(name: str, size: int = 10, sha1: str = "AA") -> Entry:
    return Entry(name, size, sha1, Signature(size, 0, 0))


def serve(*entries: Entry, **terms: object) -> ServerEngine:
    files = Catalogue()
    for item in entries:
        files.put(item)
    return ServerEngine(files, timers=TIMES, **terms)  # type: ignore[arg-type]


def peered(*entries: Entry, path: str | None = "/", credit: int = 1000, **terms: object) -> ServerEngine:
    """Return an engine with one client that is subscribed to `path` and has credit."""
    engine = serve(*entries, **terms)
    engine.obey(PEER, Ohai(), 0.0)
    if path is not None:
        engine.obey(PEER, subscription(path), 0.0)
    engine.obey(PEER, Nom(credit=credit), 0.0)
    return engine


def subscription(
    path: str, options: tuple[tuple[str, str], ...] = (), cache: tuple[tuple[str, str], ...] = ()
) -> Icanhaz:
    return Icanhaz(path=path, options=options, cache=cache)


def change(engine: ServerEngine, item: Entry) -> list[ServerAction]:
    files = engine._files
    assert isinstance(files, Catalogue)
    files.put(item)
    return engine.publish(item, 0.0)


def remove(engine: ServerEngine, name: str) -> list[ServerAction]:
    files = engine._files
    assert isinstance(files, Catalogue)
    files.remove(name)
    return engine.withdraw(name, 0.0)


def sent(actions: Iterable[ServerAction], peer: bytes = PEER) -> list[Command]:
    return [action.command for action in actions if isinstance(action, Send) and action.peer == peer]


def only(actions: Iterable[ServerAction], kind: type) -> list[ServerAction]:
    return [action for action in actions if isinstance(action, kind)]


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


def read(action: ServerAction) -> tuple[str, int, int]:
    assert isinstance(action, ReadChunk)
    return action.name, action.offset, action.size


# ---- opening


def test_ohai_is_answered_with_ohai_ok() -> None:
    """A server that accepts OHAI answers OHAI-OK."""
    assert sent(serve().receive(PEER, Ohai().encode(), 0.0)) == [OhaiOk()]


def test_another_version_is_answered_with_rtfm() -> None:
    """A version that the server does not speak is answered with RTFM, and opens nothing."""
    engine = serve()
    [signed] = Ohai().encode()
    [answer] = sent(engine.receive(PEER, [signed[:-1] + b"\x03"], 0.0))
    assert isinstance(answer, Rtfm)
    assert engine.clients == 0


@pytest.mark.parametrize("frames", [[b""], [b"\xaa"], [b"GET / HTTP/1.0\r\n"], [b"\xaa\xa4\x01"]])
def test_foreign_messages_are_discarded_in_silence(frames: list[bytes]) -> None:
    """A message without the signature gets no answer."""
    assert sent(serve().receive(PEER, frames, 0.0)) == []


def test_malformed_command_is_answered_with_wat() -> None:
    """A malformed command is answered with WAT, and like every error that ends the peering."""
    engine = peered(entry("/a"), path=None)
    actions = engine.receive(PEER, [b"\xaa\xa3\x07\x00"], 0.0)
    [answer] = sent(actions)
    assert isinstance(answer, Wat)
    assert len(only(actions, Close)) == 1


def test_command_before_ohai_is_unexpected() -> None:
    """A server answers an unexpected command with RTFM; a peer that did not open costs no memory."""
    engine = serve()
    [answer] = sent(engine.obey(PEER, Nom(credit=1), 0.0))
    assert isinstance(answer, Rtfm)
    assert engine.clients == 0


def test_unexpected_command_ends_the_peering() -> None:
    """A command of the server's own, sent by a client, is unexpected: RTFM, and the client must start anew."""
    engine = peered()
    actions = engine.obey(PEER, OhaiOk(), 0.0)
    assert isinstance(sent(actions)[0], Rtfm)
    assert len(only(actions, Close)) == 1
    assert sent(engine.obey(PEER, Ohai(), 0.0)) == [OhaiOk()]


def test_more_clients_than_allowed_are_refused() -> None:
    """OHAI that is not accepted for other reasons than its version is answered with SRSLY."""
    engine = serve(max_clients=1)
    engine.obey(PEER, Ohai(), 0.0)
    [answer] = sent(engine.obey(OTHER, Ohai(), 0.0), OTHER)
    assert isinstance(answer, Srsly)


# ---- subscriptions


def test_subscription_is_confirmed() -> None:
    """A server that accepts a subscription answers ICANHAZ-OK; the path need not exist."""
    engine = peered(path=None)
    assert sent(engine.obey(PEER, subscription("/future"), 0.0)) == [IcanhazOk()]


@pytest.mark.parametrize("path", ["relative", "", "/a/../b", "//a", "/a\0b"])
def test_refused_subscription_silences_the_client(path: str) -> None:
    """After SRSLY for a subscription the server discards every further command of that client."""
    engine = peered(entry("/a"), path=None)
    [answer] = sent(engine.obey(PEER, subscription(path), 0.0))
    assert isinstance(answer, Srsly)
    assert engine.obey(PEER, subscription("/", RESYNC), 0.0) == []
    assert engine.obey(PEER, Hugz(), 0.0) == []
    assert engine.receive(PEER, [b"\xaa\xa3\x07"], 0.0)[:-1] == []
    assert change(engine, entry("/b")) == []


def test_refused_client_may_begin_anew() -> None:
    """A client that got SRSLY may connect again, as "The SRSLY Command" has it; its routing id may be the one it had."""
    engine = peered(entry("/a"), path=None)
    assert isinstance(sent(engine.obey(PEER, subscription("relative"), 0.0))[0], Srsly)
    actions = engine.obey(PEER, Ohai(), 0.0)
    assert sent(actions) == [OhaiOk()]
    told = [action.event for action in actions if isinstance(action, Report)]
    label = PEER.hex()
    assert told == [PeerClosed(label, "begins anew after SRSLY"), PeerOpened(label)]
    assert sent(engine.obey(PEER, subscription("/"), 0.0)) == [IcanhazOk()]
    assert engine.clients == 1


def test_access_rules_decide_on_subscriptions() -> None:
    """A failed attempt to access a resource is answered with SRSLY."""
    engine = peered(path=None, authorise=lambda peer, path: "is private" if path == "/private" else None)
    assert sent(engine.obey(PEER, subscription("/public"), 0.0)) == [IcanhazOk()]
    assert sent(engine.obey(PEER, subscription("/private"), 0.0)) == [Srsly(reason="/private is private")]


def test_a_path_covers_itself_and_what_is_below_it() -> None:
    """`/foo` covers `/foo` and `/foo/bar`, not `/foobar`; `/` covers everything."""
    engine = peered(path="/foo")
    assert [len(only(change(engine, entry(n, 0)), Send)) for n in ("/foo", "/foo/bar", "/foobar")] == [
        1,
        1,
        0,
    ]
    engine = peered(path="/")
    assert [len(only(change(engine, entry(n, 0)), Send)) for n in ("/foo", "/x/y")] == [1, 1]


def test_a_slash_at_the_end_of_a_path_changes_nothing() -> None:
    """`/foo/` is the same subscription as `/foo`."""
    engine = peered(path="/foo/")
    assert len(only(change(engine, entry("/foo/bar", 0)), Send)) == 1


def test_without_resync_only_changes_are_sent() -> None:
    """The full contents are sent where RESYNC asks for them, and only there."""
    engine = peered(entry("/a"), path=None)
    actions = engine.obey(PEER, subscription("/"), 0.0)
    assert sent(actions) == [IcanhazOk()]
    assert only(actions, ReadChunk) == []


def test_resync_sends_what_the_cache_lacks() -> None:
    """RESYNC sends everything under the path, except files that the cache shows with the same digest."""
    engine = peered(entry("/p/a", 0, "A1"), entry("/p/b", 0, "B1"), entry("/p/c", 0, "C1"), path=None)
    cache = (("a", "a1"), ("/p/b", "OLD"))
    answers = sent(engine.obey(PEER, subscription("/p", RESYNC, cache), 0.0))
    assert answers[0] == IcanhazOk()
    assert [a.filename for a in answers[1:] if isinstance(a, Cheezburger)] == ["/p/b", "/p/c"]


def test_absolute_cache_names_outside_the_path_are_ignored() -> None:
    """A cache name that begins with a slash counts only under the subscription's path."""
    engine = peered(entry("/p/a", 0, "A1"), entry("/q/a", 0, "A1"), path=None)
    sent(engine.obey(PEER, subscription("/p", RESYNC_AND_PRUNE, (("/q/a", "A1"), ("/q/z", "Z1"))), 0.0))
    answers = sent(engine.obey(PEER, subscription("/q", RESYNC), 0.0))
    assert [a.filename for a in answers[1:] if isinstance(a, Cheezburger)] == ["/q/a"]


def test_caches_of_one_path_add_up() -> None:
    """A cache larger than one ICANHAZ holds comes in several; only the last asks for RESYNC."""
    engine = peered(entry("/a", 0, "A1"), entry("/b", 0, "B1"), entry("/c", 0, "C1"), path=None)
    assert sent(engine.obey(PEER, subscription("/", (), (("a", "A1"),)), 0.0)) == [IcanhazOk()]
    assert sent(engine.obey(PEER, subscription("/", (), (("b", "B1"),)), 0.0)) == [IcanhazOk()]
    answers = sent(engine.obey(PEER, subscription("/", RESYNC), 0.0))
    assert [a.filename for a in answers[1:] if isinstance(a, Cheezburger)] == ["/c"]


def test_a_file_that_changes_between_two_parts_of_a_cache_is_sent() -> None:
    """What changes after the client listed it is a change like any other."""
    engine = peered(entry("/a", 0, "A1"), path=None)
    engine.obey(PEER, subscription("/", (), (("a", "A1"),)), 0.0)
    answers = sent(change(engine, entry("/a", 0, "A2")))
    assert answers == [chunk(0, "/a", 0, b"", size=0, sha1="A2")]


def test_stale_cache_names_are_deleted_only_where_asked_for() -> None:
    """PRUNE=1, an option of our own, turns cache names that are not published into deletions."""
    cache = (("gone", "A1"),)
    engine = peered(path=None)
    assert sent(engine.obey(PEER, subscription("/", RESYNC, cache), 0.0)) == [IcanhazOk()]
    answers = sent(engine.obey(PEER, subscription("/", RESYNC_AND_PRUNE, cache), 0.0))
    assert answers == [IcanhazOk(), deletion(0, "/gone")]


# ---- credit and chunks


def test_nothing_is_sent_without_credit() -> None:
    """The server sends only as much content as it has credit for."""
    engine = peered(entry("/a"), credit=0)
    assert only(change(engine, entry("/b")), ReadChunk) == []
    assert [read(a) for a in engine.obey(PEER, Nom(credit=100), 0.0)] == [("/b", 0, 10)]


def test_nom_gets_no_answer() -> None:
    """The server does not respond to NOM."""
    assert peered().obey(PEER, Nom(credit=5), 0.0) == []


def test_chunk_is_cut_to_the_credit() -> None:
    """Credit is exact to the octet: a chunk is cut to what is left of it."""
    engine = peered(credit=4)
    [order] = change(engine, entry("/a", 10))
    assert read(order) == ("/a", 0, 4)
    assert isinstance(order, ReadChunk)
    assert engine.chunk_read(PEER, order.transfer, b"0123", 0.0) == [Send(chunk(0, "/a", 0, b"0123"), PEER)]
    assert engine.credit(PEER) == 0
    assert [read(a) for a in engine.obey(PEER, Nom(credit=100), 0.0)] == [("/a", 4, 6)]


def test_large_file_is_cut_into_chunks() -> None:
    """Each command delivers a chunk that starts at its offset."""
    engine = peered(chunk_octets=6)
    [order] = change(engine, entry("/a", 10))
    assert isinstance(order, ReadChunk)
    [first, more] = engine.chunk_read(PEER, order.transfer, b"012345", 0.0)
    assert first == Send(chunk(0, "/a", 0, b"012345"), PEER)
    assert read(more) == ("/a", 6, 4)


def test_file_ends_with_an_empty_chunk_at_its_size() -> None:
    """The end of a file is an empty chunk at offset = size, with size and digest like every chunk."""
    engine = peered()
    [order] = change(engine, entry("/a", 4))
    assert isinstance(order, ReadChunk)
    actions = engine.chunk_read(PEER, order.transfer, b"0123", 0.0)
    assert sent(actions) == [chunk(0, "/a", 0, b"0123", size=4), chunk(1, "/a", 4, b"", size=4)]


def test_empty_file_is_one_empty_chunk() -> None:
    """An empty file needs no credit."""
    engine = peered(credit=0)
    assert sent(change(engine, entry("/empty", 0))) == [chunk(0, "/empty", 0, b"", size=0)]


def test_deletion_is_operation_two() -> None:
    """A deleted file is told with the delete operation and no content."""
    engine = peered(entry("/a"))
    assert sent(remove(engine, "/a")) == [deletion(0, "/a")]


def test_sequence_counts_every_command_of_a_client() -> None:
    """Our sequence counts from 0 for each client, deletions included."""
    engine = peered(credit=0)
    answers = [
        *sent(change(engine, entry("/a", 0))),
        *sent(remove(engine, "/a")),
        *sent(change(engine, entry("/b", 0))),
    ]
    assert [a.sequence for a in answers if isinstance(a, Cheezburger)] == [0, 1, 2]


def test_refused_client_gets_no_farewell() -> None:
    """SRSLY ended the dialog, so KTHXBAI may not follow it when the server stops."""
    engine = peered(path=None)
    assert isinstance(sent(engine.obey(PEER, subscription(""), 0.0))[0], Srsly)
    assert sent(engine.close(0.0)) == []
    assert engine.clients == 0


def test_engine_sends_nothing_out_of_turn() -> None:
    """A request that the dialog does not allow now fails at once, and says that we are at fault."""
    engine = peered(path=None)
    with pytest.raises(OutOfTurnError, match=r"^S:Ohai in state USE: expected "):
        engine._peerings[PEER].end(Ohai(), "a slip", 0.0)


def test_credit_that_does_not_fit_64_bits_is_refused() -> None:
    """A sum of credit never wraps: the client is refused."""
    engine = peered(credit=MAX_CREDIT)
    [answer] = sent(engine.obey(PEER, Nom(credit=1), 0.0))
    assert isinstance(answer, Srsly)
    assert engine.obey(PEER, Hugz(), 0.0) == []


def test_largest_credit_is_accepted() -> None:
    """Credit up to 2^64 - 1 is a number like any other."""
    engine = peered(credit=MAX_CREDIT - 1)
    assert engine.obey(PEER, Nom(credit=1), 0.0) == []
    assert engine.credit(PEER) == MAX_CREDIT


def test_chunks_of_a_file_are_consecutive() -> None:
    """Between the chunks of one file nothing else is sent, not even a deletion."""
    engine = peered(entry("/x"), chunk_octets=6)
    [order] = change(engine, entry("/a", 10))
    assert isinstance(order, ReadChunk)
    assert change(engine, entry("/b", 0)) == []
    assert remove(engine, "/x") == []
    engine.chunk_read(PEER, order.transfer, b"012345", 0.0)
    answers = sent(engine.chunk_read(PEER, order.transfer, b"6789", 0.0))
    assert answers == [
        chunk(1, "/a", 6, b"6789"),
        chunk(2, "/a", 10, b""),
        chunk(3, "/b", 0, b"", size=0),
        deletion(4, "/x"),
    ]


def test_file_that_changes_while_it_is_sent_begins_again() -> None:
    """Two versions are never mixed: the file starts again at offset 0, with nothing in between."""
    engine = peered(chunk_octets=6)
    [order] = change(engine, entry("/a", 10))
    assert isinstance(order, ReadChunk)
    engine.chunk_read(PEER, order.transfer, b"012345", 0.0)
    [abandon, again] = change(engine, entry("/a", 8, "BB"))
    assert abandon == Abandon(PEER, order.transfer)
    assert read(again) == ("/a", 0, 6)
    assert engine.chunk_read(PEER, order.transfer, b"6789", 0.0) == [], "the old chunk is not sent"
    assert isinstance(again, ReadChunk)
    [first, _] = engine.chunk_read(PEER, again.transfer, b"abcdef", 0.0)
    assert first == Send(chunk(1, "/a", 0, b"abcdef", size=8, sha1="BB"), PEER)


def test_file_that_is_touched_while_it_is_sent_goes_on() -> None:
    """The same content under another time is no change."""
    engine = peered(chunk_octets=6)
    change(engine, entry("/a", 10))
    assert change(engine, entry("/a", 10)) == []


def test_file_that_moved_on_is_begun_again_from_the_listing() -> None:
    """A file that is not what was announced when it is read begins again as it is now."""
    engine = peered()
    [order] = change(engine, entry("/a", 10))
    assert isinstance(order, ReadChunk)
    [abandon, again] = engine.file_moved(PEER, order.transfer, 0.0)
    assert (abandon, read(again)) == (Abandon(PEER, order.transfer), ("/a", 0, 10))


def test_file_that_always_changes_lets_others_pass() -> None:
    """After some restarts a file goes to the end of the queue."""
    engine = peered(chunk_octets=6)
    change(engine, entry("/log", 10))
    change(engine, entry("/b", 0))
    for turn in range(MAX_RESTARTS):
        change(engine, entry("/log", 10, f"L{turn}"))
    actions = change(engine, entry("/log", 10, "last"))
    assert sent(actions) == [chunk(0, "/b", 0, b"", size=0)]
    assert read(actions[-1]) == ("/log", 0, 6)


def test_deletion_of_the_file_under_way_ends_it() -> None:
    """A file that is deleted while it is sent is told as deleted at once."""
    engine = peered(chunk_octets=6)
    [order] = change(engine, entry("/a", 10))
    assert isinstance(order, ReadChunk)
    engine.chunk_read(PEER, order.transfer, b"012345", 0.0)
    assert remove(engine, "/a") == [Abandon(PEER, order.transfer), Send(deletion(1, "/a"), PEER)]


def test_newest_change_of_a_name_counts() -> None:
    """A file that is changed and deleted before it was sent is only told as deleted."""
    engine = peered(chunk_octets=6)
    [order] = change(engine, entry("/a", 2))
    change(engine, entry("/b", 5))
    remove(engine, "/b")
    assert isinstance(order, ReadChunk)
    answers = sent(engine.chunk_read(PEER, order.transfer, b"01", 0.0))
    assert answers[-1] == deletion(2, "/b")


def test_slow_client_is_waited_for() -> None:
    """After a batch of commands the engine waits until the socket has taken them."""
    engine = peered(*(entry(f"/{i:03}", 0) for i in range(3 * BATCH)), path=None)
    actions = engine.obey(PEER, subscription("/", RESYNC), 0.0)
    assert actions[-1] == Pause(PEER)
    assert len(sent(actions)) <= BATCH + 1
    total = len(sent(actions)) - 1
    while only(actions, Pause):
        actions = engine.resume(PEER, 0.0)
        total += len(sent(actions))
    assert total == 3 * BATCH


def test_each_client_has_its_own_credit() -> None:
    """One client's credit is of no use to another."""
    engine = peered(credit=0)
    engine.obey(OTHER, Ohai(), 0.0)
    engine.obey(OTHER, subscription("/"), 0.0)
    engine.obey(OTHER, Nom(credit=7), 0.0)
    assert [(a.peer, a.size) for a in change(engine, entry("/a")) if isinstance(a, ReadChunk)] == [(OTHER, 7)]


# ---- life and end


def test_hugz_is_answered() -> None:
    """A peer responds to HUGZ with HUGZ-OK."""
    assert sent(peered().obey(PEER, Hugz(), 0.0)) == [HugzOk()]


def test_idle_client_is_asked_for_life_once() -> None:
    """HUGZ goes to a peer to which nothing else was sent, and again only when it was answered."""
    engine = peered()
    assert engine.tick(0.9) == []
    assert sent(engine.tick(1.0)) == [Hugz()]
    assert engine.tick(2.0) == []
    assert engine.obey(PEER, HugzOk(), 2.1) == []
    assert sent(engine.tick(2.2)) == [Hugz()]


def test_silent_client_is_dropped() -> None:
    """A client that sends nothing for the expiry time is gone; its next command is unexpected."""
    engine = peered()
    assert sent(engine.tick(1.0)) == [Hugz()]
    assert [a.reason for a in engine.tick(4.0) if isinstance(a, Close)] == ["silent for 4.0 s"]
    assert engine.clients == 0
    assert isinstance(sent(engine.obey(PEER, Nom(credit=1), 4.1))[0], Rtfm)


def test_every_command_is_a_sign_of_life() -> None:
    """Any command shows that the peer is alive."""
    engine = peered()
    for now in range(1, 20):
        engine.obey(PEER, Nom(credit=1), float(now))
        assert only(engine.tick(now + 0.5), Close) == []


def test_kthxbai_gets_no_answer() -> None:
    """The server does not respond to KTHXBAI."""
    engine = peered()
    actions = engine.obey(PEER, Kthxbai(), 0.0)
    assert sent(actions) == []
    assert len(only(actions, Close)) == 1
    assert engine.clients == 0


def test_stop_says_kthxbai_to_every_client() -> None:
    """A server that stops tells its clients."""
    engine = peered()
    engine.obey(OTHER, Ohai(), 0.0)
    actions = engine.close(0.0)
    assert (sent(actions), sent(actions, OTHER)) == ([Kthxbai()], [Kthxbai()])
    assert engine.clients == 0


def test_every_message_of_the_protocol_is_taken_in_every_state() -> None:
    """Whatever command comes whenever: an answer, silence or an end, never an exception."""
    for opened in (False, True):
        for command in every_command():
            engine = peered() if opened else serve()
            engine.obey(PEER, command, 0.0)


def every_command() -> list[Command]:
    commands: list[Command] = [
        Ohai(), OhaiOk(), subscription("/"), IcanhazOk(), Nom(credit=1), chunk(0, "/a", 0, b""), Hugz(), HugzOk(),
        Kthxbai(), Srsly(reason=""), Rtfm(reason=""), Wat(reason=""),
    ]  # fmt: skip
    assert {type(command).__name__ for command in commands} == set(filemq.MESSAGES)
    return commands
