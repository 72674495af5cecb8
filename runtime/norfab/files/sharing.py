"""The service ``filesharing``: a worker inside the broker's process, without a socket.

Later deployed clients do not ask the broker for files but a worker of this service, with jobs: `list_files`, `file_details`, `walk`,
and `fetch_file`, which streams. After every piece but the last the job waits for the client to say, with PUT, which offset comes next;
a client may say several ahead.

To the broker's engine this is a worker like any other: what the engine sends to `FileSharing.peer` is given to `receive`, and what `send` is
called with is received from that peer. So it is queued, routed, polled and cancelled like any other, too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import msgspec

from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Disconnect,
    Get,
    Keepalive,
    Mmi,
    Post,
    Put,
    Ready,
    Response,
    Stream,
)
from specwire.runtime.norfab.files.share import Share, ShareError

SERVICE = "filesharing"
NAME = "filesharing-worker-1"
THREADS = 4
OFFSETS = 1024
"""What a client may say ahead."""
MAX_URLS = 1000
PATIENCE_S = 60.0
"""The longest a job waits for the next offset."""
READY_AGAIN_S = 1.0

_Offset = Annotated[int, msgspec.Meta(ge=0)]


class _Arguments(msgspec.Struct, frozen=True):
    url: str | Annotated[list[str], msgspec.Meta(max_length=MAX_URLS)]
    chunk_size: Annotated[int, msgspec.Meta(gt=0)] = 256_000
    offset: _Offset = 0
    chunk_timeout: Annotated[float, msgspec.Meta(gt=0)] = 5.0


class _Body(msgspec.Struct, frozen=True):
    task: str = ""
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None

    def arguments(self) -> _Arguments:
        """Return what the task is given; raises msgspec.ValidationError."""
        names = ("url", "chunk_size", "offset", "chunk_timeout")
        given = dict(zip(names, self.args or (), strict=False)) | (self.kwargs or {})
        return msgspec.convert(given, _Arguments)


class _NextOffset(msgspec.Struct, frozen=True):
    offset: _Offset


_BODY = msgspec.json.Decoder(_Body)
_NEXT = msgspec.json.Decoder(_NextOffset)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Job:
    def __init__(self, command: Post) -> None:
        self.uuid, self.client, self.body = command.uuid, command.client, command.body
        self.offsets: deque[int] = deque()
        self.said = asyncio.Event()
        self.running: asyncio.Task[None] | None = None


class FileSharing:
    """The worker; used on one event loop.

    Args:
        root: the folder.
        send: called on the loop with every command for the broker, never from inside `receive`.
        name: the worker's name.
        private: folders that are not shared although they may lie in it.

    Attributes:
        peer: the routing id that stands for it at the engine.
    """

    def __init__(
        self, root: Path, send: Callable[[Command], None], *, name: str = NAME, private: Sequence[Path] = ()
    ) -> None:
        self.name, self.peer = name, name.encode()
        self._share, self._send = Share(root, private), send
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="norfab-sharing")
        self._jobs: dict[str, _Job] = {}
        self._closing = False

    def start(self) -> None:
        """Offer the service."""
        self._say(Ready(SERVICE))

    def receive(self, command: Command) -> None:
        """Take what the broker sends to this worker."""
        match command:
            case Post():
                self._begin(command)
            case Get():
                self._tell(command)
            case Put():
                self._go_on(command)
            case Delete():
                self._cancel(command)
            case Keepalive():
                self._say(Keepalive(SERVICE))
            case Disconnect() if not self._closing:
                asyncio.get_running_loop().call_later(READY_AGAIN_S, self._ready_again)
            case Mmi():
                why = f"{self.name} is a part of the broker, and managed with it"
                self._say(
                    Response(command.uuid, 400, msgspec.json.encode({"errors": [why]}), client=command.client)
                )
            case _:
                return  # nothing else is for a worker

    async def close(self) -> None:
        """End every job, and the threads."""
        self._closing = True
        running = [job.running for job in self._jobs.values() if job.running is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _say(self, command: Command) -> None:
        asyncio.get_running_loop().call_soon(self._pass_on, command)

    def _ready_again(self) -> None:
        self._pass_on(Ready(SERVICE))

    def _pass_on(self, command: Command) -> None:
        if not self._closing:
            self._send(command)

    # --- commands about jobs

    def _begin(self, command: Post) -> None:
        job = self._jobs.get(command.uuid)
        if job is None:
            job = self._jobs[command.uuid] = _Job(command)
            job.running = asyncio.create_task(self._work(job))
        self._answer(job, 201, self._state(job.uuid, "ACCEPTED"))

    def _tell(self, command: Get) -> None:
        known = command.uuid in self._jobs
        body = self._state(command.uuid, "STARTED" if known else "UNKNOWN")
        self._say(Response(command.uuid, 300 if known else 404, body, client=command.client))

    def _go_on(self, command: Put) -> None:
        job = self._jobs.get(command.uuid)
        if job is None or len(job.offsets) >= OFFSETS:
            return
        try:
            job.offsets.append(_NEXT.decode(command.body).offset)
        except _UNREADABLE:
            return  # the job goes on waiting for one that can be read, as long as it would wait anyway
        job.said.set()

    def _cancel(self, command: Delete) -> None:
        job = self._jobs.get(command.uuid)
        if job is not None and job.running is not None:
            job.running.cancel()
        self._say(Response(command.uuid, 200, self._state(command.uuid, "DELETED"), client=command.client))

    # --- work

    async def _work(self, job: _Job) -> None:
        began, task = time.time(), ""
        result: Any = None
        errors: list[str] = []
        try:
            body = _BODY.decode(job.body)
            task = body.task
            result, errors = await self._do(job, body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ShareError) as error:
            errors = [str(error)]
        finally:
            del self._jobs[job.uuid]
        entry = {
            "result": result,
            "failed": bool(errors),
            "errors": errors,
            "task": f"{self.name}:{task[:80]}",
            "messages": [],
            "juuid": job.uuid,
            "resources": [],
            "status": "failed" if errors else "completed",
            "task_started": time.ctime(began),
            "task_completed": time.ctime(),
            "service": SERVICE,
            "diff": None,
            "dry_run": False,
        }
        self._answer(job, 200, msgspec.json.encode({self.name: entry}))

    async def _do(self, job: _Job, body: _Body) -> tuple[Any, list[str]]:
        """Return result and errors of a task."""
        if body.task == "get_status":
            return "OK", []
        if body.task not in ("list_files", "walk", "file_details", "fetch_file"):
            return None, [
                f"there is no task {body.task[:80]!r}, but list_files, walk, file_details, fetch_file"
            ]
        arguments = body.arguments()
        url = arguments.url
        if body.task == "file_details":
            return await self._describe(url)
        if not isinstance(url, str):
            return None, [f"{body.task} takes one url"]
        if body.task == "fetch_file":
            return await self._fetch(job, url, arguments)
        return await self._run(self._share.walk if body.task == "walk" else self._share.list_names, url), []

    async def _describe(self, url: str | list[str]) -> tuple[Any, list[str]]:
        if isinstance(url, str):
            details, why = await self._details(url)
            return details, [why] if why else []
        entries, errors = {}, []
        for one in url:
            details, why = await self._details(one)
            errors += [why] if why else []
            entries[one] = {
                "result": details,
                "failed": bool(why),
                "errors": [why] if why else [],
                "messages": [],
            }
        return entries, errors

    async def _details(self, url: str) -> tuple[dict[str, Any], str]:
        """Return what deployed clients want to know of a file, and why they cannot."""
        try:
            found = await self._run(self._share.describe, url, lambda: self._closing)
        except ShareError as error:
            return {"md5hash": None, "size_bytes": None, "exists": False}, str(error)
        return {"md5hash": found.md5, "size_bytes": found.size, "exists": True, "sha256": found.sha256}, ""

    async def _fetch(self, job: _Job, url: str, arguments: _Arguments) -> tuple[Any, list[str]]:
        """Stream a file, piece after piece."""
        size, version = await self._run(self._share.measure, url)
        offset, patience_s = arguments.offset, min(arguments.chunk_timeout, PATIENCE_S)
        while True:
            piece = await self._run(self._share.read, url, offset, arguments.chunk_size, version)
            if piece:
                self._say(Stream(job.uuid, 200, piece, client=job.client))
            if offset + len(piece) >= size:
                return True, []
            try:
                offset = await asyncio.wait_for(self._next_offset(job), patience_s)
            except TimeoutError:
                return None, [f"the client did not say within {patience_s:g} s which offset comes next"]

    async def _next_offset(self, job: _Job) -> int:
        while not job.offsets:
            job.said.clear()
            await job.said.wait()
        return job.offsets.popleft()

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _answer(self, job: _Job, status: int, body: bytes) -> None:
        self._say(Response(job.uuid, status, body, client=job.client))

    def _state(self, uuid: str, status: str) -> bytes:
        said = {"worker": self.name, "uuid": uuid, "status": status, "service": SERVICE}
        return msgspec.json.encode(said)
