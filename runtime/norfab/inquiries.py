"""Questions for jobs that the broker does not know: its store may be new, or the retention over. Workers may know.

Every worker that is meant is asked, and what it says goes to the client that asked. A worker that does not know the job
is not mentioned where another one does; where none does, the last word is UNKNOWN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.commands import Get, Response
from specwire.runtime.norfab.names import Target
from specwire.runtime.norfab.workers import Worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine


class _Inquiry:
    __slots__ = ("found", "pending", "service", "until")

    def __init__(self, service: str, pending: set[str], until: float) -> None:
        self.service, self.pending, self.until, self.found = service, pending, until, False


class Inquiries:
    """What clients asked of workers; bounded in number, each for the time in which a worker would be lost."""

    __slots__ = ("_engine", "_open")

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine
        self._open: dict[tuple[bytes, str], _Inquiry] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, peer: bytes, user: str, command: Get, wanted: Target) -> None:
        """Ask the workers."""
        engine = self._engine
        service = engine.registry.services.get(command.service)
        workers = [] if service is None else list(service.workers.values())
        if wanted.kind == "names":
            workers = [worker for worker in workers if worker.name in wanted.names]
        allowed = engine.access.may_call(user, command.service, "") and engine.access.may_see(user, "")
        if not workers or not allowed:
            engine.answers.refuse(peer, command, 400, "the uuid is unknown")
            return
        if len(self._open) >= engine.settings.inquiries:
            engine.answers.refuse(peer, command, 500, "too many questions are open")
            return
        until = engine.now + engine.settings.expiry_s
        names = [worker.name for worker in workers]
        self._open[peer, command.uuid] = _Inquiry(command.service, set(names), until)
        body = bodies.dispatched(command.uuid, command.target or "all", command.service, names)
        engine.to_client(peer, Response(command.uuid, 202, body, command.service))
        for worker in workers:
            engine.to_worker(worker, Get(command.uuid, command.body, client=peer))

    def answer(self, worker: Worker, command: Response) -> bool:
        """Take a worker's answer; return whether it was asked for."""
        inquiry = self._open.get((command.client, command.uuid))
        if inquiry is None or worker.name not in inquiry.pending:
            return False
        inquiry.pending.discard(worker.name)
        if command.status in (400, 404):
            self._conclude(command.client, command.uuid, inquiry)
            return True
        body = bodies.own_result(command.body, worker.name, worker.name, 1) if command.status == 200 else None
        if body is None:
            known = command.status in (102, 300)
            body = bodies.state(command.uuid, worker.service, "STARTED" if known else "FAILED", worker.name)
        status = command.status if command.status in (102, 200, 300) else 500
        inquiry.found = True
        self._engine.to_client(command.client, Response(command.uuid, status, body, worker.service))
        self._conclude(command.client, command.uuid, inquiry)
        return True

    def _conclude(self, client: bytes, uuid: str, inquiry: _Inquiry) -> None:
        if inquiry.pending:
            return
        self._open.pop((client, uuid), None)
        if not inquiry.found:
            body = bodies.refused(uuid, "", inquiry.service, "the uuid is unknown")
            self._engine.to_client(client, Response(uuid, 404, body, inquiry.service))

    def lose(self, worker: Worker) -> None:
        """The worker is gone: nobody waits for its answer."""
        for (client, uuid), inquiry in list(self._open.items()):
            if worker.name in inquiry.pending:
                inquiry.pending.discard(worker.name)
                self._conclude(client, uuid, inquiry)

    def tick(self) -> None:
        """Give up what was not answered in time; they stand in the order of their time."""
        for (client, uuid), inquiry in list(self._open.items()):
            if inquiry.until > self._engine.now:
                return
            inquiry.pending.clear()
            self._conclude(client, uuid, inquiry)
