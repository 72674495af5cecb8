"""Playbooks for the client's desk: one sentence of FILEMQ v2, or of our reading of it, in each test."""

from __future__ import annotations

from math import inf
from typing import Any

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
from specwire.runtime.filemq.client import NEVER_ANSWERED
from specwire.runtime.filemq.codec import CacheRules, Command
from specwire.runtime.filemq.connection import MAX_BACKLOG
from specwire.runtime.filemq.diskwork import (
    BATCH,
    LARGE_OCTETS,
    AcceptDeletions,
    AwaitFiles,
    BatchDone,
    Checked,
    CheckInbox,
    CompleteFile,
    CompleteRenamed,
    ContentLost,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskBatch,
    Failed,
    Held,
    ListHeld,
    Restored,
    Stored,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileReceived,
    FileRestored,
    PeerClosed,
    PeerOpened,
    Subscribed,
)
from specwire.runtime.filemq.status import Phase
from specwire.runtime.kernel.effects import Ask, Connect, DropPeer, Log, PauseReceiving, Return, Send, Stop
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    MessageReceived,
    PeerDisconnected,
    PeerId,
    SendFailed,
)
from specwire.runtime.kernel.log import Refused
from tests.runtime.filemq.client_desk import SERVER, ClientDesk, connects, disk, drops, sent, told

SHA1 = "A" * 40
CLOSED = DropPeer(PeerId("server-1"))


def client(*paths: str, resync: bool = False, **settings: Any) -> ClientDesk:
    return ClientDesk(*paths, resync=resync, **settings)


def connected(*paths: str, resync: bool = False, **settings: Any) -> ClientDesk:
    """Return a client whose server has accepted everything so far."""
    desk = client(*paths, resync=resync, **settings)
    desk.start()
    actions = desk.receive(OhaiOk())
    while True:
        if listings := [a for a in actions if isinstance(a, ListHeld)]:
            desk.settle(Held(1, listings[0].path, {}))
        elif not any(isinstance(command, Icanhaz) for command in sent(actions)):
            return desk
        actions = desk.receive(IcanhazOk())


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
    server = PeerId("server-1")
    assert client().start() == [Connect(server, SERVER, b"identity-1"), Send(server, Ohai())]


def test_credit_and_subscription_follow_ohai_ok() -> None:
    """After OHAI-OK the client grants credit and subscribes."""
    desk = client("/photos")
    desk.start(0.0)
    actions = desk.receive(OhaiOk(), 0.0)
    assert sent(actions) == [Nom(credit=100), Icanhaz(path="/photos", options=(), cache=())]
    assert told(actions) == [PeerOpened(SERVER)]


def test_paths_are_subscribed_to_one_after_the_other() -> None:
    """The next ICANHAZ leaves when the last one was confirmed."""
    desk = client("/a", "/b/")
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    actions = desk.receive(IcanhazOk(), 0.0)
    assert told(actions) == [Subscribed("/a")]
    assert sent(actions) == [Icanhaz(path="/b", options=(), cache=())]
    assert desk.receive(IcanhazOk(), 0.0) == [Log(Subscribed("/b"))]


def test_resync_lists_what_is_held() -> None:
    """With RESYNC the cache names each file that the inbox holds, relative to the path, with its digest."""
    desk = client("/p", resync=True)
    desk.start(0.0)
    assert disk(desk.receive(OhaiOk(), 0.0)) == [ListHeld(1, "/p")]
    held = {"/p/a b": SHA1, "/p/x=y": SHA1}
    assert sent(desk.settle(Held(1, "/p", held), 0.0)) == [
        Icanhaz(
            path="/p",
            options=(("RESYNC", "1"), ("PRUNE", "1")),
            cache=(("a b", SHA1), ("x=y", SHA1)),
        )
    ]


def test_large_cache_is_sent_in_parts() -> None:
    """One octet counts 255 entries: more come in several ICANHAZ, and only the last asks for RESYNC."""
    desk = client(resync=True)
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    held = {f"/{i:04}": SHA1 for i in range(600)}
    parts = sent(desk.settle(Held(1, "/", held), 0.0))
    assert [len(part.cache) for part in parts if isinstance(part, Icanhaz)] == [255, 255, 90]
    assert [bool(part.options) for part in parts if isinstance(part, Icanhaz)] == [False, False, True]
    assert all(part.encode() for part in parts)
    assert [told(desk.receive(IcanhazOk(), 0.0)) for _ in parts] == [[], [], [Subscribed("/")]]


def test_parts_of_a_cache_do_not_wait_for_each_other() -> None:
    """A bounded number is on the way at a time, and the next path waits for the last ICANHAZ-OK."""
    desk = client("/a", "/b", resync=True)
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    in_flight = CacheRules().in_flight
    held = {f"/a/{i:05}": SHA1 for i in range(255 * (in_flight + 2))}
    assert len(sent(desk.settle(Held(1, "/a", held), 0.0))) == in_flight
    answers = [desk.receive(IcanhazOk(), 0.0) for _ in range(in_flight + 2)]
    assert [len(sent(actions)) for actions in answers] == [1, 1, *[0] * in_flight]
    assert [bool(disk(actions)) for actions in answers] == [*[False] * (in_flight + 1), True]
    assert answers[-1] == [Log(Subscribed("/a")), ListHeld(1, "/b")]


def test_error_among_the_parts_of_a_cache_belongs_to_their_path() -> None:
    """However many are on the way, they are for one path."""
    desk = client("/a", "/b", resync=True)
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    desk.settle(Held(1, "/a", {f"/a/{i:05}": SHA1 for i in range(1000)}), 0.0)
    desk.receive(IcanhazOk(), 0.0)
    assert told(desk.receive(Wat(reason="no"), 0.0))[0] == Refused("/a", "no")
    assert desk.paths == ("/b",)


def test_confirmation_that_was_not_asked_for_confirms_nothing() -> None:
    """While the inbox is still listed, a server cannot have accepted the path."""
    desk = client("/a", resync=True)
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    assert Subscribed("/a") not in told(desk.receive(IcanhazOk(), 0.0))
    assert len(sent(desk.settle(Held(1, "/a", {}), 0.0))) == 1


def test_names_too_long_for_a_cache_entry_are_left_out() -> None:
    """An entry holds a name of 214 octets; a longer one is not cut, its file is sent again."""
    desk = client(resync=True)
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    held = {"/" + "n" * 214: SHA1, "/" + "m" * 215: SHA1, "/" + "é" * 107: SHA1, "/" + "é" * 108: SHA1}
    [command] = sent(desk.settle(Held(1, "/", held), 0.0))
    assert isinstance(command, Icanhaz)
    assert [name for name, _ in command.cache] == ["n" * 214, "é" * 107]
    assert command.encode()


def test_path_can_be_added_later() -> None:
    """A client may subscribe to any number of paths, whenever it likes."""
    desk = connected("/a")
    assert sent(desk.subscribe("/b", 1.0)) == [Icanhaz(path="/b", options=(), cache=())]


@pytest.mark.parametrize("path", ["a", "", "/a/../b", "/a//b", "/" + "x" * 255])
def test_impossible_path_is_refused(path: str) -> None:
    """A path must begin with a slash, and fit a string."""
    with pytest.raises(ValueError, match=r"begin|component|long"):
        client(path)


# ---- content


def test_chunks_are_written_and_the_file_completed() -> None:
    """A file is complete at the empty chunk."""
    desk = connected()
    steps = [
        *desk.receive(chunk(0, "/f", 0, b"abc", size=5), 0.0),
        *desk.receive(chunk(1, "/f", 3, b"de", size=5), 0.0),
        *desk.receive(chunk(2, "/f", 5, b"", size=5), 0.0),
    ]
    assert steps == [
        WriteChunk(1, "/f", 0, b"abc"), WriteChunk(1, "/f", 3, b"de"), CompleteFile(1, "/f", 5, SHA1)
    ]  # fmt: skip
    assert desk.settle(Stored(1, "/f", 5, SHA1, True), 0.0) == [Log(FileReceived("/f", 5, SHA1))]


def test_empty_file_is_completed_at_once() -> None:
    """One empty chunk at offset 0 is an empty file."""
    assert connected().receive(chunk(0, "/f", 0, b"", size=0), 0.0) == [CompleteFile(1, "/f", 0, SHA1)]


def test_server_without_headers_is_read_too() -> None:
    """Where nothing was announced, a file ends at the empty chunk and is unverified."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abc"), 0.0)
    assert desk.receive(chunk(1, "/f", 3, b""), 0.0) == [CompleteFile(1, "/f", 3, None)]


def test_next_file_ends_an_unannounced_one() -> None:
    """Chunks of one file are consecutive, so the first chunk of another file ends it."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abc"), 0.0)
    assert desk.receive(chunk(1, "/g", 0, b"x"), 0.0) == [
        CompleteFile(1, "/f", 3, None), WriteChunk(1, "/g", 0, b"x")
    ]  # fmt: skip


def test_next_file_discards_an_announced_one_that_is_short() -> None:
    """A file whose announced size was not reached is not whole and never appears."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abc", size=9), 0.0)
    assert desk.receive(chunk(1, "/g", 0, b"x", size=1), 0.0) == [
        DiscardFile(1, "/f"), WriteChunk(1, "/g", 0, b"x")
    ]  # fmt: skip


def test_offset_zero_begins_the_file_again() -> None:
    """A file that changed while it was sent starts again at offset 0."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abcdef", size=9), 0.0)
    steps = [
        *desk.receive(chunk(1, "/f", 0, b"xy", size=2), 0.0),
        *desk.receive(chunk(2, "/f", 2, b"", size=2), 0.0),
    ]
    assert steps == [WriteChunk(1, "/f", 0, b"xy"), CompleteFile(1, "/f", 2, SHA1)]


def test_file_that_became_empty_while_it_was_sent() -> None:
    """A restart may find an empty file."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abcdef", size=9), 0.0)
    assert desk.receive(chunk(1, "/f", 0, b"", size=0), 0.0) == [CompleteFile(1, "/f", 0, SHA1)]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (chunk(1, "/f", 4, b"x", size=9), "continues at offset 4, not at 3"),
        (chunk(1, "/f", 2, b"x", size=9), "continues at offset 2, not at 3"),
        (chunk(1, "/f", 3, b"", size=9), "ends after 3 of 9 octets"),
        (chunk(1, "/f", 3, b"1234567", size=9), "is longer than the 9 octets announced"),
    ],
)
def test_chunk_that_does_not_fit_breaks_the_file(second: Cheezburger, reason: str) -> None:
    """A file with a hole, an overlap or the wrong length is thrown away, reported once, and the rest ignored."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abc", size=9), 0.0)
    actions = desk.receive(second, 0.0)
    assert (disk(actions), told(actions)) == ([DiscardFile(1, "/f")], [Refused("/f", reason)])
    assert desk.receive(chunk(2, "/f", 5, b"x", size=9), 0.0) == []
    assert disk(desk.receive(chunk(3, "/f", 0, b"again", size=9), 0.0)) == [WriteChunk(1, "/f", 0, b"again")]


RENAMED = (("size", "9"), ("sha-1", "A" * 40), ("renamed", "1"))


def renamed(sequence: int, name: str) -> Cheezburger:
    return Cheezburger(
        sequence=sequence, operation=Operation.CREATE, filename=name, offset=9, headers=RENAMED, chunk=b""
    )


def test_renamed_file_is_completed_from_the_inbox() -> None:
    """Also if an older version of it is arriving, or has broken; another name is checked as ever."""
    desk = connected()
    order = CompleteRenamed(1, "/f", 9, "A" * 40)
    assert disk(desk.receive(renamed(0, "/f"), 0.0)) == [order]
    desk.receive(chunk(1, "/f", 0, b"abc", size=12), 0.0)
    assert disk(desk.receive(renamed(2, "/f"), 0.0)) == [DiscardFile(1, "/f"), order]
    desk.receive(chunk(3, "/f", 0, b"abc", size=12), 0.0)
    desk.receive(chunk(4, "/f", 7, b"x", size=12), 0.0)
    assert disk(desk.receive(renamed(5, "/f"), 0.0)) == [order]
    assert [type(event) for event in told(desk.receive(renamed(6, "/../f"), 0.0))] == [Refused]


def test_content_that_is_gone_is_asked_for_without_the_option() -> None:
    """The next comparison of the same connection does not mention RENAMES."""
    desk = client("/", resync=True, renames=True)
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    [first] = [one for one in sent(desk.settle(Held(1, "/", {}), 0.0)) if isinstance(one, Icanhaz)]
    assert ("RENAMES", "1") in first.options
    desk.receive(IcanhazOk(), 0.0)
    desk.receive(renamed(0, "/f"), 0.0)
    assert [type(event) for event in told(desk.settle(ContentLost(1, "/f"), 0.0))] == [Refused]
    desk.tick(0.9)
    [again] = [one for one in sent(desk.settle(Held(1, "/", {}), 0.9)) if isinstance(one, Icanhaz)]
    assert ("RENAMES", "1") not in again.options and ("RESYNC", "1") in again.options


def test_deletion_is_passed_to_the_inbox() -> None:
    """A delete operation takes the file out of the inbox, and what had come of it."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abc"), 0.0)
    assert desk.receive(deletion(1, "/f"), 0.0) == [DiscardFile(1, "/f"), DeleteFile(1, "/f")]
    assert desk.settle(Deleted(1, "/f"), 0.0) == [Log(FileDeleted("/f"))]


@pytest.mark.parametrize(
    "name",
    ["/../x", "/a/../../x", "x", "//etc/passwd", "/a//b", "/a/", "/a\0b", "/.", "/.specwire-inbox/journal"],
)
@pytest.mark.parametrize("operation", list(Operation))
def test_hostile_names_are_refused(name: str, operation: Operation) -> None:
    """A name that leaves the inbox, or reaches into its own folder, is reported and nothing is done with it."""
    actions = connected().receive(chunk(0, name, 0, b"x", operation=operation), 0.0)
    assert disk(actions) == []
    assert [type(event) for event in told(actions)] == [Refused]


def test_names_outside_the_subscription_are_refused() -> None:
    """A server may send, and delete, only what was subscribed to."""
    desk = connected("/foo")
    assert told(desk.receive(chunk(0, "/foobar", 0, b"x"), 0.0))[0] == Refused(
        "/foobar", "is under no path that was subscribed to"
    )
    assert disk(desk.receive(deletion(1, "/bar"), 0.0)) == []
    assert disk(desk.receive(chunk(2, "/foo/bar", 0, b"x"), 0.0)) == [WriteChunk(1, "/foo/bar", 0, b"x")]


def test_gap_in_our_own_servers_sequence_opens_a_new_connection() -> None:
    """Where a command is missing, only a comparison of digests tells what was lost."""
    desk = connected(resync=True)
    desk.receive(chunk(0, "/f", 0, b"", size=0), 0.0)
    actions = desk.receive(deletion(2, "/g"), 0.0)
    assert actions == [CLOSED, Log(PeerClosed(SERVER, "command 1 of the server is missing"))]
    assert connects(desk.tick(0.5)) == 1


def test_foreign_sequence_numbers_are_not_counted() -> None:
    """The specification does not say what the sequence counts."""
    desk = connected()
    assert disk(desk.receive(chunk(7, "/f", 0, b"abc"), 0.0)) == [WriteChunk(1, "/f", 0, b"abc")]
    assert disk(desk.receive(chunk(7, "/f", 3, b""), 0.0)) == [CompleteFile(1, "/f", 3, None)]


# ---- credit


def test_credit_comes_back_when_content_is_on_the_disk() -> None:
    """Credit is granted again for what is done with, a quarter of the window at a time."""
    desk = connected(window_octets=100)
    assert sent(desk.receive(chunk(0, "/f", 0, b"x" * 60), 0.0)) == []
    assert desk.settle(Wrote(1, 20), 0.0) == []
    assert desk.settle(Wrote(1, 40), 0.0) == [Send(desk.peer, Nom(credit=60))]


def test_discarded_content_counts_as_done() -> None:
    """What is thrown away does not block the window."""
    desk = connected(window_octets=100)
    assert sent(desk.receive(chunk(0, "/../f", 0, b"x" * 60), 0.0)) == [Nom(credit=60)]


def test_content_beyond_the_credit_ends_the_connection() -> None:
    """A server that sends more than it has credit for breaks the protocol."""
    desk = connected(window_octets=100)
    actions = desk.receive(chunk(0, "/f", 0, b"x" * 101), 0.0)
    reason = "the server sent 1 octets beyond its credit"
    assert actions == [CLOSED, Log(PeerClosed(SERVER, reason, final=True))]
    assert desk.phase is Phase.ENDED


def test_old_connections_disk_work_gives_no_credit() -> None:
    """Outcomes of a connection that is gone are told, and count for nothing else."""
    desk = connected(window_octets=100)
    desk.receive(Kthxbai(), 0.0)
    desk.tick(0.5)
    desk.receive(OhaiOk(), 0.5)
    assert desk.settle(Wrote(1, 60), 0.5) == []
    assert desk.settle(Stored(1, "/f", 5, SHA1, True), 0.5) == [Log(FileReceived("/f", 5, SHA1))]


# ---- failures of the inbox


def test_file_that_could_not_be_stored_is_asked_for_again() -> None:
    """After a full disk the paths are compared anew, later and later while it lasts."""
    desk = connected(resync=True)
    failed = Failed(1, "/f", "No space left on device", again=True)
    assert desk.settle(failed, 0.0) == [Log(Refused("/f", "No space left on device; it is asked for again"))]
    desk.receive(HugzOk(), 0.4)
    assert disk(desk.tick(0.4)) == []
    assert disk(desk.tick(0.5)) == [ListHeld(1, "/")]
    desk.settle(Held(1, "/", {}), 0.5)
    desk.receive(IcanhazOk(), 0.5)
    desk.settle(failed, 0.6)
    assert disk(desk.tick(1.5)) == []
    assert disk(desk.tick(1.6)) == [ListHeld(1, "/")]


def test_file_with_a_forbidden_place_is_not_asked_for_again() -> None:
    """What was refused for good stays refused."""
    desk = connected(resync=True)
    desk.settle(Failed(1, "/f", "leads through 'd', which is a symbolic link", again=False), 0.0)
    assert disk(desk.tick(0.9)) == []


# ---- errors


def test_srsly_is_final() -> None:
    """A client that is refused closes the connection."""
    desk = connected()
    assert desk.receive(Srsly(reason="private"), 0.0) == [
        CLOSED, Log(PeerClosed(SERVER, "refused: private", final=True))
    ]  # fmt: skip
    assert desk.tick(100.0) == []


def test_rtfm_to_ohai_is_final() -> None:
    """A refused version is never tried again."""
    desk = client()
    desk.start(0.0)
    assert desk.receive(Rtfm(reason="version"), 0.0)[0] == CLOSED
    assert desk.phase is Phase.ENDED


def test_rtfm_opens_a_fresh_connection_once() -> None:
    """RTFM to an unexpected command: close, and start one new connection."""
    desk = connected()
    assert desk.receive(Rtfm(reason="what"), 0.0)[0] == CLOSED
    assert desk.tick(0.4) == []
    server = PeerId("server-2")
    assert desk.tick(0.5) == [Connect(server, SERVER, b"identity-2"), Send(server, Ohai())]
    desk.receive(OhaiOk(), 0.5)
    desk.receive(Rtfm(reason="what"), 0.6)
    assert desk.phase is Phase.ENDED


def test_rtfm_counts_anew_after_a_connection_that_was_of_use() -> None:
    """A server that restarts twice is followed twice."""
    desk = connected()
    desk.receive(Rtfm(reason="restarted"), 0.0)
    desk.tick(0.5)
    desk.receive(OhaiOk(), 0.5)
    desk.receive(IcanhazOk(), 0.5)
    desk.receive(Rtfm(reason="restarted"), 0.6)
    assert desk.phase is Phase.WAITING


def test_wat_to_a_subscription_gives_up_that_path() -> None:
    """A command that was answered with WAT is not repeated: the next connection does without that path."""
    desk = client("/a", "/b")
    desk.start(0.0)
    desk.receive(OhaiOk(), 0.0)
    assert told(desk.receive(Wat(reason="bad"), 0.0))[0] == Refused("/a", "bad")
    desk.tick(0.5)
    assert Icanhaz(path="/b", options=(), cache=()) in sent(desk.receive(OhaiOk(), 0.5))


def test_any_other_wat_is_final() -> None:
    """A client must not repeat a command that the server cannot read."""
    desk = connected()
    desk.receive(Wat(reason="bad"), 0.0)
    assert desk.phase is Phase.ENDED


@pytest.mark.parametrize("command", [OhaiOk(), IcanhazOk(), Ohai(), Nom(credit=5)])
def test_unexpected_command_of_the_server_is_reported_and_ignored(command: Command) -> None:
    """A client has no error command of its own."""
    desk = connected()
    [event] = told(desk.receive(command, 0.0))
    assert isinstance(event, Refused)
    assert desk.phase is Phase.OPEN


@pytest.mark.parametrize("frames", [[b""], [b"hello"], [b"\xaa\xa3\x08"], [b"\xaa\xa3\x63", b"x"]])
def test_malformed_message_of_the_server_is_reported_and_ignored(frames: list[bytes]) -> None:
    """Both sides discard what they cannot read; a client answers nothing."""
    actions = connected().receive_frames(frames)
    assert [type(event) for event in told(actions)] == [Refused]
    assert sent(actions) == []


# ---- life and end


def test_hugz_is_answered() -> None:
    """A peer responds to HUGZ with HUGZ-OK."""
    assert sent(connected().receive(Hugz(), 0.0)) == [HugzOk()]


def test_idle_client_sends_hugz() -> None:
    """HUGZ is needed only where nothing else was sent, and not again before the answer."""
    desk = connected()
    assert desk.tick(0.9) == []
    assert desk.tick(1.0) == [Send(desk.peer, Hugz())]
    assert desk.tick(2.1) == []
    desk.receive(HugzOk(), 2.2)
    assert desk.tick(2.3) == [Send(desk.peer, Hugz())]


def test_no_hugz_before_ohai_ok() -> None:
    """Heartbeats are allowed from OHAI-OK on."""
    desk = client()
    desk.start(0.0)
    assert desk.tick(2.0) == []


def test_silence_while_nothing_is_received_is_excused() -> None:
    """A client that waits for its disk hears nothing: it still shows life, and does not leave."""
    desk = connected()
    desk.is_held = True
    [pause] = [
        effect
        for number in range(BATCH + MAX_BACKLOG)
        for effect in desk.receive(deletion(number, f"/{number}"))
        if isinstance(effect, PauseReceiving)
    ]
    assert pause == PauseReceiving(desk.peer, True)
    for now in range(1, 12):
        assert sent(desk.tick(float(now))) == [Hugz()]
    assert desk.phase is Phase.OPEN
    desk.is_held = False
    [resume] = [
        a for a in desk.present(Answered(0, BatchDone((), False)), 11.5) if isinstance(a, PauseReceiving)
    ]
    assert resume == PauseReceiving(desk.peer, False)
    assert drops(desk.tick(15.4)) == 0
    assert told(desk.tick(15.5)) == [PeerClosed(SERVER, "silent for 4.0 s")]


def test_silent_server_is_left_and_tried_again_with_a_growing_delay() -> None:
    """A server that is silent for the expiry time is lost; a fresh connection follows."""
    desk = client()
    desk.start(0.0)
    silence = "silent for 4.0 s"
    assert desk.tick(4.0) == [CLOSED, Log(PeerClosed(SERVER, f"{silence}, {NEVER_ANSWERED}"))]
    assert connects(desk.tick(4.5)) == 1
    assert told(desk.tick(8.5)) == [PeerClosed(SERVER, f"{silence}, try 2, {NEVER_ANSWERED}")]
    assert desk.tick(9.0) == []
    assert connects(desk.tick(9.5)) == 1


def test_server_that_was_heard_is_not_called_unheard() -> None:
    """Any octets, and a connection that fails, are an answer of some kind."""
    desk = client()
    desk.start()
    desk.receive_frames([b"hello"], 1.0)
    assert told(desk.tick(4.0)) == [PeerClosed(SERVER, "silent for 4.0 s")]
    desk.tick(4.5)
    assert told(desk.lose("no connection is possible", 4.6)) == [
        PeerClosed(SERVER, "no connection is possible, try 2")
    ]


def test_kthxbai_of_the_server_leads_to_a_fresh_connection() -> None:
    """A server that stops may come back; the file under way is thrown away."""
    desk = connected()
    desk.receive(chunk(0, "/f", 0, b"abc"), 0.0)
    assert desk.receive(Kthxbai(), 0.0) == [
        CLOSED, Log(PeerClosed(SERVER, "the server said KTHXBAI")), DiscardFile(1, "/f")
    ]  # fmt: skip
    assert desk.receive(Hugz(), 0.1) == [], "what the old connection still says is not heard"
    assert connects(desk.tick(0.5)) == 1


def test_close_before_ohai_ok_is_silent() -> None:
    """KTHXBAI ends a peering that was opened, and nothing else."""
    desk = client()
    desk.start(0.0)
    assert sent(desk.stop(0.0)) == []


def test_close_says_kthxbai() -> None:
    """A client ends a connection with KTHXBAI."""
    desk = connected()
    assert desk.stop() == [
        Send(desk.peer, Kthxbai()),
        CLOSED,
        Log(PeerClosed(SERVER, "closed by request", final=True)),
        Stop("stopped"),
    ]


def test_lost_connections_are_opened_again_and_are_no_rtfm() -> None:
    """However often the network fails before ICANHAZ-OK: only the server's own RTFM, twice, is final."""
    desk, now = client(), 0.0
    desk.start(now)
    for _ in range(5):
        desk.receive(OhaiOk(), now)
        assert told(desk.lose("the connection was lost", now)) == [
            PeerClosed(SERVER, "the connection was lost")
        ]
        assert desk.lose("the connection was lost", now) == [], "there is none to lose"
        now += 5.0
        assert connects(desk.tick(now)) == 1
    desk.receive(OhaiOk(), now)
    desk.receive(Rtfm(reason="x"), now)
    assert desk.phase is Phase.WAITING


def test_a_server_that_is_not_there_is_told_of_less_and_less() -> None:
    """Of 100 tries in vain the first, second, fourth... are told; one that succeeds begins the count anew."""
    desk, now, tries = client(), 0.0, []
    desk.start(now)
    for number in range(1, 101):
        if told(desk.lose("no connection", now)):
            tries.append(number)
        now += 5.0
        desk.tick(now)
    assert tries == [1, 2, 4, 8, 16, 32, 64]
    desk.receive(OhaiOk(), now)
    assert told(desk.lose("gone", now)) == [PeerClosed(SERVER, "gone")]
    now += 5.0
    desk.tick(now)
    assert told(desk.lose("gone", now)) == [PeerClosed(SERVER, "gone, try 2")]


def test_a_connection_that_is_gone_says_nothing_more() -> None:
    """Its messages may still be on the way when the engine has left it."""
    desk = connected()
    before = desk.peer
    desk.lose("the connection was lost")
    desk.tick(0.5)
    desk.receive(OhaiOk(), 0.5)
    for event in (
        MessageReceived(before, Srsly(reason="no")),
        PeerDisconnected(before, "lost"),
        SendFailed(before, Ohai(), "too long"),
    ):
        assert desk.present(event, 0.5) == []
    assert desk.phase is Phase.OPEN


def test_a_command_that_cannot_be_encoded_is_final() -> None:
    """Another connection would need the same command."""
    desk = connected()
    assert told(desk.present(SendFailed(desk.peer, Ohai(), "too long"), 0.0)) == [
        PeerClosed(SERVER, "a command cannot be sent: too long", final=True)
    ]


# ---- the inbox


def test_inbox_is_compared_from_time_to_time() -> None:
    """What differs is asked for again; the next comparison follows the end of this one."""
    desk = connected(resync=True, check_s=3.0)
    desk.receive(HugzOk(), 2.9)
    assert disk(desk.tick(2.9)) == []
    assert disk(desk.tick(3.0)) == [CheckInbox(1)]
    desk.receive(HugzOk(), 6.5)
    assert disk(desk.tick(6.5)) == []
    assert disk(desk.settle(Checked(1, repair=True), 7.0)) == [ListHeld(1, "/")]
    desk.receive(HugzOk(), 9.9)
    assert disk(desk.tick(9.9)) == []
    assert disk(desk.tick(10.0)) == [CheckInbox(1)]
    assert disk(desk.settle(Checked(1, repair=False), 10.0)) == []


def test_deletions_are_accepted() -> None:
    desk = connected()
    assert desk.accept_deletions() == [AcceptDeletions(1)]
    assert desk.settle(Restored(1, "/f", SHA1)) == [Log(FileRestored("/f", SHA1))]


def test_small_chunks_wait_for_others_and_large_ones_do_not() -> None:
    """What has come together is one batch; a large chunk goes to the disk at once, with what waits."""
    desk = connected(window_octets=1 << 30)
    small, large = WriteChunk(1, "/f", 0, b"x"), WriteChunk(1, "/f", 1, bytes(LARGE_OCTETS))
    effects = desk.engine.handle(MessageReceived(desk.peer, chunk(0, "/f", 0, b"x")), 0.0)
    assert (effects, desk.engine.deadline()) == ([], -inf)
    effects = desk.engine.handle(MessageReceived(desk.peer, chunk(1, "/f", 1, large.chunk)), 0.0)
    assert effects == [Ask(DiskBatch((small, large)))]
    assert desk.engine.deadline() == 1.0, "the next HUGZ"


def test_calls_wait_for_files() -> None:
    """A call returns when the inbox holds exactly what is expected, or names what differs."""
    desk = connected()
    request = AwaitFiles({"/a": "1", "/b": "2"}, 5.0)
    assert desk.present(Called(7, request), 1.0) == []
    assert desk.settle(Stored(1, "/a", 5, "1", True), 1.0) == [Log(FileReceived("/a", 5, "1"))]
    assert desk.settle(Stored(1, "/b", 5, "2", True), 1.0) == [Log(FileReceived("/b", 5, "2")), Return(7)]
    assert desk.present(Called(8, request), 2.0) == [Return(8)]
    desk.settle(Deleted(1, "/b"), 2.0)
    desk.settle(Held(1, "/c", {"/c/d": "3"}), 2.0)
    assert desk.present(Called(9, request), 2.0) == []
    desk.receive(HugzOk(), 6.9)
    assert not any(isinstance(effect, Return) for effect in desk.tick(6.9))
    [late] = [effect for effect in desk.tick(7.0) if isinstance(effect, Return)]
    assert (late.call, str(late.error)) == (9, "2 files differ after 5.0 s: /b, /c/d")


# ---- stopping


def test_stop_before_the_first_connection() -> None:
    """A host may be stopped in the moment of its start."""
    desk = client()
    assert desk.stop()[-1] == Stop("stopped")
    assert desk.engine.deadline() is None


def test_stop_before_ohai_ok_is_silent() -> None:
    desk = client()
    desk.start()
    actions = desk.stop()
    assert (sent(actions), drops(actions), actions[-1]) == ([], 1, Stop("stopped"))


def test_stop_while_waiting_to_connect_again() -> None:
    desk = connected()
    desk.lose("the connection was lost")
    actions = desk.stop()
    assert (sent(actions), actions[-1]) == ([], Stop("stopped"))
    assert desk.tick(99.0) == [Stop("stopped")], "and no connection"


def test_stop_while_subscribing_waits_for_the_listing() -> None:
    """The listing under way is disk work like any other; its outcome leads to nothing more."""
    desk = client("/a", "/b", resync=True)
    desk.start()
    assert disk(desk.receive(OhaiOk())) == [ListHeld(1, "/a")]
    actions = desk.stop()
    assert sent(actions) == [Kthxbai()]
    assert not any(isinstance(action, Stop) for action in actions)
    assert desk.present(Answered(0, BatchDone((Held(1, "/a", {}),), pending=False)), 0.0) == [Stop("stopped")]


def test_stop_finishes_the_disk_work_that_was_ordered() -> None:
    """Batch after batch, and what is reported with an empty one."""
    desk = connected()
    desk.is_held = True
    desk.receive(chunk(0, "/f", 0, b"abc", size=3))
    desk.tick(0.0)
    desk.receive(chunk(1, "/f", 3, b"", size=3))
    assert not any(isinstance(action, Stop) for action in desk.stop())
    written = desk.present(Answered(0, BatchDone((Wrote(1, 3),), pending=False)), 0.0)
    assert (written, desk.asked) == ([], DiskBatch((CompleteFile(1, "/f", 3, SHA1),)))
    assert desk.present(Answered(0, BatchDone((), pending=True)), 0.0) == []
    assert desk.asked == DiskBatch(())
    last = BatchDone((Stored(1, "/f", 3, SHA1, True),), pending=False)
    assert desk.present(Answered(0, last), 0.0) == [Log(FileReceived("/f", 3, SHA1)), Stop("stopped")]


def test_fault_of_the_disk_work_is_final() -> None:
    """The server hears a goodbye, and nothing more is ordered."""
    desk = connected()
    desk.is_held = True
    desk.receive(deletion(0, "/f"))
    desk.tick(0.0)
    desk.receive(deletion(1, "/g"))
    actions = desk.present(Answered(0, failure="a fault of specwire: KeyError"), 0.0)
    reason = "the disk work has failed: a fault of specwire: KeyError"
    assert (sent(actions), told(actions)) == ([Kthxbai()], [PeerClosed(SERVER, reason, final=True)])
    assert (desk.asked, desk.stop()) == (DiskBatch((DeleteFile(1, "/f"),)), [Stop("stopped")])
