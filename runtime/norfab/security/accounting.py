"""The accounting log: who ran what, where, and with which outcome, as lines of JSON that are only ever added to.

A line is written when what it tells of has happened, durably, and before anything else is done: kill -9 loses none that
a client knows of. A file that grows beyond `ROTATE_OCTETS` is renamed with the time, and the newest `KEPT` of these are
kept. Where the log cannot be written the broker goes on; how many lines are missing is told by the next that can be
written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.norfab.events import (
    JobAccepted,
    JobDeleted,
    JobEnded,
    JobRedispatched,
    Refused,
    WorkerGone,
    WorkerReady,
)
from specwire.runtime.norfab.job import Job
from specwire.runtime.norfab.serve.events import Began, BrokerEvent, CutOff, Ended, Managed, TurnedAway

NAME = "accounting.jsonl"
ROTATE_OCTETS = 64 << 20
KEPT = 16
REFUSALS_PER_S = 20
"""Lines that an outsider can cause: beyond it they are counted and not written."""


class _Part(msgspec.Struct, frozen=True):
    failed: bool = False


_OUTCOME = msgspec.json.Decoder(dict[str, _Part])
_encoder = msgspec.json.Encoder()


class AccountingLog:
    """Writes the log in one file.

    Args:
        path: the file.
        find_job: returns the job with a uuid, while the broker knows it.
        on_fault: called with a sentence when lines cannot be written, once until they can be again.
    """

    def __init__(
        self,
        path: Path,
        find_job: Callable[[str], Job | None],
        on_fault: Callable[[str], None],
        *,
        rotate_octets: int = ROTATE_OCTETS,
        kept: int = KEPT,
    ) -> None:
        self._path, self._find_job, self._on_fault = path, find_job, on_fault
        self._rotate_octets, self._kept = rotate_octets, kept
        self._lines: list[bytes] = []
        self._descriptor = -1
        self._missing = self._left_out = self._refusals = 0
        self._second = 0
        self._failing = False

    def note(self, event: BrokerEvent) -> None:
        """Take what happened; it is written with `flush`."""
        line = self._describe(event)
        if line is not None:
            stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._lines.append(_encoder.encode({"at": stamp, **line}) + b"\n")

    def flush(self) -> None:
        """Write what was noted."""
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        if self._missing:
            lines.insert(0, _encoder.encode({"event": "missing", "lines": self._missing}) + b"\n")
        try:
            if self._descriptor < 0:
                self._open()
            written = os.write(self._descriptor, b"".join(lines))
            if written < sum(map(len, lines)):
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            self._missing, self._failing = 0, False
            self._rotate_where_full()
        except OSError as error:
            self._missing += len(lines) - bool(self._missing)
            if not self._failing:
                self._failing = True
                self._on_fault(f"the accounting log {self._path} cannot be written: {error.strerror}")

    def close(self) -> None:
        """Write what was noted, and close."""
        self.flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _describe(self, event: BrokerEvent) -> dict[str, Any] | None:
        match event:
            case JobAccepted():
                return {
                    "event": "accepted",
                    "uuid": event.uuid,
                    "user": event.user,
                    "client": _text(event.client),
                    "service": event.service,
                    "task": event.task,
                    "workers": event.workers,
                }
            case JobEnded():
                return self._describe_end(event)
            case JobRedispatched(uuid=uuid, before=before, worker=worker, attempt=attempt):
                return {
                    "event": "redispatched",
                    "uuid": uuid,
                    "before": before,
                    "worker": worker,
                    "attempt": attempt,
                }
            case Refused(peer=peer, reason=reason):
                return self._bounded({"event": "refused", "peer": _text(peer), "reason": reason})
            case TurnedAway(reason=reason):
                return self._bounded({"event": "turned away", "reason": reason})
            case CutOff(reason=reason):
                return self._bounded({"event": "cut off", "reason": reason})
            case WorkerReady(worker=worker, service=service, again=again):
                return {"event": "worker ready", "worker": worker, "service": service, "again": again}
            case WorkerGone(worker=worker, service=service, reason=reason):
                return {"event": "worker gone", "worker": worker, "service": service, "reason": reason}
            case Managed():
                line = msgspec.structs.asdict(event) | {"peer": _text(event.peer)}
                return self._bounded({"event": "management", **line})
            case JobDeleted(uuid=uuid, peer=peer, user=user):
                return {"event": "deleted", "uuid": uuid, "user": user, "client": _text(peer)}
            case Began(endpoints=endpoints):
                return {"event": "broker began", "endpoints": endpoints, "pid": os.getpid()}
            case Ended(reason=reason):
                return {"event": "broker ended", "reason": reason}
        return None

    def _describe_end(self, event: JobEnded) -> dict[str, Any]:
        line: dict[str, Any] = {
            "event": "ended",
            "uuid": event.uuid,
            "worker": event.worker,
            "status": event.status,
        }
        job = self._find_job(event.uuid)
        failed = bool(event.failure)
        if job is not None:
            line |= {
                "user": job.user,
                "client": _text(job.client),
                "service": job.service,
                "task": job.task,
                "seconds": round(time.time() - job.accepted_at, 3),
            }
            task = job.tasks.get(event.worker)
            body = None if task is None or task.result is None else task.result.body
            failed = failed or (body is not None and _says_failed(body))
        line["outcome"] = "failed" if failed else "done"
        return line | ({"cause": event.failure} if event.failure else {})

    def _bounded(self, line: dict[str, Any]) -> dict[str, Any] | None:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._refusals = second, 0
        self._refusals += 1
        if self._refusals > REFUSALS_PER_S:
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        return line | ({"left out before": left_out} if left_out else {})

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _rotate_where_full(self) -> None:
        if os.fstat(self._descriptor).st_size < self._rotate_octets:
            return
        os.close(self._descriptor)
        self._descriptor = -1
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._path.rename(self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        old = sorted(self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}"))
        for file in old[: max(0, len(old) - self._kept)]:
            with suppress(OSError):
                file.unlink()


def _text(peer: bytes) -> str:
    return peer.decode(errors="backslashreplace")


def _says_failed(body: bytes) -> bool:
    try:
        return any(part.failed for part in _OUTCOME.decode(body).values())
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
