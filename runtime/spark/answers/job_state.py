"""State of one NORFAB job: what each message changes, and the rows of the job and its parts.

A job ends when the broker refuses or deletes it, when a management service has answered, or when
every worker that it went to has a result; for the target ``any`` one result is enough. For a minute
after its end its other messages (a late GET, the result on its way from the broker to the client)
still belong to it. Later messages are a separate job whose POST was not seen. A job without
messages for a day is given up.

A part's result is the first one at the tap; at a broker's tap it is from the worker. A part runs
from its first EVENT, or from a status 102 or 300 that reports it. If a worker sends neither, its
part runs from its acceptance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from specwire.runtime.spark.answers.incremental import AnswerRow, Message, TrackerEnd

T = TypeVar("T")

LINGER_NS = 60 * 1_000_000_000
GIVEN_UP_NS = 86_400 * 1_000_000_000

ACCEPTED = (201, 202)
WAITING = (102, 300)
UNKNOWN = (400, 404)


class JobPart(msgspec.Struct):
    """A worker's part; times are of the tap's monotonic clock in nanoseconds.

    State of earlier versions has these names.
    """

    worker: str
    sent: int | None = None
    accepted: int | None = None
    started: int | None = None
    started_by: str | None = None
    ended: int | None = None
    status: int | None = None
    failed: bool | None = None
    run_s: int | None = None

    def accept(self, mono: int) -> None:
        """Note the first acceptance."""
        if self.accepted is None:
            self.accepted = mono

    def finish(self, mono: int, status: int, result: PartResult) -> None:
        """Note the first result."""
        if self.ended is None:
            self.ended, self.status, self.run_s = mono, status, result.run_s
            self.failed = bool(result.failed) or status >= 400

    @property
    def outcome(self) -> str | None:
        """`failed` or `done`; None without a result."""
        return None if self.ended is None else "failed" if self.failed else "done"


class JobState(msgspec.Struct):
    """State of a job; `asked` is true if its POST was seen.

    State of earlier versions has these names.
    """

    ts: Any
    seq: int
    mono: int
    last_mono: int
    asked: bool = False
    conversation: str | None = None
    client: str | None = None
    service: str | None = None
    target: str | None = None
    task: str | None = None
    dispatched: int | None = None
    parts: dict[str, JobPart] = {}  # msgspec makes a new one for each
    ended: int | None = None
    end: str | None = None
    status: int | None = None
    events: int = 0
    polls: int = 0

    @property
    def results(self) -> list[JobPart]:
        """Return the parts that have a result."""
        return [part for part in self.parts.values() if part.ended is not None]

    @property
    def over(self) -> bool:
        """Return whether no more messages are expected."""
        results = len(self.results)
        return self.end is not None or (results > 0 and (self.target == "any" or results == len(self.parts)))

    @property
    def limit_ns(self) -> int:
        """Return the silence after which a message belongs to another job."""
        return LINGER_NS if self.over else GIVEN_UP_NS

    def part(self, name: str) -> JobPart:
        """Return the part of a worker, a new one if necessary."""
        return self.parts.setdefault(name, JobPart(worker=name))

    def start(self, name: str | None, mono: int, sign: str) -> None:
        """Note the first sign that a worker's task runs."""
        if name:
            part = self.part(name)
            if part.started is None and part.ended is None:
                part.started, part.started_by = mono, sign

    def finish(self, end: str, status: int, mono: int) -> None:
        """Note the first end that the broker states."""
        if self.end is None:
            self.end, self.status, self.ended = end, status, mono

    def since_post(self, mono: int | None) -> int | None:
        """Return the microseconds from the POST to a time; None if either is not known."""
        return None if mono is None or not self.asked else (mono - self.mono) // 1000


class PartResult(msgspec.Struct, frozen=True):
    """One worker's result in a response; `run_s` is the time that the worker states."""

    worker: str = ""
    failed: bool | None = None
    run_s: int | None = None


_RESULTS = msgspec.json.Decoder(list[PartResult])
_NAMES = msgspec.json.Decoder(list[str])
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(JobState)


class JobTracker:
    """Tracker of one uuid; see `specwire.runtime.spark.answers.incremental.KeyTracker`."""

    def __init__(self, key: dict[str, Any], known: bytes | None) -> None:
        self._key = key
        self._job: JobState | None = None if known is None else _DECODER.decode(known)

    def add(self, message: Message) -> Iterable[AnswerRow]:
        job, done, mono = self._job, list[AnswerRow](), message["mono"]
        if job is not None and mono - job.last_mono > job.limit_ns:
            done, job = self._rows(job, closed=True), None
        if job is None:
            job = JobState(ts=message["ts"], seq=message["seq"], mono=mono, last_mono=mono)
        self._job = job
        job.last_mono = mono
        if message["leg"] == "client":
            _add_client_message(job, message)
        else:
            _add_worker_message(job, message)
        return done

    def end(self, tap_mono: int) -> TrackerEnd:
        job = self._job
        if job is None:
            return TrackerEnd()
        if tap_mono - job.last_mono > job.limit_ns:
            return TrackerEnd(closed=self._rows(job, closed=True))
        return TrackerEnd(open=self._rows(job, closed=False), state=_ENCODER.encode(job))

    def _rows(self, job: JobState, *, closed: bool) -> list[AnswerRow]:
        parts = (("job_parts", self._key | _part_row(job, part, closed)) for part in job.parts.values())
        return [("jobs", self._key | _job_row(job, closed)), *parts]


# --- messages


def _add_client_message(job: JobState, message: Message) -> None:
    """Apply a message between client and broker."""
    job.conversation = job.conversation or message["conversation"]
    job.client = job.client or message["name"]
    kind = message["kind"]
    management = (message["service"] or "").endswith(".service.broker")
    if kind == "post" or (kind == "get" and management and not job.asked):
        if not job.asked:
            job.asked = True
            job.service, job.target, job.task = message["service"], message["target"], message["task"]
    elif kind == "get":
        job.polls += 1
        job.service = job.service or message["service"]
    elif kind == "event":
        job.events += 1
        job.start(message["worker"], message["mono"], "event")
    elif kind == "response":
        _add_broker_response(job, message)


def _add_broker_response(job: JobState, message: Message) -> None:
    mono, status, worker = message["mono"], message["status"], message["worker"]
    if results := _read_results(message):
        for result in results:
            job.part(result.worker).finish(mono, status, result)
    elif status == 202:
        workers = _read(_NAMES, message["workers"])
        if workers and job.dispatched is None:
            job.dispatched = mono
            for name in workers:
                job.part(name)
    elif status in ACCEPTED and worker:
        job.part(worker).accept(mono)
    elif status in WAITING:
        _add_progress(job, worker, message)
    elif status == 200:
        job.finish("deleted" if message["word"] == "DELETED" else "done", status, mono)
    elif status is not None and status >= 400 and not (status in UNKNOWN and (job.parts or job.polls)):
        job.finish("refused", status, mono)


def _add_worker_message(job: JobState, message: Message) -> None:
    """Apply a message between broker and worker."""
    name = message["name"] or message["conversation"]
    kind, mono = message["kind"], message["mono"]
    if kind == "post":
        part = job.part(name)
        part.sent = mono if part.sent is None else part.sent
        if job.conversation is None:  # a worker's tap: the broker's POST is the only one
            job.asked, job.client = True, job.client or message["client"]
            job.task = job.task or message["task"]
    elif kind == "event":
        job.events += 1
        job.start(name, mono, "event")
        _name_part(job, message, message["worker"])
    elif kind == "response":
        _name_part(job, message, message["worker"])
        _add_worker_response(job, name, message)


def _add_worker_response(job: JobState, name: str, message: Message) -> None:
    mono, status, results = message["mono"], message["status"], _read_results(message)
    own = [result for result in results if result.worker == name] or results[:1]
    if own:
        _name_part(job, message, own[0].worker)
        job.part(name).finish(mono, status, own[0])
    elif status in ACCEPTED:
        job.part(name).accept(mono)
    elif status in WAITING:
        _add_progress(job, name, message)
    elif status == 200 and message["word"] != "DELETED":
        job.part(name).finish(mono, status, PartResult(failed=False))
    elif status is not None and status >= 400 and status not in UNKNOWN:
        job.part(name).finish(mono, status, PartResult(failed=True))


def _add_progress(job: JobState, name: str | None, message: Message) -> None:
    if message["word"] == "STARTED" or message["status"] == 102:
        job.start(name, message["mono"], "status")


def _name_part(job: JobState, message: Message, worker: str | None) -> None:
    """Set the worker's name of a part that was known only by its connection."""
    part = job.parts.get(message["conversation"])
    if message["name"] is None and part is not None and worker and part.worker == message["conversation"]:
        part.worker = worker


def _read_results(message: Message) -> list[PartResult]:
    """Return the results of workers in a response; only one that ends something has any."""
    final = message["status"] == 200 or (message["status"] or 0) >= 400
    return _read(_RESULTS, message["entries"]) if final else []


def _read(decoder: msgspec.json.Decoder[list[T]], text: str | None) -> list[T]:
    """Return a list in JSON; empty if the text is none."""
    try:
        return decoder.decode(text or "[]")
    except (msgspec.DecodeError, RecursionError):
        return []


# --- rows


def _job_row(job: JobState, closed: bool) -> dict[str, Any]:
    failed = [part for part in job.results if part.failed]
    ends = [part.ended for part in job.results if part.ended is not None]
    ended = job.ended if job.end is not None else max(ends, default=None) if job.over else None
    status = job.status
    if status is None and job.over:
        status = next((part.status for part in failed if part.status != 200), 200)
    if not job.over:
        outcome = "open" if not closed else "unanswered" if job.asked else "unasked"
    else:
        outcome = (job.end or ("failed" if failed else "done")) if job.asked else "unasked"
    names = ("conversation", "client", "service", "target", "task", "last_mono", "events", "polls")
    return {
        **{name: getattr(job, name) for name in ("ts", "seq", "mono", *names)},
        "workers": len(job.parts),
        "results": len(ends),
        "failed": len(failed),
        "status": status,
        "outcome": outcome,
        "dispatch_us": job.since_post(job.dispatched),
        "first_us": job.since_post(min(ends, default=None)),
        "latency_us": job.since_post(ended),
    }


def _part_row(job: JobState, part: JobPart, closed: bool) -> dict[str, Any]:
    started, sign = part.started, part.started_by
    if started is None and part.accepted is not None:
        started, sign = part.accepted, "accepted"
    elif started is None and part.sent is not None:
        started, sign = part.sent, "sent"
    return {
        **{name: getattr(job, name) for name in ("conversation", "ts", "seq", "mono", "service", "task")},
        "worker": part.worker,
        "sent_mono": part.sent,
        "accepted_mono": part.accepted,
        "started_mono": started,
        "ended_mono": part.ended,
        "started_by": sign,
        "status": part.status,
        "failed": part.failed,
        "outcome": part.outcome or ("unanswered" if closed or job.over else "open"),
        "queue_us": job.since_post(started),
        "run_us": (part.ended - started) // 1000 if part.ended is not None and started is not None else None,
        "latency_us": job.since_post(part.ended),
        "stated_run_s": part.run_s,
    }
