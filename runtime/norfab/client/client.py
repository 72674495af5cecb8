"""NORFAB client on asyncio.

    async with NorfabClient("tcp://127.0.0.1:5555", folder=FOLDER) as client:
        result = await client.run("fleet", "show_version", targets=["leaf-1", "leaf-2"])
        for worker, version in result.values().items():
            print(worker, version)

A job is stored before it is sent, and a result when it arrives. A client that was killed resumes its jobs
when it is started again in the same folder, and asks the broker for results that it had not stored.
Without a folder everything is in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.store import Durability
from specwire.runtime.norfab.client.actions import Action
from specwire.runtime.norfab.client.errors import ClientClosedError, RequestError, UnknownJobError
from specwire.runtime.norfab.client.events import Happening
from specwire.runtime.norfab.client.fetching import fetch_file
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.orders import (
    check_body,
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
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.security import NULL, Security


class NorfabClient:
    """Client that submits jobs and collects their results; ``async with`` starts and stops it.

    Args:
        endpoints: the broker, or several, which are tried in order.
        name: listed by the broker; by default made from the user, the machine and the process.
        folder: for jobs and results; None: in memory.
        security: keys of this client, and of the broker that it expects.
        durability: what stored jobs survive: ``process``: a kill; ``full``: a loss of power, too.
        settings: bounds and times.
        protocol: ``norfab_ascii``, as deployed peers write, or ``norfab``, as specified.
        resume: resume unfinished jobs at the start; otherwise each when it is collected.
        tap: records every message, in both directions.
        on_event: called with every event.

    Raises:
        ValueError: the name, the protocol or an endpoint is not valid.
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
        """Close. The broker continues jobs that have not ended; the next start resumes them here.

        May be called twice.

        Raises:
            StoreError: the disk does not answer.
        """
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
        """Run a task, and return its result; see `submit` for the arguments.

        A failed job is returned, not raised, also one that could not be stored: `JobResult.check` and
        `values` raise. Cancelling this call does not cancel the job.

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
        """Submit a job, and return its uuid when the job is stored. Waits while too many jobs have not ended.

        Args:
            service: its workers run the task.
            task: called with `args` and `kwargs`.
            targets: ``all`` workers of the service, ``any`` of them, or names.
            timeout: seconds until the job is stale.
            resources: only workers that manage one of these get the job.
            uuid: 1 to 255 printable characters, unique; made by default.

        Raises:
            ValueError: a name or a number is not valid, or the job is too large.
            TypeError: an argument cannot be encoded as JSON.
            JobError: it could not be stored, for example on a full disk; it is not sent.
            ClientClosedError: the client was closed before the job was stored.
        """
        record = await self._make(service, task, args, targets, timeout, kwargs, resources, uuid)
        session = self._session
        end = session.waiting.for_end(record.uuid)
        try:
            actions = session.engine.submit(record, session.now())
            stored = session.when_stored(actions)
            session.perform(actions)
            if not await stored:
                raise JobError(await end)
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
        )
        check_body(record.body, self.settings.body_octets)
        if uuid is not None and (self._session.engine.look(uuid) or await self._session.store.find(uuid)):
            raise ValueError(f"there is a job {uuid} already: collect it, or choose another uuid")
        self._require()
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
        """Return the result of a job, after up to `timeout` seconds; it may not have ended then.

        Args:
            service: of a job that is not known here, for example another client's: asks the broker for it.
            targets: of such a job.

        Raises:
            UnknownJobError: the job is not known here, and no service is named.
        """
        check_timeout(timeout)
        self._require()
        session = self._session
        stored = None if session.engine.look(uuid) is not None else await session.store.find(uuid)
        if stored is not None and stored.state.state in (State.COMPLETED, State.FAILED):
            return result_of(stored)
        known = stored is not None or session.engine.look(uuid) is not None
        if not known and service is None:
            raise UnknownJobError(f"no job {uuid} is known here; name its service to ask the broker for it")
        stop = session.waiting.listen(uuid, on_progress) if on_progress is not None else None
        end = session.waiting.for_end(uuid)
        now = session.now()
        deadline = now + timeout
        if known:
            session.perform(session.engine.collect(uuid, deadline, now, stored))
        else:
            session.perform(session.engine.adopt(make_inquiry(uuid, service, targets, now, deadline), now))
        # If the job's deadline is not later, the engine ends it, with the cause.
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
        """Return the state and the results of a job, without waiting; raises UnknownJobError."""
        found = self._session.engine.look(uuid)
        if found is not None:
            return found
        stored = await self._session.store.find(uuid)
        if stored is None:
            raise UnknownJobError(f"no job {uuid} is known here")
        return result_of(stored)

    def follow(self, uuid: str) -> ProgressStream:
        """Return an async iterator over the progress of a job from now until its end."""
        stream = self._session.waiting.stream(uuid)
        found = self._session.engine.look(uuid)
        if found is None or found.ended:
            stream.end()
        return stream

    async def progress(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return the progress of a job so far: seconds since the epoch, and JSON."""
        return await self._session.store.events(uuid)

    async def delete(self, uuid: str, *, service: str | None = None, timeout: float = 10.0) -> None:
        """Delete a job at the broker, its workers and here: drop it, cancel it or delete its results.

        Raises:
            UnknownJobError: the job is not known here, and no service is named.
            RequestError: the broker does not know it, or does not answer.
        """
        check_timeout(timeout)
        self._require()
        if service is None:
            known = self._session.engine.look(uuid)
            stored = None if known else await self._session.store.find(uuid)
            if known is None and stored is None:
                raise UnknownJobError(
                    f"no job {uuid} is known here; name its service to delete it at the broker"
                )
            service = known.service if known else stored.job.service if stored else ""
        until = self._session.now() + timeout
        answer = await self._answer_to(
            check_uuid(uuid),
            lambda: self._session.engine.delete(uuid, check_service(service), until, self._session.now()),
        )
        if answer.code != 200:
            raise RequestError(f"{uuid} cannot be deleted", answer)

    def put(self, uuid: str, body: bytes, *, targets: str | Sequence[str] = "") -> None:
        """Send input to a running job. The protocol does not acknowledge it."""
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
        """Send a request to a service of the broker or to the management of workers; return the answer.

        Without an answer in time, the code of the returned `Answer` is 408.
        """
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
        """Send a request like `ask`, and return the decoded answer.

        Raises:
            RequestError: it was refused, or not answered in time.
        """
        answer = await self.ask(service, task, kwargs=kwargs, target=target, timeout=timeout)
        if answer.code != 200:
            raise RequestError(f"{task} of {service}", answer)
        return answer.read()

    async def fetch(self, url: str, destination: Path | None = None) -> Path:
        """Fetch a file that the broker shares, as ``nf://FOLDER/FILE``, and return its path.

        Args:
            destination: where to store it; by default in the client's cache, which must not be changed.

        Raises:
            FetchError: it does not exist, or could not be fetched.
            ValueError: the client has no folder, and no destination is given.
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
