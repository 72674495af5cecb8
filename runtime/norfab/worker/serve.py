"""NORFAB worker as an asyncio service: connection, store, tasks and timer around `WorkerEngine`."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from specwire import __version__
from specwire.runtime.capture.counts import count_taps
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.store import Durability, Failure
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.durations import Durations, copy_durations, note_duration
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.actions import Action, Report, Send
from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from specwire.runtime.norfab.worker.engine import WorkerEngine
from specwire.runtime.norfab.worker.events import Happening, JobEnded, StoreFailed
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.line import Line
from specwire.runtime.norfab.worker.plugin import make_plugin
from specwire.runtime.norfab.worker.requests import Requests
from specwire.runtime.norfab.worker.running import Runner
from specwire.runtime.norfab.worker.status import WorkerStatus, describe
from specwire.runtime.norfab.worker.store import WorkerStore
from specwire.runtime.norfab.worker.tasks import TaskTable
from specwire.runtime.norfab.worker.view import WorkerView
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.security import NULL, Security

DIALECTS = {Dialect.DEPLOYED.value: Dialect.DEPLOYED, Dialect.NORFAB.value: Dialect.NORFAB}


class NorfabWorker:
    """Worker that offers the tasks of a plugin at a broker; ``async with`` starts and stops it.

    Args:
        endpoints: one or more brokers, the preferred one first.
        name: name and routing id; clients address the worker by it.
        service: the service that it offers.
        plugin: a class with methods marked by `task`, or an instance of one.
        folder: for its store and files; one process at a time can use it.
        security: credentials, one for all brokers or one for each.
        resources: the resources that it manages at first.
        concurrency: jobs that run at a time; overrides the one in `settings`.
        durability: accepted jobs and results survive a kill (``process``), or also a loss of power (``full``).
        settings: bounds and times.
        protocol: dialect of messages sent: ``norfab_ascii`` as deployed peers use it, or ``norfab``.
        tap: records every message, in both directions.
        on_event: called with each event.

    Attributes:
        finished: done when the worker has stopped; the result is whether to start it again.

    Raises:
        ValueError: an endpoint, the name, the service or the protocol is invalid.
        PluginError: the plugin cannot be used; raised when the worker starts.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str],
        name: str,
        service: str,
        plugin: object,
        *,
        folder: Path,
        security: Security | Sequence[Security] = NULL,
        resources: Sequence[str] = (),
        concurrency: int | None = None,
        durability: Durability = "process",
        settings: WorkerSettings | None = None,
        protocol: str = Dialect.DEPLOYED.value,
        tap: Recorder | None = None,
        on_event: Callable[[Happening], None] | None = None,
    ) -> None:
        self._endpoints = (endpoints,) if isinstance(endpoints, str) else tuple(endpoints)
        if not self._endpoints:
            raise ValueError("a worker needs the endpoint of a broker")
        for endpoint in self._endpoints:
            if fault := fault_in_endpoint(endpoint, listening=False):
                raise ValueError(f"{endpoint!r} {fault}")
        if protocol not in DIALECTS:
            raise ValueError(f"{protocol!r} is not a protocol of workers: {', '.join(DIALECTS)}")
        self._security = _each(security, len(self._endpoints))
        self._settings = _with_concurrency(settings or WorkerSettings(), concurrency)
        self._name, self._service, self._plugin = name, service, plugin
        self._resources, self._durability, self._folder = tuple(resources), durability, folder
        self._protocol, self._tap, self._on_event = protocol, tap, on_event
        WorkerEngine(name, service, now=0.0)  # raises if a name is invalid
        self._pending: deque[Action] = deque()
        self._performing = False
        self._background: set[asyncio.Task[None]] = set()
        self._durations: dict[str, Durations] = {}

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources that the worker manages."""
        return self._engine.resources

    @property
    def engine(self) -> WorkerEngine:
        """Engine, to inspect it."""
        return self._engine

    def status(self) -> WorkerStatus:
        """Return the status of the worker while it runs."""
        return describe(
            self._engine,
            now=self._now(),
            captures=count_taps(self._tap),
            durations=copy_durations(self._durations),
        )

    def set_resources(self, resources: Sequence[str]) -> None:
        """Change the resources; called on the worker's event loop."""
        self._view.resources = tuple(dict.fromkeys(resources))
        self._perform(self._engine.set_resources(self._view.resources, self._now()))

    async def start(self) -> None:
        """Construct the plugin, open the store, and connect.

        Raises:
            PluginError: the plugin cannot be used.
            StoreError: the folder cannot be used.
            TransportError: an endpoint or a key is invalid.
        """
        loop = asyncio.get_running_loop()
        self._epoch, self._clock = time.time() - loop.time(), loop.time
        self.finished: asyncio.Future[bool] = loop.create_future()
        self._requests = Requests(self._endpoints, self._name, self._security, self._folder, self._protocol)
        self._view = WorkerView(
            self._name, self._service, self._resources, self._on_resources, self._requests
        )
        plugin = await asyncio.to_thread(make_plugin, self._plugin, self._view)
        table = TaskTable(plugin)
        self._runner = Runner(
            table,
            self._view,
            self,
            concurrency=self._settings.concurrency,
        )
        self._engine = self._make_engine(table)
        self._store = WorkerStore(
            self._folder,
            self._durability,
            on_committed=self._on_committed,
            on_refusing=lambda reason: self._perform(self._engine.store_refuses(reason, self._now())),
            on_notice=lambda sentence: self._tell(StoreFailed(sentence)),
        )
        records, begun = await self._store.open()
        self._line = Line(
            self._endpoints,
            self._name,
            self._security,
            dialect=DIALECTS[self._protocol],
            tap=self._tap,
            max_frame_octets=self._settings.body_octets + (1 << 20),
            on_command=self._on_command,
            on_malformed=lambda why: self._perform(self._engine.malformed(why, self._now())),
            on_lost=lambda why: self._perform(self._engine.lost(why, self._now())),
        )
        try:
            self._perform(self._engine.restore(records, begun, self._now()))
            self._perform(self._engine.open(self._now()))
        except BaseException:
            await self._release()
            raise
        self._ticking = asyncio.create_task(self._tick())

    def _make_engine(self, table: TaskTable) -> WorkerEngine:
        return WorkerEngine(
            self._name,
            self._service,
            self._settings,
            now=self._now(),
            brokers=self._endpoints,
            resources=self._view.resources,
            time_limits=table.time_limits,
            about={"version": __version__, "pid": os.getpid(), "durability": self._durability},
            tasks=table.describe,
            observed=self._on_event is not None,
        )

    async def run(self) -> bool:
        """Wait until management stops the worker; return whether to start it again."""
        return await asyncio.shield(self.finished)

    async def stop(self) -> None:
        """Wait for running tasks (see `WorkerSettings.drain_s`), leave the broker, and release everything."""
        self._perform(self._engine.stop(self._now()))
        await asyncio.wait((self.finished,))
        self._ticking.cancel()
        await asyncio.gather(self._ticking, *self._background, return_exceptions=True)
        await self._release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _release(self) -> None:
        self._runner.close()
        await self._line.close()
        try:
            await self._store.close()
        finally:
            await self._requests.close()

    def _now(self) -> float:
        return self._epoch + self._clock()

    async def _tick(self) -> None:
        pause = min(0.1, self._settings.keepalive_s / 4, self._settings.first_retry_s)
        while True:
            await asyncio.sleep(pause)
            self._perform(self._engine.tick(self._now()))

    def _on_command(self, command: Command) -> None:
        self._perform(self._engine.receive(command, self._now()))

    # --- tasks; see `running.Listener`

    def on_progress(self, uuid: str, progress: Progress) -> None:
        """Handle progress of a task."""
        self._perform(self._engine.progress(uuid, progress, self._now()))

    def on_stream(self, uuid: str, data: bytes) -> None:
        """Handle a piece of a stream of a task."""
        self._perform(self._engine.stream(uuid, data, self._now()))

    def on_ended(self, uuid: str, outcome: Outcome) -> None:
        """Handle the end of a task."""
        self._perform(self._engine.ended(uuid, outcome, self._now()))

    def _on_committed(self, last: int, failures: Sequence[Failure]) -> None:
        for ticket, reason in failures:
            self._perform(self._engine.not_stored(ticket, reason, self._now()))
        self._perform(self._engine.stored(last, self._now()))

    def _on_resources(self, resources: Sequence[str]) -> None:
        self._perform(self._engine.set_resources(resources, self._now()))

    # --- actions

    def _perform(self, todo: Sequence[Action]) -> None:
        """Perform actions in order. Actions that result from one of them are performed after the others."""
        self._pending.extend(todo)
        if self._performing:
            return
        self._performing = True
        try:
            while self._pending:
                self._perform_one(self._pending.popleft())
        finally:
            self._performing = False

    def _perform_one(self, action: Action) -> None:
        if type(action) is Report:
            self._tell(action.happening)
        elif type(action) is Commit:
            self._store.write(action.ticket, action.records, refusable=action.refusable)
        elif type(action) is Send:
            self._line.send(action.command)
        else:
            self._perform_rarely(action)

    def _perform_rarely(self, action: Action) -> None:
        match action:
            case actions.Start():
                client = action.client.decode(errors="backslashreplace")
                self._runner.start(action.uuid, action.task, action.body, client)
            case actions.Load():
                self._do(self._load(action))
            case actions.Cancel(uuid=uuid, reason=reason):
                self._runner.cancel(uuid, reason)
            case actions.Abandon(uuid=uuid):
                self._runner.abandon(uuid)
            case actions.Input(uuid=uuid, body=body):
                self._runner.give(uuid, body)
            case actions.Connect():
                self._connect(action)
            case actions.Close():
                self._line.drop()
            case actions.Stopped(restart=restart):
                if not self.finished.done():
                    self.finished.set_result(restart)

    def _connect(self, action: actions.Connect) -> None:
        try:
            self._line.open(action.broker, named=action.named)
        except TransportError as error:
            self._perform(self._engine.lost(str(error), self._now()))

    async def _load(self, wanted: actions.Load) -> None:
        body = await self._store.read_result(wanted.number)
        self._perform(self._engine.loaded(wanted.uuid, wanted.client, body, self._now()))

    def _do(self, work: Any) -> None:
        doing = asyncio.create_task(work)
        self._background.add(doing)
        doing.add_done_callback(self._background.discard)

    def _tell(self, happening: Happening) -> None:
        if type(happening) is JobEnded:
            note_duration(self._durations, happening.task, happening.seconds)
        if self._on_event is not None:
            self._on_event(happening)


def _each(security: Security | Sequence[Security], count: int) -> tuple[Security, ...]:
    """Return credentials for each broker."""
    if not isinstance(security, Sequence):
        return (security,) * count
    if len(security) != count:
        raise ValueError(f"there are {count} brokers, and credentials for {len(security)}")
    return tuple(security)


def _with_concurrency(settings: WorkerSettings, concurrency: int | None) -> WorkerSettings:
    import msgspec

    wanted = settings if concurrency is None else msgspec.structs.replace(settings, concurrency=concurrency)
    if wanted.concurrency < 1:
        raise ValueError(f"concurrency must be 1 or more, not {wanted.concurrency}")
    return wanted
