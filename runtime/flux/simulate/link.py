"""Connections between brokers, as TCP has them: in order, late where something was lost, ended where too much was."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from specwire.generated.flux import AnyMessage
from specwire.runtime.flux.downlink import GIVE_UP_S
from specwire.runtime.flux.simulate.agenda import Agenda
from specwire.runtime.flux.simulate.durations import drawing
from specwire.runtime.flux.simulate.host import Host
from specwire.runtime.flux.simulate.scenario import Links


class End(NamedTuple):
    """The last on a lane: the other side has closed the connection, or cannot be reached."""

    reason: str


Carried = AnyMessage | End


class Lane:
    """One direction of a connection.

    Attributes:
        held: what waits for the connection to be made, or to carry again; None while it carries.
        free_at: when the latest arrives; nothing overtakes it.
        is_cut: whether the network carries nothing.
        is_closed: whether the sender has nothing more to say.
        is_doubted: whether the sender awaits an acknowledgement that may not come.
    """

    __slots__ = ("free_at", "held", "is_closed", "is_cut", "is_doubted", "link", "upward")

    def __init__(self, link: Link, *, upward: bool) -> None:
        self.link, self.upward = link, upward
        self.held: list[Carried] | None = []
        self.free_at = 0.0
        self.is_cut = self.is_closed = self.is_doubted = False


class Link:
    """A connection of a child, under one uuid, to its parent.

    Attributes:
        parent: the broker at the other end, once there is one.
        child_left: whether the child has closed its end; `parent_left` is the same above.
    """

    __slots__ = ("child", "child_left", "down", "parent", "parent_left", "up", "uuid")

    def __init__(self, uuid: str, child: Host) -> None:
        self.uuid, self.child = uuid, child
        self.parent: Host | None = None
        self.up, self.down = Lane(self, upward=True), Lane(self, upward=False)
        self.child_left = self.parent_left = False


class Cabling:
    """What carries messages.

    Args:
        on_arrival: called with a lane and what has come to its end, where somebody is there to take it.
    """

    def __init__(
        self, agenda: Agenda, links: Links, random: Random, on_arrival: Callable[[Lane, Carried], None]
    ) -> None:
        self._agenda, self._links, self._random, self._on_arrival = agenda, links, random, on_arrival
        self.latency = drawing(links.latency_s, random)

    def open(self, link: Link, parent: Host) -> None:
        """The connection is made: what waited for it goes."""
        link.parent = parent
        for lane in (link.up, link.down):
            self._release(lane)

    def handshake_s(self) -> float:
        """Return how long it takes to make a connection."""
        return sum(self.latency() for _ in range(2 * self._links.handshake_round_trips))

    def send(self, lane: Lane, carried: Carried, departs: float) -> None:
        """Send on a lane, at a time that is not in the past."""
        if lane.is_closed:
            return
        if lane.held is None:
            self._transmit(lane, carried, departs)
        else:
            lane.held.append(carried)
            if lane.is_cut:
                self._doubt(lane, departs)

    def close(self, lane: Lane, reason: str) -> None:
        """Send the end."""
        self.send(lane, End(reason), self._agenda.now)
        lane.is_closed = True

    def cut(self, link: Link) -> None:
        """From now on nothing gets through; what is on its way arrives."""
        for lane in (link.up, link.down):
            lane.is_cut = True
            if lane.held is None:
                lane.held = []

    def heal(self, link: Link) -> None:
        """What was held goes."""
        for lane in (link.up, link.down):
            lane.is_cut = False
            if link.parent is not None:
                self._release(lane)

    def _release(self, lane: Lane) -> None:
        held, lane.held = lane.held, None
        for carried in held or ():
            self._transmit(lane, carried, self._agenda.now)

    def _transmit(self, lane: Lane, carried: Carried, departs: float) -> None:
        arrives = departs + self.latency()
        if self._links.loss:
            arrives += self._lost_s()
            if arrives > departs + GIVE_UP_S:
                self._break(lane, departs + GIVE_UP_S)
                return
        lane.free_at = arrives = max(arrives, lane.free_at)
        self._agenda.at(arrives, self._arrive, lane, carried)

    def _lost_s(self) -> float:
        """Return how much later a message comes because it was lost some times."""
        lost_s, timeout_s = 0.0, self._links.retransmit_s
        while lost_s <= GIVE_UP_S and self._random.random() < self._links.loss:
            lost_s += timeout_s
            timeout_s *= 2
        return lost_s

    def _arrive(self, lane: Lane, carried: Carried) -> None:
        link = lane.link
        receiver = link.parent if lane.upward else link.child
        if receiver is None or not receiver.is_alive:
            if receiver is not None and receiver.is_silent:
                self._doubt(lane, self._agenda.now)
        elif link.parent_left if lane.upward else link.child_left:
            # Only a parent that gave the child up does not say so: its system answers that there is no connection.
            if lane.upward and not link.child_left:
                self._agenda.at(self._agenda.now + self.latency(), self._tell_sender, lane, "it was reset")
        else:
            self._on_arrival(lane, carried)

    def _doubt(self, lane: Lane, since: float) -> None:
        """Nothing that is sent is acknowledged: that is noticed after a while."""
        if not lane.is_doubted:
            lane.is_doubted = True
            self._agenda.at(since + GIVE_UP_S, self._give_up, lane)

    def _give_up(self, lane: Lane) -> None:
        lane.is_doubted = False
        link = lane.link
        receiver = link.parent if lane.upward else link.child
        if lane.is_cut or (receiver is not None and receiver.is_silent):
            self._tell_sender(lane, f"nothing was acknowledged for {GIVE_UP_S:g} s")

    def _break(self, lane: Lane, at: float) -> None:
        """A message was lost too often: nothing more comes through, and both ends hear of it."""
        for other in (lane.link.up, lane.link.down):
            other.held = []
            self._agenda.at(at, self._tell_sender, other, f"nothing came through for {GIVE_UP_S:g} s")

    def _tell_sender(self, lane: Lane, reason: str) -> None:
        link = lane.link
        lane.is_closed = True
        self._arrive(link.down if lane.upward else link.up, End(reason))
