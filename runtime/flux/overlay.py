"""The place of a broker in the tree: how it joins, stays and leaves, and its parent.

A broker says ``overlay.hello`` to its parent; until the answer only control messages pass, and the hello is said
again every `idle` seconds. When nothing went up for `idle` seconds it sends HEARTBEAT; when the status of its
subtree changes, STATUS. It leaves with ``overlay.goodbye``.

Rank 0 publishes ``heartbeat.pulse`` every `heartbeat` seconds. A broker that gets none for `expiry` seconds leaves
its parent. When the parent is lost, by whatever way, what is pending there is answered with EHOSTUNREACH, and the
subtree is told to stop: its brokers have routes through this one. Each may join again under a fresh uuid.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf
from typing import TYPE_CHECKING

from specwire.generated.flux import AnyMessage, Control, Response
from specwire.runtime.flux.actions import LeaveParent, Stopped, ToParent
from specwire.runtime.flux.answering import unpack
from specwire.runtime.flux.children import Children
from specwire.runtime.flux.control import HEARTBEAT, STATUSES, ControlType
from specwire.runtime.flux.errors import EPROTO, FluxError
from specwire.runtime.flux.events import WAY_LOST, Joined, ParentLost, StatusChanged, kind_of
from specwire.runtime.flux.hello import GOODBYE, HELLO, Hello, Welcome, goodbye, hello
from specwire.runtime.flux.journal import APPEND
from specwire.runtime.flux.tracking import Tracker

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

PULSE = "heartbeat.pulse"
LEAVING_S = 2.0
"""How long a broker that stops waits for the answer to its goodbye: much more than a round trip."""
OVERLAY_DISCONNECT = "overlay disconnect"
"""What a response says where the parent was lost."""


class Phase(IntEnum):
    """Where a broker is on its way. APART has no way up, and may rejoin."""

    NEW = 0
    JOINING = 1
    ONLINE = 2
    APART = 3
    LEAVING = 4
    STOPPED = 5


class Overlay:
    """One broker among its neighbours.

    Attributes:
        parent: the uuid of the parent, while there is one.
        tracker: what is pending at the parent.
        phase: see `Phase`; `moved` is when this broker came into the tree, or was cut off.
        status: of the subtree of this broker; `changed` is when it became so.
    """

    __slots__ = (
        "_broker",
        "_hello_at",
        "_leave_at",
        "_pulse_at",
        "_said",
        "_sent_at",
        "changed",
        "children",
        "moved",
        "parent",
        "phase",
        "status",
        "tracker",
    )

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self.phase, self.moved = Phase.NEW, broker.now
        self.parent: str | None = None
        self.tracker = Tracker()
        self.children = Children(broker)
        self.status, self.changed = self.children.subtree_status, broker.now
        self._pulse_at = self._sent_at = self._hello_at = broker.now
        self._leave_at = inf
        self._said = self.status

    @property
    def is_open(self) -> bool:
        """Whether children may come."""
        return self.phase not in (Phase.LEAVING, Phase.STOPPED)

    @property
    def is_apart(self) -> bool:
        """Whether this broker has lost its parent, and is to join again under another uuid."""
        return self.phase is Phase.APART

    # --- life

    def start(self) -> None:
        """Begin, or begin again."""
        broker = self._broker
        self._pulse_at = self._sent_at = broker.now
        if broker.rank == 0:
            self._move(Phase.ONLINE)
            broker.report(Joined(0))
        else:
            self._move(Phase.JOINING)
            self._say_hello()
            self.children.take_waiting()

    def stop(self, reason: str) -> None:
        """Let everybody go, and leave."""
        if not self.is_open:
            return
        was_joined = self.parent is not None
        self._settle_upward()
        self._move(Phase.LEAVING)
        self.children.expel_all(reason)
        if was_joined:
            self._leave_at = self._broker.now + LEAVING_S
            self._broker.emit(ToParent(goodbye()))
        else:
            self._end(reason)

    def lose_parent(self, reason: str) -> None:
        """The way up is gone."""
        broker = self._broker
        if self.phase is Phase.LEAVING:
            self._end(reason)
        elif self.phase is Phase.JOINING or (self.phase is Phase.ONLINE and broker.rank):
            self._move(Phase.APART)
            self._settle_upward()
            self.children.expel_all(WAY_LOST)
            broker.report(ParentLost(reason))
            broker.emit(LeaveParent(reason))

    def _settle_upward(self) -> None:
        """Answer what is pending at the parent, and stop work for those who are beyond it."""
        broker, parent = self._broker, self.parent
        self.parent = None
        for request in self.tracker.take_all():
            broker.unreachable(request, OVERLAY_DISCONNECT)
        if parent is not None:
            broker.router.way_lost((parent,))

    def _end(self, reason: str) -> None:
        self._move(Phase.STOPPED)
        if self._broker.rank:
            self._broker.emit(LeaveParent(reason))
        self._broker.emit(Stopped(reason))

    def _move(self, phase: Phase) -> None:
        """Be in another phase, and tell those who wait for that."""
        self.phase = phase
        if phase in (Phase.ONLINE, Phase.APART):
            self.moved = self._broker.now
            self._broker.registry.state_changed()

    # --- time

    @property
    def deadline(self) -> float:
        """When `tick` has work next."""
        times = self._broker.settings.timers
        own = inf
        if self.phase is Phase.ONLINE:
            own = self._pulse_at
            if self._broker.rank:
                own = min(self._sent_at + times["idle"], own + times["expiry"])
        elif self.phase is Phase.JOINING:
            own = self._hello_at + times["idle"]
        elif self.phase is Phase.LEAVING:
            own = self._leave_at
        return min(own, self.children.check_at)

    def tick(self) -> None:
        """Do what is due."""
        now = self._broker.now
        if now >= self.children.check_at:
            self.children.check()
        if self.phase is Phase.ONLINE:
            self._tick_online()
        elif self.phase is Phase.JOINING:
            if now >= self._hello_at + self._broker.settings.timers["idle"]:
                self._say_hello()
        elif self.phase is Phase.LEAVING and now >= self._leave_at:
            self._end("the parent did not answer the goodbye")

    def _tick_online(self) -> None:
        broker, now, times = self._broker, self._broker.now, self._broker.settings.timers
        if broker.rank == 0:
            if now >= self._pulse_at:
                due = self._pulse_at + times["heartbeat"]
                self._pulse_at = due if due > now else now + times["heartbeat"]
                broker.publisher.publish_own(PULSE, None)
        elif now >= self._pulse_at + times["expiry"]:
            self.lose_parent(f"no {PULSE} for {times['expiry']:g} s")
        elif now >= self._sent_at + times["idle"]:
            self.send_up(HEARTBEAT)

    def pulsed(self) -> None:
        """A pulse came from above."""
        self._pulse_at = self._broker.now

    # --- the parent

    def send_up(self, message: AnyMessage) -> None:
        """Send to the parent."""
        self._sent_at = self._broker.now
        self._broker.emit(ToParent(message))

    def update_status(self) -> None:
        """Tell the parent if the status of the subtree has changed."""
        broker, status = self._broker, self.children.subtree_status
        if status is self.status:
            return
        self.status, self.changed = status, broker.now
        broker.report(StatusChanged(broker.rank, status.word))
        if self.parent is not None:
            self.send_up(STATUSES[status])

    def admit(self, message: AnyMessage) -> bool:
        """Tell whether a message from the parent is to be routed; hello, goodbye and control end here."""
        if isinstance(message, Control):
            if message.type_ == ControlType.DISCONNECT:
                self.lose_parent("the parent said to disconnect")
            elif message.type_ != ControlType.HEARTBEAT:  # by which a parent finds out whether we are there
                self._broker.drop("control", "parent", f"type {message.type_} is not for a child")
        elif isinstance(message, Response) and not message.routes:
            self._answered(message)
        elif self.parent is not None:
            return True
        else:
            self._broker.drop(kind_of(message), "parent", "this broker has not joined")
        return False

    def _say_hello(self) -> None:
        broker = self._broker
        self._hello_at, self._said = broker.now, self.status
        version = broker.settings.version
        broker.emit(
            ToParent(hello(Hello(broker.rank, version, broker.uuid, int(self.status), broker.hostname)))
        )

    def _answered(self, response: Response) -> None:
        if response.topic == HELLO and self.phase is Phase.JOINING:
            self._welcomed(response)
        elif response.topic == GOODBYE and self.phase is Phase.LEAVING:
            self._end("the parent said goodbye")
        elif response.topic not in (
            HELLO,
            APPEND,
        ):  # an edition without NORESPONSE has an answer to a log line
            self._broker.drop("response", "parent", "it has no route")

    def _welcomed(self, response: Response) -> None:
        broker = self._broker
        try:
            if response.errnum:
                text = (response.payload or b"").rstrip(b"\0").decode("utf-8", "replace")
                raise FluxError(response.errnum, text)
            parent = unpack(response.payload, Welcome).uuid
            if not parent or parent == broker.uuid or parent in self.children.present:
                raise FluxError(EPROTO, "the parent has no uuid of its own")
        except FluxError as error:
            self.lose_parent(f"hello refused: {error}")
            return
        self.parent = parent
        self._move(Phase.ONLINE)
        broker.publisher.welcomed()
        self._pulse_at = self._sent_at = broker.now
        broker.journal.parent_found()
        broker.report(Joined(broker.rank))
        if self.status is not self._said:
            self.send_up(STATUSES[self.status])
