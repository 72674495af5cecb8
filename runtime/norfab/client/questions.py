"""Management requests and deletions: each a question with one answer, that nothing is kept of on disk.

Where the connection is lost before the answer, a question that changes nothing is asked again. One that may have been
carried out already (a broker that was told to restart would do so for ever) is not: its answer says what happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.norfab.client.events import Answered
from specwire.runtime.norfab.client.records import ForgottenRecord
from specwire.runtime.norfab.client.results import Answer
from specwire.runtime.norfab.commands import Delete, Mmi, MmiReply, Response

if TYPE_CHECKING:
    from specwire.runtime.norfab.client.engine import ClientEngine

MANAGEMENT = ("mmi.service.broker", "mmi.service.worker")
READING = ("show_", "get_", "list_")
"""How tasks of the management begin that change nothing."""


class _Question:
    __slots__ = ("asked_at", "command", "repeatable", "until")

    def __init__(self, command: Mmi | Delete, until: float, *, repeatable: bool) -> None:
        self.command, self.until, self.repeatable = command, until, repeatable
        self.asked_at: float | None = None


class Questions:
    """What was asked and not answered, by uuid."""

    __slots__ = ("_deletions", "_engine", "_requests")

    def __init__(self, engine: ClientEngine) -> None:
        self._engine = engine
        self._requests: dict[str, _Question] = {}
        self._deletions: dict[str, _Question] = {}

    def __len__(self) -> int:
        return len(self._requests) + len(self._deletions)

    def ask(self, command: Mmi, task: str, until: float) -> None:
        """Ask a service of the broker, or the management of workers."""
        repeatable = command.service not in MANAGEMENT or task.startswith(READING)
        self._requests[command.uuid] = question = _Question(command, until, repeatable=repeatable)
        self._put(question)

    def delete(self, command: Delete, until: float) -> None:
        """Have a job deleted."""
        self._deletions[command.uuid] = question = _Question(command, until, repeatable=True)
        self._put(question)

    def _put(self, question: _Question) -> None:
        if self._engine.way.up:
            question.asked_at = self._engine.now
            self._engine.send(question.command)

    # --- the broker speaks

    def take(self, command: Response | MmiReply) -> bool:
        """Take an answer; return whether it was one."""
        question = self._requests.get(command.uuid)
        if question is None:
            return False
        if isinstance(command, Response) and command.status in (102, 201, 202, 300):
            question.asked_at = self._engine.now  # it has arrived, and takes its time
            question.repeatable = False
            return True
        del self._requests[command.uuid]
        self._answer(command.uuid, command.status, bytes(command.body))
        return True

    def deleted(self, uuid: str, status: int, body: bytes) -> bool:
        """Take what the broker says of a deletion; return whether there was one."""
        if self._deletions.pop(uuid, None) is None:
            return False
        if status == 200:
            self._engine.store(ForgottenRecord(uuid))
        self._answer(uuid, status, body)
        return True

    def _answer(self, uuid: str, status: int, body: bytes) -> None:
        self._engine.report(Answered(uuid, Answer(status, body)))

    # --- time, and the connection

    def connected(self) -> None:
        """There is a new connection: ask what has no answer."""
        for question in self._all():
            self._put(question)

    def lost(self, reason: str, *, heard: bool) -> None:
        """The connection is lost; `heard`: the broker had spoken on it, so what was asked may have arrived."""
        for uuid, question in list(self._requests.items()):
            if heard and question.asked_at is not None and not question.repeatable:
                del self._requests[uuid]
                self._fail(
                    uuid, f"the connection was lost before the answer, it may have been done: {reason}"
                )
            question.asked_at = None
        for question in self._deletions.values():
            question.asked_at = None

    def tick(self) -> None:
        """Give up what is too late, ask again what was not answered."""
        now, silence_s = self._engine.now, self._engine.settings.silence_s
        for table in (self._requests, self._deletions):
            for uuid, question in list(table.items()):
                if question.until <= now:
                    del table[uuid]
                    self._fail(uuid, self._why())
                elif question.asked_at is not None and now - question.asked_at >= silence_s:
                    question.asked_at = now
                    if question.repeatable:
                        self._engine.send(question.command)

    def _why(self) -> str:
        way = self._engine.way
        if way.heard_at:
            return "no answer in time"
        return f"no answer from {way.endpoint}" + (f": {way.loss}" if way.loss else "")

    def unanswered_since(self) -> float | None:
        """Return when the question that waits longest was asked; None where none is out."""
        asked = [question.asked_at for question in self._all() if question.asked_at is not None]
        return min(asked, default=None)

    def _all(self) -> list[_Question]:
        return [*self._requests.values(), *self._deletions.values()]

    def _fail(self, uuid: str, why: str) -> None:
        self._answer(uuid, 408, msgspec.json.encode({"error": why, "errors": [why], "status": "FAILED"}))
