"""NORFAB broker as an asyncio service: its parts, and how it starts, stops and restarts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from specwire import __version__
from specwire.runtime.capture.counts import count_taps
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.store import Durability, StoreError
from specwire.runtime.norfab.access import Access
from specwire.runtime.norfab.actions import Stopped
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.durations import Durations, copy_durations, note_duration
from specwire.runtime.norfab.events import JobEnded, Refused, StoreFailed, StoreRefuses
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.management import FILES, INVENTORY
from specwire.runtime.norfab.security.owninventory import OwnInventory
from specwire.runtime.norfab.security.table import Table
from specwire.runtime.norfab.serve.counters import Counters
from specwire.runtime.norfab.serve.entrance import Entrance, ServerSecurity
from specwire.runtime.norfab.serve.events import Began, BrokerEvent, CutOff, Ended, Noticed, TurnedAway
from specwire.runtime.norfab.serve.handlers import MANAGEMENT, Handler, Management, shell_tasks
from specwire.runtime.norfab.serve.inmate import AdmitInmate, Inmate
from specwire.runtime.norfab.serve.serving import Serving
from specwire.runtime.norfab.serve.status import Age, BrokerStatus, Refusal, describe
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.messages import Traffic
from specwire.runtime.transport.security import NULL, CurveServer

if TYPE_CHECKING:
    from specwire.runtime.norfab.files import FileHandler
    from specwire.runtime.norfab.inventory import InventoryHandler

logger = logging.getLogger(__name__)

LOOPBACK = "tcp://127.0.0.1:*"
REFUSALS = 20
FRAME_SPARE_OCTETS = 1 << 16
"""Octets of the largest frame beyond those of the largest body. A body that is slightly too large
gets an error; a much larger frame ends the connection."""

MESSAGE_SPARE_OCTETS = 1 << 20
"""Octets of the largest message beyond those of the largest body."""


class NorfabBroker:
    """A broker; ``async with NorfabBroker(...) as broker`` starts and stops it.

    Args:
        endpoint: where to listen, one or several; a port may be ``*``.
        folder: holds what the broker keeps; one broker at a time has it.
        back: where workers come in; without it they do where clients do.
        security: what peers have to prove.
        access: who may do what; with CURVE it is a `Table`, which knows the keys, and nobody else is let in.
        settings: bounds and times.
        durability: ``process`` is safe against kill -9, ``full`` against the loss of power.
        files: the folder whose files are served, if any.
        inventory: the file of the inventory that is served, if any.
        services: who does the tasks of further services inside the broker.
        insecure: listen beyond this machine even without CURVE.
        tap: gets every message of every peer, in both directions.
        on_event: called with each event.
        after_events: called when what belongs together was told, before any peer hears of it.
        log_lines: returns the lines that management shows as the broker's log.

    Attributes:
        endpoints: as bound, once started.
        back: the same for workers; empty where they come in with the clients.

    Raises:
        ValueError: there is no endpoint, or one that is none, or only one of CURVE and a table of peers.
    """

    def __init__(
        self,
        endpoint: str | Sequence[str] = LOOPBACK,
        folder: Path = Path(),
        *,
        back: str | Sequence[str] = (),
        security: ServerSecurity = NULL,
        access: Access | None = None,
        settings: Settings | None = None,
        durability: Durability = "process",
        files: Path | None = None,
        inventory: Path | None = None,
        services: Mapping[str, Handler] | None = None,
        insecure: bool = False,
        tap: Recorder | None = None,
        on_event: Callable[[BrokerEvent], None] | None = None,
        after_events: Callable[[], None] | None = None,
        log_lines: Callable[[], list[str]] | None = None,
    ) -> None:
        self.endpoints, self.back = _several(endpoint), _several(back)
        if not self.endpoints:
            raise ValueError("a broker needs an endpoint to listen on, such as tcp://127.0.0.1:5555")
        for name in (*self.endpoints, *self.back):
            if fault := fault_in_endpoint(name, listening=True):
                raise ValueError(f"{name!r} {fault}")
        self._table = access if isinstance(access, Table) else None
        if isinstance(security, CurveServer) and self._table is None:
            raise ValueError("CURVE without a table lets anybody in: list the peers with their keys")
        if self._table is not None and not isinstance(security, CurveServer):
            raise ValueError("a table of peers needs CURVE: without it nobody proves to be one of them")
        self._counters, self._traffic = Counters(), Traffic()
        self._folder, self._durability = folder, durability
        self._security, self._access = security, access
        self._insecure = insecure
        self._settings = settings or Settings()
        self._tap, self._on_event = tap, on_event
        self._after_events = after_events
        self._files = files
        self._services = dict(services or {})
        self._inventory, self._shared = _open_services(files, inventory, private=folder)
        self._services |= _assemble(self._inventory, self._shared, log_lines or list, self._table)
        self._changing = asyncio.Lock()
        self._refusals: deque[Refusal] = deque(maxlen=REFUSALS)
        self._durations: dict[str, Durations] = {}

    def status(self) -> BrokerStatus:
        """Tell how this broker is; while it runs."""
        return describe(
            self._engine,
            endpoints=self.endpoints,
            back=self.back,
            folder=str(self._folder),
            durability=self._durability,
            age=self._age,
            counters=self.counters,
            refusals=tuple(self._refusals),
            captures=count_taps(self._tap),
            durations=copy_durations(self._durations),
        )

    @property
    def counters(self) -> Counters:
        """What was done so far."""
        return self._counters.snapshot(self._traffic)

    @property
    def engine(self) -> BrokerEngine:
        """What decides; to be looked at."""
        return self._engine

    def change_settings(self, settings: Settings) -> None:
        """Have other bounds and times hold from now on, but for how many clients there may be, which holds from the next start on."""
        self._settings = self._engine.settings = settings

    async def change_keys(self, keys: KeyPair) -> None:
        """Prove to be this broker by other CURVE keys; returns when it listens by them.

        Every peer is disconnected, and comes in again where it knows the new public key.

        Raises:
            ValueError: the broker does not use CURVE.
            TransportError: the keys are none; those before stay.
        """
        match self._security:
            case CurveServer() as security:
                async with self._changing:
                    await self._serving.change_keys(keys)
                    self._security = msgspec.structs.replace(security, keys=keys)
            case _:
                raise ValueError("this broker has no keys: it was started without CURVE")

    async def start(self) -> None:
        """Take up what was stored, and listen.

        Raises:
            StoreError: the folder cannot be used, or another broker has it (StoreInUseError).
            TransportError: an endpoint cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        loop = asyncio.get_running_loop()
        self._finished, self._stop_wanted = loop.create_future(), loop.create_future()
        await self._begin()
        self._attending = asyncio.create_task(self._attend())

    async def stop(self) -> None:
        """Let the workers go, keep what was begun, and release everything."""
        if not self._stop_wanted.done():
            self._stop_wanted.set_result(None)
        await asyncio.gather(self._attending, return_exceptions=True)

    async def finished(self) -> str:
        """Wait until the broker has ended, and return why; a restart that is asked for is no end.

        Raises:
            StoreError, TransportError: it was to begin anew and could not.
        """
        return await asyncio.shield(self._finished)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _begin(self) -> None:
        self._age = Age()
        about = {"version": __version__, "folder": str(self._folder), "durability": self._durability}
        self._engine = BrokerEngine(
            self._settings,
            now=time.time(),
            access=self._access if self._files is None else AdmitInmate(self._access),
            shell_tasks=shell_tasks(self._services),
            about=about,
        )
        self._serving = Serving(
            self._engine,
            self._folder,
            self._durability,
            services=self._services,
            make_inmate=self._make_inmate if self._files is not None else None,
            tell=self._tell,
            after=self._after,
            owns=None if self._table is None else self._table.owns,
            counters=self._counters,
            tap=self._tap,
        )
        self.endpoints, self.back = await self._serving.open(self._make_entrance, self.endpoints, self.back)
        about["endpoint"] = ", ".join(self.endpoints + self.back)
        self._tell(Began(self.endpoints + self.back, self._serving.jobs))
        if self._inventory is not None and (fault := await self._inventory.check()):
            self._tell(Noticed(f"the inventory cannot be used as it is: {fault}"))
        if self._shared is not None and (fault := await self._shared.check()):
            self._tell(Noticed(f"no files are shared as it is: {fault}"))
        self._after()

    def _make_inmate(self, send: Callable[[Command], None]) -> Inmate:
        from specwire.runtime.norfab.files import FileSharing

        assert self._files is not None, "asked for only where files are shared"
        return FileSharing(self._files, send, private=(self._folder,))

    def _make_entrance(self, serving: Serving) -> Entrance:
        return Entrance(
            self._security,
            None if self._table is None else self._table.names,
            insecure=self._insecure,
            frame_octets=self._settings.body_octets + FRAME_SPARE_OCTETS,
            on_messages=serving.on_messages,
            on_sent=None if self._tap is None else serving.on_sent,
            on_gone=serving.on_gone,
            bounds=InflowBounds(
                message_octets=self._settings.message_octets,
                legal_octets=self._settings.body_octets + MESSAGE_SPARE_OCTETS,
                undelivered_octets=self._settings.undelivered_octets,
            ),
            on_turned_away=serving.on_turned_away,
            on_cut=serving.on_cut,
            on_rest=serving.on_rest,
            traffic=self._traffic,
        )

    async def _attend(self) -> None:
        """End, or begin anew, when that is asked for."""
        while True:
            stopped = self._serving.stopped
            await asyncio.wait((stopped, self._stop_wanted), return_when=asyncio.FIRST_COMPLETED)
            last = stopped.result() if stopped.done() else Stopped(False, "the broker stops")
            restart = last.restart and not self._stop_wanted.done()
            try:
                await self._serving.close(last.reason)
                self._tell(Ended(restart, last.reason))
                self._after()
                if restart:
                    await self._begin()
                    continue
            except (StoreError, TransportError) as error:
                self._finished.set_exception(error)
                self._finished.exception()  # who does not wait for the end is not told of it twice
                await self._close_services()
                return
            await self._close_services()
            self._finished.set_result(last.reason)
            return

    async def _close_services(self) -> None:
        for service in (self._inventory, self._shared):
            if service is not None:
                await service.close()

    def _tell(self, event: BrokerEvent) -> None:
        self._counters.count_event(event)
        if type(event) is JobEnded:
            if (job := self._engine.jobs.by_uuid.get(event.uuid)) is not None:
                note_duration(self._durations, job.service, self._engine.now - job.accepted_at)
        elif isinstance(event, Refused | TurnedAway | CutOff | StoreFailed | StoreRefuses):
            self._refusals.append(Refusal(datetime.now(UTC).isoformat(timespec="seconds"), event.reason))
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:  # whoever listens is no part of the broker: its work goes on
                logger.exception("an event could not be told")

    def _after(self) -> None:
        """What belongs together was told."""
        if self._after_events is not None:
            try:
                self._after_events()
            except Exception:  # as above
                logger.exception("who hears of events could not be told that it was all")


def _several(endpoint: str | Sequence[str]) -> tuple[str, ...]:
    return (endpoint,) if isinstance(endpoint, str) else tuple(endpoint)


def _open_services(
    files: Path | None, inventory: Path | None, *, private: Path
) -> tuple[InventoryHandler | None, FileHandler | None]:
    """Return who serves the inventory and the files; their libraries are needed only where there are such."""
    shown = shared = None
    if inventory is not None:
        from specwire.runtime.norfab.inventory import InventoryHandler

        shown = InventoryHandler(inventory)
    if files is not None:
        from specwire.runtime.norfab.files import FileHandler

        shared = FileHandler(files, private=(private,))
    return shown, shared


def _assemble(
    inventory: InventoryHandler | None,
    files: FileHandler | None,
    log_lines: Callable[[], list[str]],
    table: Table | None,
) -> dict[str, Handler]:
    """Return the broker's own services of the shell by name."""
    found: dict[str, Handler] = {MANAGEMENT: Management(log_lines, inventory)}
    if inventory is not None:
        found[INVENTORY] = inventory if table is None else OwnInventory(inventory, table)
    if files is not None:
        found[FILES] = files
    return found
