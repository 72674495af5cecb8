"""A broker's engine with a clock, a store in memory, and peers whose messages a test says one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.access import Access
from specwire.runtime.norfab.actions import Action, Ask, Fetch, Report, Send, Stopped
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Event,
    Get,
    Keepalive,
    Mmi,
    Open,
    Post,
    Ready,
    Response,
    Role,
)
from specwire.runtime.norfab.events import Happening
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.records import (
    DeletedRecord,
    ForgottenRecord,
    HeldResult,
    Record,
    ResultRecord,
)

START = 1_000_000.0


def job(task: str = "add", **fields: Any) -> bytes:
    """Return the body of a POST."""
    return json.dumps({"task": task, "kwargs": {}, "args": [], **fields}, separators=(",", ":")).encode()


def result(worker: str, value: object = 5) -> bytes:
    """Return the body with which a worker ends a job."""
    return json.dumps(
        {worker: {"result": value, "failed": False, "errors": []}}, separators=(",", ":")
    ).encode()


def body_of(records: Iterable[Record], fetch: Fetch) -> bytes | None:
    """Return what a store with these records has of a result."""
    found: bytes | None = None
    for record in records:
        if isinstance(record, ResultRecord) and (record.uuid, record.slot) == (fetch.uuid, fetch.slot):
            found = record.body
        elif isinstance(record, DeletedRecord | ForgottenRecord) and record.uuid == fetch.uuid:
            found = None
    return found


class Lab:
    """An engine in a laboratory.

    With `commits` the store is durable at once, else `commit` makes it so; it is read at once unless `reads` is False.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        access: Access | None = None,
        commits: bool = True,
        records: Iterable[Record | HeldResult] = (),
        now: float = START,
        **engine: Any,
    ) -> None:
        self.now = now
        self.commits = commits
        self.engine = BrokerEngine(settings, now=now, access=access, **engine)
        self.records: list[Record] = [record for record in records if not isinstance(record, HeldResult)]
        self.waiting: list[Commit] = []
        self.sent: list[Send] = []
        self.happened: list[Happening] = []
        self.asked: list[Ask] = []
        self.fetches: list[Fetch] = []
        self.reads = True
        self.stopped: Stopped | None = None
        self.perform(self.engine.restore(records, now))

    def perform(self, actions: list[Action]) -> None:
        """Do what the engine wants."""
        for action in actions:
            match action:
                case Send():
                    self.sent.append(action)
                case Commit():
                    self.waiting.append(action)
                case Report():
                    self.happened.append(action.happening)
                case Ask():
                    self.asked.append(action)
                case Fetch():
                    self.fetches.append(action)
                case Stopped():
                    self.stopped = action
        if self.commits and self.waiting:
            self.commit()
        if self.reads and self.fetches:
            self.read()

    def read(self) -> None:
        """Answer what the store was asked for."""
        fetches, self.fetches = self.fetches, []
        for fetch in fetches:
            self.perform(self.engine.fetched(fetch.question, body_of(self.records, fetch), self.now))

    def commit(self, tickets: int | None = None) -> None:
        """Make the next stores durable: all of them, or so many."""
        done, self.waiting = self.waiting[:tickets], self.waiting[len(self.waiting[:tickets]) :]
        if done:
            self.records += [record for store in done for record in store.records]
            self.perform(self.engine.stored(done[-1].ticket, self.now))

    def say(self, peer: bytes | str, role: Role, command: Command, user: str = "") -> None:
        """Let a peer send something."""
        routing_id = peer.encode() if isinstance(peer, str) else peer
        self.perform(self.engine.receive(routing_id, role, command, self.now, user))

    def wait(self, seconds: float, step: float = 0.5, alive: Iterable[str] = ()) -> None:
        """Let time pass; the workers in `alive` give their signs of life."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + step)
            for name in alive:
                self.say(name, "worker", Keepalive("svc"))
            self.perform(self.engine.tick(self.now))

    # --- what peers say

    def ready(self, *names: str, service: str = "svc", user: str = "") -> None:
        """Let workers register."""
        for name in names:
            self.say(name, "worker", Ready(service), user)

    def announce(self, worker: str, *resources: str) -> None:
        """Let a worker say what it manages."""
        self.say(worker, "worker", Open(json.dumps({"resources": resources}).encode()))

    def post(
        self,
        uuid: str = "j1",
        target: str = "all",
        client: str = "c1",
        body: bytes | None = None,
        service: str = "svc",
        user: str = "",
    ) -> None:
        """Let a client post a job."""
        self.say(client, "client", Post(uuid, job() if body is None else body, service, target), user)

    def get(
        self, uuid: str = "j1", target: str = "all", client: str = "c1", service: str = "svc", user: str = ""
    ) -> None:
        """Let a client ask."""
        self.say(client, "client", Get(uuid, b"{}", service, target), user)

    def delete(self, uuid: str = "j1", client: str = "c1", service: str = "svc", user: str = "") -> None:
        """Let a client delete."""
        self.say(client, "client", Delete(uuid, b"{}", service, "all"), user)

    def respond(
        self,
        worker: str,
        status: int = 200,
        uuid: str = "j1",
        body: bytes | None = None,
        client: bytes = b"c1",
    ) -> None:
        """Let a worker answer."""
        said = (result(worker) if status == 200 else b"{}") if body is None else body
        self.say(worker, "worker", Response(uuid, status, said, client=client))

    def tell(self, worker: str, event_type: str, uuid: str = "j1", client: bytes = b"c1") -> None:
        """Let a worker send an EVENT."""
        body = json.dumps({"worker": worker, "event_type": event_type}).encode()
        self.say(worker, "worker", Event(uuid, 200, body, client=client))

    def manage(self, task: str, client: str = "admin", user: str = "", **kwargs: Any) -> Any:
        """Let a client use the broker's management; return what it is told."""
        self.take(client)
        body = json.dumps({"task": task, "kwargs": kwargs, "args": []}).encode()
        self.say(client, "client", Mmi("m1", body, "mmi.service.broker", "all"), user)
        reply = self.take(client)[0]
        assert isinstance(reply, Response)
        return reply.status, json.loads(reply.body)

    # --- what they were told

    def take(self, peer: bytes | str, role: Role | None = None) -> list[Any]:
        """Return the commands a peer was sent since it was last asked for."""
        routing_id = peer.encode() if isinstance(peer, str) else peer
        meant = [send for send in self.sent if send.peer == routing_id and role in (None, send.role)]
        self.sent = [send for send in self.sent if send not in meant]
        return [send.command for send in meant]

    def told(self, client: str = "c1") -> list[tuple[int, Any]]:
        """Return status and body of the RESPONSEs a client was sent."""
        return [
            (said.status, json.loads(said.body)) for said in self.take(client) if isinstance(said, Response)
        ]

    def statuses(self, client: str = "c1") -> list[int]:
        """Return only the status of them."""
        return [status for status, _ in self.told(client)]

    def posts(self, worker: str) -> list[str]:
        """Return the uuids of the jobs a worker was sent."""
        return [said.uuid for said in self.take(worker, "worker") if isinstance(said, Post)]

    def reported(self, kind: type[Happening]) -> list[Any]:
        """Return what of this kind was reported so far."""
        return [happening for happening in self.happened if isinstance(happening, kind)]
