"""The dialect of the C implementation: its real messages through it both ways, and its habits in the engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specwire.generated import filemq
from specwire.generated.errors import DecodeError
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
from specwire.runtime.filemq.catalogue import Entry, ReadChunk
from specwire.runtime.filemq.codec import DIALECTS, FILEMQ, LIBFILEMQ, Command, find_dialect
from specwire.runtime.filemq.diskwork import DeleteFile, Held, ListHeld, Wrote
from specwire.runtime.filemq.resync import WHOLE
from specwire.runtime.kernel import effects as kernel
from tests.runtime.filemq.client_desk import ClientDesk
from tests.runtime.filemq.client_desk import sent as sent_up
from tests.runtime.filemq.server_driver import (
    PEER,
    RESYNC,
    ServerDriver,
    asked,
    drops,
    entry,
    sent,
    subscription,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "filemq-libfilemq.json").read_text())
REAL = [vector for vector in VECTORS if vector["command"]]
REFUSED = [vector for vector in VECTORS if not vector["command"]]
TIMES = {"heartbeat": 1.0, "expiry": 4.0, "reconnect": 0.5}


def frames_of(vector: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(text) for text in vector["frames_hex"]]


def in_utf8(value: Any) -> Any:
    """The recorder took octets for Latin-1."""
    return value.encode("latin-1").decode() if isinstance(value, str) else value


# ---- the messages


@pytest.mark.parametrize("vector", REAL, ids=lambda vector: vector["name"])
def test_real_messages_become_commands_and_are_written_again(vector: dict[str, Any]) -> None:
    """What the recorder read in each message is in the command, and the command gives the same octets."""
    frames = frames_of(vector)
    (command,) = LIBFILEMQ.decode(frames)
    fields = vector["fields"]
    assert vector["command"] == command.NAME
    for name in ("path", "credit", "sequence", "operation", "filename", "offset", "reason"):
        if name in fields and hasattr(command, name):
            assert getattr(command, name) == in_utf8(fields[name])
    for name in ("options", "cache", "headers"):
        if name in fields:
            assert dict(getattr(command, name)) == fields[name]
    content = bytes.fromhex(fields.get("chunk_hex", ""))
    assert getattr(command, "chunk", b"") == content
    if isinstance(command, Nom) and fields["sequence"]:
        return  # our NOM has no number of its own; the C client's is always 0
    assert LIBFILEMQ.encode(command) == frames


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector["name"])
def test_what_the_c_server_refuses_is_refused(vector: dict[str, Any]) -> None:
    """And answered with RTFM where it is FILEMQ at all: there is no WAT."""
    frames = frames_of(vector)
    with pytest.raises(DecodeError) as caught:
        LIBFILEMQ.decode(frames)
    answer = LIBFILEMQ.answer("S", caught.value)
    assert isinstance(answer, Rtfm) if frames[0].startswith(b"\xaa\xa3") else answer is None


def test_last_chunk_with_content_is_two_commands() -> None:
    """`eof` may come with octets: FILEMQ v2 ends a file with an empty chunk behind them."""
    frame = bytes.fromhex("aaa308000000000000000501000000022f61000000000000000301")
    frame += bytes.fromhex("0000000000000002") + b"hi"
    chunk, end = LIBFILEMQ.decode([frame])
    assert isinstance(chunk, Cheezburger) and isinstance(end, Cheezburger)
    assert (chunk.offset, chunk.chunk) == (3, b"hi")
    assert (end.filename, end.offset, end.chunk) == ("/a", 5, b"")


def test_end_and_deletion_on_the_wire() -> None:
    """An empty chunk has eof 1, a deletion has not; octets written by hand from the grammar."""
    end = Cheezburger(sequence=1, operation=1, filename="/a", offset=7, headers=(), chunk=b"")
    octets = bytes.fromhex("aaa308000000000000000101000000022f61000000000000000701")
    assert LIBFILEMQ.encode(end) == [octets + bytes(8)]
    gone = Cheezburger(sequence=2, operation=2, filename="/a", offset=0, headers=(), chunk=b"")
    assert LIBFILEMQ.encode(gone) == [bytes.fromhex("aaa308000000000000000202000000022f61") + bytes(17)]


@pytest.mark.parametrize("command", [Hugz(), Kthxbai(), Wat(reason="x")], ids=lambda c: c.NAME)
def test_server_cannot_send_what_would_halt_the_c_client(command: Command) -> None:
    """HUGZ, KTHXBAI and WAT of a server are out of turn wherever they come."""
    dialog = LIBFILEMQ.open_dialog("S")
    assert dialog.send(command) is not None
    dialog.receive(Ohai())
    dialog.send(OhaiOk())
    assert dialog.send(command) is not None


def test_dialects_by_name() -> None:
    assert DIALECTS == {"filemq": FILEMQ, "libfilemq": LIBFILEMQ}
    with pytest.raises(ValueError, match="no FILEMQ peer speaks 'zre'; known: filemq, libfilemq"):
        find_dialect("zre")


# ---- the server's engine


class Server:
    """A server with one client, whose reads are answered on request; `sent` is what the client got."""

    def __init__(
        self, *entries: Entry, options: tuple[tuple[str, str], ...] = (), credit: int = 1000
    ) -> None:
        self.sent: list[Command] = []
        self.reads: list[kernel.Ask] = []
        self.driver = ServerDriver(*entries, timers=TIMES, chunk_octets=6, dialect=LIBFILEMQ)
        self.perform(self.driver.handle(Ohai(), subscription("/", options), Nom(credit=credit)))

    def perform(self, effects: list[kernel.HostEffect]) -> None:
        """Keep commands and requests."""
        self.sent += sent(effects)
        self.reads += asked(effects, ReadChunk)

    def read(self) -> None:
        """Answer the oldest request."""
        request = self.reads.pop(0)
        self.perform(self.driver.read(request, b"x" * request.request.size))

    def read_all(self) -> None:
        """Answer requests until none is left."""
        while self.reads:
            self.read()

    def publish(self, item: Entry) -> None:
        """Publish a file."""
        self.perform(self.driver.publish(item))

    def withdraw(self, name: str) -> None:
        """Withdraw a file."""
        self.perform(self.driver.withdraw(name))

    def steps(self) -> list[tuple[str, int, int]]:
        """Of each CHEEZBURGER: ``+name`` or ``-name``, offset, octets."""
        sign = {Operation.CREATE: "+", Operation.DELETE: "-"}
        burgers = [command for command in self.sent if isinstance(command, Cheezburger)]
        assert [command.sequence for command in burgers] == list(range(len(burgers)))
        return [(sign[Operation(c.operation)] + c.filename, c.offset, len(c.chunk)) for c in burgers]


def test_client_that_cannot_ask_gets_what_there_is() -> None:
    """The C client has no RESYNC; what it holds is not known, so each file comes after its deletion."""
    server = Server(entry("/a"), entry("/b", 0))
    server.read_all()
    assert server.steps() == [
        ("-/a", 0, 0),
        ("+/a", 0, 6),
        ("+/a", 6, 4),
        ("+/a", 10, 0),
        ("-/b", 0, 0),
        ("+/b", 0, 0),
    ]


def test_client_that_says_what_it_wants_gets_that() -> None:
    """A client of ours tells that it replaces files whole, and asks for RESYNC or does not."""
    assert Server(entry("/a", 3), options=(WHOLE,)).sent == [OhaiOk(), IcanhazOk()]
    server = Server(entry("/a", 3), options=(RESYNC, WHOLE))
    server.read_all()
    server.publish(entry("/a", 2, "BB"))
    server.read_all()
    assert server.steps() == [("+/a", 0, 3), ("+/a", 3, 0), ("+/a", 0, 2), ("+/a", 2, 0)]


def test_every_file_comes_after_its_deletion() -> None:
    """A file that is new here may have a longer old version at a client that was away when it was deleted."""
    server = Server()
    server.publish(entry("/a", 5))
    server.read_all()
    server.publish(entry("/a", 3, "BB"))
    server.read_all()
    assert server.steps() == [
        ("-/a", 0, 0),
        ("+/a", 0, 5),
        ("+/a", 5, 0),
        ("-/a", 0, 0),
        ("+/a", 0, 3),
        ("+/a", 3, 0),
    ]


def test_deletion_waits_for_credit_with_its_file() -> None:
    """The old version stays with the client until the first octets of the new one can follow."""
    server = Server(credit=5)
    server.publish(entry("/a", 5))
    server.read_all()
    server.publish(entry("/a", 3, "BB"))
    assert server.steps() == [("-/a", 0, 0), ("+/a", 0, 5), ("+/a", 5, 0)]
    server.perform(server.driver.handle(Nom(credit=3)))
    server.read_all()
    assert server.steps()[3:] == [("-/a", 0, 0), ("+/a", 0, 3), ("+/a", 3, 0)]


@pytest.mark.parametrize("chunks", [0, 1])
def test_file_that_changes_while_it_is_sent_is_closed_deleted_and_begins_again(chunks: int) -> None:
    """Without an empty chunk the client would append the next file to it, unless nothing was sent.

    The part is deleted at once, because the new version may come much later.
    """
    server = Server()
    server.publish(entry("/a", 20))
    for _ in range(chunks):
        server.read()
    server.publish(entry("/a", 3, "BB"))
    server.read_all()
    cut = [("-/a", 0, 0), ("+/a", 0, 6), ("+/a", 6, 0), ("-/a", 0, 0)] if chunks else []
    assert server.steps() == [*cut, ("-/a", 0, 0), ("+/a", 0, 3), ("+/a", 3, 0)]


def test_file_that_is_withdrawn_while_it_is_sent_is_closed_and_deleted() -> None:
    """Before anything else is sent."""
    server = Server()
    server.publish(entry("/a", 20))
    server.read()
    server.withdraw("/a")
    server.publish(entry("/b", 1))
    server.read_all()
    assert server.steps()[1:] == [
        ("+/a", 0, 6),
        ("+/a", 6, 0),
        ("-/a", 0, 0),
        ("-/b", 0, 0),
        ("+/b", 0, 1),
        ("+/b", 1, 0),
    ]


def test_file_that_is_withdrawn_and_published_while_it_is_sent() -> None:
    """The part that was sent is closed, and deleted before the new version."""
    server = Server()
    server.publish(entry("/a", 20))
    server.read()
    server.withdraw("/a")
    server.publish(entry("/a", 1, "BB"))
    server.read_all()
    assert server.steps()[1:] == [
        ("+/a", 0, 6),
        ("+/a", 6, 0),
        ("-/a", 0, 0),
        ("+/a", 0, 1),
        ("+/a", 1, 0),
    ]


def test_file_that_cannot_be_read_any_more_is_closed_deleted_and_begins_again() -> None:
    """The old version, of which the client has a part, is in the way of what will be read."""
    server = Server()
    server.publish(entry("/a", 20))
    server.read()
    server.perform(server.driver.fail(server.reads.pop()))
    assert server.steps() == [("-/a", 0, 0), ("+/a", 0, 6)]
    server.perform(server.driver.tick(1.0))
    server.read_all()
    assert server.steps()[2:4] == [("+/a", 6, 0), ("-/a", 0, 0)]
    assert server.steps()[4:] == [
        ("-/a", 0, 0),
        ("+/a", 0, 6),
        ("+/a", 6, 6),
        ("+/a", 12, 6),
        ("+/a", 18, 2),
        ("+/a", 20, 0),
    ]


def test_silence_of_the_server() -> None:
    """An idle client gets no HUGZ. Nothing is sent when its time is over, and when the server stops."""
    server = Server()
    server.sent.clear()
    server.perform(server.driver.tick(3.9))
    assert server.driver.clients == 1
    server.perform(server.driver.tick(4.0))
    assert (server.driver.clients, server.sent) == (0, [])
    effects = Server().driver.stop()
    assert (drops(effects), sent(effects)) == ([PEER], [])


def test_second_ohai_is_answered_and_changes_nothing() -> None:
    server = Server()
    assert server.driver.handle(Ohai()) == [kernel.Send(PEER, OhaiOk())]
    server.publish(entry("/a", 0))
    assert server.steps() == [("-/a", 0, 0), ("+/a", 0, 0)]


def test_credit_that_overflows_is_refused() -> None:
    """The C server's sum wraps."""
    server = Server(credit=2**64 - 1)
    server.perform(server.driver.handle(Nom(credit=1)))
    assert isinstance(server.sent[-1], Srsly)


# ---- the client's engine


def connected(*paths: str) -> tuple[ClientDesk, list[Command]]:
    desk = ClientDesk(*(paths or ("/",)), resync=False, dialect=LIBFILEMQ)
    desk.start()
    return desk, sent_up(desk.receive(OhaiOk()))


def test_one_grant_is_for_ever() -> None:
    """The C server stops for good when credit is short, so it gets 2^62 octets at once, and no more."""
    desk, commands = connected()
    assert commands == [Nom(credit=2**62), Icanhaz(path="/", options=(WHOLE,), cache=())]
    desk.receive(IcanhazOk())
    chunk = Cheezburger(sequence=0, operation=1, filename="/a", offset=0, headers=(), chunk=b"x" * 10_000_000)
    assert sent_up(desk.receive(chunk)) == []
    assert desk.pending_octets == 10_000_000


def test_nothing_is_received_while_content_waits_beyond_the_window() -> None:
    """Endless credit does not hold a server back, but a full socket does."""
    desk, _ = connected()
    for offset, paused in ((0, []), (60, [kernel.PauseReceiving(desk.peer, True)]), (120, [])):
        chunk = Cheezburger(
            sequence=0, operation=1, filename="/a", offset=offset, headers=(), chunk=b"x" * 60
        )
        assert [one for one in desk.receive(chunk) if isinstance(one, kernel.PauseReceiving)] == paused
    assert desk.settle(Wrote(1, 60)) == []
    assert desk.settle(Wrote(1, 60)) == [kernel.PauseReceiving(desk.peer, False)]


def test_resync_names_files_in_full() -> None:
    """The C server renames entries of a cache that are not full paths while it walks through them."""
    desk = ClientDesk("/p", dialect=LIBFILEMQ)
    desk.start()
    assert ListHeld(1, "/p") in desk.receive(OhaiOk())
    long = "/p/" + "n" * 260
    [command] = sent_up(desk.settle(Held(1, "/p", {"/p/a=b": "AA", long: "BB"})))
    assert isinstance(command, Icanhaz)
    assert command.cache == (("/p/a=b", "AA"),)


def test_sequence_proves_nothing() -> None:
    """A number that is missing is no loss of ours to mend; offsets are what a file is checked by."""
    desk, _ = connected()
    desk.receive(IcanhazOk())
    for sequence in (5, 3):
        burger = Cheezburger(
            sequence=sequence, operation=2, filename="/a", offset=0, headers=(("size", "0"),), chunk=b""
        )
        assert desk.receive(burger) == [DeleteFile(1, "/a")]


def test_hugz_of_a_server_is_not_answered() -> None:
    """HUGZ-OK of a client would end the C server."""
    desk, _ = connected()
    assert sent_up(desk.receive_frames([b"\xaa\xa3\x09"])) == []
    assert LIBFILEMQ.open_dialog("C").send(HugzOk()) is not None


def test_names_of_any_length() -> None:
    """A path of four octets' length takes what the specification's one octet does not."""
    path = "/" + "n" * 300
    connected(path)
    with pytest.raises(ValueError, match="255 are allowed"):
        ClientDesk(path)
    assert (
        filemq.Icanhaz(path=path, options=(), cache=())
        == LIBFILEMQ.decode(LIBFILEMQ.encode(filemq.Icanhaz(path=path, options=(), cache=())))[0]
    )
