"""Bodies of results: the ones that were needed last are in memory, every other is the store's.

A result that is durable has its body here while there is room for it; the one that was not needed for longest makes room.
When a client asks for one that is not here, the store is asked (`Fetch`), once for all clients that want it, and only for
so many octets at a time as may be on their way together.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.actions import Fetch
from specwire.runtime.norfab.commands import Response
from specwire.runtime.norfab.job import Outcome, Task

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine


class Results:
    """Where the bodies of results are.

    Attributes:
        octets: of the bodies in memory.
    """

    __slots__ = ("_asked", "_engine", "_here", "_on_the_way", "_questions", "_queue", "_wanted", "octets")

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine
        self._here: OrderedDict[Task, Outcome] = OrderedDict()
        self._wanted: dict[Task, dict[bytes, None]] = {}
        self._queue: deque[Task] = deque()
        self._asked: dict[int, tuple[Task, int]] = {}
        self._questions = self._on_the_way = self.octets = 0

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Have the body of a durable result in memory for now."""
        here = self._here
        if task in here:
            self.drop(task)
        here[task] = outcome
        self.octets += outcome.octets
        while self.octets > self._engine.settings.cached_octets:
            self.drop(next(iter(here)))

    def drop(self, task: Task) -> None:
        """Have the body of a result no longer in memory."""
        outcome = self._here.pop(task, None)
        if outcome is not None:
            self.octets -= outcome.octets
            outcome.body = None

    def send(self, peer: bytes, task: Task) -> None:
        """Send the result of a part that has one to a client, as soon as its body is here."""
        outcome = task.result
        if outcome is None:
            return
        if outcome.body is not None:
            self._send(peer, task, outcome.status, outcome.body)
            if task in self._here:
                self._here.move_to_end(task)
        elif task in self._wanted:
            self._wanted[task][peer] = None
        elif len(self._wanted) >= self._engine.settings.fetches:
            self._fail(peer, task, "too many results are asked for")
        else:
            self._wanted[task] = {peer: None}
            self._queue.append(task)
            self._pump()

    def _pump(self) -> None:
        """Ask the store for what fits with what is on its way; for one at least."""
        while self._queue:
            task = self._queue[0]
            octets = task.result.octets if task.result is not None else 0
            if self._asked and self._on_the_way + octets > self._engine.settings.fetch_octets:
                return
            self._queue.popleft()
            self._questions += 1
            self._on_the_way += octets
            self._asked[self._questions] = (task, octets)
            self._engine.out.append(Fetch(self._questions, task.job.uuid, task.slot))

    def fetched(self, question: int, body: bytes | None) -> None:
        """Take what the store has."""
        task, octets = self._asked.pop(question, (None, 0))
        if task is None:
            return
        self._on_the_way -= octets
        peers, outcome = self._wanted.pop(task), task.result
        for peer in peers:
            if outcome is None:
                self._fail(peer, task, "the job was deleted", 400)
            elif body is None:
                self._fail(peer, task, f"the result of {task.slot} cannot be read")
            else:
                self._send(peer, task, outcome.status, body)
        if outcome is not None and body is not None and not task.job.deleted:
            outcome.body, outcome.octets = body, len(body)
            self.keep(task, outcome)
        self._pump()

    def _send(self, peer: bytes, task: Task, status: int, body: bytes) -> None:
        self._engine.to_client(peer, Response(task.job.uuid, status, body, task.job.service))

    def _fail(self, peer: bytes, task: Task, why: str, status: int = 500) -> None:
        job = task.job
        self._send(peer, task, status, bodies.refused(job.uuid, job.target, job.service, why))
