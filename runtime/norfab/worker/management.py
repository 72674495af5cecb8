"""Tasks of ``mmi.service.worker``: what a worker reports about itself, and orders to it.

It has the tasks of the specification (`show_broker`, `show_workers`, `show_clients`, `restart`,
`shutdown`, `disconnect`), and `show_worker`, `show_jobs`, `show_resources`, `set_resources`, `list_tasks`.
An order is carried out after its answer is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.norfab.commands import Mmi
from specwire.runtime.norfab.worker.assignment import WAITING, Assignment, State

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine

MAX_RESOURCES = 100_000
MAX_ROWS = 1_000
"""Jobs in one answer, if the request has no `limit`."""


class _Call(msgspec.Struct, frozen=True):
    task: str
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None


_CALL = msgspec.json.Decoder(_Call)


class ArgumentError(ValueError):
    """An argument of a management task is invalid."""


class Management:
    """Handler of management requests.

    Args:
        about: further entries for `show_worker`.
        tasks: returns the answer to `list_tasks`.
    """

    __slots__ = ("_about", "_engine", "_handlers", "_tasks")

    def __init__(
        self, engine: WorkerEngine, about: Mapping[str, Any], tasks: Callable[[], list[dict[str, Any]]]
    ) -> None:
        self._engine, self._about, self._tasks = engine, about, tasks
        self._handlers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "show_worker": self._show_worker,
            "show_workers": lambda kwargs: [self._show_worker(kwargs)],
            "show_broker": self._show_broker,
            "show_clients": self._show_clients,
            "show_jobs": self._show_jobs,
            "show_resources": lambda _: list(self._engine.resources),
            "set_resources": self._set_resources,
            "list_tasks": lambda _: self._tasks(),
            "disconnect": self._disconnect,
            "restart": self._restart,
            "shutdown": self._shutdown,
        }

    def call(self, command: Mmi) -> None:
        """Perform a management task, and send its answer."""
        engine = self._engine
        status, answer = self._perform(bytes(command.body))
        try:
            body = msgspec.json.encode(answer)
        except (TypeError, ValueError, OverflowError) as error:
            status, body = 500, msgspec.json.encode({"errors": [f"the answer is not JSON: {error}"]})
        engine.answers.reply(command.uuid, command.client, status, body)
        engine.act_on_orders()

    def _perform(self, body: bytes) -> tuple[int, Any]:
        try:
            call = _CALL.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return 400, {"errors": [f"the body is not a task in JSON: {error}"]}
        handler = self._handlers.get(call.task)
        if handler is None:
            known = ", ".join(self._handlers)
            return 400, {"errors": [f"Unsupported task '{call.task[:80]}': there are {known}"]}
        try:
            return 200, handler(call.kwargs or {})
        except ArgumentError as error:
            return 400, {"errors": [str(error)]}

    # --- reports

    def _show_worker(self, _: Mapping[str, Any]) -> Any:
        engine = self._engine
        connection, jobs, execution = engine.connection, engine.jobs, engine.execution
        states = Counter(job.state for job in jobs.by_uuid.values() if job.uuid not in jobs.kept)
        return {
            **self._about,
            "name": engine.name,
            "service": engine.service,
            "status": "stopping" if engine.stopping else "active",
            "uptime": round(engine.now - engine.started, 3),
            "broker": connection.label,
            "registered (s)": round(engine.now - connection.registered_at, 3)
            if connection.registered
            else None,
            "registrations": connection.registrations,
            "keepalives tx/rx": f"{connection.keepalives_out} / {connection.keepalives_in}",
            "concurrency": engine.settings.concurrency,
            "jobs running": len(execution.running),
            "jobs waiting": sum(states[state] for state in WAITING),
            "jobs held": states[State.HELD],
            "jobs kept": len(jobs.kept),
            "jobs completed": jobs.completed,
            "jobs failed": jobs.failed,
            "jobs abandoned": len(execution.abandoned),
            "results octets": jobs.kept_octets,
            "messages dropped": engine.dropped,
            "store": f"refuses new jobs: {engine.refusing}" if engine.refusing else "accepts jobs",
            "resources": list(engine.resources),
        }

    def _show_broker(self, _: Mapping[str, Any]) -> Any:
        connection, settings = self._engine.connection, self._engine.settings
        return {
            "broker": connection.label,
            "registered": connection.registered,
            "answers OPEN": connection.introduced,
            "keepalive": settings.keepalive_s,
            "multiplier": settings.liveness,
        }

    def _show_clients(self, _: Mapping[str, Any]) -> Any:
        counts = Counter(job.client for job in self._engine.jobs.by_uuid.values())
        return [
            {"name": client.decode(errors="backslashreplace"), "jobs": count}
            for client, count in counts.most_common(MAX_ROWS)
        ]

    def _show_jobs(self, kwargs: Mapping[str, Any]) -> Any:
        uuid, state, limit = kwargs.get("uuid"), kwargs.get("state"), kwargs.get("limit", MAX_ROWS)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise ArgumentError("limit is a number of jobs")
        rows: list[dict[str, Any]] = []
        for job in reversed(self._engine.jobs.by_uuid.values()):
            if len(rows) >= limit:
                break
            if uuid in (None, job.uuid) and state in (None, "all", _word(job)):
                rows.append(self._row(job))
        return rows

    def _row(self, job: Assignment) -> dict[str, Any]:
        ended = job.state is State.DONE
        end = job.ended_at if ended else self._engine.now
        return {
            "uuid": job.uuid,
            "task": job.task,
            "state": _word(job),
            "client": job.client.decode(errors="backslashreplace"),
            "accepted": job.accepted_at,
            "seconds": None if job.began is None else round(end - job.began, 3),
            "result octets": job.result_octets,
            "failure": job.failure,
        }

    # --- orders

    def _set_resources(self, kwargs: Mapping[str, Any]) -> Any:
        wanted = kwargs.get("resources")
        if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
            raise ArgumentError("resources is a list of names")
        if len(wanted) > MAX_RESOURCES:
            raise ArgumentError(f"a worker has up to {MAX_RESOURCES} resources")
        self._engine.change_resources(wanted)
        return list(self._engine.resources)

    def _disconnect(self, _: Mapping[str, Any]) -> Any:
        self._engine.order = "disconnect"
        return {"status": "reconnecting"}

    def _restart(self, _: Mapping[str, Any]) -> Any:
        self._engine.order = "restart"
        return {"status": "restarting"}

    def _shutdown(self, _: Mapping[str, Any]) -> Any:
        self._engine.order = "shutdown"
        return {"status": "stopping"}


def _word(job: Assignment) -> str:
    """Return the state of a job as deployed workers name it."""
    if job.deleted:
        return "DELETED"
    if job.state is State.DONE:
        return "FAILED" if job.failure else "COMPLETED"
    if job.state is State.UNSTORED:
        return "FAILED"
    if job.state in (State.RUNNING, State.ENDING):
        return "STARTED"
    return "HELD" if job.state is State.HELD else "PENDING"
