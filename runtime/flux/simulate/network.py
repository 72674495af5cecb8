"""All brokers, and what their engines want done: what the shell `FluxBroker` is to one broker, this is to all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import inf
from random import Random
from typing import Any, Protocol

from specwire.generated.flux import AnyMessage, Request
from specwire.runtime.flux.actions import Action, LeaveParent, Report, ToChild, ToClient, ToParent, ToService
from specwire.runtime.flux.answering import respond
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.encoding import Encoder
from specwire.runtime.flux.events import Event as Reported
from specwire.runtime.flux.flags import NORESPONSE
from specwire.runtime.flux.simulate.agenda import Agenda
from specwire.runtime.flux.simulate.host import Host
from specwire.runtime.flux.simulate.link import Cabling, Carried, End, Lane, Link
from specwire.runtime.flux.simulate.scenario import Scenario


class Watcher(Protocol):
    """Who looks on."""

    def sent(self, host: Host, message: AnyMessage) -> None:
        """A broker sends a message to a neighbour."""

    def received(self, host: Host, message: AnyMessage) -> None:
        """A broker has dealt with a message of a neighbour."""

    def for_client(self, host: Host, client: str, message: AnyMessage) -> None:
        """A client gets a message."""

    def told(self, host: Host, event: Reported) -> None:
        """A broker tells what happened."""


class Network:
    """The brokers of an instance.

    Args:
        services: how long each service in Python takes to answer, and at which ranks it is, by name.
        through_wire: whether every message is encoded and decoded on its way.

    Attributes:
        hosts: the broker of each rank; None where there is none.
    """

    def __init__(
        self,
        agenda: Agenda,
        settings: Settings,
        scenario: Scenario,
        random: Random,
        watcher: Watcher,
        services: Mapping[str, tuple[Callable[[], float], frozenset[int]]],
        *,
        through_wire: bool = False,
    ) -> None:
        self.agenda, self.settings = agenda, settings
        self.hosts: list[Host | None] = [None] * settings.tree.size
        self._cabling = Cabling(agenda, scenario.links, random, self._arrived)
        self._watcher, self._services = watcher, services
        self._receive_s, self._send_s = scenario.broker.receive_s, scenario.broker.send_s
        self._numbers = count(1)
        self._cut: Counter[int] = Counter()
        self._encoder = Encoder(settings.wire) if through_wire else None

    def uuid(self) -> str:
        """Return a fresh uuid."""
        return f"{next(self._numbers):08x}-0000-4000-8000-000000000000"

    # --- brokers

    def start(self, rank: int) -> None:
        """Start a broker where there is none."""
        if self.hosts[rank] is not None:
            return
        now = self.agenda.now
        host = self.hosts[rank] = Host(BrokerEngine(self.settings, rank, self.uuid(), self.uuid, now=now))
        for name, (_, ranks) in self._services.items():
            if rank in ranks:
                host.engine.add_service(name)
        self._connect(host, host.engine.uuid)
        self.perform(host, host.engine.start(now))

    def kill(self, rank: int, *, silently: bool) -> Host | None:
        """End a broker without a word, and return it; `silently` with its machine, so that no neighbour is told."""
        host = self.hosts[rank]
        if host is None:
            return None
        self.hosts[rank] = None
        host.is_alive, host.is_silent = False, silently
        if not silently:
            if host.uplink is not None and host.uplink.parent is not None:
                self._cabling.close(host.uplink.up, "the connection was lost")
            for link in host.below.values():
                self._cabling.close(link.down, "the connection was lost")
        return host

    def hang(self, rank: int) -> Host | None:
        """Let a broker stand still, and return it."""
        host = self.hosts[rank]
        if host is not None:
            host.is_hung = True
        return host

    def resume(self, host: Host) -> None:
        """Let a broker that was hung go on with what came meanwhile."""
        host.is_hung = False
        inbox, host.inbox = host.inbox, []
        for do, arguments in inbox:
            self.take(host, do, *arguments)
        if host.is_alive:
            self.perform(host, host.engine.tick(self.agenda.now))

    def cut_off(self, ranks: Sequence[int]) -> Callable[[], None]:
        """Cut these ranks off from their parents; return what undoes it."""
        hosts = [host for rank in ranks if (host := self.hosts[rank]) is not None]
        links = [host.uplink for host in hosts if host.uplink is not None]
        self._cut.update(ranks)
        for link in links:
            self._cabling.cut(link)

        def heal() -> None:
            self._cut.subtract(ranks)
            for link in links:
                if not self._cut[link.child.rank]:
                    self._cabling.heal(link)

        return heal

    def take(self, host: Host, do: Callable[..., None], *arguments: Any) -> None:
        """Let a broker deal with something, by `do`, when it has the time; never where it has been killed."""
        if not host.is_alive:
            return
        if host.is_hung:
            host.inbox.append((do, arguments))
        elif self._receive_s:
            host.busy_until = max(self.agenda.now, host.busy_until) + self._receive_s
            self.agenda.at(host.busy_until, self._take_now, host, do, arguments)
        else:
            do(*arguments)

    def _take_now(self, host: Host, do: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if host.is_hung:
            host.inbox.append((do, arguments))
        elif host.is_alive:
            do(*arguments)

    # --- connections

    def _connect(self, host: Host, uuid: str) -> None:
        if host.rank:
            link = host.uplink = Link(uuid, host)
            self._dial(link)

    def _dial(self, link: Link) -> None:
        if self._can_connect(link) is None:
            self._dial_again(link)
        else:
            self.agenda.at(self.agenda.now + self._cabling.handshake_s(), self._connected, link)

    def _dial_again(self, link: Link) -> None:
        if link.child.is_alive and not link.child_left:
            self.agenda.at(link.child.next_try(self.agenda.now), self._dial, link)

    def _connected(self, link: Link) -> None:
        parent = self._can_connect(link)
        if parent is None:
            self._dial_again(link)
        else:
            parent.below[link.uuid] = link
            self._cabling.open(link, parent)

    def _can_connect(self, link: Link) -> Host | None:
        """Return the parent of a child that looks for it, where both are there and the network is."""
        child = link.child
        above = self.settings.tree.parent(child.rank)
        parent = None if above is None else self.hosts[above]
        there = parent is not None and not parent.is_hung and child.is_alive and not child.is_hung
        return parent if there and not link.child_left and not self._cut[child.rank] else None

    def _arrived(self, lane: Lane, carried: Carried) -> None:
        link = lane.link
        if not lane.upward:
            self.take(link.child, self._from_parent, link, carried)
        elif link.parent is not None:
            self.take(link.parent, self._from_child, link.parent, link, carried)

    def _from_parent(self, link: Link, carried: Carried) -> None:
        host = link.child
        if link.child_left:
            return
        if isinstance(carried, End):
            self.perform(host, host.engine.parent_gone(carried.reason, self.agenda.now))
        else:
            self.perform(host, host.engine.from_parent(carried, self.agenda.now))
            self._watcher.received(host, carried)

    def _from_child(self, host: Host, link: Link, carried: Carried) -> None:
        if link.parent_left:
            return
        if isinstance(carried, End):
            link.parent_left = link.down.is_closed = True
            host.below.pop(link.uuid, None)
            self.perform(host, host.engine.child_gone(link.uuid, carried.reason, self.agenda.now))
        else:
            self.perform(host, host.engine.from_child(link.uuid, carried, self.agenda.now))
            self._watcher.received(host, carried)

    def _send(self, host: Host, lane: Lane, message: AnyMessage) -> None:
        departs = self.agenda.now
        if self._send_s:
            host.busy_until = departs = max(departs, host.busy_until) + self._send_s
        self._watcher.sent(host, message)
        if self._encoder is not None:
            message = self.settings.wire.decode(self._encoder.frames_of(message))
        self._cabling.send(lane, message, departs)

    # --- what engines want done

    def perform(self, host: Host, actions: list[Action]) -> None:
        """Do what an engine wants, and see to it that it is woken in time."""
        gone: list[str] = []
        for action in actions:
            if isinstance(action, ToChild):
                below = host.below.get(action.child)
                if below is None:
                    gone.append(action.child)
                else:
                    self._send(host, below.down, action.message)
            elif isinstance(action, ToParent):
                if host.uplink is not None:
                    self._send(host, host.uplink.up, action.message)
            elif isinstance(action, ToClient):
                self._watcher.for_client(host, action.client, action.message)
            elif isinstance(action, Report):
                self._watcher.told(host, action.event)
            elif isinstance(action, ToService):
                self._to_service(host, action)
            elif isinstance(action, LeaveParent):
                self._leave(host)
        for child in gone:
            self.perform(host, host.engine.child_gone(child, "No route to host", self.agenda.now))
        due = host.engine.deadline
        if due < host.timer_at:
            host.timer_at = due
            self.agenda.at(due, self._on_timer, host, due)

    def _on_timer(self, host: Host, due: float) -> None:
        """Wake an engine, if nothing that happened since has put its deadline off."""
        if due != host.timer_at:
            return  # it was to be woken earlier, and was
        host.timer_at = inf
        if host.is_alive and not host.is_hung:
            self.perform(host, host.engine.tick(due) if host.engine.deadline <= due else [])

    def _to_service(self, host: Host, action: ToService) -> None:
        if not action.request.flags & NORESPONSE:
            answer_s = self._services[action.service][0]()
            self.agenda.at(
                self.agenda.now + answer_s,
                self.take,
                host,
                self._answer,
                host,
                action.service,
                action.request,
            )

    def _answer(self, host: Host, service: str, request: Request) -> None:
        response = respond(request, request.payload)
        self.perform(host, host.engine.from_service(service, response, self.agenda.now))

    def _leave(self, host: Host) -> None:
        link, host.uplink = host.uplink, None
        if link is not None:
            link.child_left = True
            if link.parent is not None:
                self._cabling.close(link.up, "the connection was lost")
        self.agenda.at(host.next_try(self.agenda.now), self._rejoin, host)

    def _rejoin(self, host: Host) -> None:
        if not host.is_alive:
            return
        if host.is_hung:
            host.inbox.append((self._rejoin, (host,)))
            return
        uuid = self.uuid()
        self._connect(host, uuid)
        self.perform(host, host.engine.rejoin(uuid, self.agenda.now))
