"""A NORFAB broker in this process, and peers whose every message a test says itself, over real sockets.

What the broker says is watched: no test passes where it broke the dialog. A raw peer is a DEALER with a name; it
says commands (`specwire.runtime.norfab.commands`) or frames of any kind, and waits for what a test wants of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from specwire.runtime.norfab import commands, wire
from specwire.runtime.norfab.commands import Command, Role
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.serve.events import BrokerEvent
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.security import NULL, Security
from tests.integration.norfab_watch import NorfabWatch

STORY_S = 60.0
SETTINGS = Settings(keepalive_s=0.5, liveness=60, poll_s=2.0, queue_s=50.0)
"""Lively, and yet nobody is lost for a slow machine's sake."""

E = TypeVar("E", bound=BrokerEvent)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has a minute."""

    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


class Heard:
    """The events of a broker, which a test can wait for."""

    def __init__(self) -> None:
        self.events: list[BrokerEvent] = []
        self._changed = asyncio.Event()

    def __call__(self, event: BrokerEvent) -> None:
        """Take an event."""
        self.events.append(event)
        self._changed.set()

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of this kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type[E], wanted: Callable[[E], bool] = lambda _: True) -> E:
        """Wait for an event of this kind, which may have come already."""
        while True:
            for event in self.of(kind):
                if wanted(event):
                    return event
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def serving_broker(
    folder: Path,
    *,
    endpoint: str | Sequence[str] = "tcp://127.0.0.1:*",
    settings: Settings = SETTINGS,
    heard: Heard | None = None,
    after: NorfabWatch | None = None,
    **given: Any,
) -> AsyncIterator[tuple[NorfabBroker, NorfabWatch]]:
    """Run a broker that keeps its jobs in `folder`."""
    watch = NorfabWatch("B", after=after)
    async with NorfabBroker(
        endpoint, folder, settings=settings, tap=watch, on_event=heard, **given
    ) as broker:
        yield broker, watch
    assert not watch.faults, watch.faults


class RawPeer:
    """A client or worker without a mind of its own.

    Attributes:
        got: the commands that came and were not waited for yet, in order.
        lost: why there is no connection any more.
    """

    def __init__(
        self,
        context: TransportContext,
        endpoint: str,
        name: str | bytes,
        role: Role,
        dialect: Dialect = Dialect.DEPLOYED,
        security: Security = NULL,
        high_water: int = 100_000,
    ) -> None:
        self.name = name if isinstance(name, bytes) else name.encode()
        self.role, self._dialect = role, dialect
        self.got: list[Command] = []
        self.lost = ""
        self._changed = asyncio.Event()
        self._dealer = Dealer(
            context,
            endpoint,
            on_message=self._take,
            on_sent=lambda frames: None,
            on_lost=self._lose,
            security=security,
            identity=self.name,
            high_water=high_water,
            max_waiting=200_000,
        )

    def close(self, *, linger_s: float = 0.0) -> None:
        """Hang up."""
        self._dealer.close(linger_s=linger_s)

    def pause(self) -> None:
        """Read nothing any more."""
        self._dealer.pause()

    def say(self, *said: Command) -> None:
        """Send commands."""
        for command in said:
            assert self._dealer.send(wire.encode(command, self._dialect, self.role, "broker"))

    def say_frames(self, *frames: bytes) -> None:
        """Send what may be anything."""
        assert self._dealer.send(frames)

    async def hear(self, kind: Any, wanted: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return the next command of this kind that is wanted; what came before it is thrown away."""
        while True:
            while self.got:
                command = self.got.pop(0)
                if isinstance(command, kind) and wanted(command):
                    return command
            assert not self.lost, self.lost
            self._changed.clear()
            await self._changed.wait()

    async def until_lost(self) -> str:
        """Wait for the end of the connection, and return the reason."""
        while not self.lost:
            self._changed.clear()
            await self._changed.wait()
        return self.lost

    # --- as a worker

    async def register(self, service: str = "svc") -> None:
        """Say READY, and wait for a sign of life."""
        self.say(commands.Ready(service))
        await self.hear(commands.Keepalive)

    async def take_job(self, *, accept: bool = True) -> commands.Post:
        """Wait for a job, and accept it."""
        job: commands.Post = await self.hear(commands.Post)
        if accept:
            self.say(commands.Response(job.uuid, 201, b'{"worker":""}', client=job.client))
        return job

    def end_job(self, job: commands.Post, value: object = 5) -> None:
        """Send the result of a job."""
        self.say(commands.Response(job.uuid, 200, result(self.name.decode(), value), client=job.client))

    # --- as a client

    def post(self, uuid: str, *, target: str = "all", service: str = "svc", **fields: Any) -> None:
        """Post a job."""
        self.say(commands.Post(uuid, job_body(**fields), service, target))

    async def answer(self, uuid: str, status: int) -> Any:
        """Wait for a RESPONSE with this status, and return its body."""
        reply = await self.hear(commands.Response, lambda r: r.uuid == uuid and r.status == status)
        return json.loads(reply.body)

    async def manage(self, task: str, uuid: str = "m1", **kwargs: Any) -> Any:
        """Use the broker's management, and return the body of its answer."""
        body = json.dumps({"task": task, "kwargs": kwargs, "args": []}).encode()
        self.say(commands.Mmi(uuid, body, "mmi.service.broker", "all"))
        reply = await self.hear(commands.MmiReply, lambda r: r.uuid == uuid)
        return json.loads(reply.body)

    def _take(self, frames: list[bytes]) -> None:
        self.got.append(wire.decode([bytes(frame) for frame in frames]).command)
        self._changed.set()

    def _lose(self, reason: str) -> None:
        self.lost = reason
        self._changed.set()


def job_body(task: str = "add", **fields: Any) -> bytes:
    """Return the body of a POST."""
    return json.dumps({"task": task, "kwargs": {}, "args": [], **fields}, separators=(",", ":")).encode()


def result(worker: str, value: object = 5) -> bytes:
    """Return the body with which a worker ends a job."""
    said = {worker: {"result": value, "failed": False, "errors": []}}
    return json.dumps(said, separators=(",", ":")).encode()


class Crowd:
    """Makes raw peers, which end with it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._context = TransportContext()
        self._peers: list[RawPeer] = []

    def client(self, name: str | bytes = "c1", **settings: Any) -> RawPeer:
        """Return a connected client."""
        return self._add(RawPeer(self._context, self.endpoint, name, "client", **settings))

    def worker(self, name: str | bytes = "w1", **settings: Any) -> RawPeer:
        """Return a connected worker, which has said nothing yet."""
        return self._add(RawPeer(self._context, self.endpoint, name, "worker", **settings))

    def _add(self, peer: RawPeer) -> RawPeer:
        self._peers.append(peer)
        return peer

    async def close(self) -> None:
        """Hang up for all."""
        for peer in self._peers:
            peer.close()
        await self._context.close()


@asynccontextmanager
async def crowd_at(endpoint: str) -> AsyncIterator[Crowd]:
    """Have raw peers of the broker at `endpoint`."""
    crowd = Crowd(endpoint)
    try:
        yield crowd
    finally:
        await crowd.close()
