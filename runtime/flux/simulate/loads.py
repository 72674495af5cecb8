"""Clients that ask again and again, and what they get."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from math import inf
from random import Random

from specwire.generated.flux import NODEID_ANY, Request, Response
from specwire.runtime.flux.answering import pack
from specwire.runtime.flux.errors import NAMES
from specwire.runtime.flux.flags import NORESPONSE, UPSTREAM
from specwire.runtime.flux.simulate.agenda import Agenda
from specwire.runtime.flux.simulate.host import Host
from specwire.runtime.flux.simulate.network import Network
from specwire.runtime.flux.simulate.ranks import choose_ranks
from specwire.runtime.flux.simulate.report import HopsReport, LoadReport, quantiles
from specwire.runtime.flux.simulate.scenario import DIRECTIONS, Load
from specwire.runtime.flux.topology import Tree

Key = tuple[str, int]
"""A client and a matchtag."""


class Asking:
    """One request on its way; `hops` counts the links that it and its answer have taken."""

    __slots__ = ("asked_s", "hops", "host", "load")

    def __init__(self, load: Running, host: Host, asked_s: float) -> None:
        self.load, self.host, self.asked_s, self.hops = load, host, asked_s, 0


class Running:
    """A load and what came of it so far."""

    def __init__(self, load: Load, goals: Sequence[int]) -> None:
        self.load, self.goals = load, goals
        self.payload = pack(load.payload)
        self.asked = self.died = self.repeated = 0
        self.errors: Counter[str] = Counter()
        self.latencies: dict[int, array[float]] = {}

    def report(self, still_open: int) -> LoadReport:
        """Return what it came to."""
        every = [latency for latencies in self.latencies.values() for latency in latencies]
        return LoadReport(
            self.load.topic,
            self.load.to,
            self.asked,
            len(every),
            dict(sorted(self.errors.items())),
            self.died,
            still_open,
            self.repeated,
            quantiles(every),
            tuple(
                HopsReport(hops, latency)
                for hops, latencies in sorted(self.latencies.items())
                if (latency := quantiles(latencies)) is not None
            ),
        )


class Caller:
    """A client at one rank, which comes again when its broker does."""

    __slots__ = ("client", "host", "left", "rank", "running", "turn")

    def __init__(self, running: Running, rank: int, turn: int) -> None:
        self.running, self.rank, self.turn = running, rank, turn
        self.host: Host | None = None
        self.client = ""
        self.left = running.load.count or inf


class Pending:
    """The requests that were open at one moment, until the last of them is answered."""

    def __init__(self, keys: set[Key], now: float) -> None:
        self.number, self._keys = len(keys), keys
        self.failed = 0
        self.answered_s: float | None = None if keys else now
        self.failed_s: float | None = None

    def answered(self, key: Key, now: float, *, failed: bool) -> None:
        """Note an answer, or that nobody awaits it any more."""
        if key in self._keys:
            self._keys.remove(key)
            if failed:
                self.failed += 1
                self.failed_s = now
            if not self._keys:
                self.answered_s = now


class Loads:
    """All clients that ask."""

    def __init__(self, agenda: Agenda, tree: Tree, random: Random) -> None:
        self._agenda, self._tree, self._random = agenda, tree, random
        self._running: list[Running] = []
        self._open: dict[Key, Asking] = {}
        self._of: dict[str, Running] = {}
        self._watched: list[Pending] = []
        self._matchtag = 0

    def plan(self, network: Network, loads: Sequence[Load], until: float) -> None:
        """Let all clients of all loads begin when they shall."""
        self._network, self._until = network, until
        for load in loads:
            goals = () if load.to in DIRECTIONS else choose_ranks(load.to, self._tree, self._random)
            running = Running(load, goals)
            self._running.append(running)
            for turn, rank in enumerate(choose_ranks(load.clients, self._tree, self._random)):
                offset = self._random.random() / load.rate_hz if load.spread else 0.0
                self._agenda.at(load.start_s + offset, self._ask, Caller(running, rank, turn))

    def pending(self) -> Pending:
        """Return the requests that are open, to be watched."""
        pending = Pending(set(self._open), self._agenda.now)
        self._watched.append(pending)
        return pending

    def hop(self, message: Request | Response) -> None:
        """Note that a message goes over a link."""
        asking = self._open.get((message.routes[-1], message.matchtag)) if message.routes else None
        if asking is not None:
            asking.hops += 1

    def answered(self, client: str, response: Response) -> None:
        """Note an answer."""
        key = (client, response.matchtag)
        asking = self._open.pop(key, None)
        if asking is None:
            if (running := self._of.get(client)) is not None:
                running.repeated += 1
            return
        running, errnum = asking.load, response.errnum
        if errnum:
            running.errors[NAMES[errnum][0] if errnum in NAMES else str(errnum)] += 1
        else:
            running.latencies.setdefault(asking.hops, array("d")).append(self._agenda.now - asking.asked_s)
        self._settle(key, failed=bool(errnum))

    def gone(self, host: Host) -> None:
        """A broker was killed, and its clients with it."""
        for key in [key for key, asking in self._open.items() if asking.host is host]:
            self._open.pop(key).load.died += 1
            self._settle(key, failed=False)

    def reports(self) -> tuple[LoadReport, ...]:
        """Return what each load came to."""
        still_open = Counter(id(asking.load) for asking in self._open.values())
        return tuple(running.report(still_open[id(running)]) for running in self._running)

    def _settle(self, key: Key, *, failed: bool) -> None:
        for pending in self._watched:
            pending.answered(key, self._agenda.now, failed=failed)

    def _ask(self, caller: Caller) -> None:
        load, now = caller.running.load, self._agenda.now
        if now >= (self._until if load.end_s is None else load.end_s):
            return
        host = self._network.hosts[caller.rank]
        if host is not None:
            if host is not caller.host:
                caller.host, caller.client = host, self._network.uuid()
                self._of[caller.client] = caller.running
            self._send(caller, host)
            caller.left -= 1
        if caller.left:
            self._agenda.at(now + 1 / load.rate_hz, self._ask, caller)

    def _send(self, caller: Caller, host: Host) -> None:
        running, load = caller.running, caller.running.load
        nodeid, flags = NODEID_ANY, 0
        if load.to == "upstream":
            nodeid, flags = caller.rank, UPSTREAM
        elif load.to == "random":
            nodeid = self._random.randrange(self._tree.size)
        elif running.goals:
            nodeid = running.goals[caller.turn % len(running.goals)]
            caller.turn += 1
        self._matchtag += 1
        request = Request((), load.topic, running.payload, flags, nodeid=nodeid, matchtag=self._matchtag)
        self._open[caller.client, self._matchtag] = Asking(running, host, self._agenda.now)
        running.asked += 1
        self._network.take(host, self._request, host, caller.client, request)

    def _request(self, host: Host, client: str, request: Request) -> None:
        engine, now = host.engine, self._agenda.now
        if engine.clients.get(client) is None:
            self._network.perform(host, engine.accept_client(client, engine.settings.owner, now))
        self._network.perform(host, engine.from_client(client, request, now))


def subscribe(network: Network, host: Host, prefix: str) -> None:
    """Let a client come that wants the events of a prefix."""
    client, now = network.uuid(), network.agenda.now
    network.perform(host, host.engine.accept_client(client, host.engine.settings.owner, now))
    wish = Request((), "event.subscribe", pack({"topic": prefix}), NORESPONSE)
    network.perform(host, host.engine.from_client(client, wish, now))
