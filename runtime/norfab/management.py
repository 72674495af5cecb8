"""``mmi.service.broker``, and the other services inside the broker; ``mmi.service.worker`` is passed on (`errands`).

It answers the specification's names (`show_broker`, `show_workers`, `show_clients`, `show_services`, `restart`, `shutdown`,
`disconnect`) and those of deployed clients (`get_stats`, `get_status`, `show_broker_version`). A task that needs a file is
the shell's: it names the tasks and services it does, and answers `Ask`.

Deployed clients ask with MMI or, in version 0.6, with GET. The answer to MMI is, as there, both a RESPONSE and an MMI.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from specwire.runtime.norfab import bodies, errands
from specwire.runtime.norfab.actions import Ask
from specwire.runtime.norfab.commands import Get, Mmi, MmiReply, Post, Response
from specwire.runtime.norfab.events import Refused
from specwire.runtime.norfab.listing import show_jobs

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

SERVICE = "mmi.service.broker"
INVENTORY = "sid.service.broker"
FILES = "fss.service.broker"
RESERVED = (SERVICE, INVENTORY, FILES, errands.SERVICE)
"""No worker can offer these."""


class _Question(NamedTuple):
    peer: bytes
    uuid: str
    service: str
    mmi: bool


class _Call(msgspec.Struct, frozen=True):
    task: str
    args: msgspec.Raw = msgspec.Raw(b"[]")
    kwargs: msgspec.Raw = msgspec.Raw(b"{}")


_CALL = msgspec.json.Decoder(_Call)
_TEXTS = msgspec.json.Decoder(dict[str, Any])


class Management:
    """Answers for the services inside the broker.

    Args:
        asked_of_shell: the tasks that the shell does, by service; None where it does all of a service.
        about: what `show_broker` and `show_broker_version` say beyond what the engine knows.

    Attributes:
        inside: the names of these services.
    """

    __slots__ = ("_about", "_asked", "_asked_of_shell", "_engine", "_questions", "_tasks", "inside")

    def __init__(
        self,
        engine: BrokerEngine,
        asked_of_shell: Mapping[str, frozenset[str] | None],
        about: Mapping[str, str],
    ) -> None:
        self._engine, self._asked_of_shell, self._about = engine, asked_of_shell, about
        self.inside = frozenset((SERVICE, errands.SERVICE, *asked_of_shell))
        self._questions = 0
        self._asked: dict[int, _Question] = {}
        self._tasks: dict[str, Callable[[str, Mapping[str, Any]], Any]] = {
            "show_broker": self._show_broker,
            "get_stats": self._show_broker,
            "get_status": self._show_broker,
            "show_broker_version": self._show_version,
            "show_workers": self._show_workers,
            "show_clients": self._show_clients,
            "show_services": self._show_services,
            "show_resources": self._show_resources,
            "show_jobs": self._show_jobs,
            "disconnect": self._disconnect,
            "restart": self._restart,
            "shutdown": self._shutdown,
        }

    def call(self, peer: bytes, user: str, command: Mmi | Get | Post) -> None:
        """Do a task, or have it done."""
        question = _Question(peer, command.uuid, command.service, isinstance(command, Mmi))
        try:
            call = _CALL.decode(command.body)
            kwargs = _TEXTS.decode(bytes(call.kwargs) if bytes(call.kwargs) != b"null" else b"{}")
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            self._refuse(question, f"the body is not a task in JSON: {error}")
            return
        shell = self._asked_of_shell.get(command.service, frozenset())
        if not self._allowed(user, command.service, call.task):
            self._refuse(question, f"{user or 'this client'} may not use {call.task!r}")
        elif command.service == errands.SERVICE:
            why = self._engine.errands.open(peer, command)
            if why:
                self._refuse(question, why)
        elif shell is None or call.task in shell:
            self._ask(question, user, call)
        elif command.service == SERVICE and call.task in self._tasks:
            self._reply(question, 200, msgspec.json.encode(self._tasks[call.task](user, kwargs)))
        else:
            self._refuse(question, f"Unsupported task '{call.task[:80]}'")

    def _allowed(self, user: str, service: str, task: str) -> bool:
        access = self._engine.access
        if service in (SERVICE, errands.SERVICE):
            return access.may_manage(user, task)
        return access.may_call(user, service, task)

    def _ask(self, question: _Question, user: str, call: _Call) -> None:
        if len(self._asked) >= self._engine.settings.asks:
            self._reply(question, 500, self._why(question, "too many questions are open"))
            return
        self._questions += 1
        self._asked[self._questions] = question
        self._engine.out.append(
            Ask(self._questions, question.service, call.task, bytes(call.args), bytes(call.kwargs), user)
        )

    def answer(self, question: int, status: int, body: bytes) -> None:
        """Send what the shell says."""
        asked = self._asked.pop(question, None)
        if asked is not None:
            self._reply(asked, status, body)

    def _why(self, question: _Question, why: str) -> bytes:
        self._engine.report(Refused(question.peer, why))
        return bodies.refused(question.uuid, "", question.service, why)

    def _refuse(self, question: _Question, why: str) -> None:
        self._reply(question, 400, self._why(question, why))

    def _reply(self, question: _Question, status: int, body: bytes) -> None:
        peer, uuid, service, mmi = question
        self._engine.to_client(peer, Response(uuid, status, body, service))
        if mmi:
            self._engine.to_client(peer, MmiReply(uuid, status, body, service))

    # --- tasks

    def _show_broker(self, _: str, __: Mapping[str, Any]) -> Any:
        engine = self._engine
        settings = engine.settings
        return {
            **self._about,
            "status": "stopping" if engine.stopping else "active",
            "uptime": round(engine.now - engine.started, 3),
            "workers count": len(engine.registry.workers),
            "services count": len(engine.registry.services),
            "clients count": len(engine.clients),
            "jobs open": engine.jobs.open,
            "jobs kept": len(engine.jobs.kept),
            "jobs completed": engine.jobs.completed,
            "jobs failed": engine.jobs.failed,
            "keepalive": settings.keepalive_s,
            "multiplier": settings.liveness,
            "messages received": engine.received,
            "messages sent": engine.sent,
            "messages dropped": engine.dropped,
        }

    def _show_version(self, _: str, __: Mapping[str, Any]) -> Any:
        return {**self._about, "python": platform.python_version(), "platform": platform.system().lower()}

    def _show_workers(self, _: str, kwargs: Mapping[str, Any]) -> Any:
        now, expiry_s = self._engine.now, self._engine.settings.expiry_s
        service, status = kwargs.get("service"), kwargs.get("status")
        rows = [
            {
                "name": worker.name,
                "service": worker.service,
                "status": "alive",
                "holdtime": f"{max(0.0, worker.seen_at + expiry_s - now):.1f}",
                "keepalives tx/rx": f"{worker.keepalives_out} / {worker.keepalives_in}",
                "alive (s)": f"{now - worker.ready_at:.1f}",
                "jobs": len(worker.tasks),
                "queued": worker.queue.size,
                "resources": sorted(worker.resources),
            }
            for worker in self._engine.registry.workers.values()
            if service in (None, "", "all", worker.service) and status in (None, "", "all", "any", "alive")
        ]
        return rows or [{"name": "", "service": "", "status": ""}]

    def _show_clients(self, _: str, __: Mapping[str, Any]) -> Any:
        return [
            {
                "name": client.peer.decode(errors="backslashreplace"),
                "user": client.user,
                "jobs": client.open_jobs,
                "posts": client.posts,
                "messages": client.messages,
                "silent (s)": round(self._engine.now - client.seen_at, 1),
            }
            for client in self._engine.clients.all()
        ]

    def _show_services(self, _: str, __: Mapping[str, Any]) -> Any:
        return [
            {
                "name": service.name,
                "workers": sorted(service.workers),
                "waiting": service.waiting,
                "jobs": sum(len(worker.tasks) + worker.queue.size for worker in service.workers.values()),
            }
            for service in self._engine.registry.services.values()
        ]

    def _show_resources(self, _: str, kwargs: Mapping[str, Any]) -> Any:
        """Who manages what; `service`, `worker` and `resource` of the request narrow it."""
        service, only = kwargs.get("service"), kwargs.get("resource")
        names = wanted_names(kwargs.get("worker") or kwargs.get("workers"))
        managed: dict[tuple[str, str], list[str]] = {}
        for worker in self._engine.registry.workers.values():
            if service in (None, "", "all", worker.service) and (not names or worker.name in names):
                resources = worker.resources & {only} if isinstance(only, str) else worker.resources
                for resource in resources:
                    managed.setdefault((resource, worker.service), []).append(worker.name)
        return [
            {"resource": resource, "service": service, "workers": sorted(workers)}
            for (resource, service), workers in sorted(managed.items())
        ]

    def _show_jobs(self, user: str, kwargs: Mapping[str, Any]) -> Any:
        return show_jobs(self._engine, user, kwargs)

    def _disconnect(self, _: str, kwargs: Mapping[str, Any]) -> Any:
        wanted = kwargs.get("workers")
        names = [
            name
            for name in self._engine.registry.workers
            if wanted in (None, "all") or name in wanted_names(wanted)
        ]
        for name in names:
            self._engine.presence.disconnect(self._engine.registry.workers[name])
        return {"disconnected": names}

    def _restart(self, _: str, __: Mapping[str, Any]) -> Any:
        self._engine.end(restart=True, reason="restart was asked for")
        return {"status": "restarting"}

    def _shutdown(self, _: str, __: Mapping[str, Any]) -> Any:
        self._engine.end(restart=False, reason="shutdown was asked for")
        return {"status": "stopping"}


def wanted_names(wanted: object) -> tuple[str, ...]:
    """Return the names in an argument that is a name or a list of them."""
    if isinstance(wanted, str):
        return (wanted,)
    return tuple(name for name in wanted if isinstance(name, str)) if isinstance(wanted, list) else ()
