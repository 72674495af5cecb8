"""Fold of the messages of one NORFAB job: the job's row, and a row for each worker's part.

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

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from specwire.runtime.spark.answers.folding import Found, Word
from specwire.runtime.spark.answers.jobrows import job_columns, part_columns
from specwire.runtime.spark.answers.jobstate import Job, Part

T = TypeVar("T")

KEYS = ("tap", "uuid")

LINGER_NS = 60 * 1_000_000_000
GIVEN_UP_NS = 86_400 * 1_000_000_000

ACCEPTED = (201, 202)
WAITING = (102, 300)
UNKNOWN = (400, 404)


class Entry(msgspec.Struct, frozen=True):
    """One worker's result in an answer; `run_s` is the time that the worker states."""

    worker: str = ""
    failed: bool | None = None
    run_s: int | None = None


_ENTRIES = msgspec.json.Decoder(list[Entry])
_NAMES = msgspec.json.Decoder(list[str])


def _read(decoder: msgspec.json.Decoder[list[T]], text: str | None) -> list[T]:
    """Return a list in JSON; empty where it is none."""
    try:
        return decoder.decode(text or "[]")
    except (msgspec.DecodeError, RecursionError):
        return []


def _results(word: Word) -> list[Entry]:
    """Return the results of workers in an answer; only one that ends something has any."""
    final = word["status"] == 200 or (word["status"] or 0) >= 400
    return _read(_ENTRIES, word["entries"]) if final else []


class JobFolder:
    """Folds the words on one uuid; see `specwire.runtime.spark.answers.folding.Folder`."""

    def __init__(self, key: Sequence[Any], known: bytes | None) -> None:
        self._key = dict(zip(KEYS, key, strict=True))
        self._job: Job | None = None if known is None else _DECODER.decode(known)

    def take(self, word: Word) -> Iterable[Found]:
        """See `Folder.take`."""
        job, done = self._job, list[Found]()
        if job is not None and word["mono"] - job.last_mono > _limit(job):
            done, job = self._rows(job, closed=True), None
        if job is None:
            job = Job(ts=word["ts"], seq=word["seq"], mono=word["mono"], last_mono=word["mono"])
        self._job = job
        job.last_mono = word["mono"]
        if word["leg"] == "client":
            _client_leg(job, word)
        else:
            _worker_leg(job, word)
        return done

    def rest(self, tap_mono: int) -> tuple[Iterable[Found], Iterable[Found], bytes | None]:
        """See `Folder.rest`."""
        job = self._job
        if job is None:
            return (), (), None
        if tap_mono - job.last_mono > _limit(job):
            return self._rows(job, closed=True), (), None
        return (), self._rows(job, closed=False), _ENCODER.encode(job)

    def _rows(self, job: Job, *, closed: bool) -> list[Found]:
        job_row = self._key | job_columns(job, closed=closed)
        parts = [
            ("job_parts", self._key | part_columns(job, part, closed=closed)) for part in job.parts.values()
        ]
        return [("jobs", job_row), *parts]


def _limit(job: Job) -> int:
    return LINGER_NS if job.over else GIVEN_UP_NS


# --- what words say


def _client_leg(job: Job, word: Word) -> None:
    job.conversation = job.conversation or word["conversation"]
    job.client = job.client or word["name"]
    kind, mono = word["kind"], word["mono"]
    management = (word["service"] or "").endswith(".service.broker")
    if kind == "post" or (kind == "get" and management and not job.asked):
        if not job.asked:
            job.asked = True
            job.service, job.target, job.task = word["service"], word["target"], word["task"]
    elif kind == "get":
        job.polls += 1
        job.service = job.service or word["service"]
    elif kind == "event":
        job.events += 1
        _starts(job, word["worker"], mono, "event")
    elif kind == "response":
        _reply(job, word)


def _reply(job: Job, word: Word) -> None:
    """Apply a message from the broker to the client."""
    mono, status, entries = word["mono"], word["status"], _results(word)
    if entries:
        for entry in entries:
            _result(_part(job, entry.worker), mono, status, entry)
    elif status == 202:
        workers = _read(_NAMES, word["workers"])
        if workers and job.dispatched is None:
            job.dispatched = mono
            for name in workers:
                _part(job, name)
    elif status in ACCEPTED and word["worker"]:
        _accepts(_part(job, word["worker"]), mono)
    elif status in WAITING:
        if word["word"] == "STARTED" or status == 102:
            _starts(job, word["worker"], mono, "status")
    elif status == 200:
        _end(job, "deleted" if word["word"] == "DELETED" else "done", status, mono)
    elif status is not None and status >= 400 and not (status in UNKNOWN and (job.parts or job.polls)):
        _end(job, "refused", status, mono)


def _worker_leg(job: Job, word: Word) -> None:
    name = word["name"] or word["conversation"]
    kind, mono = word["kind"], word["mono"]
    if kind == "post":
        part = _part(job, name)
        part.sent = mono if part.sent is None else part.sent
        if job.conversation is None:  # a worker's tap: the broker's POST is the only one
            job.asked, job.client = True, job.client or word["client"]
            job.task = job.task or word["task"]
    elif kind == "event":
        job.events += 1
        _starts(job, name, mono, "event")
        _call(job, word, word["worker"])
    elif kind == "response":
        _call(job, word, word["worker"])
        _answer(job, name, word)


def _answer(job: Job, name: str, word: Word) -> None:
    """Apply a message from a worker to the broker."""
    mono, status, entries = word["mono"], word["status"], _results(word)
    own = [entry for entry in entries if entry.worker == name] or entries[:1]
    if own:
        _call(job, word, own[0].worker)
        _result(_part(job, name), mono, status, own[0])
    elif status in ACCEPTED:
        _accepts(_part(job, name), mono)
    elif status in WAITING:
        if word["word"] == "STARTED" or status == 102:
            _starts(job, name, mono, "status")
    elif status == 200 and word["word"] != "DELETED":
        _result(_part(job, name), mono, status, Entry(failed=False))
    elif status is not None and status >= 400 and status not in UNKNOWN:
        _result(_part(job, name), mono, status, Entry(failed=True))


def _part(job: Job, name: str) -> Part:
    return job.parts.setdefault(name, Part(worker=name))


def _call(job: Job, word: Word, worker: str | None) -> None:
    """Set the worker's name of a part that was known only by its connection."""
    part = job.parts.get(word["conversation"])
    if word["name"] is None and part is not None and worker and part.worker == word["conversation"]:
        part.worker = worker


def _accepts(part: Part, mono: int) -> None:
    part.accepted = mono if part.accepted is None else part.accepted


def _starts(job: Job, name: str | None, mono: int, sign: str) -> None:
    if name:
        part = _part(job, name)
        if part.started is None and part.ended is None:
            part.started, part.started_by = mono, sign


def _result(part: Part, mono: int, status: int, entry: Entry) -> None:
    if part.ended is None:
        part.ended, part.status = mono, status
        part.failed = bool(entry.failed) or status >= 400
        part.run_s = entry.run_s


def _end(job: Job, end: str, status: int, mono: int) -> None:
    if job.end is None:
        job.end, job.status, job.ended = end, status, mono


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Job)
