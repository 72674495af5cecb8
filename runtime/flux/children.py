"""The brokers below: who is let in, who is alive, who is lost, and how well the subtree is.

A child opens with ``overlay.hello``, and a peer that did not is told to disconnect, whatever it sends. A second
hello of a child that is there is answered again: the first answer may have been lost. A hello of another uuid
for a rank that is there means that the old one was killed before we noticed. While this broker itself is between
two lives, under a uuid that it will not keep, a hello waits for its answer.

A child that is silent for `torpid` seconds is torpid: it may be busy. One that stays silent for `expiry` seconds,
that cannot be reached or that sends what is no message, is lost: what is pending there is answered with
EHOSTUNREACH, and whoever works for senders in its subtree is told to stop.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from specwire.generated.flux import AnyMessage, Control, Request
from specwire.runtime.flux.actions import DropChild, ToChild
from specwire.runtime.flux.control import DISCONNECT, ControlType, Status
from specwire.runtime.flux.errors import EEXIST, FluxError
from specwire.runtime.flux.events import ChildJoined, ChildLeft, ChildRefused, ChildTorpid
from specwire.runtime.flux.hello import GOODBYE, HELLO, Hello, Welcome, check, reply
from specwire.runtime.flux.tracking import Tracker

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

SAID = {int(status): status for status in (Status.FULL, Status.PARTIAL, Status.DEGRADED)}
"""What a child can say of its subtree; anything else is unknown."""


class Child:
    """A broker below, as it is or was last.

    Attributes:
        changed: when its status became what it is.
        heard: when its latest message came.
        error: why it is lost, if it is.
        tracker: what is pending there.
    """

    __slots__ = ("changed", "error", "heard", "hostname", "rank", "status", "torpid", "tracker", "uuid")

    def __init__(self, word: Hello, status: Status, now: float) -> None:
        self.rank, self.uuid, self.hostname = word.rank, word.uuid, word.hostname
        self.status = status
        self.changed = self.heard = now
        self.torpid, self.error = False, ""
        self.tracker = Tracker()


class Children:
    """All brokers below one broker.

    Attributes:
        ranks: the ranks that belong there.
        present: those that are there, by uuid.
        known: those that are or were there, by rank.
        check_at: when somebody may have been silent for too long.
    """

    __slots__ = ("_broker", "_tally", "_waiting", "check_at", "known", "present", "ranks")

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self.ranks = broker.settings.tree.children(broker.rank)
        self.present: dict[str, Child] = {}
        self.known: dict[int, Child] = {}
        self.check_at = inf
        self._tally = {Status.OFFLINE: len(self.ranks)}
        self._waiting: dict[int, tuple[str, Request]] | None = None

    def at(self, rank: int) -> Child | None:
        """Return the child of that rank if it is there."""
        child = self.known.get(rank)
        return child if child is not None and self.present.get(child.uuid) is child else None

    @property
    def subtree_status(self) -> Status:
        """The status of the whole subtree, from that of each child's."""
        tally = self._tally
        if tally.get(Status.LOST) or tally.get(Status.DEGRADED):
            return Status.DEGRADED
        if tally.get(Status.FULL, 0) < len(self.ranks):
            return Status.PARTIAL
        return Status.FULL

    def admit(self, uuid: str, message: AnyMessage) -> Child | None:
        """Return the child that a message is from, if the message is to be routed further."""
        child = self.present.get(uuid)
        if child is not None:
            self._hear(child)
        if isinstance(message, Request) and message.topic == HELLO:
            self._take_hello(uuid, message)
        elif child is None:
            self._refuse(uuid, "it has not said hello")
        elif isinstance(message, Control):
            self._take_control(child, message)
        elif isinstance(message, Request) and message.topic == GOODBYE:
            self._broker.emit(ToChild(uuid, reply(message)))
            self._lose(child, Status.OFFLINE, "it said goodbye")
        else:
            return child
        return None

    def expel(self, uuid: str, reason: str) -> None:
        """Tell a peer below to disconnect, and take it for lost if it is a child."""
        child = self.present.get(uuid)
        if child is None:
            self._refuse(uuid, reason)
        else:
            self._lose(child, Status.LOST, reason, tell=True)

    def expel_all(self, reason: str) -> None:
        """Tell all children to disconnect."""
        for uuid in [*self.present]:
            self.expel(uuid, reason)

    def gone(self, uuid: str, reason: str) -> None:
        """A peer below cannot be reached."""
        child = self.present.get(uuid)
        if child is not None:
            self._lose(child, Status.LOST, reason)

    def check(self) -> None:
        """Look for children that were silent for too long."""
        now, times = self._broker.now, self._broker.settings.timers
        next_check = inf
        for child in [*self.present.values()]:
            # The sums are those that made `check_at`: a difference could fall short of them by a rounding.
            if now >= child.heard + times["expiry"]:
                self.expel(child.uuid, f"silent for {now - child.heard:.3g} s")
                continue
            if now >= child.heard + times["torpid"] and not child.torpid:
                self._set_torpid(child, True)
            next_check = min(next_check, child.heard + times["expiry" if child.torpid else "torpid"])
        self.check_at = next_check

    # --- coming

    def _take_hello(self, uuid: str, request: Request) -> None:
        broker = self._broker
        if not broker.overlay.is_open:
            self._refuse(uuid, "the broker stops")
            return
        try:
            word = check(request, uuid, broker.settings.version, self.ranks)
            present = self.present.get(uuid)
            if present is not None and present.rank != word.rank:
                raise FluxError(EEXIST, f"uuid {uuid} is that of rank {present.rank}")
            if uuid in (broker.uuid, broker.overlay.parent):
                raise FluxError(EEXIST, f"uuid {uuid} is that of another broker")
        except FluxError as error:
            broker.emit(ToChild(uuid, reply(request, error=error)))
            broker.report(ChildRefused(uuid, str(error)))
            return
        if broker.overlay.is_apart:
            self._waiting = self._waiting or {}
            self._waiting[word.rank] = (uuid, request)
            return
        broker.emit(ToChild(uuid, reply(request, Welcome(broker.uuid))))
        if present is None:
            self._let_in(word)
        else:
            self._set_status(present, SAID.get(word.status, Status.UNKNOWN))  # it may have changed meanwhile

    def take_waiting(self) -> None:
        """Answer the hellos that came while this broker was between two lives."""
        waiting, self._waiting = self._waiting or {}, None
        for uuid, request in waiting.values():
            self._take_hello(uuid, request)

    def _let_in(self, word: Hello) -> None:
        broker, before = self._broker, self.known.get(word.rank)
        if before is not None and self.present.get(before.uuid) is before:
            self.expel(before.uuid, "its rank has come again")
        child = Child(word, before.status if before else Status.OFFLINE, broker.now)
        self.present[child.uuid] = self.known[child.rank] = child
        self.check_at = min(self.check_at, broker.now + broker.settings.timers["torpid"])
        broker.report(ChildJoined(child.rank, child.uuid, child.hostname))
        self._set_status(child, SAID.get(word.status, Status.UNKNOWN))

    def _refuse(self, uuid: str, reason: str) -> None:
        self._broker.emit(ToChild(uuid, DISCONNECT))
        self._broker.report(ChildRefused(uuid, reason))

    # --- being there

    def _hear(self, child: Child) -> None:
        child.heard = self._broker.now
        if child.torpid:
            self._set_torpid(child, False)
            self.check_at = min(self.check_at, child.heard + self._broker.settings.timers["torpid"])

    def _take_control(self, child: Child, message: Control) -> None:
        if message.type_ == ControlType.STATUS:
            self._set_status(child, SAID.get(message.status, Status.UNKNOWN))
        elif message.type_ != ControlType.HEARTBEAT:
            self._broker.drop("control", "child", f"type {message.type_} is not for a parent")

    def _set_torpid(self, child: Child, torpid: bool) -> None:
        child.torpid = torpid
        self._broker.report(ChildTorpid(child.rank, child.uuid, child.hostname, torpid))
        self._broker.registry.child_changed(child)

    def _set_status(self, child: Child, status: Status) -> None:
        before = child.status
        if status is before:
            return
        self._tally[before] -= 1
        self._tally[status] = self._tally.get(status, 0) + 1
        child.status, child.changed = status, self._broker.now
        self._broker.overlay.update_status()
        self._broker.registry.child_changed(child)

    # --- going

    def _lose(self, child: Child, status: Status, reason: str, *, tell: bool = False) -> None:
        """Settle everything with a child that is gone."""
        broker, lost = self._broker, status is Status.LOST
        del self.present[child.uuid]
        for request in child.tracker.take_all():
            broker.unreachable(request)
        broker.router.way_lost((child.uuid,))
        if tell:
            broker.emit(ToChild(child.uuid, DISCONNECT))
        broker.emit(DropChild(child.uuid, reason))
        broker.report(ChildLeft(child.rank, child.uuid, child.hostname, reason, lost))
        child.torpid, child.error = False, reason if lost else ""
        self._set_status(child, status)
