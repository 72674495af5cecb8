"""The dialect of the C implementation: its real messages through it both ways, and its habits in the engines."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
from specwire.runtime.filemq.actions import (
    Close,
    ReadChunk,
    Report,
    Send,
    ServerAction,
)
from specwire.runtime.filemq.catalogue import Catalogue, Entry, Signature
from specwire.runtime.filemq.dialect import FILEMQ, Command
from specwire.runtime.filemq.dialects import DIALECTS, find_dialect
from specwire.runtime.filemq.diskwork import DeleteFile, Held, ListHeld, Wrote
from specwire.runtime.filemq.events import PeerOpened
from specwire.runtime.filemq.libfilemq import LIBFILEMQ
from specwire.runtime.filemq.resync import WHOLE
from specwire.runtime.filemq.server import ServerEngine
from specwire.runtime.kernel.effects import PauseReceiving
from tests.runtime.filemq.client_desk import ClientDesk, sent

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "filemq-libfilemq.json").read_text())
REAL = [vector for vector in VECTORS if vector["command"]]
REFUSED = [vector for vector in VECTORS if not vector["command"]]
PEER = b"\x00peer"
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


def entry(name: str, size: int = 10, sha1: str = "AA") -> Entry:
    return Entry(name, size, sha1, Signature(size, 0, 0))


class Server:
    """An engine with one client, whose reads are answered at once; `sent` is what the client got."""

    def __init__(
        self, *entries: Entry, options: tuple[tuple[str, str], ...] = (), credit: int = 1000
    ) -> None:
        self.files = Catalogue()
        self.sent: list[Command] = []
        self.reads: list[ReadChunk] = []
        self.engine = ServerEngine(self.files, timers=TIMES, chunk_octets=6, dialect=LIBFILEMQ)
        for item in entries:
            self.files.put(item)
        for command in (Ohai(), Icanhaz(path="/", options=options, cache=()), Nom(credit=credit)):
            self.perform(self.engine.obey(PEER, command, 0.0))

    def perform(self, actions: Iterable[ServerAction]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self.sent.append(action.command)
            elif isinstance(action, ReadChunk):
                self.reads.append(action)

    def read(self) -> None:
        action = self.reads.pop(0)
        self.perform(self.engine.chunk_read(PEER, action.transfer, b"x" * action.size, 0.0))

    def read_all(self) -> None:
        while self.reads:
            self.read()

    def publish(self, item: Entry) -> None:
        known = self.files.find(item.name) is not None
        self.files.put(item)
        self.perform(self.engine.publish(item, 0.0, replaces=known))

    def withdraw(self, name: str) -> None:
        self.files.remove(name)
        self.perform(self.engine.withdraw(name, 0.0))

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
    server = Server(entry("/a", 3), options=(("RESYNC", "1"), WHOLE))
    server.read_all()
    server.publish(entry("/a", 2, "BB"))
    server.read_all()
    assert server.steps() == [("+/a", 0, 3), ("+/a", 3, 0), ("+/a", 0, 2), ("+/a", 2, 0)]


def test_new_file_comes_without_a_deletion_and_a_new_version_with_one() -> None:
    server = Server()
    server.publish(entry("/a", 5))
    server.read_all()
    server.publish(entry("/a", 3, "BB"))
    server.read_all()
    assert server.steps() == [("+/a", 0, 5), ("+/a", 5, 0), ("-/a", 0, 0), ("+/a", 0, 3), ("+/a", 3, 0)]


def test_deletion_waits_for_credit_with_its_file() -> None:
    """The old version stays with the client until the first octets of the new one can follow."""
    server = Server(credit=5)
    server.publish(entry("/a", 5))
    server.read_all()
    server.publish(entry("/a", 3, "BB"))
    assert server.steps() == [("+/a", 0, 5), ("+/a", 5, 0)]
    server.perform(server.engine.obey(PEER, Nom(credit=3), 0.0))
    server.read_all()
    assert server.steps()[2:] == [("-/a", 0, 0), ("+/a", 0, 3), ("+/a", 3, 0)]


def test_file_deleted_and_made_anew_before_the_client_heard_of_it() -> None:
    """The queued deletion gives way to the new file, and must not be forgotten."""
    server = Server()
    server.publish(entry("/a", 5))
    server.read_all()
    server.publish(entry("/b", 7))  # keeps the line busy
    server.withdraw("/a")
    server.publish(entry("/a", 1, "BB"))
    server.read_all()
    assert server.steps()[-3:] == [("-/a", 0, 0), ("+/a", 0, 1), ("+/a", 1, 0)]


@pytest.mark.parametrize("chunks", [0, 1])
def test_file_that_changes_under_way_is_closed_deleted_and_begun_anew(chunks: int) -> None:
    """Without an empty chunk the client would write what follows into the same file; unbegun files need none."""
    server = Server()
    server.publish(entry("/a", 20))
    for _ in range(chunks):
        server.read()
    server.publish(entry("/a", 3, "BB"))
    server.reads = server.reads[-1:]  # the answer to the one before is not awaited
    server.read_all()
    cut = [("+/a", 0, 6), ("+/a", 6, 0), ("-/a", 0, 0)] if chunks else []
    assert server.steps() == [*cut, ("+/a", 0, 3), ("+/a", 3, 0)]


def test_file_that_goes_under_way_is_closed_and_deleted() -> None:
    server = Server()
    server.publish(entry("/a", 20))
    server.read()
    server.withdraw("/a")
    server.publish(entry("/b", 1))
    server.reads = server.reads[-1:]
    server.read_all()
    assert server.steps() == [("+/a", 0, 6), ("+/a", 6, 0), ("-/a", 0, 0), ("+/b", 0, 1), ("+/b", 1, 0)]


def test_silence_of_the_server() -> None:
    """However long a client is idle, it gets no HUGZ; when its time is over, and when the server stops, no word."""
    server = Server()
    server.sent.clear()
    server.perform(server.engine.tick(3.9))
    assert server.engine.clients == 1
    server.perform(server.engine.tick(4.0))
    assert (server.engine.clients, server.sent) == (0, [])
    server = Server()
    server.sent.clear()
    actions = server.engine.close(1.0)
    server.perform(actions)
    assert any(isinstance(action, Close) for action in actions)
    assert server.sent == []


def test_second_ohai_is_answered_and_changes_nothing() -> None:
    server = Server()
    again = server.engine.obey(PEER, Ohai(), 0.0)
    assert again == [Send(OhaiOk(), PEER)]
    assert not any(isinstance(a, Report) and isinstance(a.event, PeerOpened) for a in again)
    server.publish(entry("/a", 0))
    assert server.steps() == [("+/a", 0, 0)]


def test_credit_that_overflows_is_refused() -> None:
    """The C server's sum wraps."""
    server = Server(credit=2**64 - 1)
    server.perform(server.engine.obey(PEER, Nom(credit=1), 0.0))
    assert isinstance(server.sent[-1], Srsly)


# ---- the client's engine


def connected(*paths: str) -> tuple[ClientDesk, list[Command]]:
    desk = ClientDesk(*(paths or ("/",)), resync=False, dialect=LIBFILEMQ)
    desk.start()
    return desk, sent(desk.receive(OhaiOk()))


def test_one_grant_is_for_ever() -> None:
    """The C server stops for good when credit is short, so it gets 2^62 octets at once, and no more."""
    desk, commands = connected()
    assert commands == [Nom(credit=2**62), Icanhaz(path="/", options=(WHOLE,), cache=())]
    desk.receive(IcanhazOk())
    chunk = Cheezburger(sequence=0, operation=1, filename="/a", offset=0, headers=(), chunk=b"x" * 10_000_000)
    assert sent(desk.receive(chunk)) == []
    assert desk.pending_octets == 10_000_000


def test_nothing_is_received_while_content_waits_beyond_the_window() -> None:
    """Endless credit does not hold a server back, but a full socket does."""
    desk, _ = connected()
    for offset, paused in ((0, []), (60, [PauseReceiving(desk.peer, True)]), (120, [])):
        chunk = Cheezburger(
            sequence=0, operation=1, filename="/a", offset=offset, headers=(), chunk=b"x" * 60
        )
        assert [one for one in desk.receive(chunk) if isinstance(one, PauseReceiving)] == paused
    assert desk.settle(Wrote(1, 60)) == []
    assert desk.settle(Wrote(1, 60)) == [PauseReceiving(desk.peer, False)]


def test_resync_names_files_in_full() -> None:
    """The C server renames entries of a cache that are not full paths while it walks through them."""
    desk = ClientDesk("/p", dialect=LIBFILEMQ)
    desk.start()
    assert ListHeld(1, "/p") in desk.receive(OhaiOk())
    long = "/p/" + "n" * 260
    [command] = sent(desk.settle(Held(1, "/p", {"/p/a=b": "AA", long: "BB"})))
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
    assert sent(desk.receive_frames([b"\xaa\xa3\x09"])) == []
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
