"""Driver for tests of a client's engine: it presents events, and reads effects and orders for the disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from math import inf
from typing import Any

from specwire.generated.errors import DecodeError
from specwire.runtime.filemq.client import ClientEngine
from specwire.runtime.filemq.codec import FILEMQ, Command, Dialect
from specwire.runtime.filemq.connection import ClientOptions, ConfirmDeletions, Subscribe
from specwire.runtime.filemq.diskwork import BatchDone, DiskAction, DiskBatch, Outcome
from specwire.runtime.filemq.status import Phase, UnderWay
from specwire.runtime.kernel.effects import Ask, Connect, DropPeer, HostEffect, Log, Send
from specwire.runtime.kernel.events import (
    Answered,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerDisconnected,
    PeerId,
    Started,
    Stopping,
    Tick,
)
from specwire.runtime.kernel.log import LogEvent

TIMES = {"heartbeat": 1.0, "expiry": 4.0, "reconnect": 0.5}
SERVER = "server"
"""Endpoint of the server, which names it in events."""

Actions = Sequence[HostEffect | DiskAction]
"""The effects of an event without `Ask`, and behind them the orders for the disk."""


class ClientDesk:
    """A client's engine that is driven by hand.

    The disk accepts every batch at once, and has no outcome until `settle`: as an inbox may, it brings
    all outcomes with later batches.

    Attributes:
        peer: the connection that the engine has opened last.
        is_held: batches are not accepted; `asked` is the one that waits.
    """

    def __init__(
        self,
        *paths: str,
        dialect: Dialect = FILEMQ,
        timers: dict[str, float] = TIMES,
        window_octets: int = 100,
        **settings: Any,
    ) -> None:
        self._numbers = count(1)
        self.engine = ClientEngine(
            ClientOptions(
                endpoint=SERVER,
                paths=paths or ("/",),
                timers=timers,
                window_octets=window_octets,
                **settings,
            ),
            dialect,
            new_identity=lambda: b"identity-%d" % next(self._numbers),
        )
        self.dialect = dialect
        self.peer = PeerId("none")
        self.asked: DiskBatch | None = None
        self.is_held = False
        self._is_open = False

    # ---- what happens

    def start(self, now: float = 0.0) -> Actions:
        """Begin the run."""
        return self.present(Started({}), now)

    def receive(self, command: Command, now: float = 0.0) -> Actions:
        """Present a command of the server."""
        return self.present(MessageReceived(self.peer, command), now)

    def receive_frames(self, frames: Sequence[bytes], now: float = 0.0) -> Actions:
        """Present a message of the server, as the codec reads it."""
        try:
            commands = self.dialect.decode(frames)
        except DecodeError as error:
            return self.present(MessageMalformed(self.peer, error), now)
        return [action for command in commands for action in self.receive(command, now)]

    def settle(self, outcome: Outcome, now: float = 0.0) -> Actions:
        """Present an outcome of disk work."""
        return self.present(Answered(0, BatchDone((outcome,), pending=True)), now)

    def tick(self, now: float) -> Actions:
        """Let the time be `now`."""
        return self.present(Tick(), now)

    def lose(self, reason: str, now: float = 0.0) -> Actions:
        """Lose the connection."""
        return self.present(PeerDisconnected(self.peer, reason), now)

    def stop(self, now: float = 0.0) -> Actions:
        """Ask the engine to end."""
        return self.present(Stopping("stopped"), now)

    def subscribe(self, path: str, now: float = 0.0) -> Actions:
        """Subscribe to another path."""
        return self.present(Noticed(Subscribe(self.engine.check_path(path))), now)

    def accept_deletions(self, now: float = 0.0) -> Actions:
        """Accept the deletions that are withheld."""
        return self.present(Noticed(ConfirmDeletions()), now)

    def present(self, event: Event, now: float) -> Actions:
        """Present an event, and let the disk accept what is ordered."""
        effects: list[HostEffect] = []
        orders: list[DiskAction] = []
        self._handle(event, now, effects)
        while not self.is_held:
            if self.asked is not None and not self.asked.orders:
                idle, self.asked = self.asked, None
                self._handle(Answered(0, BatchDone((), pending=True)), now, effects)
                if self.asked == idle:
                    break
            elif self.asked is not None:
                orders += self.asked.orders
                self.asked = DiskBatch(())
            elif self.engine.deadline() == -inf:
                self._handle(Tick(), now, effects)
            else:
                break
        return [*effects, *orders]

    def _handle(self, event: Event, now: float, effects: list[HostEffect]) -> None:
        for effect in self.engine.handle(event, now):
            match effect:
                case Ask(request=DiskBatch() as batch):
                    assert self.asked is None or isinstance(event, Answered), "one batch at a time"
                    self.asked = batch
                    continue
                case Connect(peer=peer):
                    assert not self._is_open, "one connection at a time"
                    assert peer != self.peer, "the name of a connection is not used again"
                    self.peer, self._is_open = peer, True
                case DropPeer():
                    self._is_open = False
                case Send(peer=peer):
                    assert (peer, self._is_open) == (self.peer, True), "sends on the open connection"
            effects.append(effect)

    # ---- how the engine is

    @property
    def phase(self) -> Phase:
        """Phase of the connection."""
        return self.engine.phase

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths to subscribe to."""
        return self.engine.paths

    @property
    def pending_octets(self) -> int:
        """Octets that are received and not written."""
        return self.engine.pending_octets

    @property
    def under_way(self) -> UnderWay | None:
        """The file that is arriving."""
        return self.engine.under_way


def sent(actions: Iterable[HostEffect | DiskAction]) -> list[Command]:
    """Return the commands that are sent."""
    return [action.message for action in actions if isinstance(action, Send)]


def told(actions: Iterable[HostEffect | DiskAction]) -> list[LogEvent]:
    """Return the events for the log."""
    return [action.event for action in actions if isinstance(action, Log)]


def disk(actions: Iterable[HostEffect | DiskAction]) -> list[DiskAction]:
    """Return the orders for the disk."""
    return [action for action in actions if isinstance(action, DiskAction)]


def connects(actions: Iterable[HostEffect | DiskAction]) -> int:
    """Return how many connections are opened."""
    return sum(isinstance(action, Connect) for action in actions)


def drops(actions: Iterable[HostEffect | DiskAction]) -> int:
    """Return how many connections are closed."""
    return sum(isinstance(action, DropPeer) for action in actions)
