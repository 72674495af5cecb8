"""The store of a client without a folder: the same as on disk, and gone with the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import (
    EventRecord,
    ForgottenRecord,
    HistoryEntry,
    JobRecord,
    Kept,
    Record,
    ResultRecord,
    StateRecord,
)
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.client.store import entry_of


class MemoryStore:
    """The store of a client without a folder: it ends with the process."""

    def __init__(self, settings: ClientSettings, on_committed: Callable[[int], None]) -> None:
        self._settings, self._on_committed = settings, on_committed
        self._jobs: dict[str, JobRecord] = {}
        self._states: dict[str, StateRecord] = {}
        self._results: dict[str, dict[str, ResultRecord]] = {}
        self._events: dict[str, list[tuple[float, bytes]]] = {}

    async def open(self) -> None:
        """Nothing is to be opened."""

    def write(self, ticket: int, records: Sequence[Record]) -> None:
        """Keep the records."""
        for record in records:
            match record:
                case JobRecord():
                    self._jobs.setdefault(record.uuid, record)
                case StateRecord():
                    self._states.pop(record.uuid, None)
                    self._states[record.uuid] = record
                case ResultRecord():
                    self._results.setdefault(record.uuid, {})[record.worker] = record
                case EventRecord():
                    self._events.setdefault(record.uuid, []).append((record.at, record.body))
                case ForgottenRecord():
                    self._forget(record.uuid)
        self._on_committed(ticket)

    def _forget(self, uuid: str) -> None:
        for table in (self._jobs, self._states, self._results, self._events):
            table.pop(uuid, None)

    def prune(self, ticket: int, now: float) -> None:
        """Drop what is kept no longer."""
        settings, octets = self._settings, 0
        ended = sorted(
            (state for state in self._states.values() if state.ended_at), key=lambda state: -state.ended_at
        )
        for number, state in enumerate(ended):
            octets += state.octets
            aged = state.ended_at < now - settings.kept_s
            if aged or number >= settings.kept_jobs or octets > settings.kept_octets:
                self._forget(state.uuid)

    async def unfinished(self) -> list[Kept]:
        """Return the jobs that have not ended: none, where nothing was before."""
        return []

    async def find(self, uuid: str) -> Kept | None:
        """Return one job."""
        job = self._jobs.get(uuid)
        if job is None:
            return None
        state = self._states.get(uuid) or StateRecord(uuid, State.NEW.value, (), job.deadline)
        return Kept(job, state, tuple(self._results.get(uuid, {}).values()))

    async def history(self, limit: int) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first."""
        kept = [await self.find(uuid) for uuid in list(reversed(self._jobs))[:limit]]
        return [entry_of(one) for one in kept if one is not None]

    async def events(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return when what was said of a job, in order."""
        return list(self._events.get(uuid, ()))

    async def close(self) -> None:
        """Nothing is to be closed."""
