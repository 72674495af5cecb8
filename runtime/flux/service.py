"""Services in Python: a class whose ``async def`` methods are named by what follows the service in a topic.

    class Add(msgspec.Struct):
        by: int

    class Counter:
        def __init__(self) -> None:
            self.value = 0

        async def add(self, request: ServiceRequest) -> dict[str, int]:
            self.value += request.read(Add).by
            return {"value": self.value}

        @allow(guests=True)
        async def watch(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
            ...
            yield {"value": self.value}

As the service ``counter`` it answers ``counter.add`` and, as a stream, ``counter.watch``. In a method's name ``_`` stands
for ``.`` and ``-`` too, and a name that is a word of Python has ``_`` behind it. What a method returns or yields is a
payload. Only the instance owner may call a method unless `allow` says more.

Exactly one final response goes to each request that wants one, whatever becomes of the method: the error number and
text of a FluxError, EIO for any other exception (its traceback goes to the log, nothing of it to the caller), and
ECANCELED when the client is gone (``<service>.disconnect``) or takes the request back (``<service>.cancel`` with its
matchtag), or when the service is withdrawn.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from hashlib import sha1
from keyword import iskeyword
from typing import Any, TypeVar

import msgspec

from specwire.generated.flux import Request, Response
from specwire.runtime.flux.answering import end, fail, respond
from specwire.runtime.flux.credentials import OWNER, USER, may_use
from specwire.runtime.flux.errors import (
    EAGAIN,
    ECANCELED,
    EIO,
    ENOSYS,
    EPERM,
    EPROTO,
    FluxError,
)
from specwire.runtime.flux.payload import encode_payload
from specwire.runtime.flux.views import ServiceRequest

logger = logging.getLogger(__name__)

Method = TypeVar("Method", bound=Callable[..., Any])

DISCONNECT = "disconnect"
CANCEL = "cancel"
MAX_RUNNING = 10_000
"""Requests that one service works on; those beyond are refused with EAGAIN."""

MAX_ERRNUM = 0xFFFF_FFFF

_ROLES = "__flux_roles__"
_LIKE_UNDERSCORE = str.maketrans(".-", "__")


class Cancel(msgspec.Struct):
    """The payload of ``<service>.cancel``."""

    matchtag: int


def allow(*, guests: bool) -> Callable[[Method], Method]:
    """Let a method be called by the instance owner alone (as without this), or by every user who may connect."""

    def mark(method: Method) -> Method:
        setattr(method, _ROLES, OWNER | USER if guests else OWNER)
        return method

    return mark


async def give_way() -> None:
    """Let others have a turn."""
    await asyncio.sleep(0)


class ServiceHost:
    """Runs one service: takes requests, answers them when the methods have come to an end.

    Args:
        name: topics up to the first dot.
        service: an object with methods as above; `disconnect`, if it has one, is called when a client is gone, and
            `cancel`, if it has one, in place of what is done here.
        respond: sends a response to where the request came from.
        room: awaited after each response of a stream, so that a quick stream holds up nobody.
    """

    def __init__(
        self,
        name: str,
        service: object,
        respond: Callable[[Response], None],
        room: Callable[[], Awaitable[None]] = give_way,
    ) -> None:
        self.name = name
        self._methods = find_methods(service)
        self._respond, self._room = respond, room
        self._running: dict[asyncio.Task[Response], ServiceRequest] = {}

    @property
    def running(self) -> int:
        """Number of requests being worked on."""
        return len(self._running)

    def receive(self, message: Request) -> None:
        """Take a request and begin to work on it; it is answered later, or at once where that cannot be."""
        request = ServiceRequest(message)
        word = request.topic.partition(".")[2]
        method = self._methods.get(word.translate(_LIKE_UNDERSCORE))
        try:
            if word == DISCONNECT:
                self._cancel(request)
            elif word == CANCEL and method is None:
                self._cancel(request, request.read(Cancel).matchtag)
            if word in (DISCONNECT, CANCEL) and method is None:
                self._answer(request, respond(message))
            else:
                self._start(request, _usable(request, method))
        except FluxError as error:
            self._answer(request, fail(message, error.errnum, error.text))

    async def close(self) -> None:
        """Cancel what runs, and wait until all of it has been answered."""
        for task in self._running:
            task.cancel()
        while self._running:
            await asyncio.wait(list(self._running))
            await asyncio.sleep(0)  # what has ended is answered in the next turn of the loop

    def _start(self, request: ServiceRequest, method: Callable[..., Any]) -> None:
        if len(self._running) >= MAX_RUNNING:
            raise FluxError(EAGAIN, f"the service works on {MAX_RUNNING:,} requests already")
        task = asyncio.get_running_loop().create_task(self._run(request, method))
        self._running[task] = request
        task.add_done_callback(self._conclude)

    def _cancel(self, gone: ServiceRequest, matchtag: int | None = None) -> None:
        """Cancel what runs for the sender of `gone`, or the one request of theirs with `matchtag`.

        What one client asks comes by one way, whose end the client may have written itself; so it is not the last hop
        that is compared, but the way as far as `gone` has come.
        """
        way = gone.route
        for task, request in self._running.items():
            if way and request.route[: len(way)] == way and matchtag in (None, request.message.matchtag):
                task.cancel()

    async def _run(self, request: ServiceRequest, method: Callable[..., Any]) -> Response:
        """Return the last response, the others being sent."""
        if inspect.isasyncgenfunction(method):
            stream: AsyncGenerator[Any, None] = method(request)
            async with aclosing(stream):
                async for content in stream:
                    self._answer(request, respond(request.message, encode_payload(content)))
                    await self._room()
            return end(request.message)
        response = respond(request.message, encode_payload(await method(request)))
        if not request.streaming:
            return response
        self._answer(request, response)
        return end(request.message)

    def _conclude(self, task: asyncio.Task[Response]) -> None:
        """Give the final answer, here and not in the task, which may be cancelled before it has begun."""
        request = self._running.pop(task)
        if task.cancelled():
            last = fail(
                request.message, ECANCELED, "the client took it back or is gone, or the service is withdrawn"
            )
        elif error := task.exception():
            last = _explain(request, error)
        else:
            last = task.result()
        self._answer(request, last)

    def _answer(self, request: ServiceRequest, response: Response) -> None:
        if request.wants_response:
            self._respond(response)


def _usable(request: ServiceRequest, method: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return `method`; raises FluxError where there is none, or not for this request."""
    if method is None:
        raise FluxError(ENOSYS, f"Unknown service method '{request.topic}'")
    required = USER if method.__name__ == DISCONNECT else getattr(method, _ROLES, OWNER)
    if not may_use(request.rolemask, request.userid, required):
        raise FluxError(EPERM, "Request requires owner credentials")
    if inspect.isasyncgenfunction(method) and not request.streaming:
        raise FluxError(
            EPROTO, f"'{request.topic}' answers with a stream, and the request has no streaming flag"
        )
    return method


def _explain(request: ServiceRequest, error: BaseException) -> Response:
    if isinstance(error, FluxError) and 0 < error.errnum <= MAX_ERRNUM:
        return fail(request.message, error.errnum, error.text)
    digest = sha1(request.payload or b"", usedforsecurity=False).hexdigest()
    logger.error("%s failed (SHA-1 of the payload: %s)", request.topic, digest, exc_info=error)
    return fail(request.message, EIO, f"'{request.topic}' failed; the log of the service has the reason")


def find_methods(service: object) -> Mapping[str, Callable[..., Any]]:
    """Return the methods that requests may call, by what a topic calls them with ``_`` for ``.`` and ``-``."""
    found = {
        name: getattr(service, name)
        for name in dir(type(service))
        if not name.startswith("_")
        and (
            inspect.iscoroutinefunction(getattr(type(service), name))
            or inspect.isasyncgenfunction(getattr(type(service), name))
        )
    }
    return {_without_escape(name): method for name, method in found.items()}


def _without_escape(name: str) -> str:
    bare = name.removesuffix("_")
    return bare if iskeyword(bare) else name
