"""``mmi.service.worker``: what a client wants of workers themselves, on its way to them and back.

The broker does nothing of it: it passes the request to each worker that the target means, of whatever service, and
gathers their answers under their names. The client is told at once who was asked (202), and once what they said: when all have
answered, or when it has waited long enough. Only the worker that was asked is heard, once, and only with the
client's address and the uuid of the request; what comes later is as forged as any other message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.commands import Get, Mmi, MmiReply, Post, Response
from specwire.runtime.norfab.names import InvalidNameError, Target, check_uuid, read_target
from specwire.runtime.norfab.workers import Worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

SERVICE = "mmi.service.worker"


class _Key(NamedTuple):
    client: bytes
    uuid: str


class _Errand:
    """A request; `said` are the answers by name, of those that have answered or cannot any more."""

    __slots__ = ("mmi", "octets", "pending", "said", "statuses", "until")

    def __init__(self, mmi: bool, pending: set[str], until: float) -> None:
        self.mmi, self.pending, self.until = mmi, pending, until
        self.said: dict[str, object] = {}
        self.statuses: list[int] = []
        self.octets = 0


class Errands:
    """Requests that workers have not answered yet; bounded in number, time and octets."""

    __slots__ = ("_engine", "_open")

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine
        self._open: dict[_Key, _Errand] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, peer: bytes, command: Mmi | Get | Post) -> str:
        """Ask the workers; return why not, where they are not asked. The client is one that may."""
        engine, key = self._engine, _Key(peer, command.uuid)
        try:
            check_uuid(command.uuid)
            wanted = read_target(command.target)
        except InvalidNameError as error:
            return str(error)
        if key in self._open:
            return ""
        workers = self._meant(wanted)
        if not workers:
            return f"there is no worker {command.target!r}"
        if len(self._open) >= engine.settings.asks:
            return "too many requests to workers are open"
        if len(command.body) > engine.settings.open_octets:
            return f"a request to workers has up to {engine.settings.open_octets} octets"
        if command.uuid in engine.jobs.by_uuid:
            return "the uuid is that of a job"
        asked = [worker.name for worker in workers]
        missing = [name for name in wanted.names if name not in asked]
        errand = _Errand(isinstance(command, Mmi), set(asked), engine.now + engine.settings.manage_s)
        errand.said = {name: _failure(f"worker {name} is not here") for name in missing}
        self._open[key] = errand
        body = bodies.dispatched(command.uuid, command.target or "all", SERVICE, [*asked, *missing], missing)
        engine.to_client(peer, Response(command.uuid, 202, body, SERVICE))
        for worker in workers:
            engine.to_worker(worker, Mmi(command.uuid, command.body, client=peer))
        return ""

    def _meant(self, wanted: Target) -> list[Worker]:
        known = self._engine.registry.workers
        if wanted.kind == "names":
            return [known[name] for name in wanted.names if name in known]
        return list(known.values())[: 1 if wanted.kind == "any" else None]

    def answer(self, worker: Worker, command: Response) -> bool:
        """Take a worker's answer; return whether it was asked for."""
        if not self._open:
            return False
        key = _Key(command.client, command.uuid)
        errand = self._open.get(key)
        if errand is None or worker.name not in errand.pending:
            return False
        errand.octets += len(command.body)
        value: object = bodies.answer(command.body)
        if len(command.body) > self._engine.settings.open_octets or (
            errand.octets > self._engine.settings.body_octets
        ):
            value = _failure(f"worker {worker.name} answered with more than fits in an answer")
        elif value is None:
            value = _failure(f"worker {worker.name} answered with what is not JSON")
        else:
            errand.statuses.append(command.status)
        self._say(key, errand, worker.name, value)
        return True

    def lose(self, worker: Worker, reason: str) -> None:
        """The worker is gone: nobody waits for its answer."""
        for key, errand in list(self._open.items()):
            if worker.name in errand.pending:
                self._say(key, errand, worker.name, _failure(f"worker {worker.name} {reason}"))

    def tick(self) -> None:
        """Give up what was not answered in time; they stand in the order of their time."""
        waited = self._engine.settings.manage_s
        for key, errand in list(self._open.items()):
            if errand.until > self._engine.now:
                return
            for name in sorted(errand.pending):
                self._say(key, errand, name, _failure(f"worker {name} did not answer within {waited:g} s"))

    def _say(self, key: _Key, errand: _Errand, name: str, value: object) -> None:
        errand.pending.discard(name)
        errand.said[name] = value
        if errand.pending:
            return
        del self._open[key]
        status = 200 if 200 in errand.statuses else next(iter(errand.statuses), 408)
        body = msgspec.json.encode(errand.said)
        self._engine.to_client(key.client, Response(key.uuid, status, body, SERVICE))
        if errand.mmi:
            self._engine.to_client(key.client, MmiReply(key.uuid, status, body, SERVICE))


def _failure(why: str) -> dict[str, object]:
    return {"failed": True, "errors": [why]}
