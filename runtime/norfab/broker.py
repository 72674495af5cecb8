"""The broker's engine: commands in, actions out; no socket, file, thread, clock or randomness.

It is put together from parts, each with one idea: the `Registry` (who works for which service) and `Presence` (how workers come and go), `Posting` (how a job
is taken in), the `Dispatcher` (who gets it), the `Timekeeper` (what is late), the `Relay` (what workers say of it), `Jobs` (the table, and how jobs end), `Results` (where their bodies are),
`Answers` and `Inquiries` (what clients ask), `Management`, `Errands` (what is asked of workers themselves), and `PendingCommits` (what follows once a record is durable).

`now` is seconds since the epoch, and does not go backwards while the engine lives. No message, however odd, makes a
method raise: it is answered, or dropped, counted and reported.

The life of an engine: `restore` once with what the store has, then `receive`, `stored` and `tick` (a few times a second) in
any order, at last `stop`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal

from specwire.runtime.norfab import bodies, commands
from specwire.runtime.norfab.access import Access, Everyone
from specwire.runtime.norfab.actions import Action, Report, Send, Stopped
from specwire.runtime.norfab.answers import Answers
from specwire.runtime.norfab.clients import Clients
from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Get,
    Mmi,
    Open,
    Post,
    Put,
    Role,
)
from specwire.runtime.norfab.dispatching import Dispatcher
from specwire.runtime.norfab.errands import Errands
from specwire.runtime.norfab.events import (
    Dropped,
    Happening,
    Refused,
    StoreAccepts,
    StoreFailed,
    StoreRefuses,
)
from specwire.runtime.norfab.expecting import Expected
from specwire.runtime.norfab.inquiries import Inquiries
from specwire.runtime.norfab.job import OWED, Task
from specwire.runtime.norfab.jobs import Jobs
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.management import Management
from specwire.runtime.norfab.pendingcommits import PendingCommits
from specwire.runtime.norfab.posting import Posting
from specwire.runtime.norfab.presence import Presence
from specwire.runtime.norfab.records import HeldResult, Record
from specwire.runtime.norfab.relaying import Relay
from specwire.runtime.norfab.restoring import restore
from specwire.runtime.norfab.results import Results
from specwire.runtime.norfab.timekeeping import Timekeeper
from specwire.runtime.norfab.workers import Registry, Worker


class BrokerEngine:
    """One broker.

    Args:
        settings: its bounds and times.
        access: who may do what.
        shell_tasks: tasks of services inside the broker that the shell does, by service; None means all of a service.
        about: what management says of this broker: its name, version, folders.

    Attributes:
        now: the time of the call that is being handled.
        out: the actions of that call so far.
        stopping: no new jobs are taken.
        refusing: why the store takes no new job at present; empty where it does.
    """

    __slots__ = (
        "access",
        "answers",
        "clients",
        "commits",
        "dispatcher",
        "dropped",
        "errands",
        "expected",
        "inquiries",
        "jobs",
        "management",
        "now",
        "out",
        "posting",
        "presence",
        "received",
        "refusing",
        "registry",
        "relay",
        "results",
        "sent",
        "settings",
        "started",
        "stopping",
        "timekeeper",
    )

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        now: float,
        access: Access | None = None,
        shell_tasks: Mapping[str, frozenset[str] | None] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.access: Access = access or Everyone()
        self.now = self.started = now
        self.out: list[Action] = []
        self.received = self.sent = self.dropped = 0
        self.stopping = False
        self.commits = PendingCommits(self.out)
        self.refusing = ""
        self.registry = Registry()
        self.clients = Clients(self.settings.clients)
        self.expected = Expected()
        self.results = Results(self)
        self.jobs = Jobs(self)
        self.presence = Presence(self)
        self.dispatcher = Dispatcher(self)
        self.timekeeper = Timekeeper(self)
        self.posting = Posting(self)
        self.answers = Answers(self)
        self.inquiries = Inquiries(self)
        self.errands = Errands(self)
        self.relay = Relay(self)
        self.management = Management(self, shell_tasks or {}, about or {})

    # --- what the shell calls

    def restore(self, records: Iterable[Record | HeldResult], now: float) -> list[Action]:
        """Begin with what the store has, in the order of writing."""
        self.now = now
        restore(self, records)
        return self.done()

    def receive(
        self, peer: bytes, sender: Role, command: Command, now: float, user: str = ""
    ) -> list[Action]:
        """Take a command of `peer` in the role `sender`, as `wire.decode` tells it; `user` is whom security knows."""
        self.take(peer, sender, command, now, user)
        return self.done()

    def take(self, peer: bytes, sender: Role, command: Command, now: float, user: str = "") -> None:
        """The same for one of several commands that came together: `done` returns what comes of all of them."""
        self.now = now
        self.received += 1
        if sender == "client":
            self._from_client(peer, user, command)
        elif sender == "worker":
            self.presence.receive(peer, user, command)
        else:
            self.drop(peer, "unexpected", "only the broker speaks as the broker")

    def done(self) -> list[Action]:
        """Return what is to be done that was not returned yet."""
        done = self.out.copy()
        self.out.clear()
        return done

    def malformed(self, peer: bytes, sender: Role | None, reason: str, now: float) -> list[Action]:
        """Take note of a message that cannot be read; a worker that sent it begins anew."""
        self.now = now
        self.received += 1
        self.drop(peer, "malformed", reason)
        if sender == "worker":
            self.presence.turn_away(peer, "", "sent what cannot be read")
        return self.done()

    def stored(self, ticket: int, now: float) -> list[Action]:
        """Everything up to `ticket` is durable."""
        self.now = now
        self.commits.committed(ticket)
        return self.done()

    def not_stored(self, ticket: int, reason: str, now: float) -> list[Action]:
        """The records of `ticket` were not committed."""
        self.now = now
        self.commits.failed(ticket, reason)
        return self.done()

    def store_refuses(self, reason: str, now: float) -> list[Action]:
        """Refuse new work with this reason until the disk takes records again, which an empty reason says."""
        self.now, self.refusing = now, reason
        self.report(StoreRefuses(reason) if reason else StoreAccepts())
        return self.done()

    def excuse_silence(self, now: float) -> None:
        """Count every worker as heard now: the broker does not listen."""
        for worker in self.registry.workers.values():
            worker.seen_at = now

    def unreachable(self, peer: bytes, role: Role, now: float) -> list[Action]:
        """The socket has no such peer any more: a worker is lost at once, a client will ask again."""
        self.now = now
        if role == "worker":
            self.presence.lose_peer(peer, "is not connected any more")
        else:
            self.clients.unreachable(peer)
        return self.done()

    def answer(self, question: int, status: int, body: bytes, now: float) -> list[Action]:
        """Answer an `Ask`; once, later answers to the same are nothing."""
        self.now = now
        self.management.answer(question, status, body)
        return self.done()

    def fetched(self, question: int, body: bytes | None, now: float) -> list[Action]:
        """Answer a `Fetch`: with the body of the result, with None where the store does not have it."""
        self.now = now
        self.results.fetched(question, body)
        return self.done()

    def tick(self, now: float) -> list[Action]:
        """Do what is due at `now`."""
        self.now = now
        self.presence.tick()
        self.timekeeper.tick()
        self.dispatcher.tick()
        self.inquiries.tick()
        self.errands.tick()
        self.jobs.forget_aged()
        return self.done()

    def stop(self, now: float, reason: str = "the broker stops") -> list[Action]:
        """Stop: workers are told, what is not durable yet is waited for, then comes `Stopped`."""
        self.now = now
        self.end(restart=False, reason=reason)
        return self.done()

    # --- clients

    def _from_client(self, peer: bytes, user: str, command: Command) -> None:
        self.clients.heard(peer, user, self.now)
        if type(command) is Post and command.service not in self.management.inside:  # what comes most often
            self.posting.post(peer, user, command)
            return
        match command:
            case Post() | Mmi() | Get() if command.service in self.management.inside:
                self.management.call(peer, user, command)
            case Get():
                self.answers.get(peer, user, command)
            case Delete():
                self.answers.delete(peer, user, command)
            case Put():
                self.answers.put(peer, user, command)
            case Mmi():
                self._no_such_management(peer, command)
            case Open():
                self.to_client(peer, Open())
            case _:
                self.drop(peer, "unexpected", f"no client sends {type(command).__name__.upper()}")

    def _no_such_management(self, peer: bytes, command: Mmi) -> None:
        why = f"no management of {command.service[:80]!r} here"
        self.report(Refused(peer, why))
        body = bodies.refused(command.uuid, command.target, command.service, why)
        self.to_client(peer, commands.Response(command.uuid, 400, body, command.service))
        self.to_client(peer, commands.MmiReply(command.uuid, 400, body, command.service))

    # --- workers

    def cancel(self, task: Task) -> None:
        """Tell the worker that has, or had, this part that nobody wants it."""
        worker = self.registry.find(task.worker, task.job.service)
        if worker is not None and (task.state in OWED or task.result is not None):
            self.to_worker(worker, Delete(task.job.uuid, client=task.job.client))

    # --- the end

    def end(self, *, restart: bool, reason: str) -> None:
        """Take no more jobs, let the workers go, and say `Stopped` when all is durable that was begun."""
        if self.stopping:
            return
        self.stopping = True
        for worker in list(self.registry.workers.values()):
            self.presence.disconnect(worker)
        stopped = partial(self._stopped, Stopped(restart, reason))
        self.commits.commit(then=stopped, otherwise=lambda _: stopped())

    def _stopped(self, stopped: Stopped) -> None:
        self.out.append(stopped)
        self.jobs.release()

    # --- what goes out

    def to_client(self, peer: bytes, command: Command) -> None:
        """Send to a client."""
        self.sent += 1
        self.out.append(Send(peer, "client", command))

    def to_worker(self, worker: Worker, command: Command) -> None:
        """Send to a worker; the interval of KEEPALIVE is kept all the same, as deployed workers count nothing else."""
        self.sent += 1
        self.out.append(Send(worker.peer, "worker", command))

    def send(self, peer: bytes, role: Role, command: Command) -> None:
        """Send to a peer, whether it is known or not."""
        self.sent += 1
        self.out.append(Send(peer, role, command))

    def report(self, happening: Happening) -> None:
        """Tell whoever runs the broker."""
        if type(happening) is Dropped:
            self.dropped += 1
        self.out.append(Report(happening))

    def store_failed(self, reason: str) -> None:
        """Report that a record could not be committed."""
        self.report(StoreFailed(self.commits.ticket, reason))

    def drop(self, peer: bytes, kind: Literal["malformed", "unexpected"], reason: str) -> None:
        """Do nothing with a message, and say so."""
        self.report(Dropped(peer, kind, reason))
