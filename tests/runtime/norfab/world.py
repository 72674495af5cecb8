"""A broker among clients and workers that can all be killed between any two messages, without a socket or a clock.

What is on its way is in queues, one for each direction of a peer, delivered in an order that a random generator picks.
A broker that is killed loses its engine, what is on its way to and from it, and every record that was not committed.
Workers keep what they were given, as NORFAB's do; one that is killed may come back with or without it. Clients have
what they were told on disk: they post again what was not acknowledged, and ask for what has not ended.
"""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from typing import Any

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.actions import Fetch, Send
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import Command, Disconnect, Get, Keepalive, Post, Ready, Response, Role
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.records import Record
from tests.runtime.norfab.scripted import START, body_of, job, result

SETTINGS = Settings(
    keepalive_s=1.0, liveness=4, queue_s=20.0, poll_s=2.0, window=7, usual_window=3, job_s=120.0
)


class SimulatedWorker:
    """Keeps jobs and results; does one thing each time it gets a turn."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.jobs: dict[str, bytes | None] = {}
        self.registered = False
        self.alive = True

    def take(self, command: Command, runs: Counter[tuple[str, str]]) -> list[Command]:
        """Take what the broker says; return what to say."""
        match command:
            case Disconnect():
                self.registered = True
                return [Ready("svc")]
            case Post() if command.uuid not in self.jobs:
                self.jobs[command.uuid] = None
                runs[self.name, command.uuid] += 1
                return [Response(command.uuid, 201, b"{}", client=command.client)]
            case Post():
                return [Response(command.uuid, 201, b"{}", client=command.client)]
            case Get():
                body = self.jobs.get(command.uuid, b"")
                status = 300 if body is None else 200 if body else 404
                return [Response(command.uuid, status, body or b"{}", client=command.client)]
        return []

    def work(self) -> list[Command]:
        """End the job that waited longest."""
        for uuid, body in self.jobs.items():
            if body is None:
                self.jobs[uuid] = ended = result(self.name, uuid)
                return [Response(uuid, 200, ended, client=b"?")]
        return []


class SimulatedClient:
    """Posts jobs and wants to know how they end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target: dict[str, str] = {}
        self.acknowledged: set[str] = set()
        self.workers: dict[str, list[str]] = {}
        self.ends: dict[str, dict[str, Any]] = {}
        self.over: set[str] = set()

    def take(self, command: Command) -> None:
        """Take what the broker says."""
        if not isinstance(command, Response):
            return
        body, uuid = json.loads(command.body), command.uuid
        if command.status == 202:
            self.acknowledged.add(uuid)
            self.workers.setdefault(uuid, body["workers"])
            assert self.workers[uuid] == body["workers"], "the list of workers changed"
        elif command.status == 300:
            self.acknowledged.add(uuid)
        elif command.status >= 400 and not any(name in body for name in self.workers.get(uuid, [])):
            assert body["errors"], "a failure without a cause"
            self.over.add(uuid)
        elif command.status == 200 or command.status >= 400:
            for slot, entry in body.items():
                if isinstance(entry, dict):
                    known = self.ends.setdefault(uuid, {}).setdefault(slot, entry)
                    assert known == entry, "two ends of one part"
                    assert entry["errors"] or not entry["failed"], "a failure without a cause"

    def has_ended(self, uuid: str) -> bool:
        """Whether there is a result or a failure of each worker, or of all."""
        wanted = self.workers.get(uuid)
        return uuid in self.over or (wanted is not None and set(wanted) <= set(self.ends.get(uuid, {})))

    def wishes(self) -> list[Command]:
        """Post again what was not acknowledged, ask for the rest."""
        said: list[Command] = []
        for uuid, target in self.target.items():
            if uuid not in self.acknowledged and uuid not in self.over:
                said.append(Post(uuid, job(), "svc", target))
            elif not self.has_ended(uuid):
                said.append(Get(uuid, b"{}", "svc", "all"))
        return said


class World:
    """All of it; `random_` decides what happens next."""

    def __init__(self, seed: int, workers: int = 3, clients: int = 2) -> None:
        self.random = random.Random(seed)
        self.now = START
        self.runs: Counter[tuple[str, str]] = Counter()
        self.disk: list[Record] = []
        self.uncommitted: deque[Commit] = deque()
        self.workers = {f"w{n}": SimulatedWorker(f"w{n}") for n in range(workers)}
        self.clients = {f"c{n}": SimulatedClient(f"c{n}") for n in range(clients)}
        self.to_broker: dict[tuple[Role, str], deque[Command]] = {}
        self.from_broker: dict[tuple[Role, str], deque[Command]] = {}
        self.crashes = 0
        self.engine = BrokerEngine(SETTINGS, now=self.now)
        for name in self.workers:
            self.say("worker", name, [Ready("svc")])

    def say(self, role: Role, name: str, commands: list[Command]) -> None:
        """Put messages on their way to the broker."""
        self.to_broker.setdefault((role, name), deque()).extend(commands)

    def perform(self, actions: list[Any]) -> None:
        """Do what the engine wants."""
        for action in actions:
            if isinstance(action, Send):
                self.from_broker.setdefault((action.role, action.peer.decode()), deque()).append(
                    action.command
                )
            elif isinstance(action, Commit):
                self.uncommitted.append(action)
            elif isinstance(action, Fetch):
                body = body_of(self.disk, action)
                self.perform(self.engine.fetched(action.question, body, self.now))

    # --- what can happen next

    def kill_broker(self) -> None:
        """kill -9, and a new broker with what is on disk."""
        self.crashes += 1
        self.uncommitted.clear()
        self.to_broker.clear()
        self.from_broker.clear()
        self.engine = BrokerEngine(SETTINGS, now=self.now)
        self.perform(self.engine.restore(list(self.disk), self.now))

    def kill_worker(self, *, forgets: bool) -> None:
        """kill -9 of a worker, which begins again at once."""
        worker = self.random.choice(list(self.workers.values()))
        self.to_broker.pop(("worker", worker.name), None)
        self.from_broker.pop(("worker", worker.name), None)
        if forgets:
            worker.jobs.clear()
        self.say("worker", worker.name, [Ready("svc")])

    def kill_client(self) -> None:
        """kill -9 of a client, which begins again with what it had on disk: what was on its way is lost."""
        client = self.random.choice(list(self.clients.values()))
        self.to_broker.pop(("client", client.name), None)
        self.from_broker.pop(("client", client.name), None)

    def commit(self) -> None:
        """Make some of what waits for the disk durable."""
        count = self.random.randint(1, max(1, len(self.uncommitted)))
        stores = [self.uncommitted.popleft() for _ in range(min(count, len(self.uncommitted)))]
        if stores:
            self.disk += [record for store in stores for record in store.records]
            self.perform(self.engine.stored(stores[-1].ticket, self.now))

    def deliver(self) -> None:
        """Let one message arrive."""
        ways = [(way, queue) for way, queue in self.to_broker.items() if queue]
        backs = [(way, queue) for way, queue in self.from_broker.items() if queue]
        if not ways and not backs:
            return
        (role, name), queue = self.random.choice(ways + backs)
        command = queue.popleft()
        if ((role, name), queue) in ways:
            self.perform(self.engine.receive(name.encode(), role, command, self.now))
        elif role == "client":
            self.clients[name].take(command)
        elif name in self.workers:
            self.say("worker", name, self.workers[name].take(command, self.runs))

    def pass_time(self, seconds: float = 0.5) -> None:
        """Let time pass: signs of life, questions of clients, work of workers."""
        self.now += seconds
        for name in self.workers:
            self.say("worker", name, [Keepalive("svc")])
        self.perform(self.engine.tick(self.now))

    def step(self, kill: float = 0.01) -> None:
        """Let something happen."""
        chance = self.random.random()
        if chance < kill:
            self.kill_broker()
        elif chance < 2 * kill:
            self.kill_worker(forgets=self.random.random() < 0.3)
        elif chance < 3 * kill:
            self.kill_client()
        elif chance < 0.05:
            self.pass_time()
        elif chance < 0.1:
            client = self.random.choice(list(self.clients.values()))
            self.say("client", client.name, client.wishes()[:5])
        elif chance < 0.2:
            worker = self.random.choice(list(self.workers.values()))
            self.say("worker", worker.name, worker.work())
        elif chance < 0.4:
            self.commit()
        else:
            self.deliver()

    def settle(self, seconds: float = 200.0) -> None:
        """Nobody is killed any more: let everything come to its end."""
        end = self.now + seconds
        while self.now < end and not all(c.has_ended(u) for c in self.clients.values() for u in c.target):
            for worker in self.workers.values():
                self.say("worker", worker.name, worker.work())
            for client in self.clients.values():
                self.say("client", client.name, client.wishes())
            for _ in range(3):
                while any(self.to_broker.values()) or any(self.from_broker.values()):
                    self.deliver()
                self.commit()
            self.pass_time(1.0)
