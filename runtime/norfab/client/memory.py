"""Store of a client without a folder: its jobs end with the process."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import (
    EventRecord,
    ForgottenRecord,
    HistoryEntry,
    JobRecord,
    Record,
    ResultRecord,
    StateRecord,
    StoredJob,
    history_entry,
)
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.client.store import OnCommitted


class MemoryStore:
    """Store in memory, with the methods of `DiskStore`.

    Args:
        settings: how long, how many and how large ended jobs are kept.
        on_committed: called by `write` before it returns.
    """

    def __init__(self, settings: ClientSettings, on_committed: OnCommitted) -> None:
        self._settings, self._on_committed = settings, on_committed
        self._jobs: dict[str, JobRecord] = {}
        self._states: dict[str, StateRecord] = {}
        self._results: dict[str, dict[str, ResultRecord]] = {}
        self._events: dict[str, list[tuple[float, bytes]]] = {}

    async def open(self) -> None:
        """Do nothing."""

    def write(self, ticket: int, records: Sequence[Record], *, refusable: bool = False) -> None:
        """Store the records."""
        for record in records:
            match record:
                case JobRecord():
                    self._jobs.setdefault(record.uuid, record)
                case StateRecord():
                    self._states.pop(record.uuid, None)
                    self._states[record.uuid] = record
                case ResultRecord():
                    results = self._results.setdefault(record.uuid, {})
                    results.pop(record.worker, None)
                    results[record.worker] = record
                case EventRecord():
                    self._events.setdefault(record.uuid, []).append((record.at, record.body))
                case ForgottenRecord():
                    self._forget(record.uuid)
        self._on_committed(ticket, ())

    def _forget(self, uuid: str) -> None:
        for table in (self._jobs, self._states, self._results, self._events):
            table.pop(uuid, None)

    def prune(self, ticket: int, now: float) -> None:
        """Delete ended jobs beyond the bounds of `ClientSettings`."""
        settings, octets = self._settings, 0
        ended = sorted(
            (state for state in self._states.values() if state.ended_at), key=lambda state: -state.ended_at
        )
        for number, state in enumerate(ended):
            octets += state.octets
            aged = state.ended_at < now - settings.kept_s
            if aged or number >= settings.kept_jobs or octets > settings.kept_octets:
                self._forget(state.uuid)

    async def unfinished(self) -> list[StoredJob]:
        """Return no job: there was no process before this one."""
        return []

    async def find(self, uuid: str) -> StoredJob | None:
        """Return one job, or None."""
        job = self._jobs.get(uuid)
        if job is None:
            return None
        state = self._states.get(uuid) or StateRecord(uuid, State.NEW.value, (), job.deadline)
        return StoredJob(job, state, tuple(self._results.get(uuid, {}).values()))

    async def history(self, limit: int) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first."""
        stored = [await self.find(uuid) for uuid in list(reversed(self._jobs))[:limit]]
        return [history_entry(one.job, one.state) for one in stored if one is not None]

    async def events(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return the progress of a job, in order: time and JSON."""
        return list(self._events.get(uuid, ()))

    async def close(self) -> None:
        """Do nothing."""
