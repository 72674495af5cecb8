"""Playbooks for the client's engine: one sentence of FILEMQ v2, or of our reading of it, in each test."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

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
from specwire.runtime.filemq.actions import (
    ClientAction,
    Close,
    CompleteFile,
    Connect,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    ListHeld,
    Report,
    Send,
    Stored,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.client import ClientEngine, Phase
from specwire.runtime.filemq.dialect import CacheRules, Command
from specwire.runtime.filemq.events import FileDeleted, FileReceived, PeerClosed, PeerOpened, Subscribed
from specwire.runtime.kernel.log import LogEvent, Refused

TIMES = {"heartbeat": 1.0, "expiry": 4.0, "reconnect": 0.5}
SHA1 = "A" * 40


def client(*paths: str, resync: bool = False, window_octets: int = 100) -> ClientEngine:
    return ClientEngine(paths or ("/",), resync=resync, window_octets=window_octets, timers=TIMES)


def connected(*paths: str, resync: bool = False, window_octets: int = 100) -> ClientEngine:
    """Return an engine whose server has accepted everything so far."""
    engine = client(*paths, resync=resync, window_octets=window_octets)
    engine.open(0.0)
    actions = engine.obey(OhaiOk(), 0.0)
    while True:
        if listings := [a for a in actions if isinstance(a, ListHeld)]:
            engine.settle(Held(engine.connection, listings[0].path, {}), 0.0)
        elif not any(isinstance(command, Icanhaz) for command in sent(actions)):
            return engine
        actions = engine.obey(IcanhazOk(), 0.0)


def sent(actions: Iterable[ClientAction]) -> list[Command]:
    return [action.command for action in actions if isinstance(action, Send)]


def told(actions: Iterable[ClientAction]) -> list[LogEvent]:
    return [action.event for action in actions if isinstance(action, Report)]


def disk(actions: Iterable[ClientAction]) -> list[DiskAction]:
    kinds = (ListHeld, WriteChunk, CompleteFile, DiscardFile, DeleteFile)
    return [action for action in actions if isinstance(action, kinds)]


def chunk(
    sequence: int,
    name: str,
    offset: int,
    octets: bytes,
    *,
    size: int | None = None,
    operation: Operation = Operation.CREATE,
) -> Cheezburger:
    headers = () if size is None else (("size", str(size)), ("sha-1", SHA1))
    return Cheezburger(
        sequence=sequence, operation=operation, filename=name, offset=offset, headers=headers, chunk=octets
    )


def deletion(sequence: int, name: str) -> Cheezburger:
    return chunk(sequence, name, 0, b"", operation=Operation.DELETE)


# ---- opening and subscribing


def test_connection_begins_with_ohai() -> None:
    """A new connection starts with OHAI."""
    assert client().open(0.0) == [Connect(1), Send(Ohai())]


def test_credit_and_subscription_follow_ohai_ok() -> None:
    """After OHAI-OK the client grants credit and subscribes."""
    engine = client("/photos")
    engine.open(0.0)
    actions = engine.obey(OhaiOk(), 0.0)
    assert sent(actions) == [Nom(credit=100), Icanhaz(path="/photos", options=(), cache=())]
    assert told(actions) == [PeerOpened("server")]


def test_paths_are_subscribed_to_one_after_the_other() -> None:
    """The next ICANHAZ leaves when the last one was confirmed."""
    engine = client("/a", "/b/")
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    actions = engine.obey(IcanhazOk(), 0.0)
    assert told(actions) == [Subscribed("/a")]
    assert sent(actions) == [Icanhaz(path="/b", options=(), cache=())]
    assert engine.obey(IcanhazOk(), 0.0) == [Report(Subscribed("/b"))]


def test_resync_lists_what_is_held() -> None:
    """With RESYNC the cache names each file that the inbox holds, relative to the path, with its digest."""
    engine = client("/p", resync=True)
    engine.open(0.0)
    assert disk(engine.obey(OhaiOk(), 0.0)) == [ListHeld(1, "/p")]
    held = {"/p/a b": SHA1, "/p/x=y": SHA1}
    assert sent(engine.settle(Held(1, "/p", held), 0.0)) == [
        Icanhaz(
            path="/p",
            options=(("RESYNC", "1"), ("PRUNE", "1")),
            cache=(("a b", SHA1), ("x=y", SHA1)),
        )
    ]


def test_large_cache_is_sent_in_parts() -> None:
    """One octet counts 255 entries: more come in several ICANHAZ, and only the last asks for RESYNC."""
    engine = client(resync=True)
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    held = {f"/{i:04}": SHA1 for i in range(600)}
    parts = sent(engine.settle(Held(1, "/", held), 0.0))
    assert [len(part.cache) for part in parts if isinstance(part, Icanhaz)] == [255, 255, 90]
    assert [bool(part.options) for part in parts if isinstance(part, Icanhaz)] == [False, False, True]
    assert all(part.encode() for part in parts)
    assert [told(engine.obey(IcanhazOk(), 0.0)) for _ in parts] == [[], [], [Subscribed("/")]]


def test_parts_of_a_cache_do_not_wait_for_each_other() -> None:
    """A bounded number is on the way at a time, and the next path waits for the last ICANHAZ-OK."""
    engine = client("/a", "/b", resync=True)
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    in_flight = CacheRules().in_flight
    held = {f"/a/{i:05}": SHA1 for i in range(255 * (in_flight + 2))}
    assert len(sent(engine.settle(Held(1, "/a", held), 0.0))) == in_flight
    answers = [engine.obey(IcanhazOk(), 0.0) for _ in range(in_flight + 2)]
    assert [len(sent(actions)) for actions in answers] == [1, 1, *[0] * in_flight]
    assert [bool(disk(actions)) for actions in answers] == [*[False] * (in_flight + 1), True]
    assert answers[-1] == [Report(Subscribed("/a")), ListHeld(1, "/b")]


def test_error_among_the_parts_of_a_cache_belongs_to_their_path() -> None:
    """However many are on the way, they are for one path."""
    engine = client("/a", "/b", resync=True)
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    engine.settle(Held(1, "/a", {f"/a/{i:05}": SHA1 for i in range(1000)}), 0.0)
    engine.obey(IcanhazOk(), 0.0)
    assert told(engine.obey(Wat(reason="no"), 0.0))[0] == Refused("/a", "no")
    assert engine.paths == ("/b",)


def test_confirmation_that_was_not_asked_for_confirms_nothing() -> None:
    """While the inbox is still listed, a server cannot have accepted the path."""
    engine = client("/a", resync=True)
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    assert Subscribed("/a") not in told(engine.obey(IcanhazOk(), 0.0))
    assert len(sent(engine.settle(Held(1, "/a", {}), 0.0))) == 1


def test_names_too_long_for_a_cache_entry_are_left_out() -> None:
    """An entry holds a name of 214 octets; a longer one is not cut, its file is sent again."""
    engine = client(resync=True)
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    held = {"/" + "n" * 214: SHA1, "/" + "m" * 215: SHA1, "/" + "é" * 107: SHA1, "/" + "é" * 108: SHA1}
    [command] = sent(engine.settle(Held(1, "/", held), 0.0))
    assert isinstance(command, Icanhaz)
    assert [name for name, _ in command.cache] == ["n" * 214, "é" * 107]
    assert command.encode()


def test_path_can_be_added_later() -> None:
    """A client may subscribe to any number of paths, whenever it likes."""
    engine = connected("/a")
    assert sent(engine.subscribe("/b", 1.0)) == [Icanhaz(path="/b", options=(), cache=())]


@pytest.mark.parametrize("path", ["a", "", "/a/../b", "/a//b", "/" + "x" * 255])
def test_impossible_path_is_refused(path: str) -> None:
    """A path must begin with a slash, and fit a string."""
    with pytest.raises(ValueError, match=r"begin|component|long"):
        client(path)


# ---- content


def test_chunks_are_written_and_the_file_completed() -> None:
    """A file is complete at the empty chunk."""
    engine = connected()
    steps = [
        *engine.obey(chunk(0, "/f", 0, b"abc", size=5), 0.0),
        *engine.obey(chunk(1, "/f", 3, b"de", size=5), 0.0),
        *engine.obey(chunk(2, "/f", 5, b"", size=5), 0.0),
    ]
    assert steps == [
        WriteChunk(1, "/f", 0, b"abc"), WriteChunk(1, "/f", 3, b"de"), CompleteFile(1, "/f", 5, SHA1)
    ]  # fmt: skip
    assert engine.settle(Stored(1, "/f", 5, SHA1, True), 0.0) == [Report(FileReceived("/f", 5, SHA1))]


def test_empty_file_is_completed_at_once() -> None:
    """One empty chunk at offset 0 is an empty file."""
    assert connected().obey(chunk(0, "/f", 0, b"", size=0), 0.0) == [CompleteFile(1, "/f", 0, SHA1)]


def test_server_without_headers_is_read_too() -> None:
    """Where nothing was announced, a file ends at the empty chunk and is unverified."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abc"), 0.0)
    assert engine.obey(chunk(1, "/f", 3, b""), 0.0) == [CompleteFile(1, "/f", 3, None)]


def test_next_file_ends_an_unannounced_one() -> None:
    """Chunks of one file are consecutive, so the first chunk of another file ends it."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abc"), 0.0)
    assert engine.obey(chunk(1, "/g", 0, b"x"), 0.0) == [
        CompleteFile(1, "/f", 3, None), WriteChunk(1, "/g", 0, b"x")
    ]  # fmt: skip


def test_next_file_discards_an_announced_one_that_is_short() -> None:
    """A file whose announced size was not reached is not whole and never appears."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abc", size=9), 0.0)
    assert engine.obey(chunk(1, "/g", 0, b"x", size=1), 0.0) == [
        DiscardFile(1, "/f"), WriteChunk(1, "/g", 0, b"x")
    ]  # fmt: skip


def test_offset_zero_begins_the_file_again() -> None:
    """A file that changed while it was sent starts again at offset 0."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abcdef", size=9), 0.0)
    steps = [
        *engine.obey(chunk(1, "/f", 0, b"xy", size=2), 0.0),
        *engine.obey(chunk(2, "/f", 2, b"", size=2), 0.0),
    ]
    assert steps == [WriteChunk(1, "/f", 0, b"xy"), CompleteFile(1, "/f", 2, SHA1)]


def test_file_that_became_empty_while_it_was_sent() -> None:
    """A restart may find an empty file."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abcdef", size=9), 0.0)
    assert engine.obey(chunk(1, "/f", 0, b"", size=0), 0.0) == [CompleteFile(1, "/f", 0, SHA1)]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (chunk(1, "/f", 4, b"x", size=9), "goes on at offset 4, not at 3"),
        (chunk(1, "/f", 2, b"x", size=9), "goes on at offset 2, not at 3"),
        (chunk(1, "/f", 3, b"", size=9), "ends after 3 of 9 octets"),
        (chunk(1, "/f", 3, b"1234567", size=9), "is longer than the 9 octets announced"),
    ],
)
def test_chunk_that_does_not_fit_breaks_the_file(second: Cheezburger, reason: str) -> None:
    """A file with a hole, an overlap or the wrong length is thrown away, reported once, and the rest ignored."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abc", size=9), 0.0)
    actions = engine.obey(second, 0.0)
    assert (disk(actions), told(actions)) == ([DiscardFile(1, "/f")], [Refused("/f", reason)])
    assert engine.obey(chunk(2, "/f", 5, b"x", size=9), 0.0) == []
    assert disk(engine.obey(chunk(3, "/f", 0, b"again", size=9), 0.0)) == [WriteChunk(1, "/f", 0, b"again")]


def test_deletion_is_passed_to_the_inbox() -> None:
    """A delete operation takes the file out of the inbox, and what had come of it."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abc"), 0.0)
    assert engine.obey(deletion(1, "/f"), 0.0) == [DiscardFile(1, "/f"), DeleteFile(1, "/f")]
    assert engine.settle(Deleted(1, "/f"), 0.0) == [Report(FileDeleted("/f"))]


@pytest.mark.parametrize(
    "name",
    ["/../x", "/a/../../x", "x", "//etc/passwd", "/a//b", "/a/", "/a\0b", "/.", "/.specwire-inbox/journal"],
)
@pytest.mark.parametrize("operation", list(Operation))
def test_hostile_names_are_refused(name: str, operation: Operation) -> None:
    """A name that leaves the inbox, or reaches into its own folder, is reported and nothing is done with it."""
    actions = connected().obey(chunk(0, name, 0, b"x", operation=operation), 0.0)
    assert disk(actions) == []
    assert [type(event) for event in told(actions)] == [Refused]


def test_names_outside_the_subscription_are_refused() -> None:
    """A server may send, and delete, only what was subscribed to."""
    engine = connected("/foo")
    assert told(engine.obey(chunk(0, "/foobar", 0, b"x"), 0.0))[0] == Refused(
        "/foobar", "is under no path that was subscribed to"
    )
    assert disk(engine.obey(deletion(1, "/bar"), 0.0)) == []
    assert disk(engine.obey(chunk(2, "/foo/bar", 0, b"x"), 0.0)) == [WriteChunk(1, "/foo/bar", 0, b"x")]


def test_gap_in_our_own_servers_sequence_opens_a_new_connection() -> None:
    """Where a command is missing, only a comparison of digests tells what was lost."""
    engine = connected(resync=True)
    engine.obey(chunk(0, "/f", 0, b"", size=0), 0.0)
    assert engine.obey(deletion(2, "/g"), 0.0)[0] == Close("command 1 of the server is missing")
    assert engine.tick(0.5)[0] == Connect(2)


def test_foreign_sequence_numbers_are_not_counted() -> None:
    """The specification does not say what the sequence counts."""
    engine = connected()
    assert disk(engine.obey(chunk(7, "/f", 0, b"abc"), 0.0)) == [WriteChunk(1, "/f", 0, b"abc")]
    assert disk(engine.obey(chunk(7, "/f", 3, b""), 0.0)) == [CompleteFile(1, "/f", 3, None)]


# ---- credit


def test_credit_comes_back_when_content_is_on_the_disk() -> None:
    """Credit is granted again for what is done with, a quarter of the window at a time."""
    engine = connected(window_octets=100)
    assert sent(engine.obey(chunk(0, "/f", 0, b"x" * 60), 0.0)) == []
    assert engine.settle(Wrote(1, 20), 0.0) == []
    assert engine.settle(Wrote(1, 40), 0.0) == [Send(Nom(credit=60))]


def test_discarded_content_counts_as_done() -> None:
    """What is thrown away does not block the window."""
    engine = connected(window_octets=100)
    assert sent(engine.obey(chunk(0, "/../f", 0, b"x" * 60), 0.0)) == [Nom(credit=60)]


def test_content_beyond_the_credit_ends_the_connection() -> None:
    """A server that sends more than it has credit for breaks the protocol."""
    engine = connected(window_octets=100)
    actions = engine.obey(chunk(0, "/f", 0, b"x" * 101), 0.0)
    assert actions[0] == Close("the server sent 1 octets beyond its credit")
    assert engine.phase is Phase.ENDED


def test_old_connections_disk_work_gives_no_credit() -> None:
    """Outcomes of a connection that is gone are told, and count for nothing else."""
    engine = connected(window_octets=100)
    engine.obey(Kthxbai(), 0.0)
    engine.tick(0.5)
    engine.obey(OhaiOk(), 0.5)
    assert engine.settle(Wrote(1, 60), 0.5) == []
    assert engine.settle(Stored(1, "/f", 5, SHA1, True), 0.5) == [Report(FileReceived("/f", 5, SHA1))]


# ---- failures of the inbox


def test_file_that_could_not_be_stored_is_asked_for_again() -> None:
    """After a full disk the paths are compared anew, later and later while it lasts."""
    engine = connected(resync=True)
    failed = Failed(1, "/f", "No space left on device", again=True)
    assert engine.settle(failed, 0.0) == [
        Report(Refused("/f", "No space left on device; it is asked for again"))
    ]
    engine.obey(HugzOk(), 0.4)
    assert disk(engine.tick(0.4)) == []
    assert disk(engine.tick(0.5)) == [ListHeld(1, "/")]
    engine.settle(Held(1, "/", {}), 0.5)
    engine.obey(IcanhazOk(), 0.5)
    engine.settle(failed, 0.6)
    assert disk(engine.tick(1.5)) == []
    assert disk(engine.tick(1.6)) == [ListHeld(1, "/")]


def test_file_with_a_forbidden_place_is_not_asked_for_again() -> None:
    """What was refused for good stays refused."""
    engine = connected(resync=True)
    engine.settle(Failed(1, "/f", "leads through 'd', which is a symbolic link", again=False), 0.0)
    assert disk(engine.tick(0.9)) == []


# ---- errors


def test_srsly_is_final() -> None:
    """A client that is refused closes the connection."""
    engine = connected()
    assert engine.obey(Srsly(reason="private"), 0.0) == [
        Close("refused: private"), Report(PeerClosed("server", "refused: private", final=True))
    ]  # fmt: skip
    assert engine.tick(100.0) == []


def test_rtfm_to_ohai_is_final() -> None:
    """A refused version is never tried again."""
    engine = client()
    engine.open(0.0)
    assert isinstance(engine.obey(Rtfm(reason="version"), 0.0)[0], Close)
    assert engine.phase is Phase.ENDED


def test_rtfm_opens_a_fresh_connection_once() -> None:
    """RTFM to an unexpected command: close, and start one new connection."""
    engine = connected()
    assert isinstance(engine.obey(Rtfm(reason="what"), 0.0)[0], Close)
    assert engine.tick(0.4) == []
    assert engine.tick(0.5) == [Connect(2), Send(Ohai())]
    engine.obey(OhaiOk(), 0.5)
    engine.obey(Rtfm(reason="what"), 0.6)
    assert engine.phase is Phase.ENDED


def test_rtfm_counts_anew_after_a_connection_that_was_of_use() -> None:
    """A server that restarts twice is followed twice."""
    engine = connected()
    engine.obey(Rtfm(reason="restarted"), 0.0)
    engine.tick(0.5)
    engine.obey(OhaiOk(), 0.5)
    engine.obey(IcanhazOk(), 0.5)
    engine.obey(Rtfm(reason="restarted"), 0.6)
    assert engine.phase is Phase.WAITING


def test_wat_to_a_subscription_gives_up_that_path() -> None:
    """A command that was answered with WAT is not repeated: the next connection does without that path."""
    engine = client("/a", "/b")
    engine.open(0.0)
    engine.obey(OhaiOk(), 0.0)
    assert told(engine.obey(Wat(reason="bad"), 0.0))[0] == Refused("/a", "bad")
    engine.tick(0.5)
    assert Icanhaz(path="/b", options=(), cache=()) in sent(engine.obey(OhaiOk(), 0.5))


def test_any_other_wat_is_final() -> None:
    """A client must not repeat a command that the server cannot read."""
    engine = connected()
    engine.obey(Wat(reason="bad"), 0.0)
    assert engine.phase is Phase.ENDED


@pytest.mark.parametrize("command", [OhaiOk(), IcanhazOk(), Ohai(), Nom(credit=5)])
def test_unexpected_command_of_the_server_is_reported_and_ignored(command: Command) -> None:
    """A client has no error command of its own."""
    engine = connected()
    [event] = told(engine.obey(command, 0.0))
    assert isinstance(event, Refused)
    assert engine.phase is Phase.OPEN


@pytest.mark.parametrize("frames", [[b""], [b"hello"], [b"\xaa\xa3\x08"], [b"\xaa\xa3\x63", b"x"]])
def test_malformed_message_of_the_server_is_reported_and_ignored(frames: list[bytes]) -> None:
    """Both sides discard what they cannot read; a client answers nothing."""
    actions = connected().receive(frames, 0.0)
    assert [type(event) for event in told(actions)] == [Refused]
    assert sent(actions) == []


# ---- life and end


def test_hugz_is_answered() -> None:
    """A peer responds to HUGZ with HUGZ-OK."""
    assert connected().obey(Hugz(), 0.0) == [Send(HugzOk())]


def test_idle_client_sends_hugz() -> None:
    """HUGZ is needed only where nothing else was sent, and not again before the answer."""
    engine = connected()
    assert engine.tick(0.9) == []
    assert engine.tick(1.0) == [Send(Hugz())]
    assert engine.tick(2.1) == []
    engine.obey(HugzOk(), 2.2)
    assert engine.tick(2.3) == [Send(Hugz())]


def test_no_hugz_before_ohai_ok() -> None:
    """Heartbeats are allowed from OHAI-OK on."""
    engine = client()
    engine.open(0.0)
    assert engine.tick(2.0) == []


def test_silence_while_nobody_listens_is_excused() -> None:
    """A client that is held up by its disk hears nothing: it goes on showing life, and does not leave."""
    engine = connected()
    for now in range(1, 12):
        engine.excuse_silence(float(now))
        assert sent(engine.tick(float(now))) == [Hugz()]
    assert engine.phase is Phase.OPEN


def test_silent_server_is_left_and_tried_again_with_a_growing_delay() -> None:
    """A server that is silent for the expiry time is lost; a fresh connection follows."""
    engine = client()
    engine.open(0.0)
    assert engine.tick(4.0)[0] == Close("silent for 4.0 s")
    assert engine.tick(4.5)[0] == Connect(2)
    assert engine.tick(8.5)[0] == Close("silent for 4.0 s")
    assert engine.tick(9.0) == []
    assert engine.tick(9.5)[0] == Connect(3)


def test_kthxbai_of_the_server_leads_to_a_fresh_connection() -> None:
    """A server that stops may come back; the file under way is thrown away."""
    engine = connected()
    engine.obey(chunk(0, "/f", 0, b"abc"), 0.0)
    assert engine.obey(Kthxbai(), 0.0)[:2] == [DiscardFile(1, "/f"), Close("the server said KTHXBAI")]
    assert engine.obey(Hugz(), 0.1) == [], "what the old connection still says is not heard"
    assert engine.tick(0.5)[0] == Connect(2)


def test_close_before_ohai_ok_is_silent() -> None:
    """KTHXBAI ends a peering that was opened, and nothing else."""
    engine = client()
    engine.open(0.0)
    assert sent(engine.close(0.0)) == []


def test_close_says_kthxbai() -> None:
    """A client ends a connection with KTHXBAI."""
    engine = connected()
    assert engine.close(0.0)[:2] == [Send(Kthxbai()), Close("closed by request")]
    assert engine.close(0.0) == []
    assert engine.tick(99.0) == []


def test_lost_connections_are_opened_again_and_are_no_rtfm() -> None:
    """However often the network fails before ICANHAZ-OK: only the server's own RTFM, twice, is final."""
    engine, now = client(), 0.0
    engine.open(now)
    for _ in range(5):
        engine.obey(OhaiOk(), now)
        assert told(engine.lost("the connection was lost", now)) == [
            PeerClosed("server", "the connection was lost")
        ]
        assert engine.lost("the connection was lost", now) == [], "there is none to lose"
        now += 5.0
        assert engine.tick(now)[0] == Connect(engine.connection)
    engine.obey(OhaiOk(), now)
    engine.obey(Rtfm(reason="x"), now)
    assert engine.phase is Phase.WAITING


def test_a_server_that_is_not_there_is_told_of_less_and_less() -> None:
    """Of 100 tries in vain the first, second, fourth... are told; one that succeeds begins the count anew."""
    engine, now, tries = client(), 0.0, []
    engine.open(now)
    for number in range(1, 101):
        if told(engine.lost("no connection", now)):
            tries.append(number)
        now += 5.0
        engine.tick(now)
    assert tries == [1, 2, 4, 8, 16, 32, 64]
    engine.obey(OhaiOk(), now)
    assert told(engine.lost("gone", now)) == [PeerClosed("server", "gone")]
    now += 5.0
    engine.tick(now)
    assert told(engine.lost("gone", now)) == [PeerClosed("server", "gone, try 2")]
