"""What a task sees of its job, and of the worker that it runs in.

All of it may be used from the thread that the task runs in, and from the threads that the task makes itself.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from specwire.runtime.norfab.worker.bodies import Progress

MAX_MESSAGE = 64 * 1024
MAX_INPUTS = 1_000
_MAKING = threading.Lock()

Severity = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class JobCancelledError(Exception):
    """Nobody wants this job any more: it was deleted, its time is over, or the worker stops."""


class Result(msgspec.Struct, kw_only=True):
    """What a task may return to say more than a value; without it the value is the result.

    `status` is ``completed`` or ``failed`` where it is empty. `diff` is what the task changed, or would have.
    """

    result: Any = None
    failed: bool = False
    errors: list[str] = []
    messages: list[str] = []
    resources: list[str] | None = None
    status: str = ""
    diff: Any = None
    dry_run: bool = False


class Worker(Protocol):
    """The worker, for its plugin: the constructor of a plugin that takes an argument is given it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def service(self) -> str:
        """Its service."""

    @property
    def resources(self) -> tuple[str, ...]:
        """What it manages at present."""

    def set_resources(self, resources: Sequence[str]) -> None:
        """Manage these from now on; the broker is told."""

    def fetch(self, url: str) -> Path:
        """Return a local copy of ``nf://path``, a file that the broker shares; waits for it.

        Raises:
            OSError: there is none, or it cannot be had.
        """

    def ask(self, service: str, task: str, **kwargs: Any) -> Any:
        """Return the answer of a service inside the broker, such as `get_inventory` of ``sid.service.broker``.

        Raises:
            OSError: there is none, or the broker refuses.
        """


class Outlet(Protocol):
    """Where a job's words go."""

    def say(self, uuid: str, progress: Progress) -> None:
        """Send an EVENT."""

    def pour(self, uuid: str, data: bytes) -> None:
        """Send a STREAM, when there is room."""


class Job:
    """A job, for its task: a parameter with this type is given it.

    Attributes:
        uuid: its id.
        task: the task's name.
        client: the address of who posted it, as the broker knows it.
        resources: what the job is about, as its client said; a task may say what it really worked on.
        worker: the worker.
    """

    def __init__(
        self, uuid: str, task: str, client: str, resources: Sequence[str], worker: Worker, outlet: Outlet
    ) -> None:
        self.uuid, self.task, self.client, self.worker = uuid, task, client, worker
        self.resources = list(resources)
        self._outlet = outlet
        self._cancelled = False
        self._reason = ""
        # Made when they are used first: most tasks use neither, and making them takes longer than a small task.
        self._cancelling: threading.Event | None = None
        self._inputs: queue.Queue[bytes] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the job any more. A task that takes long looks now and then."""
        return self._cancelled

    def check(self) -> None:
        """Raise JobCancelledError where nobody wants the job any more."""
        if self._cancelled:
            raise JobCancelledError(self._reason)

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the job is cancelled; return whether it is. Not for tasks that are coroutines."""
        with _MAKING:
            cancelling = self._cancelling = self._cancelling or threading.Event()
        return self._cancelled or cancelling.wait(seconds)

    def progress(
        self,
        message: str,
        *,
        severity: Severity = "INFO",
        resources: Sequence[str] = (),
        status: str = "running",
    ) -> None:
        """Tell the client how it goes. What is told faster than it can be sent is left out."""
        self._outlet.say(
            self.uuid,
            Progress(
                message=str(message)[:MAX_MESSAGE],
                severity=severity,
                resources=tuple(map(str, resources)),
                status=status,
            ),
        )

    def stream(self, data: bytes) -> None:
        """Send the client a piece of something large; waits while there is no room."""
        self._outlet.pour(self.uuid, bytes(data))

    def input(self, timeout: float) -> bytes | None:
        """Return what the client sent for this job (PUT), None after so many seconds; not for coroutines."""
        try:
            return self._take_inputs().get(timeout=timeout)
        except queue.Empty:
            return None

    def fetch(self, url: str) -> Path:
        """See `Worker.fetch`."""
        return self.worker.fetch(url)

    # --- what the worker does with it

    def cancel(self, reason: str) -> None:
        """Nobody wants it any more."""
        self._reason = reason
        self._cancelled = True
        with _MAKING:
            cancelling = self._cancelling
        if cancelling is not None:
            cancelling.set()

    def give(self, body: bytes) -> None:
        """The client has sent this; where the task takes none, what is too much is dropped."""
        inputs = self._take_inputs()
        if not inputs.full():
            inputs.put_nowait(body)

    def _take_inputs(self) -> queue.Queue[bytes]:
        with _MAKING:
            if self._inputs is None:
                self._inputs = queue.Queue(MAX_INPUTS)
            return self._inputs
