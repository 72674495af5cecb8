"""Engines of client and broker, both killed between any two messages, with workers that lose connections.

Each submitted job must end at its client, once, with results or with a cause. No worker may run it twice.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.client.actions import Action, Close, Connect, Report, Send
from specwire.runtime.norfab.client.engine import ClientEngine
from specwire.runtime.norfab.client.events import JobEnded
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import (
    JobRecord,
    Record,
    ResultRecord,
    StateRecord,
    StoredJob,
)
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.commands import Command, Ready
from tests.runtime.norfab.scripted import job
from tests.runtime.norfab.world import World

SETTINGS = ClientSettings(poll_s=2.0, silence_s=5.0, settle_s=8.0, first_reconnect_s=0.5)


class RealClient:
    """Client with a disk that survives a kill."""

    def __init__(self, world: RealWorld, name: str) -> None:
        self.name, self.world = name, world
        self.target: dict[str, str] = {}
        self.ends: dict[str, JobResult] = {}
        self.disk: list[Record] = []
        self.uncommitted: deque[Commit] = deque()
        self.begin()

    def begin(self) -> None:
        """Start with the records on disk."""
        self.open = False
        self.uncommitted.clear()
        self.engine = ClientEngine(["tcp://b"], SETTINGS, now=self.world.now)
        jobs = [record for record in self.disk if isinstance(record, JobRecord)]
        self.perform(self.engine.restore([self.find(one) for one in jobs], self.world.now))
        self.perform(self.engine.open(self.world.now))

    def find(self, one: JobRecord) -> StoredJob:
        """Return the records of a job on disk."""
        states = [r for r in self.disk if isinstance(r, StateRecord) and r.uuid == one.uuid]
        results = [r for r in self.disk if isinstance(r, ResultRecord) and r.uuid == one.uuid]
        state = states[-1] if states else StateRecord(one.uuid, "NEW", (), one.deadline)
        return StoredJob(one, state, tuple(results))

    def submit(self, uuid: str, target: str) -> None:
        """Submit a job, and commit it: from then on it must end."""
        now = self.world.now
        record = JobRecord(uuid, "svc", "add", target, job(), now, now + 100_000)
        self.perform(self.engine.submit(record, now))
        self.commit()
        self.target[uuid] = target

    def commit(self) -> None:
        """Let all commits succeed."""
        commits, self.uncommitted = list(self.uncommitted), deque()
        for commit in commits:
            self.disk += commit.records
        if commits:
            self.perform(self.engine.stored(commits[-1].ticket, self.world.now))

    def perform(self, actions: list[Action]) -> None:
        """Perform the effects of the engine."""
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
                case Commit():
                    self.uncommitted.append(action)
                case Report(happening=JobEnded(result=result)):
                    before = self.ends.setdefault(result.uuid, result)
                    # A client that was killed before it stored the end emits the same end again.
                    assert before.state is result.state and before.results == result.results

    def lose(self) -> None:
        """Lose the connection."""
        self.perform(self.engine.lost("the connection was lost", self.world.now))

    def take(self, command: Command) -> None:
        """Receive a command from the broker."""
        self.perform(self.engine.receive(command, self.world.now))

    def has_ended(self, uuid: str) -> bool:
        """Return whether the job has ended."""
        return uuid in self.ends

    def wishes(self) -> list[Command]:
        """Return no command: the engine sends its own."""
        return []


class RealWorld(World):
    """World with such clients. `forgetful` is the probability that a killed broker loses its disk."""

    def __init__(self, seed: int, forgetful: float) -> None:
        super().__init__(seed, clients=0)
        self._forgetful = forgetful
        self.real = {name: RealClient(self, name) for name in ("c0", "c1")}
        self.clients: dict[str, Any] = dict(self.real)

    def cut(self, role: Any, name: str) -> None:
        """Drop the messages in transit."""
        self.to_broker.pop((role, name), None)
        self.from_broker.pop((role, name), None)

    def kill_broker(self) -> None:
        """Kill the broker, sometimes with its disk; every peer loses its connection."""
        if self.random.random() < self._forgetful:
            self.disk.clear()
        super().kill_broker()
        for worker in self.workers:
            self.say("worker", worker, [Ready("svc")])
        for client in self.real.values():
            client.lose()

    def kill_worker(self, *, forgets: bool) -> None:
        """Kill a worker. Its disk survives, otherwise it could run a job twice."""
        super().kill_worker(forgets=False)

    def kill_client(self) -> None:
        """Kill a client, or its connection."""
        client = self.random.choice(list(self.real.values()))
        self.cut("client", client.name)
        if self.random.random() < 0.5:
            client.lose()
        else:
            client.begin()

    def commit(self) -> None:
        """Commit on the disks of both sides."""
        super().commit()
        for client in self.real.values():
            client.commit()

    def pass_time(self, seconds: float = 0.5) -> None:
        """Let time pass for clients, too."""
        super().pass_time(seconds)
        for client in self.real.values():
            client.perform(client.engine.tick(self.now))


@pytest.mark.parametrize("forgetful", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_killed_every_job_ends_at_its_client(seed: int, forgetful: float) -> None:
    """Take 600 random steps, some of them kills; then every job must end."""
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
