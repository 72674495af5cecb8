"""Registration and loss of workers: READY, OPEN, KEEPALIVE, DISCONNECT, and silence.

Any command but DISCONNECT is a sign of life. A worker that sends an invalid command, or one before
it is registered, gets DISCONNECT and nothing more until it sends READY. This also makes workers
register again after a restart of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies, commands
from specwire.runtime.norfab.bodies import BodyError
from specwire.runtime.norfab.commands import Command, Disconnect, Keepalive, Open
from specwire.runtime.norfab.events import Refused, WorkerGone, WorkerReady
from specwire.runtime.norfab.management import RESERVED
from specwire.runtime.norfab.names import InvalidNameError, check_service, worker_name
from specwire.runtime.norfab.records import ForgottenRecord, WorkerRecord, worker_key
from specwire.runtime.norfab.workers import Worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine


class Presence:
    """Lets workers in and out."""

    __slots__ = ("_engine",)

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine

    def receive(self, peer: bytes, user: str, command: Command) -> None:
        """Take what a worker sends."""
        worker = self._registered(peer)
        if worker is not None:
            if worker.user != user:
                why = f"the name belongs to {worker.user!r} and not to {user!r}"
                self._engine.report(Refused(peer, why))
                return
            worker.seen_at = self._engine.now
            if type(command) is commands.Response:  # what comes most often
                self._engine.relay.response(worker, command)
                return
        match command:
            case commands.Ready():
                self._ready(peer, user, command.service, worker)
            case Open():
                self._introduce(peer, worker, command)
            case Disconnect():
                if worker is not None:
                    self._lose(worker, "has left")
            case _ if worker is None:
                self.turn_away(peer, "", "is not registered")
            case Keepalive():
                worker.keepalives_in += 1
            case commands.Event():
                self._engine.relay.event(worker, command)
            case commands.Stream():
                self._engine.relay.stream(worker, command)
            case _:
                self.turn_away(
                    peer, worker.service, f"sent {type(command).__name__.upper()}, which no worker does"
                )

    def _ready(self, peer: bytes, user: str, service: str, worker: Worker | None) -> None:
        """READY registers a worker, and again the same one."""
        why = ""
        try:
            name = worker_name(peer)
            check_service(service)
        except InvalidNameError as error:
            name, why = "", str(error)
        if service in RESERVED or service in self._engine.management.inside:
            why = f"{service} is the broker's own"
        elif not why and not self._engine.access.may_serve(user, name, service):
            why = f"{user or 'this peer'} may not be {name} of {service}"
        elif worker is not None and worker.service != service:
            why = f"{name} is registered for {worker.service}"
        elif worker is None and len(self._engine.registry.workers) >= self._engine.settings.workers:
            why = "there are too many workers"
        if why or self._engine.stopping:
            self._engine.report(Refused(peer, why or "the broker stops"))
            self.turn_away(peer, service, why or "the broker stops")
            return
        self._engine.report(WorkerReady(name, service, worker is not None))
        if worker is None:
            engine = self._engine
            worker = engine.registry.register(
                name, peer, service, user, engine.now, engine.settings.first_window
            )
            self._engine.commits.commit(
                WorkerRecord(worker_key(name), name, service), otherwise=self._engine.store_failed
            )
        else:
            self._engine.registry.renew(worker, self._engine.now)
        complete = self._engine.expected.take(name)
        self._engine.dispatcher.welcome(worker)
        if complete is not None:
            self._engine.dispatcher.complete(complete)

    def _introduce(self, peer: bytes, worker: Worker | None, command: Open) -> None:
        """Handle OPEN: store the resources of a worker, or answer whether a name is taken."""
        name = ""
        try:
            if len(command.body) > self._engine.settings.open_octets:
                raise BodyError("the body of OPEN is too large")
            body = bodies.read_open(command.body)
            resources, name = frozenset(body.resources), body.name
        except BodyError as error:
            self._engine.drop(peer, "malformed", str(error))
            resources = frozenset()
        if name and name in self._engine.registry.workers:
            # libzmq ignores a second connection with the same routing id, so this one has another.
            self._engine.report(Refused(peer, f"another worker named {name} is connected"))
            self._engine.send(peer, "worker", Open(bodies.TAKEN))
            return
        if worker is not None:
            worker.resources = resources
            self._engine.dispatcher.serve_waiting(worker)
        else:
            self._engine.registry.announce(peer, resources, len(command.body))
        self._engine.send(peer, "worker", Open())

    def turn_away(self, peer: bytes, service: str, reason: str) -> None:
        """Say DISCONNECT, after which nothing more is sent to this worker."""
        worker = self._registered(peer)
        self._engine.send(peer, "worker", Disconnect(service or (worker.service if worker else "")))
        if worker is not None:
            self._lose(worker, reason)

    def disconnect(self, worker: Worker) -> None:
        """Have the worker register again; what it has waits for it."""
        engine = self._engine
        engine.send(worker.peer, "worker", Disconnect(worker.service))
        self._remove(worker, "was told to register again")
        engine.expected.expect(worker.name, worker.service, engine.now + engine.settings.expiry_s)
        self._engine.dispatcher.set_aside(worker)

    def lose_peer(self, peer: bytes, reason: str) -> None:
        """The worker with this routing id is gone, if there is one."""
        worker = self._registered(peer)
        if worker is not None:
            self._lose(worker, reason)

    def _lose(self, worker: Worker, reason: str) -> None:
        self._remove(worker, reason)
        self._engine.commits.commit(
            ForgottenRecord(worker_key(worker.name), "left"), otherwise=self._engine.store_failed
        )
        self._engine.dispatcher.lose(worker, reason)

    def _remove(self, worker: Worker, reason: str) -> None:
        self._engine.registry.remove(worker)
        self._engine.inquiries.lose(worker)
        self._engine.errands.lose(worker, reason)
        self._engine.report(WorkerGone(worker.name, worker.service, reason))

    def _registered(self, peer: bytes) -> Worker | None:
        try:
            return self._engine.registry.workers.get(peer.decode())
        except UnicodeDecodeError:
            return None

    def tick(self) -> None:
        """Lose who is silent, give the others a sign of life, and give up who does not come back."""
        self._give_up_expected()
        settings = self._engine.settings
        for worker in list(self._engine.registry.workers.values()):
            if self._engine.now - worker.seen_at >= settings.expiry_s:
                self._lose(worker, f"was silent for {settings.expiry_s:g} s")
            elif self._engine.now - worker.sent_at >= settings.keepalive_s:
                worker.sent_at = self._engine.now
                worker.keepalives_out += 1
                self._engine.send(worker.peer, "worker", Keepalive(worker.service))

    def _give_up_expected(self) -> None:
        engine = self._engine
        for name in engine.expected.overdue(engine.now):
            engine.commits.commit(ForgottenRecord(worker_key(name), "left"), otherwise=engine.store_failed)
            complete = engine.expected.take(name)
            if complete is not None:
                engine.dispatcher.complete(complete)
