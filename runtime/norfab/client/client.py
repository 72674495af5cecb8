"""A client of NORFAB on asyncio: ``async with NorfabClient("tcp://127.0.0.1:5555", folder=FOLDER) as client``.

    result = await client.run("fleet", "show_version", targets=["leaf-1", "leaf-2"], timeout=60)
    for worker, version in result.values().items():
        print(worker, version)

A job is on disk before it is sent, and its result soon after it came; a client that is killed goes on with its jobs when it is
started again in the same folder, and asks the broker for what it had not kept. Without a folder everything is in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.norfab.client.actions import Action
from specwire.runtime.norfab.client.errors import ClientClosedError, RequestError, UnknownJobError
from specwire.runtime.norfab.client.events import Happening
from specwire.runtime.norfab.client.fetching import fetch_file
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.orders import (
    check_timeout,
    client_name,
    make_inquiry,
    make_job,
    make_request,
    target_of,
)
from specwire.runtime.norfab.client.records import HistoryEntry, JobRecord
from specwire.runtime.norfab.client.restored import result_of
from specwire.runtime.norfab.client.results import Answer, JobError, JobResult
from specwire.runtime.norfab.client.session import Session
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.client.waiting import Listener, ProgressStream
from specwire.runtime.norfab.names import check_service, check_uuid
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.security import NULL, Security


class NorfabClient:
    """Submits jobs and collects their results; ``async with`` starts and stops it.

    Args:
        endpoints: of the broker, or of several: the next one is tried where one cannot be reached.
        name: how the broker lists this client; made from the user, the machine and the process where there is none.
        folder: where jobs and results are kept; None: in memory.
        security: how this client proves who it is, and which broker it expects.
        durability: ``process``: safe against the end of the process; ``full``: against the loss of power as well.
        settings: bounds and times.
        protocol: ``norfab_ascii``, as deployed peers write, or ``norfab``, as the specification does.
        resume: go on at the start with the jobs that had not ended; without it when they are collected.
        tap: gets every message, in both directions.
        on_event: called with everything that happens.

    Raises:
        ValueError: the name, the protocol or the endpoints are none.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str],
        *,
        name: str | None = None,
        folder: Path | None = None,
        security: Security = NULL,
        durability: Durability = "process",
        settings: ClientSettings | None = None,
        protocol: str = Dialect.DEPLOYED.value,
        resume: bool = True,
        tap: Recorder | None = None,
        on_event: Callable[[Happening], None] | None = None,
    ) -> None:
        self.name = client_name(name)
        self.settings = settings or ClientSettings()
        self._resume, self._folder = resume, folder
        listed = [endpoints] if isinstance(endpoints, str) else list(endpoints)
        for endpoint in listed:
            if fault := fault_in_endpoint(endpoint, listening=False):
                raise ValueError(f"{endpoint!r} {fault}")
        self._session = Session(
            listed,
            name=self.name,
            folder=folder,
            security=security,
            durability=durability,
            settings=self.settings,
            dialect=Dialect(protocol),
            tap=tap,
            on_event=on_event,
        )

    async def start(self) -> None:
        """Open the store and connect.

        Raises:
            StoreError: the folder cannot be used, or another process uses it.
        """
        await self._session.open(resume=self._resume)

    async def stop(self) -> None:
        """Close; jobs that have not ended go on at the broker, and here with the next start. May be called twice."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # --- jobs

    async def run(
        self,
        service: str,
        task: str,
        *args: Any,
        targets: str | Sequence[str] = "all",
        timeout: float = 600.0,
        kwargs: Mapping[str, Any] | None = None,
        resources: Sequence[str] = (),
        on_progress: Listener | None = None,
    ) -> JobResult:
        """Have a task done, and return what came of it; see `submit` for the arguments.

        A job that fails is returned, not raised: `JobResult.check` and `values` raise. Whoever cancels this only waits no
        longer.

        Args:
            on_progress: called with each `Progress`.
        """
        record = await self._make(service, task, args, targets, timeout, kwargs, resources, None)
        if on_progress is not None:
            self._session.waiting.listen(record.uuid, on_progress)
        end = self._session.waiting.for_end(record.uuid)
        self._session.perform(self._session.engine.submit(record, self._session.now()))
        return await end

    async def submit(
        self,
        service: str,
        task: str,
        *args: Any,
        targets: str | Sequence[str] = "all",
        timeout: float = 600.0,
        kwargs: Mapping[str, Any] | None = None,
        resources: Sequence[str] = (),
        uuid: str | None = None,
    ) -> str:
        """Take a job, and return its uuid when it is on disk; it waits here where too many have not ended.

        Args:
            service: whose workers do it.
            task: what they do, with `args` and `kwargs`.
            targets: ``all`` workers of the service, ``any`` of them, or names.
            timeout: seconds after which nobody waits for it any more.
            resources: it goes to workers that manage one of them.
            uuid: of the caller's own making: 1 to 255 printable characters that no other job has.

        Raises:
            ValueError: a name or a number is none, or the job is too large.
            TypeError: an argument cannot be written as JSON.
            JobError: it could not be stored.
        """
        record = await self._make(service, task, args, targets, timeout, kwargs, resources, uuid)
        session = self._session
        end = session.waiting.for_end(record.uuid)
        try:
            actions = session.engine.submit(record, session.now())
            stored = session.when_stored(actions)
            session.perform(actions)
            await stored
            if end.done() and end.result().code == 500 and not end.result().results:
                raise JobError(end.result())
        finally:
            session.waiting.forget_end(record.uuid, end)
        return record.uuid

    async def _make(
        self,
        service: str,
        task: str,
        args: Sequence[Any],
        targets: str | Sequence[str],
        timeout: float,
        kwargs: Mapping[str, Any] | None,
        resources: Sequence[str],
        uuid: str | None,
    ) -> JobRecord:
        self._require()
        while self._session.running and self._session.engine.room <= 0:
            await self._session.waiting.until_room()
        self._require()
        record = make_job(
            service,
            task,
            args,
            kwargs or {},
            targets=targets,
            resources=resources,
            timeout_s=timeout,
            uuid=uuid,
            now=self._session.now(),
            body_octets=self.settings.body_octets,
        )
        if uuid is not None and (self._session.engine.look(uuid) or await self._session.store.find(uuid)):
            raise ValueError(f"there is a job {uuid} already: collect it, or choose another uuid")
        return record

    async def collect(
        self,
        uuid: str,
        timeout: float = 600.0,
        *,
        service: str | None = None,
        targets: str | Sequence[str] = "all",
        on_progress: Listener | None = None,
    ) -> JobResult:
        """Return what came of a job, waiting for it up to `timeout` seconds; what has not ended then is returned as it is.

        Args:
            service: of a job that is not known here: that of another client, say. The broker is asked for it.
            targets: of such a job.

        Raises:
            UnknownJobError: the job is not known here, and no service is named.
        """
        check_timeout(timeout)
        self._require()
        session = self._session
        kept = None if session.engine.look(uuid) is not None else await session.store.find(uuid)
        if kept is not None and kept.state.state in (State.COMPLETED, State.FAILED):
            return result_of(kept)
        known = kept is not None or session.engine.look(uuid) is not None
        if not known and service is None:
            raise UnknownJobError(f"no job {uuid} is known here; name its service to ask the broker for it")
        stop = session.waiting.listen(uuid, on_progress) if on_progress is not None else None
        end = session.waiting.for_end(uuid)
        now = session.now()
        deadline = now + timeout
        if known:
            session.perform(session.engine.collect(uuid, deadline, now, kept))
        else:
            session.perform(session.engine.adopt(make_inquiry(uuid, service, targets, now, deadline), now))
        # Where the job's time ends with this wait, the engine ends it, and says why.
        patience = (
            timeout if session.engine.deadline(uuid) > deadline else timeout + 2 * self.settings.grace_s
        )
        try:
            return await asyncio.wait_for(end, patience)
        except TimeoutError:
            return await self.look(uuid)
        finally:
            session.waiting.forget_end(uuid, end)
            if stop is not None:
                stop()

    async def look(self, uuid: str) -> JobResult:
        """Return how a job stands, without waiting; raises UnknownJobError."""
        found = self._session.engine.look(uuid)
        if found is not None:
            return found
        kept = await self._session.store.find(uuid)
        if kept is None:
            raise UnknownJobError(f"no job {uuid} is known here")
        return result_of(kept)

    def follow(self, uuid: str) -> ProgressStream:
        """Return the progress of a job from now on: an async iterator that ends when the job does."""
        stream = self._session.waiting.stream(uuid)
        found = self._session.engine.look(uuid)
        if found is None or found.ended:
            stream.end()
        return stream

    async def progress(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return what was said of a job so far: when, in seconds since the epoch, and the JSON."""
        return await self._session.store.events(uuid)

    async def delete(self, uuid: str, *, service: str | None = None, timeout: float = 10.0) -> None:
        """Delete a job everywhere: it is dropped, cancelled or its results are purged, at the broker and here.

        Raises:
            UnknownJobError: the job is not known here, and no service is named.
            RequestError: the broker does not know it, or did not answer.
        """
        check_timeout(timeout)
        self._require()
        if service is None:
            known = self._session.engine.look(uuid)
            kept = None if known else await self._session.store.find(uuid)
            if known is None and kept is None:
                raise UnknownJobError(
                    f"no job {uuid} is known here; name its service to delete it at the broker"
                )
            service = known.service if known else kept.job.service if kept else ""
        until = self._session.now() + timeout
        answer = await self._answer_to(
            check_uuid(uuid),
            lambda: self._session.engine.delete(uuid, check_service(service), until, self._session.now()),
        )
        if answer.code != 200:
            raise RequestError(f"{uuid} cannot be deleted", answer)

    def put(self, uuid: str, body: bytes, *, targets: str | Sequence[str] = "") -> None:
        """Send input to a job that runs; nothing tells whether it arrives."""
        self._session.perform(
            self._session.engine.put(uuid, body, target_of(targets) if targets else "", self._session.now())
        )

    async def history(self, limit: int = 100) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first."""
        return await self._session.store.history(limit)

    # --- questions

    async def ask(
        self,
        service: str,
        task: str,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        target: str | Sequence[str] = "",
        timeout: float = 15.0,
    ) -> Answer:
        """Ask a service inside the broker, or the management of workers; return the answer as it is, 408 where there is none."""
        check_timeout(timeout)
        self._require()
        command = make_request(service, task, args, kwargs or {}, target)
        until = self._session.now() + timeout
        return await self._answer_to(
            command.uuid, lambda: self._session.engine.ask(command, task, until, self._session.now())
        )

    async def manage(
        self,
        service: str,
        task: str,
        target: str | Sequence[str] = "",
        /,
        *,
        timeout: float = 15.0,
        **kwargs: Any,
    ) -> Any:
        """Ask as `ask` does, and return what the answer says.

        Raises:
            RequestError: it was refused, or not answered in time.
        """
        answer = await self.ask(service, task, kwargs=kwargs, target=target, timeout=timeout)
        if answer.code != 200:
            raise RequestError(f"{task} of {service}", answer)
        return answer.read()

    async def fetch(self, url: str, destination: Path | None = None) -> Path:
        """Fetch a file that the broker shares, as ``nf://FOLDER/FILE``, and return where it is.

        Args:
            destination: where it is to be; without it the file in the client's own cache is given, to be read only.

        Raises:
            FetchError: it is not there, or could not be fetched.
            ValueError: the client has no folder, and no destination is named.
        """
        return await fetch_file(self.ask, self._folder, url, destination)

    async def _answer_to(self, uuid: str, ask: Callable[[], list[Action]]) -> Answer:
        if len(self._session.engine.questions) >= self.settings.questions:
            raise RuntimeError(f"{self.settings.questions} requests wait for answers already")
        answer = self._session.waiting.for_answer(uuid)
        try:
            self._session.perform(ask())
            return await answer
        finally:
            self._session.waiting.forget_answer(uuid)

    def _require(self) -> None:
        if not self._session.running:
            raise ClientClosedError("the client is not running: use it in `async with`")
