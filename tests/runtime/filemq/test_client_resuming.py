"""Playbooks for the client that goes on with an interrupted file: what it keeps, asks for, and takes for the rest."""

from __future__ import annotations

import pytest

from specwire.generated.filemq import (
    Cheezburger,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    OhaiOk,
    Operation,
    Rtfm,
    Srsly,
    Wat,
)
from specwire.runtime.filemq.codec import DIALECTS, Command
from specwire.runtime.filemq.diskwork import (
    CompleteFile,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    KeepFile,
    ListHeld,
    Unfinished,
    WriteChunk,
)
from specwire.runtime.filemq.events import FileResumed, PeerClosed
from specwire.runtime.filemq.resync import RESUME_FROM_OCTETS
from specwire.runtime.filemq.status import Phase
from specwire.runtime.kernel.effects import HostEffect, Log, Send
from specwire.runtime.kernel.log import Refused
from tests.runtime.filemq.client_desk import Actions, ClientDesk, connects, disk, sent, told

WINDOW = 8 * RESUME_FROM_OCTETS
SHA1, WHOLE_SHA1 = "A" * 40, "B" * 40
PART = Unfinished("/p/large", 5, SHA1)
RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")
COVER = Icanhaz(path="/p", options=(), cache=())
REST = Icanhaz(path="/p/large", options=(("RESUME", f"5:{SHA1}"), PRUNE), cache=())


def opened(*paths: str, resync: bool = True, dialect: str = "filemq") -> ClientDesk:
    """Return a client whose server has accepted OHAI."""
    desk = ClientDesk(*(paths or ("/p",)), resync=resync, window_octets=WINDOW, dialect=DIALECTS[dialect])
    desk.start()
    desk.receive(OhaiOk())
    return desk


def asking(unfinished: Unfinished | None = PART) -> ClientDesk:
    """Return a client that has asked for everything, with an inbox that holds this."""
    desk = opened()
    desk.settle(Held(1, "/p", {}, unfinished))
    return desk


def chunk(
    name: str,
    offset: int,
    octets: bytes,
    *,
    size: int | None = 9,
    sha1: str | None = WHOLE_SHA1,
    sequence: int = 0,
) -> Cheezburger:
    headers = [("size", str(size))] if size is not None else []
    headers += [("sha-1", sha1)] if sha1 is not None else []
    return Cheezburger(
        sequence=sequence,
        operation=Operation.CREATE,
        filename=name,
        offset=offset,
        headers=tuple(headers),
        chunk=octets,
    )


# ---- asking


def test_rest_is_asked_for_before_anything_else() -> None:
    """The path is subscribed to, then the rest asked for, then everything else, without waiting."""
    actions = opened().settle(Held(1, "/p", {"/p/a": SHA1}, PART), 0.0)
    assert sent(actions) == [
        COVER, REST, Icanhaz(path="/p", options=(RESYNC, PRUNE), cache=(("a", SHA1),))
    ]  # fmt: skip
    assert all(command.encode() for command in sent(actions))


def test_rest_is_asked_for_before_the_first_path_whichever_covers_the_file() -> None:
    """The files of another path, sent first, would take the place of what is held."""
    commands = sent(opened("/a", "/p").settle(Held(1, "/a", {}, PART), 0.0))
    assert commands == [COVER, REST, Icanhaz(path="/a", options=(RESYNC, PRUNE), cache=())]


def test_path_is_subscribed_to_after_the_last_answer() -> None:
    """Three commands, three answers."""
    desk = opened("/p", "/q")
    desk.settle(Held(1, "/p", {}, PART), 0.0)
    answers = [desk.receive(IcanhazOk(), 0.0) for _ in range(3)]
    assert answers[:2] == [[], []]
    assert answers[2][-1] == ListHeld(1, "/q")


def test_rest_is_asked_for_once_on_a_connection() -> None:
    """Later the same file may be under way, and told of as unfinished."""
    desk = opened("/p", "/q")
    desk.settle(Held(1, "/p", {}), 0.0)
    desk.receive(IcanhazOk(), 0.0)
    assert sent(desk.settle(Held(1, "/q", {}, PART), 0.0)) == [
        Icanhaz(path="/q", options=(RESYNC, PRUNE), cache=())
    ]


@pytest.mark.parametrize("name", ["/q/large", "/large", "/pp", "/p/" + "x" * 255])
def test_file_under_no_path_is_thrown_away(name: str) -> None:
    """Nothing of this client will ever go on with it."""
    actions = opened().settle(Held(1, "/p", {}, Unfinished(name, 5, SHA1)), 0.0)
    assert disk(actions) == [DiscardFile(1, name)]
    assert sent(actions) == [Icanhaz(path="/p", options=(RESYNC, PRUNE), cache=())]


def test_servers_without_the_habit_are_not_asked() -> None:
    """The C server hangs at a second subscription."""
    desk = opened("/", dialect="libfilemq")
    [command] = sent(desk.settle(Held(1, "/", {}, PART), 0.0))
    assert isinstance(command, Icanhaz)
    assert not any(name == "RESUME" for name, _ in command.options)


# ---- what comes


def test_rest_that_was_asked_for_goes_on_where_the_file_stopped() -> None:
    """The first chunk has the offset that was asked for, and size and digest are announced."""
    desk = asking()
    steps = [
        *desk.receive(chunk("/p/large", 5, b"de"), 0.0),
        *desk.receive(chunk("/p/large", 7, b"fg", sequence=1), 0.0),
        *desk.receive(chunk("/p/large", 9, b"", sequence=2), 0.0),
    ]
    assert steps == [
        Log(FileResumed("/p/large", 5)),
        WriteChunk(1, "/p/large", 5, b"de"),
        WriteChunk(1, "/p/large", 7, b"fg"),
        CompleteFile(1, "/p/large", 9, WHOLE_SHA1),
    ]


def test_rest_may_be_nothing() -> None:
    """All was here, and not in its place."""
    assert asking().receive(chunk("/p/large", 5, b"", size=5), 0.0) == [
        Log(FileResumed("/p/large", 5)), CompleteFile(1, "/p/large", 5, WHOLE_SHA1)
    ]  # fmt: skip


def test_server_may_begin_the_file_at_0() -> None:
    """It was changed meanwhile, or the server passes over the option."""
    assert asking().receive(chunk("/p/large", 0, b"abc", size=3), 0.0) == [
        WriteChunk(1, "/p/large", 0, b"abc")
    ]


def test_deletion_in_place_of_the_rest() -> None:
    """The file is not published any more."""
    deletion = Cheezburger(
        sequence=0, operation=Operation.DELETE, filename="/p/large", offset=0, headers=(), chunk=b""
    )
    assert asking().receive(deletion, 0.0) == [DeleteFile(1, "/p/large")]


@pytest.mark.parametrize(
    "first",
    [
        chunk("/p/large", 4, b"x"),
        chunk("/p/large", 6, b"x"),
        chunk("/p/other", 5, b"x"),
        chunk("/p/large", 5, b"x", size=None),
        chunk("/p/large", 5, b"x", sha1=None),
        chunk("/p/large", 5, b"x", size=4),
        chunk("/p/large", 5, b"x", sha1="Z" * 40),
    ],
)
def test_any_other_chunk_in_the_middle_is_refused(first: Cheezburger) -> None:
    """Another offset, another name, or nothing that proves in the end that the parts belong together."""
    actions = asking().receive(first, 0.0)
    assert Log(Refused(first.filename, f"begins at offset {first.offset}; it is asked for again")) in actions
    assert not any(isinstance(action, WriteChunk) for action in actions)


def test_rest_that_was_not_asked_for_is_refused() -> None:
    """On this connection: what another one asked for does not count."""
    desk = asking(None)
    assert told(desk.receive(chunk("/p/large", 5, b"de"), 0.0)) == [
        Refused("/p/large", "begins at offset 5; it is asked for again")
    ]


def test_rest_after_another_file_is_refused_and_asked_for_again() -> None:
    """There is one unfinished file, and the other has taken its place."""
    desk = asking()
    for number, (offset, octets) in enumerate([(0, b"x"), (1, b"")]):
        desk.receive(chunk("/p/other", offset, octets, size=1, sequence=number), 0.0)
    refused = desk.receive(chunk("/p/large", 5, b"de", sequence=2), 0.0)
    assert told(refused) == [Refused("/p/large", "begins at offset 5; it is asked for again")]
    for _ in range(3):
        desk.receive(IcanhazOk(), 0.0)
    assert ListHeld(1, "/p") in desk.tick(1.0)


def test_rest_longer_than_announced_breaks_the_file() -> None:
    """Size is proved as always."""
    desk = asking()
    desk.receive(chunk("/p/large", 5, b"de"), 0.0)
    actions = desk.receive(chunk("/p/large", 7, b"fgh", sequence=1), 0.0)
    assert DiscardFile(1, "/p/large") in actions


# ---- keeping


def large(desk: ClientDesk, *sizes: int, announced: int | None = WINDOW, sha1: str | None = SHA1) -> Actions:
    """Receive chunks of these sizes of a new file; return what is not their writing."""
    offset, actions = 0, list[HostEffect | DiskAction]()
    for number, size in enumerate(sizes):
        command = chunk("/p/new", offset, bytes(size), size=announced, sha1=sha1, sequence=number)
        actions += desk.receive(command, 0.0)
        offset += size
    return [action for action in actions if not isinstance(action, WriteChunk | Send)]


def test_large_file_is_kept_from_some_size_on() -> None:
    """Said once; when the connection ends, nothing is thrown away."""
    desk = asking(None)
    assert large(desk, RESUME_FROM_OCTETS - 1, 1, 1, 1) == [KeepFile(1, "/p/new")]
    assert not any(isinstance(action, DiscardFile) for action in desk.receive(Kthxbai(), 0.0))


def test_file_is_kept_over_a_stop() -> None:
    desk = asking(None)
    large(desk, RESUME_FROM_OCTETS)
    assert not any(isinstance(action, DiscardFile) for action in desk.stop(0.0))


def test_smaller_file_is_thrown_away() -> None:
    """It is sent again in no time."""
    desk = asking(None)
    assert large(desk, RESUME_FROM_OCTETS - 1) == []
    assert DiscardFile(1, "/p/new") in desk.receive(Kthxbai(), 0.0)


def test_file_that_is_all_here_is_not_kept() -> None:
    """A note on the disk for it would be written in vain."""
    assert large(asking(None), RESUME_FROM_OCTETS, announced=RESUME_FROM_OCTETS) == []


@pytest.mark.parametrize(("announced", "sha1"), [(None, SHA1), (WINDOW, None), (None, None)])
def test_file_of_a_foreign_server_is_not_kept(announced: int | None, sha1: str | None) -> None:
    """It announces no size or no digest: it is sent again."""
    desk = asking(None)
    assert large(desk, RESUME_FROM_OCTETS, announced=announced, sha1=sha1) == []
    assert DiscardFile(1, "/p/new") in desk.receive(Kthxbai(), 0.0)


def test_nothing_is_kept_where_nothing_would_be_asked_for() -> None:
    """Without RESYNC only what changes from now on is wanted."""
    desk = opened(resync=False)
    desk.receive(IcanhazOk(), 0.0)
    assert large(desk, RESUME_FROM_OCTETS) == []
    assert DiscardFile(1, "/p/new") in desk.receive(Kthxbai(), 0.0)


def test_nothing_is_kept_in_a_dialect_without_the_habit() -> None:
    desk = opened("/p", dialect="libfilemq")
    assert large(desk, RESUME_FROM_OCTETS) == []


def test_rest_is_kept_too() -> None:
    """The second interruption costs no more than the first."""
    desk = asking()
    desk.receive(chunk("/p/large", 5, b"d"), 0.0)
    assert not any(isinstance(action, DiscardFile) for action in desk.receive(Kthxbai(), 0.0))
    assert connects(desk.tick(9.0)) == 1
    desk.receive(OhaiOk(), 9.0)
    more = Unfinished("/p/large", 6, "C" * 40)
    assert sent(desk.settle(Held(2, "/p", {}, more), 9.0))[1] == Icanhaz(
        path="/p/large", options=(("RESUME", f"6:{'C' * 40}"), PRUNE), cache=()
    )
    assert told(desk.receive(chunk("/p/large", 6, b"e"), 9.0)) == [FileResumed("/p/large", 6)]


def test_file_that_begins_anew_is_kept_anew() -> None:
    """The first version was kept; the disk forgets it with the first chunk of the second."""
    desk = asking(None)
    assert large(desk, RESUME_FROM_OCTETS) == [KeepFile(1, "/p/new")]
    desk.receive(chunk("/p/new", 0, b"x", size=WINDOW, sequence=1), 0.0)
    assert DiscardFile(1, "/p/new") in desk.receive(Kthxbai(), 0.0)


def test_digest_that_does_not_fit_has_the_file_asked_for_without_its_part() -> None:
    """The disk has thrown it away; the next listing tells of none."""
    desk = asking()
    for number, (offset, octets) in enumerate([(5, b"defg"), (9, b"")]):
        desk.receive(chunk("/p/large", offset, octets, sequence=number), 0.0)
    for _ in range(3):
        desk.receive(IcanhazOk(), 0.0)
    desk.settle(Failed(1, "/p/large", "has another SHA-1", again=True), 0.0)
    assert ListHeld(1, "/p") in desk.tick(1.0)
    assert sent(desk.settle(Held(1, "/p", {}), 1.0)) == [
        Icanhaz(path="/p", options=(RESYNC, PRUNE), cache=())
    ]


# ---- errors


@pytest.mark.parametrize("error", [Srsly(reason="no"), Wat(reason="no"), Rtfm(reason="no")])
def test_error_to_the_request_for_the_rest_costs_the_part_and_nothing_else(error: Command) -> None:
    """Another server, which does not know the option, has refused a subscription to a file."""
    desk = asking()
    desk.receive(IcanhazOk(), 0.0)
    actions = desk.receive(error, 0.0)
    assert disk(actions) == [DiscardFile(1, "/p/large")]
    assert told(actions) == [PeerClosed("server", "the server does not continue a file: no", False)]
    assert desk.paths == ("/p",)
    assert desk.phase is Phase.WAITING


@pytest.mark.parametrize("answers", [0, 2])
def test_error_to_another_command_is_what_it_always_is(answers: int) -> None:
    """The first is for the path, and so is the last."""
    desk = asking()
    for _ in range(answers):
        desk.receive(IcanhazOk(), 0.0)
    actions = desk.receive(Srsly(reason="no"), 0.0)
    assert not any(isinstance(action, DiscardFile) for action in actions)
    assert told(actions) == [PeerClosed("server", "refused: no", True)]
