"""A job and its worker, as a task sees them.

Everything here can be used from the thread of the task, and from threads that the task starts.
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
    """The job is cancelled: it was deleted, its time is over, or the worker stops."""


class Result(msgspec.Struct, kw_only=True):
    """Return value of a task that has more to report than a result.

    An empty `status` means ``completed`` or ``failed``. `diff` is what the task changed, or would change.
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
    """The worker. The constructor of a plugin gets it, if it has a parameter."""

    @property
    def name(self) -> str:
        """Name of the worker."""

    @property
    def service(self) -> str:
        """Service that it offers."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources that it manages."""

    def set_resources(self, resources: Sequence[str]) -> None:
        """Change the resources, and send them to the broker."""

    def fetch(self, url: str) -> Path:
        """Fetch ``nf://path``, a file that the broker shares, and return the path of a local copy.

        Raises:
            OSError: the file does not exist, or cannot be fetched.
        """

    def ask(self, service: str, task: str, **kwargs: Any) -> Any:
        """Return the answer of a service of the broker, such as `get_inventory` of ``sid.service.broker``.

        Raises:
            OSError: there is no such service, or the broker refuses.
        """


class Outlet(Protocol):
    """Destination of a job's messages."""

    def send_progress(self, uuid: str, progress: Progress) -> None:
        """Send an EVENT."""

    def send_stream(self, uuid: str, data: bytes) -> None:
        """Send a STREAM; wait until there is room."""


class Job:
    """A job. A task gets it in a parameter of this type.

    Attributes:
        uuid: id of the job.
        task: name of the task.
        client: address of the client that posted it, as the broker knows it.
        resources: resources that the client named; a task may set those that it worked on.
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
        # Created on first use: that takes longer than a small task, and most tasks use neither.
        self._cancelling: threading.Event | None = None
        self._inputs: queue.Queue[bytes] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the job is cancelled. A long task should check it from time to time."""
        return self._cancelled

    def check(self) -> None:
        """Raise JobCancelledError if the job is cancelled."""
        if self._cancelled:
            raise JobCancelledError(self._reason)

    def wait(self, seconds: float) -> bool:
        """Wait some seconds, or until the job is cancelled; return whether it is. Not for coroutines."""
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
        """Send progress to the client. It is omitted if it cannot be sent fast enough."""
        self._outlet.send_progress(
            self.uuid,
            Progress(
                message=str(message)[:MAX_MESSAGE],
                severity=severity,
                resources=tuple(map(str, resources)),
                status=status,
            ),
        )

    def stream(self, data: bytes) -> None:
        """Send a piece of a stream to the client; waits until there is room."""
        self._outlet.send_stream(self.uuid, bytes(data))

    def input(self, timeout: float) -> bytes | None:
        """Return input of the client (PUT), or None after `timeout` seconds. Not for coroutines."""
        try:
            return self._take_inputs().get(timeout=timeout)
        except queue.Empty:
            return None

    def fetch(self, url: str) -> Path:
        """See `Worker.fetch`."""
        return self.worker.fetch(url)

    # --- called by the worker

    def cancel(self, reason: str) -> None:
        """Cancel the job."""
        self._reason = reason
        self._cancelled = True
        with _MAKING:
            cancelling = self._cancelling
        if cancelling is not None:
            cancelling.set()

    def give(self, body: bytes) -> None:
        """Queue input of the client, unless the queue is full."""
        inputs = self._take_inputs()
        if not inputs.full():
            inputs.put_nowait(body)

    def _take_inputs(self) -> queue.Queue[bytes]:
        with _MAKING:
            if self._inputs is None:
                self._inputs = queue.Queue(MAX_INPUTS)
            return self._inputs
