"""The client's engine at the broker's engine, both killed between any two messages, with workers that lose their connections.

Everything that a client was told to be submitted ends there, once, with results or with a cause; and nobody does a job twice.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from specwire.runtime.norfab.client.actions import Action, Close, Connect, Report, Send, Store
from specwire.runtime.norfab.client.engine import ClientEngine
from specwire.runtime.norfab.client.events import JobEnded
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import JobRecord, Kept, Record, ResultRecord, StateRecord
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.commands import Command, Ready
from tests.runtime.norfab.scripted import job
from tests.runtime.norfab.world import World

SETTINGS = ClientSettings(poll_s=2.0, silence_s=5.0, settle_s=8.0, first_reconnect_s=0.5)


class RealClient:
    """A client whose disk outlives it. What the world asks of its clients is answered here, and nothing is wished for."""

    def __init__(self, world: RealWorld, name: str) -> None:
        self.name, self.world = name, world
        self.target: dict[str, str] = {}
        self.ends: dict[str, JobResult] = {}
        self.disk: list[Record] = []
        self.uncommitted: deque[Store] = deque()
        self.begin()

    def begin(self) -> None:
        """Begin with what is on disk."""
        self.open = False
        self.uncommitted.clear()
        self.engine = ClientEngine(["tcp://b"], SETTINGS, now=self.world.now)
        jobs = [record for record in self.disk if isinstance(record, JobRecord)]
        self.perform(self.engine.restore([self.kept(one) for one in jobs], self.world.now))
        self.perform(self.engine.open(self.world.now))

    def kept(self, one: JobRecord) -> Kept:
        """Return what is on disk of a job."""
        states = [r for r in self.disk if isinstance(r, StateRecord) and r.uuid == one.uuid]
        results = [r for r in self.disk if isinstance(r, ResultRecord) and r.uuid == one.uuid]
        state = states[-1] if states else StateRecord(one.uuid, "NEW", (), one.deadline)
        return Kept(one, state, tuple(results))

    def submit(self, uuid: str, target: str) -> None:
        """Submit a job, and wait for the disk: from then on it is owed an end."""
        now = self.world.now
        record = JobRecord(uuid, "svc", "add", target, job(), now, now + 100_000)
        self.perform(self.engine.submit(record, now))
        self.commit()
        self.target[uuid] = target

    def commit(self) -> None:
        """Let the disk keep what waits."""
        stores, self.uncommitted = list(self.uncommitted), deque()
        for store in stores:
            self.disk += store.records
        if stores:
            self.perform(self.engine.stored(stores[-1].ticket, self.world.now))

    def perform(self, actions: list[Action]) -> None:
        """Do what the engine wants."""
        for action in actions:
            match action:
                case Send(command=command):
                    assert self.open
                    self.world.say("client", self.name, [command])
                case Connect():
                    self.open = True
                case Close():
                    self.open = False
                    self.world.cut("client", self.name)
                case Store():
                    self.uncommitted.append(action)
                case Report(happening=JobEnded(result=result)):
                    before = self.ends.setdefault(result.uuid, result)
                    # One that was killed before its disk had the end may find the same end again.
                    assert before.state is result.state and before.results == result.results

    def lose(self) -> None:
        """The connection is gone."""
        self.perform(self.engine.lost("the connection was lost", self.world.now))

    def take(self, command: Command) -> None:
        """Take what the broker says."""
        self.perform(self.engine.receive(command, self.world.now))

    def has_ended(self, uuid: str) -> bool:
        """Whether the job has ended."""
        return uuid in self.ends

    def wishes(self) -> list[Command]:
        """Nothing: the engine says what it wants by itself."""
        return []


class RealWorld(World):
    """A world with such clients; `forgetful` is how often a broker is gone for good."""

    def __init__(self, seed: int, forgetful: float) -> None:
        super().__init__(seed, clients=0)
        self._forgetful = forgetful
        self.real = {name: RealClient(self, name) for name in ("c0", "c1")}
        self.clients: dict[str, Any] = dict(self.real)

    def cut(self, role: Any, name: str) -> None:
        """Lose what is on its way."""
        self.to_broker.pop((role, name), None)
        self.from_broker.pop((role, name), None)

    def kill_broker(self) -> None:
        """Everybody loses the connection; now and then the next broker has another disk, with nothing on it."""
        if self.random.random() < self._forgetful:
            self.disk.clear()
        super().kill_broker()
        for worker in self.workers:
            self.say("worker", worker, [Ready("svc")])
        for client in self.real.values():
            client.lose()

    def kill_worker(self, *, forgets: bool) -> None:
        """Its disk survives: only so can nobody do a job twice."""
        super().kill_worker(forgets=False)

    def kill_client(self) -> None:
        """Kill -9 of a client, or of its connection."""
        client = self.random.choice(list(self.real.values()))
        self.cut("client", client.name)
        if self.random.random() < 0.5:
            client.lose()
        else:
            client.begin()

    def commit(self) -> None:
        """Disks of both sides."""
        super().commit()
        for client in self.real.values():
            client.commit()

    def pass_time(self, seconds: float = 0.5) -> None:
        """Time passes for clients, too."""
        super().pass_time(seconds)
        for client in self.real.values():
            client.perform(client.engine.tick(self.now))


@pytest.mark.parametrize("forgetful", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_killed_every_job_ends_at_its_client(seed: int, forgetful: float) -> None:
    """600 things happen, some of them deadly; then everything comes to its end."""
    world = RealWorld(seed, forgetful)
    for number in range(24):
        client = world.real[f"c{number % 2}"]
        client.submit(f"j{number}", world.random.choice(["all", "any", "w0", '["w1","w2"]']))
        for _ in range(25):
            world.step(kill=0.015)
    world.settle(600.0)
    for client in world.real.values():
        client.commit()
        for uuid in client.target:
            assert uuid in client.ends, (seed, uuid, client.engine.look(uuid))
            end = client.ends[uuid]
            assert end.state in (State.COMPLETED, State.FAILED)
            assert end.ok or end.error or all(end.failures.values()), end
            states = [r for r in client.disk if isinstance(r, StateRecord) and r.uuid == uuid]
            assert states[-1].state == end.state.value
    assert max(world.runs.values()) == 1, "a worker has done a job twice"
