"""Random histories of a server's engine and two clients, with late answers: every client has every file in the end.

The disk, the clients and the network are a plain model. Chunks, digests and room come when a history says so, files
change meanwhile, disks fail, clients leave in the middle of a file and come back, and time passes. The clients of
FILEMQ v2 keep a part of a file that was interrupted; those of libfilemq write in place and cannot ask for anything.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

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
)
from specwire.runtime.filemq.catalogue import Entry, ReadChunk, Signature
from specwire.runtime.filemq.codec import DIALECTS, Command
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.outflow import SMALL_OCTETS
from specwire.runtime.kernel.effects import Ask, AwaitRoom, CancelAsk, DropPeer, HostEffect, Send
from specwire.runtime.kernel.events import PeerId
from tests.examples import examples
from tests.runtime.filemq.server_driver import OTHER, PEER, PRUNE, RESYNC, ServerDriver, sent, subscription

NAMES = ("/a", "/d/b", "/d/c")
ENOUGH = 1 << 30


def sha1(content: bytes) -> str:
    """Return the digest of some octets."""
    return hashlib.sha1(content).hexdigest().upper()


@dataclass
class Client:
    """A client: what it has been sent, and the files that it has by that.

    Attributes:
        path: what it subscribes to.
        in_place: it writes into the files themselves, and deletes nothing of its own.
        granted: credit that it has left.
        sequence: number of the next CHEEZBURGER.
        open: name, size and digest of the file that is being sent, and its content until now.
        part: name and content of a file that was interrupted.
        has_left: it was away, so that it cannot know what was deleted.
    """

    peer: PeerId
    path: str
    in_place: bool
    inbox: dict[str, bytes] = field(default_factory=dict)
    granted: int = 0
    sequence: int = 0
    open: tuple[str, int, str] | None = None
    octets: bytes = b""
    part: tuple[str, bytes] | None = None
    is_connected: bool = False
    has_left: bool = False

    def connect(self) -> list[Command]:
        """Return the commands that open a peering: the rest of a file is asked for before everything else."""
        self.is_connected, self.granted, self.sequence = True, 0, 0
        if self.in_place:
            return [Ohai(), subscription(self.path)]
        commands: list[Command] = [Ohai(), subscription(self.path)]
        if self.part is not None and self.part[1] and covers(self.path, self.part[0]):
            name, octets = self.part
            commands.append(subscription(name, (("RESUME", f"{len(octets)}:{sha1(octets)}"), PRUNE)))
        return [*commands, self.resync()]

    def resync(self) -> Command:
        """Return the command that asks for everything that the client has not."""
        cache = tuple((name, sha1(octets)) for name, octets in self.inbox.items() if covers(self.path, name))
        return subscription(self.path, (RESYNC, PRUNE), cache)

    def leave(self) -> None:
        """Keep what there is of an unfinished file."""
        self.is_connected, self.has_left = False, True
        if self.open is not None:
            self.part = self.open[0], self.octets
        self.open, self.octets = None, b""

    def receive(self, command: Command, disturbed: Container[str]) -> None:
        """Take a command in.

        Args:
            disturbed: files that have changed so often that others may be sent before they are complete.
        """
        if not isinstance(command, Cheezburger):
            assert isinstance(command, OhaiOk | IcanhazOk | Hugz | HugzOk | Kthxbai), command
            return
        assert covers(self.path, command.filename)
        assert command.sequence == self.sequence
        self.sequence += 1
        if command.operation == Operation.DELETE:
            self.give_up(command.filename, disturbed)
            self.inbox.pop(command.filename, None)
        elif self.in_place:
            self.write(command)
        else:
            self.take(command, disturbed)

    def give_up(self, name: str, disturbed: Container[str]) -> None:
        """End the unfinished file, because something else is sent."""
        if self.open is not None:
            assert not self.in_place, "an open file must be closed"
            assert name == self.open[0] or self.open[0] in disturbed, "chunks of a file are consecutive"
            self.open = None

    def take(self, command: Cheezburger, disturbed: Container[str]) -> None:
        """Collect the chunks of a file, and put it into its place at its end."""
        headers = dict(command.headers)
        announced = command.filename, int(headers["size"]), headers["sha-1"]
        if announced != self.open or command.offset == 0:
            self.give_up(command.filename, disturbed)
            self.octets = b""
            if command.offset:
                assert self.part is not None
                assert (command.filename, command.offset) == (self.part[0], len(self.part[1]))
                self.octets = self.part[1]
            self.open, self.part = announced, None
        assert command.offset == len(self.octets)
        self.octets += command.chunk
        self.count(command)
        if not command.chunk:
            assert (len(self.octets), sha1(self.octets)) == announced[1:]
            self.inbox[command.filename], self.open = self.octets, None

    def write(self, command: Cheezburger) -> None:
        """Write into the file, which an empty chunk closes."""
        name, offset, there = command.filename, command.offset, self.inbox.get(command.filename, b"")
        assert self.open is None or self.open[0] == name
        assert offset == (len(there) if self.open is not None else 0)
        self.inbox[name] = there[:offset] + command.chunk + there[offset + len(command.chunk) :]
        self.open = (name, 0, "") if command.chunk else None
        self.count(command)

    def count(self, command: Cheezburger) -> None:
        """Use up credit."""
        self.granted -= len(command.chunk)
        assert self.granted >= 0


class World:
    """A server, its disk, and two clients.

    Args:
        reads_at_once: octets are read when they are asked for, although the answer comes later; else with the answer.
    """

    def __init__(self, dialect: str, chunk_octets: int, paths: tuple[str, str], reads_at_once: bool) -> None:
        self.chunk_octets, self.reads_at_once = chunk_octets, reads_at_once
        self.disk: dict[str, tuple[bytes, Entry]] = {}
        self.driver = ServerDriver(
            dialect=DIALECTS[dialect],
            chunk_octets=chunk_octets,
            timers={"heartbeat": 1.0, "expiry": 1e9},
        )
        in_place = dialect == "libfilemq"
        peers = zip((PEER, OTHER), paths, strict=True)
        self.clients = [Client(peer, path, in_place) for peer, path in peers]
        self.asked: list[Ask] = []
        self.octets: dict[int, bytes | None] = {}
        self.rooms: list[AwaitRoom] = []
        self.versions = 0
        self.changes = Counter[str]()
        self.withdrawn: set[str] = set()

    def perform(self, effects: list[HostEffect]) -> None:
        """Deliver commands, and keep requests for later."""
        disturbed = {name for name, count in self.changes.items() if count > 1} | self.withdrawn
        for effect in effects:
            match effect:
                case Send(peer=peer, message=message):
                    client = next(client for client in self.clients if client.peer == peer)
                    client.receive(message, disturbed)
                case Ask():
                    self.asked.append(effect)
                    if self.reads_at_once:
                        self.octets[effect.ticket] = self.look_up(effect)
                case AwaitRoom(peer=peer):
                    assert peer not in [room.peer for room in self.rooms], "one at a time for each peer"
                    self.rooms.append(effect)
                case DropPeer(peer=peer):
                    self.rooms = [room for room in self.rooms if room.peer != peer]
                case CancelAsk(ticket=ticket):
                    self.asked = [one for one in self.asked if one.ticket != ticket]
        connected = [client for client in self.clients if client.is_connected]
        assert len(self.asked) + len(self.rooms) <= len(connected)
        for client in connected:
            assert self.driver.credit(client.peer) == client.granted

    # ---- what happens

    def publish(self, name: str, content: bytes) -> None:
        """Write a file; with the same content it is only touched."""
        self.versions += 1
        self.changes[name] += 1
        entry = Entry(name, len(content), sha1(content), Signature(len(content), self.versions, 0))
        self.disk[name] = content, entry
        self.perform(self.driver.publish(entry))

    def withdraw(self, name: str) -> None:
        """Delete a file."""
        if self.disk.pop(name, None) is not None:
            self.withdrawn.add(name)
            self.perform(self.driver.withdraw(name))

    def answer(self, *, fails: bool = False) -> None:
        """Answer the oldest request."""
        asked = self.asked.pop(0)
        octets = self.octets.pop(asked.ticket) if self.reads_at_once else self.look_up(asked)
        if fails or octets is None:
            self.changes[asked.request.entry.name] += 1
            self.perform(self.driver.fail(asked))
        elif isinstance(asked.request, ReadChunk):
            self.perform(self.driver.read(asked, octets))
        else:
            self.perform(self.driver.check(asked, sha1(octets)))

    def look_up(self, asked: Ask) -> bytes | None:
        """Return the octets of a request, if the file is in the state that was published."""
        request = asked.request
        octets, entry = self.disk.get(request.entry.name, (b"", None))
        if entry is not request.entry:
            return None
        offset = request.offset if isinstance(request, ReadChunk) else 0
        return octets[offset : offset + request.size]

    def make_room(self, share: float) -> None:
        """Offer the client that waits longest a part of the room that it needs."""
        room = self.rooms.pop(0)
        octets = max(min(1, room.octets), int(share * room.octets))
        self.perform(self.driver.make_room(octets, peer=room.peer))

    def grant(self, client: Client, credit: int) -> None:
        """Give credit."""
        client.granted += credit
        self.perform(self.driver.handle(Nom(credit=credit), peer=client.peer))

    def connect(self, client: Client) -> None:
        """Open a peering."""
        for command in client.connect():
            self.perform(self.driver.handle(command, peer=client.peer))

    def leave(self, client: Client, *, says_goodbye: bool) -> None:
        """End a peering; nothing of it is left at the server."""
        client.leave()
        if says_goodbye:
            self.perform(self.driver.handle(Kthxbai(), peer=client.peer))
        else:
            self.perform(self.driver.leave(peer=client.peer))
        connected = sum(client.is_connected for client in self.clients)
        assert self.driver.suspended == 2 * connected, "for each client what is sent, and its timer"

    def happen(self, step: tuple[Any, ...]) -> None:
        """Let something happen, if it can."""
        match step:
            case ("publish", name, content):
                self.publish(name, content[: 100 * self.chunk_octets])
            case ("touch", name) if name in self.disk:
                self.publish(name, self.disk[name][0])
            case ("withdraw", name):
                self.withdraw(name)
            case ("answer" | "fail" as how, number):
                for _ in range(min(number, len(self.asked))):
                    self.answer(fails=how == "fail")
            case ("room", share) if self.rooms:
                self.make_room(share)
            case ("time", seconds):
                self.perform(self.driver.tick(self.driver.now + seconds))
            case (str(what), int(which), int(credit)):
                client = self.clients[which]
                match what:
                    case "goodbye" | "lose" if not client.is_connected:
                        self.connect(client)
                    case "goodbye" | "lose":
                        self.leave(client, says_goodbye=what == "goodbye")
                    case "grant" if client.is_connected:
                        self.grant(client, credit)
                    case "resync" if client.is_connected and not client.in_place:
                        self.perform(self.driver.handle(client.resync(), peer=client.peer))
                    case "hugz" if client.is_connected:
                        self.perform(self.driver.handle(Hugz(), peer=client.peer))

    def settle(self) -> None:
        """Answer everything, and give everybody credit, until nothing more happens; each client is connected."""
        for client in self.clients:
            if not client.is_connected:
                self.connect(client)
            self.grant(client, ENOUGH)
        for _ in range(5000):
            if self.asked:
                self.answer()
            elif self.rooms:
                self.make_room(1.0)
            elif any(one.outflow.waits_for for one in self.driver.state.peerings.values()):
                self.perform(self.driver.tick(self.driver.now + 1.0))  # a delay must pass
            else:
                return
        raise AssertionError("it does not come to an end")

    def check(self) -> None:
        """Compare the clients' files with the published ones; then stop."""
        for client in self.clients:
            wanted = {name: octets for name, (octets, _) in self.disk.items() if covers(client.path, name)}
            held = {name: octets for name, octets in client.inbox.items() if covers(client.path, name)}
            if client.in_place and client.has_left:  # it has no way to learn what was deleted meanwhile
                held = {name: octets for name, octets in held.items() if name in wanted}
            assert held == wanted
        goodbye = [] if self.clients[0].in_place else [Kthxbai()]
        effects = self.driver.stop()
        assert [sent(effects, client.peer) for client in self.clients] == [goodbye, goodbye]
        assert self.driver.engine.suspended == 0


contents = st.builds(
    lambda seed, size: bytes((seed + n * n) % 251 for n in range(size)),
    st.integers(0, 3),
    st.integers(0, 40) | st.just(SMALL_OCTETS + 9),
)
names = st.sampled_from(NAMES)
answers = st.tuples(st.just("answer"), st.integers(1, 4))
steps = st.one_of(
    answers,
    answers,
    st.tuples(st.just("publish"), names, contents),
    st.tuples(st.just("publish"), names, contents),
    st.tuples(st.sampled_from(["touch", "withdraw", "withdraw"]), names),
    st.tuples(st.just("fail"), st.just(1)),
    st.tuples(st.just("room"), st.floats(0.0, 1.0)),
    st.tuples(st.just("time"), st.sampled_from([0.01, 0.1, 1.0, 3.0])),
    st.tuples(
        st.sampled_from(["grant", "grant", "grant", "resync", "hugz", "goodbye", "lose"]),
        st.integers(0, 1),
        st.integers(0, 60) | st.just(2 * SMALL_OCTETS),
    ),
)


@settings(deadline=None, max_examples=examples(160))
@given(
    dialect=st.sampled_from(sorted(DIALECTS)),
    chunk_octets=st.sampled_from([3, 10, 2 * SMALL_OCTETS]),
    paths=st.tuples(st.sampled_from(["/", "/d", "/a"]), st.sampled_from(["/", "/d"])),
    first=st.dictionaries(names, contents),
    credit=st.sampled_from([0, 100, ENOUGH]),
    reads_at_once=st.booleans(),
    story=st.lists(steps, min_size=30, max_size=80),
)
def test_every_client_has_every_file_in_the_end(
    dialect: str,
    chunk_octets: int,
    paths: tuple[str, str],
    first: dict[str, bytes],
    credit: int,
    reads_at_once: bool,
    story: list[tuple[Any, ...]],
) -> None:
    """Meanwhile the dialog is kept, chunks of a file are consecutive, and credit is exact."""
    world = World(dialect, chunk_octets, paths, reads_at_once)
    for name, content in first.items():
        world.happen(("publish", name, content))
    for client in world.clients:
        world.connect(client)
        world.grant(client, credit)
    for step in story:
        world.happen(step)
    world.settle()
    world.check()


def test_new_file_replaces_a_longer_one_of_a_client_that_was_away() -> None:
    """The client writes in place, and does not learn that its old file was deleted while it was away."""
    world = World("libfilemq", 3, ("/", "/"), reads_at_once=False)
    world.publish("/a", b"long")
    client = world.clients[0]
    world.connect(client)
    world.settle()
    world.leave(client, says_goodbye=True)
    world.withdraw("/a")
    world.connect(client)
    world.publish("/a", b"s")
    world.settle()
    assert client.inbox == {"/a": b"s"}
    world.check()
