"""The client's engine: commands in, actions out; no socket, file, thread, clock or randomness.

A job is stored before it is sent, sent until the broker has it, and then waited for: results are pushed, or asked for
where a worker says that there is one, and now and then without cause. After the connection was lost, or the process was
killed, every job that has not ended is posted again (where the broker has not said that it has it) or asked for, under the
same uuid, so nothing is done twice. A job ends with the results of its workers, with a failure that says why, or, when its
time is over, with 408 (`State.STALE`); what comes after that is still taken.

It is put together from parts: the `Way` (which connection there is), the `Table` (jobs, and how they end), `Asking` (what the
broker is asked about them), the `Agenda` (when), `Replies` (what it says of them), and `Questions` (everything that is no job).

`now` is seconds since the epoch and does not go backwards while the engine lives. No message, however odd, makes a method
raise. The life of an engine: `restore` with what the store has, `open`, then anything in any order, at last `close`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from specwire.runtime.norfab.client.actions import Action, Close, Connect, Report, Send, Store
from specwire.runtime.norfab.client.agenda import Agenda
from specwire.runtime.norfab.client.asking import Asking, Kind
from specwire.runtime.norfab.client.events import (
    Connected,
    Connecting,
    ConnectionLost,
    DropKind,
    Dropped,
    Happening,
    Piece,
    StoreFailed,
)
from specwire.runtime.norfab.client.job import EARLIER, NEVER, Job
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.questions import Questions
from specwire.runtime.norfab.client.records import JobRecord, Kept, Record
from specwire.runtime.norfab.client.replies import Replies
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.client.states import DISPATCHED, FAILED, NEW, STALE, SUBMITTING
from specwire.runtime.norfab.client.table import Table
from specwire.runtime.norfab.client.way import Way
from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Event,
    Get,
    Mmi,
    MmiReply,
    Open,
    Post,
    Put,
    Response,
    Stream,
)


class ClientEngine:
    """One client.

    Args:
        endpoints: of brokers, the preferred one first.
        settings: its bounds and times.
        observed: somebody wants to hear of each change of a job (`JobChanged`), and not of its end alone.

    Attributes:
        now: the time of the call that is being handled.
    """

    __slots__ = (
        "_out",
        "_replies",
        "_tickets",
        "_uncommitted",
        "agenda",
        "asking",
        "now",
        "observed",
        "questions",
        "settings",
        "table",
        "way",
    )

    def __init__(
        self,
        endpoints: Sequence[str],
        settings: ClientSettings | None = None,
        *,
        now: float,
        observed: bool = True,
    ) -> None:
        self.settings = settings or ClientSettings()
        self.now, self.observed = now, observed
        self.way = Way(endpoints, self.settings)
        self.table = Table(self)
        self.agenda = Agenda(self)
        self.asking = Asking(self._ask)
        self.questions = Questions(self)
        self._replies = Replies(self)
        self._out: list[Action] = []
        self._tickets = count(1)
        self._uncommitted: dict[int, str] = {}

    @property
    def room(self) -> int:
        """How many jobs may be submitted now."""
        return self.settings.jobs - self.table.open

    def look(self, uuid: str) -> JobResult | None:
        """Return how a job of the table stands."""
        job = self.table.by_uuid.get(uuid)
        return None if job is None else job.result()

    def deadline(self, uuid: str) -> float:
        """Return until when a job of the table is waited for; 0 where there is none."""
        job = self.table.by_uuid.get(uuid)
        return 0.0 if job is None else job.deadline

    def ticket(self) -> int:
        """Return the number of a store that is the shell's own: `stored` and `not_stored` take it like any other."""
        return next(self._tickets)

    # --- what the shell calls

    def restore(self, kept: Iterable[Kept], now: float) -> list[Action]:
        """Go on with jobs that an earlier process had."""
        self.now = now
        for one in kept:
            self.table.take_back(one, None)
        return self._done()

    def open(self, now: float) -> list[Action]:
        """Connect."""
        self.now = now
        self._connect()
        return self._done()

    def submit(self, record: JobRecord, now: float) -> list[Action]:
        """Take a job: it is stored first. The caller has looked whether there is `room`, and made a uuid of its own."""
        self.now = now
        job = self.table.add(record)
        self._uncommitted[self.store(record)] = job.uuid
        return self._done()

    def adopt(self, record: JobRecord, now: float) -> list[Action]:
        """Wait for a job that another client submitted, or this one in a time that nothing is kept of."""
        self.now = now
        job = self.table.add(record)
        job.known_at, job.state, job.asked = EARLIER, DISPATCHED, True
        self.store(record, job.state_record())
        self.ask_again(job)
        return self._done()

    def collect(self, uuid: str, deadline: float, now: float, kept: Kept | None = None) -> list[Action]:
        """Wait for a job (again) until `deadline`; one that is not in the table comes from the store as `kept`."""
        self.now = now
        job = self.table.by_uuid.get(uuid)
        if job is None and kept is not None:
            self.table.take_back(kept, deadline)
        elif job is not None and job.state is STALE:
            self.table.resume(job, deadline)
        elif job is not None and deadline > job.deadline:
            self.table.extend(job, deadline)
        return self._done()

    def delete(self, uuid: str, service: str, until: float, now: float) -> list[Action]:
        """Have a job deleted everywhere; `Answered` says what became of it."""
        self.now = now
        job = self.table.by_uuid.get(uuid)
        if job is not None and not job.asked:
            self.table.end(job, FAILED, 400, "it was deleted before it was sent")
        target = "all" if job is None or job.target == "any" else job.target
        self.questions.delete(Delete(uuid, service=service, target=target), until)
        return self._done()

    def ask(self, command: Mmi, task: str, until: float, now: float) -> list[Action]:
        """Ask a service of the broker, or the management of workers; `Answered` has the answer."""
        self.now = now
        self.questions.ask(command, task, until)
        return self._done()

    def put(self, uuid: str, body: bytes, workers: str, now: float) -> list[Action]:
        """Send input to a job that runs, once; nothing tells whether it arrives."""
        self.now = now
        job = self.table.by_uuid.get(uuid)
        if job is not None and self.way.up:
            target = workers or job.target_of_question(self.way.number)
            self.send(Put(uuid, body, job.service, target))
        return self._done()

    def receive(self, command: Command, now: float) -> list[Action]:
        """Take what the broker says."""
        self.now = now
        self._hear()
        match command:
            case Response() | MmiReply() if self.questions.take(command):
                pass
            case Response():
                self._response(command)
            case Event():
                self._event(command)
            case Stream() if command.uuid in self.table.by_uuid:
                self.report(Piece(command.uuid, command.status, bytes(command.body)))
            case MmiReply() | Open():
                pass  # the twin of a RESPONSE that was taken, or a greeting
            case _:
                uuid = getattr(command, "uuid", "")
                self.drop(uuid, "unexpected", f"no broker sends {type(command).__name__.upper()} to a client")
        return self._done()

    def malformed(self, reason: str, now: float) -> list[Action]:
        """Take note of a message that cannot be read."""
        self.now = now
        self.drop("", "malformed", reason)
        return self._done()

    def stored(self, ticket: int, now: float) -> list[Action]:
        """Everything up to `ticket`, but for what failed, is durable: what waited for it is sent."""
        self.now = now
        while self._uncommitted and (first := next(iter(self._uncommitted))) <= ticket:
            job = self.table.by_uuid.get(self._uncommitted.pop(first))
            if job is not None and job.state is NEW:
                job.state = SUBMITTING
                self.asking.want(job.uuid, "post")
        self.pump()
        return self._done()

    def not_stored(self, ticket: int, reason: str, now: float) -> list[Action]:
        """The records of `ticket` could not be kept: a job that is not on disk is not sent."""
        self.now = now
        self.report(StoreFailed(reason))
        job = self.table.by_uuid.get(self._uncommitted.pop(ticket, ""))
        if job is not None and job.state is NEW:
            self.table.end(job, FAILED, 500, f"it could not be stored, and was not sent: {reason}")
        return self._done()

    def lost(self, reason: str, now: float) -> list[Action]:
        """There is no connection any more."""
        self.now = now
        self._lose(reason)
        return self._done()

    def tick(self, now: float) -> list[Action]:
        """Do what is due; some times a second."""
        self.now = now
        if self.way.is_due(now):
            self._connect()
        self._find_silence()
        self.questions.tick()
        self.agenda.tick()
        self.table.keep_changes()
        self.pump()
        return self._done()

    def close(self, now: float) -> list[Action]:
        """Say nothing more; jobs that have not ended go on when another engine is given them."""
        self.now = now
        self.table.keep_changes()
        self.way.close()
        self._out.append(Close())
        return self._done()

    # --- what the broker says

    def _hear(self) -> None:
        if self.way.heard(self.now):
            self.report(Connected(self.way.endpoint))
            self.pump()

    def _response(self, command: Response) -> None:
        uuid, status = command.uuid, command.status
        job = self.table.by_uuid.get(uuid)
        if job is not None and not self._replies.response(job, command):
            return
        if status in (200, 400, 404) and self.questions.deleted(uuid, status, bytes(command.body)):
            return
        if job is None and (state := self.table.ended.get(uuid)) is not None:
            self.drop(uuid, "double", f"{status} for a job that is {state}")
        elif job is None:
            self.drop(uuid, "unknown", "nobody here has such a job")

    def _event(self, command: Event) -> None:
        job = self.table.by_uuid.get(command.uuid)
        if job is not None:
            self._replies.event(job, command)
        else:
            known = command.uuid in self.table.ended
            self.drop(command.uuid, "late" if known else "unknown", "progress of no job that is open")

    # --- the connection

    def _connect(self) -> None:
        endpoint = self.way.make(self.now)
        self._out.append(Connect(endpoint))
        self.report(Connecting(endpoint))
        self.questions.connected()
        for job in self.table.by_uuid.values():
            self._want(job)
        self.pump()

    def _lose(self, reason: str) -> None:
        if not self.way.up:
            return
        heard = bool(self.way.heard_at)
        self.report(ConnectionLost(self.way.endpoint, reason))
        self.asking.reset()
        self._out.append(Close())
        self.way.lose(reason, self.now)
        self.questions.lost(reason, heard=heard)

    def _find_silence(self) -> None:
        """Ask again what has no answer; where nothing has come at all since it was asked, the connection is lost."""
        if not self.way.up:
            return
        before = self.now - self.settings.silence_s
        overdue = self.asking.overdue(before)
        waiting = [asked.at for _, asked in overdue]
        oldest = self.questions.unanswered_since()
        if oldest is not None and oldest <= before:
            waiting.append(oldest)
        if waiting and self.way.heard_at <= min(waiting):
            self._lose(f"no answer for {self.settings.silence_s:g} s")
            return
        for uuid, asked in overdue:
            self.asking.drop(uuid)
            self.asking.want(uuid, asked.kind)

    # --- questions about jobs

    def ask_again(self, job: Job) -> None:
        """Post a job, or ask for it, after a break."""
        if self.way.up:
            self._want(job)
            self.pump()

    def _want(self, job: Job) -> None:
        if not job.state.ended and job.state is not NEW:
            self.asking.want(job.uuid, "get" if job.known_at != NEVER else "post")

    def pump(self) -> None:
        """Ask about jobs what may be asked now."""
        if self.way.up:
            window = self.settings.window if self.way.heard_at else self.settings.untried_window
            self.asking.pump(window, self.now)

    def _ask(self, uuid: str, kind: Kind) -> bool:
        job = self.table.by_uuid.get(uuid)
        if job is None or job.state.ended:
            return False
        job.asked = True
        if kind == "post" and job.ours:
            job.posted_at = self.way.number
            self.send(Post(uuid, job.body, job.service, job.target_of_post()))
        else:
            self.send(Get(uuid, service=job.service, target=job.target_of_question(self.way.number)))
        return True

    # --- what goes out

    def store(self, *records: Record) -> int:
        """Have records stored, together with what else this call has stored; return the ticket."""
        ticket = self.ticket()
        for at, action in enumerate(self._out):
            if type(action) is Store:
                self._out[at] = Store(ticket, action.records + records)
                return ticket
        self._out.append(Store(ticket, records))
        return ticket

    def send(self, command: Command) -> None:
        """Send to the broker."""
        self._out.append(Send(command))

    def report(self, happening: Happening) -> None:
        """Tell whoever runs the client."""
        self._out.append(Report(happening))

    def drop(self, uuid: str, kind: DropKind, reason: str) -> None:
        """Do nothing with a message, and say so."""
        self.report(Dropped(uuid[:80], kind, reason))

    def _done(self) -> list[Action]:
        done = self._out[:]
        self._out.clear()
        return done
