"""Engine of the client: commands in, effects out; no socket, file, thread, clock or randomness.

A job is stored before it is sent, and posted until the broker has accepted it. Then the engine waits for
its results: workers push them, and the engine asks for them when a worker reports one and from time to
time. After a lost connection or a kill, every job that has not ended is posted again (if the broker has
not accepted it) or asked for, under the same uuid, so that nothing runs twice. A job ends with the
results of its workers, with a failure that names the cause, or with 408 when its time is over
(`State.STALE`). Results that arrive after that are still accepted.

Parts: `Way` (the connection), `Table` (jobs, and how they end), `Asking` (questions to the broker about
jobs), `Agenda` (timers), `Replies` (answers about jobs), `Questions` (everything that is not a job).

`now` is seconds since the epoch, and never decreases while the engine exists. No message makes a method
raise. Call `restore` with the stored jobs, then `open`, then anything in any order, and `close` last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.client.actions import Action, Close, Connect, Report, Send
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
from specwire.runtime.norfab.client.records import JobRecord, Record, StoredJob
from specwire.runtime.norfab.client.replies import Replies
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.client.states import DISPATCHED, FAILED, NEW, STALE, SUBMITTING
from specwire.runtime.norfab.client.table import Table, listed
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

LARGE_OCTETS = 1 << 20
SMALL_QUESTION = Mmi(
    "0" * 32, b'{"task":"show_broker_version","kwargs":{},"args":[]}', "mmi.service.broker", "all"
)
"""A command that every broker answers. Until a connection has delivered a message, a broker disconnects it
for a larger one than it accepts from a stranger. The answer is ignored."""


class ClientEngine:
    """Engine of one client.

    Args:
        endpoints: brokers, the preferred one first.
        settings: bounds and times.
        observed: emit `JobChanged` for each change of a job, not only `JobEnded`.

    Attributes:
        now: the time of the current call.
    """

    __slots__ = (
        "_out",
        "_replies",
        "_ticket",
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
        self._ticket = 0
        self._uncommitted: dict[int, tuple[Record, ...]] = {}

    @property
    def room(self) -> int:
        """Number of jobs that can be submitted now."""
        return self.settings.jobs - self.table.open

    def look(self, uuid: str) -> JobResult | None:
        """Return the state and the results of a job of the table, or None."""
        job = self.table.by_uuid.get(uuid)
        return None if job is None else job.result()

    def deadline(self, uuid: str) -> float:
        """Return the deadline of a job of the table, or 0."""
        job = self.table.by_uuid.get(uuid)
        return 0.0 if job is None else job.deadline

    def ticket(self) -> int:
        """Return a new ticket, for a write of the session."""
        self._ticket += 1
        return self._ticket

    # --- called by the session

    def restore(self, jobs: Iterable[StoredJob], now: float) -> list[Action]:
        """Resume the jobs of an earlier process."""
        self.now = now
        for stored in jobs:
            self.table.restore(stored, None)
        return self._done()

    def open(self, now: float) -> list[Action]:
        """Connect."""
        self.now = now
        self._connect()
        return self._done()

    def submit(self, record: JobRecord, now: float) -> list[Action]:
        """Add a job, which is sent when its record is durable. The caller has checked `room` and the uuid."""
        self.now = now
        self.table.add(record).unstored = True
        self.store(record, refusable=True)
        return self._done()

    def adopt(self, record: JobRecord, now: float) -> list[Action]:
        """Wait for a job that is not stored here, for example one that another client submitted."""
        self.now = now
        job = self.table.add(record)
        job.known_at, job.state, job.asked = EARLIER, DISPATCHED, True
        self.store(record, job.state_record())
        self.ask_again(job)
        return self._done()

    def collect(
        self, uuid: str, deadline: float, now: float, stored: StoredJob | None = None
    ) -> list[Action]:
        """Wait for a job until `deadline`. A job that is not in the table is passed as `stored`."""
        self.now = now
        job = self.table.by_uuid.get(uuid)
        if job is None and stored is not None:
            self.table.restore(stored, deadline)
        elif job is not None and job.state is STALE:
            self.table.resume(job, deadline)
        elif job is not None and deadline > job.deadline:
            self.table.extend(job, deadline)
        return self._done()

    def delete(self, uuid: str, service: str, until: float, now: float) -> list[Action]:
        """Delete a job at the broker, its workers and here. `Answered` has the outcome."""
        self.now = now
        job = self.table.by_uuid.get(uuid)
        if job is not None and not job.asked:
            self.table.end(job, FAILED, 400, "it was deleted before it was sent")
        target = "all" if job is None or job.target == "any" else job.target
        self.questions.delete(Delete(uuid, service=service, target=target), until)
        return self._done()

    def ask(self, command: Mmi, task: str, until: float, now: float) -> list[Action]:
        """Send a request to a service of the broker, or to the management of workers.

        `Answered` has the answer.
        """
        self.now = now
        self.questions.ask(command, task, until)
        return self._done()

    def put(self, uuid: str, body: bytes, workers: str, now: float) -> list[Action]:
        """Send input to a running job, once. The protocol does not acknowledge it."""
        self.now = now
        job = self.table.by_uuid.get(uuid)
        if job is not None and self.way.up:
            target = workers or job.target_of_question(self.way.number)
            self.send(Put(uuid, body, job.service, target))
        return self._done()

    def receive(self, command: Command, now: float) -> list[Action]:
        """Handle a command from the broker."""
        self.now = now
        self._note_contact()
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
                pass  # an answer that came as a RESPONSE, too, or a greeting
            case _:
                uuid = getattr(command, "uuid", "")
                self.drop(uuid, "unexpected", f"no broker sends {type(command).__name__.upper()} to a client")
        return self._done()

    def malformed(self, reason: str, now: float) -> list[Action]:
        """Handle a message that cannot be decoded."""
        self.now = now
        self.drop("", "malformed", reason)
        return self._done()

    def stored(self, ticket: int, now: float) -> list[Action]:
        """Handle that each commit up to `ticket` is durable or has failed; send the new jobs."""
        self.now = now
        while self._uncommitted and (first := next(iter(self._uncommitted))) <= ticket:
            job = self.table.by_uuid.get(self._uncommitted.pop(first)[0].uuid)
            if job is not None and job.unstored:  # then this was the commit of its record
                job.unstored = False
                if job.state is NEW:
                    job.state = SUBMITTING
                    self.asking.want(job.uuid, "post")
        self.pump()
        return self._done()

    def not_stored(self, ticket: int, reason: str, now: float) -> list[Action]:
        """Handle a failed commit. A new job fails, and is not sent; other failures are reported."""
        self.now = now
        records = self._uncommitted.pop(ticket, ())
        job = self.table.by_uuid.get(records[0].uuid) if records else None
        if job is not None and job.unstored:
            self.table.end(job, FAILED, 500, f"it could not be stored, and was not sent: {reason}")
        else:
            jobs = listed(list(dict.fromkeys(record.uuid for record in records)))
            what = f"records of {jobs}" if jobs else "the deletion of old jobs"
            self.report(StoreFailed(f"{what} could not be stored: {reason}"))
        return self._done()

    def lost(self, reason: str, now: float) -> list[Action]:
        """Handle that the connection is lost."""
        self.now = now
        self._lose(reason)
        return self._done()

    def tick(self, now: float) -> list[Action]:
        """Do what is due. Call it several times a second."""
        self.now = now
        if self.way.is_due(now):
            self._connect()
        self._find_silence()
        self.questions.tick()
        self.agenda.tick()
        self.table.store_changes()
        self.pump()
        return self._done()

    def close(self, now: float) -> list[Action]:
        """Close the connection. Another engine resumes the jobs that have not ended."""
        self.now = now
        self.table.store_changes()
        self.way.close()
        self._out.append(Close())
        return self._done()

    # --- commands of the broker

    def _note_contact(self) -> None:
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
        """Repeat unanswered questions, or give up a connection that is silent since they were sent."""
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
        """Post a job, or ask for it, after an interruption."""
        if self.way.up:
            self._want(job)
            self.pump()

    def _want(self, job: Job) -> None:
        if not job.state.ended and job.state is not NEW:
            self.asking.want(job.uuid, "get" if job.known_at != NEVER else "post")

    def pump(self) -> None:
        """Send the questions about jobs for which the window has room."""
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

    # --- effects

    def store(self, *records: Record, refusable: bool = False) -> None:
        """Commit records, together with those that the current call has already stored."""
        ticket = self.ticket()
        for index, action in enumerate(self._out):
            if type(action) is Commit:
                del self._uncommitted[action.ticket]
                records = action.records + records
                self._out[index] = Commit(ticket, records, action.refusable or refusable)
                break
        else:
            self._out.append(Commit(ticket, records, refusable))
        self._uncommitted[ticket] = records

    def send(self, command: Command) -> None:
        """Send a command to the broker, after a small one if it is large and the first of the connection."""
        if not self.way.spoken and len(getattr(command, "body", b"")) > LARGE_OCTETS:
            self._out.append(Send(SMALL_QUESTION))
        self.way.spoken = True
        self._out.append(Send(command))

    def report(self, happening: Happening) -> None:
        """Pass an event to the user of the client."""
        self._out.append(Report(happening))

    def drop(self, uuid: str, kind: DropKind, reason: str) -> None:
        """Ignore a message, and report that."""
        self.report(Dropped(uuid[:80], kind, reason))

    def _done(self) -> list[Action]:
        done = self._out[:]
        self._out.clear()
        return done
