"""Driver of the server's engine: presents events as a host does, and returns the effects.

A test gives the answers itself (`read`, `check`, `fail`, `make_room`), or lets `play_out` do it, which answers
every request and offers all the room that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from specwire.generated.errors import CodecError
from specwire.generated.filemq import Cheezburger, Icanhaz, Nom, Ohai
from specwire.runtime.filemq.catalogue import Change, CheckPart, Entry, Gone, Put, ReadChunk, Signature
from specwire.runtime.filemq.codec import FILEMQ, Command, Dialect, FilemqCodec
from specwire.runtime.filemq.events import Counters
from specwire.runtime.filemq.peering import Peering
from specwire.runtime.filemq.server import FilesChanged, ServerState, react
from specwire.runtime.kernel.effects import Ask, AwaitRoom, DropPeer, HostEffect, Log, Send
from specwire.runtime.kernel.engine import StoryEngine
from specwire.runtime.kernel.events import (
    Answered,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerDisconnected,
    PeerId,
    Reloaded,
    RoomMade,
    Started,
    Stopping,
    Tick,
)
from specwire.runtime.kernel.log import LogEvent

PEER = PeerId("clients", b"\x00peer")
OTHER = PeerId("clients", b"\x00other")
LABEL = PEER.routing_id.hex()
TIMES = {"heartbeat": 1.0, "expiry": 4.0}
LASTING = {"heartbeat": 1e9, "expiry": 1e9}
"""Timers of which none is due during a test."""

RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")


def entry(name: str, size: int = 10, sha1: str = "AA") -> Entry:
    """Return a published file."""
    return Entry(name, size, sha1, Signature(size, 0, 0))


def subscription(
    path: str, options: tuple[tuple[str, str], ...] = (), cache: tuple[tuple[str, str], ...] = ()
) -> Icanhaz:
    """Return an ICANHAZ."""
    return Icanhaz(path=path, options=options, cache=cache)


class ServerDriver:
    """An engine of a server, started, with these files.

    Args:
        settings: of `ServerState`.

    Attributes:
        now: the time, which a test sets.
    """

    def __init__(self, *entries: Entry, dialect: Dialect = FILEMQ, **settings: Any) -> None:
        self.now = 0.0
        self.state = ServerState(dialect, **{"timers": TIMES, **settings})
        self.engine = StoryEngine(partial(react, self.state))
        self._codec = FilemqCodec(dialect, Counters())
        self.change(*map(Put, entries))
        self.present(Started({"clients": "tcp://127.0.0.1:1"}))

    @property
    def clients(self) -> int:
        """Number of open peerings."""
        return len(self.state.peerings)

    @property
    def suspended(self) -> int:
        """Number of stories that wait, except the one that logs progress."""
        return self.engine.suspended - 1

    def peering(self, peer: PeerId = PEER) -> Peering:
        """Return the state of a client."""
        return self.state.peerings[peer]

    def credit(self, peer: PeerId = PEER) -> int:
        """Return the octets that may be sent to a client; 0 for one without a peering."""
        peering = self.state.peerings.get(peer)
        return 0 if peering is None else peering.outflow.credit

    # ---- events

    def present(self, event: Event) -> list[HostEffect]:
        """Present an event."""
        return [*self.engine.handle(event, self.now)]

    def handle(self, *commands: Command, peer: PeerId = PEER, user: str = "") -> list[HostEffect]:
        """Present commands."""
        return [
            effect for command in commands for effect in self.present(MessageReceived(peer, command, user))
        ]

    def receive(self, frames: Sequence[bytes], *, peer: PeerId = PEER, user: str = "") -> list[HostEffect]:
        """Present a message by its frames."""
        try:
            commands = self._codec.decode(peer, frames)
        except CodecError as error:
            return self.present(MessageMalformed(peer, error, user))
        return self.handle(*commands, peer=peer, user=user)

    def change(self, *changes: Change) -> list[HostEffect]:
        """Present changes of a publication."""
        return self.present(Noticed(FilesChanged("/", changes)))

    def publish(self, item: Entry) -> list[HostEffect]:
        """Present a file that is new or has changed."""
        return self.change(Put(item))

    def withdraw(self, name: str) -> list[HostEffect]:
        """Present a file that is gone."""
        return self.change(Gone(name))

    def answer(self, asked: Ask, value: Any) -> list[HostEffect]:
        """Answer a request."""
        return self.present(Answered(asked.ticket, value))

    def read(self, asked: Ask, octets: bytes) -> list[HostEffect]:
        """Answer a `ReadChunk` with octets."""
        assert len(octets) == asked.request.size
        return self.answer(asked, octets)

    def check(self, asked: Ask, sha1: str) -> list[HostEffect]:
        """Answer a `CheckPart` with a digest."""
        assert isinstance(asked.request, CheckPart)
        return self.answer(asked, sha1)

    def fail(self, asked: Ask) -> list[HostEffect]:
        """Answer a request: the file is not as it was published."""
        return self.answer(asked, None)

    def make_room(self, octets: int = 0, *, peer: PeerId = PEER) -> list[HostEffect]:
        """Offer room to a client."""
        return self.present(RoomMade(peer, octets))

    def leave(self, reason: str = "has disconnected", *, peer: PeerId = PEER) -> list[HostEffect]:
        """A client has gone."""
        return self.present(PeerDisconnected(peer, reason))

    def review(self) -> list[HostEffect]:
        """Other rules of access apply."""
        return self.present(Reloaded(None))

    def stop(self) -> list[HostEffect]:
        """Stop the server."""
        return self.present(Stopping("the server stops"))

    def tick(self, now: float) -> list[HostEffect]:
        """Let the time be `now`: what was due before is late."""
        self.now = now
        due = self.engine.deadline()
        return self.present(Tick()) if due is not None and due <= now else []

    # ---- a host that answers everything

    def play_out(
        self,
        effects: Iterable[HostEffect],
        *,
        octets: Callable[[ReadChunk], bytes | None] = lambda request: b"x" * request.size,
        digest: Callable[[CheckPart], str | None] = lambda request: None,
    ) -> list[HostEffect]:
        """Answer requests and offer room until nothing more happens; return all effects in order."""
        done, waiting = list[HostEffect](), [*effects]
        while waiting:
            effect = waiting.pop(0)
            done.append(effect)
            match effect:
                case Ask(request=ReadChunk() as request):
                    chunk = octets(request)
                    waiting += self.fail(effect) if chunk is None else self.read(effect, chunk)
                case Ask(request=CheckPart() as request):
                    waiting += self.answer(effect, digest(request))
                case AwaitRoom(peer=peer, octets=wanted):
                    waiting += self.make_room(wanted, peer=peer)
        return done


def peered(
    *entries: Entry, path: str | None = "/", credit: int = 1000, peer: PeerId = PEER, **settings: Any
) -> ServerDriver:
    """Return a driver with one client, which is subscribed to `path` and has credit."""
    driver = ServerDriver(*entries, **settings)
    connect(driver, path=path, credit=credit, peer=peer)
    return driver


def connect(driver: ServerDriver, *, path: str | None = "/", credit: int = 1000, peer: PeerId = PEER) -> None:
    """Open a client's peering, subscribe it to `path`, and give it credit."""
    driver.handle(Ohai(), peer=peer)
    if path is not None:
        driver.handle(subscription(path), peer=peer)
    driver.handle(Nom(credit=credit), peer=peer)


# ---- what effects say


def sent(effects: Iterable[HostEffect], peer: PeerId = PEER) -> list[Command]:
    """Return the commands that are sent to a client."""
    return [effect.message for effect in effects if isinstance(effect, Send) and effect.peer == peer]


def content(effects: Iterable[HostEffect], peer: PeerId = PEER) -> list[Cheezburger]:
    """Return the changes that are sent to a client."""
    return [command for command in sent(effects, peer) if isinstance(command, Cheezburger)]


def logged(effects: Iterable[HostEffect]) -> list[LogEvent]:
    """Return the events for the log."""
    return [effect.event for effect in effects if isinstance(effect, Log)]


def asked(effects: Iterable[HostEffect], kind: type) -> list[Ask]:
    """Return the requests of a kind."""
    return [effect for effect in effects if isinstance(effect, Ask) and isinstance(effect.request, kind)]


def reads(effects: Iterable[HostEffect]) -> list[tuple[str, int, int]]:
    """Return name, offset and size of each chunk that is to be read."""
    requests = (effect.request for effect in asked(effects, ReadChunk))
    return [(request.entry.name, request.offset, request.size) for request in requests]


def one_read(effects: Iterable[HostEffect]) -> Ask:
    """Return the only chunk that is to be read."""
    [effect] = asked(effects, ReadChunk)
    return effect


def one_check(effects: Iterable[HostEffect]) -> Ask:
    """Return the only digest that is to be computed."""
    [effect] = asked(effects, CheckPart)
    return effect


def drops(effects: Iterable[HostEffect]) -> list[PeerId]:
    """Return the peers that are dropped."""
    return [effect.peer for effect in effects if isinstance(effect, DropPeer)]
