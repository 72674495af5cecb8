"""A broker's client on asyncio: ``async with connect("local://PATH") as handle``.

    reply = await handle.rpc("attr.get", {"name": "size"})
    print(reply.json()["value"])

    async for reply in handle.stream("log.dmesg", {"follow": False}):
        print(reply.text)

    async with await handle.subscribe("heartbeat.") as events:
        async for event in events:
            print(event.topic, event.sequence)

Any number of requests may be under way at the same time; a caller that is cancelled gives its request up. When the
connection is lost, everything that waits fails with ECONNRESET.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from types import TracebackType, UnionType
from typing import Any, Self, TypeVar, overload

from specwire.generated.flux import NODEID_ANY, AnyMessage, Request, Response
from specwire.runtime.flux.answering import fail
from specwire.runtime.flux.arrivals import Arrivals, Once
from specwire.runtime.flux.calls import FIRST_MATCHTAG, PendingCall
from specwire.runtime.flux.client import ClientEngine, Published
from specwire.runtime.flux.client_actions import Answered, ClientAction, Failed, Requested, Send, Subscription
from specwire.runtime.flux.client_limits import MAX_MESSAGE_OCTETS
from specwire.runtime.flux.errors import EEXIST, ENOSYS, ETIMEDOUT, FluxError
from specwire.runtime.flux.flags import NORESPONSE
from specwire.runtime.flux.local_connection import LocalConnection, open_local
from specwire.runtime.flux.payload import Content
from specwire.runtime.flux.service import ServiceHost, give_way
from specwire.runtime.flux.subscriptions import without_covered
from specwire.runtime.flux.uri import explain_loss, local_path
from specwire.runtime.flux.views import Notice, Reply
from specwire.runtime.flux.waiting import Waiting

Type = TypeVar("Type")


@asynccontextmanager
async def connect(
    uri: str | None = None,
    *,
    timeout_s: float | None = None,
    max_message_octets: int = MAX_MESSAGE_OCTETS,
) -> AsyncIterator[FluxHandle]:
    """Connect to a broker, and disconnect at the end.

    Args:
        uri: ``local://PATH``; without it what FLUX_URI says.
        timeout_s: the longest time until the broker has let this client in.
        max_message_octets: the longest message that the broker may send.

    Raises:
        FluxError: there is no such broker, or it does not want this client.
    """
    handle = FluxHandle(local_path(uri))
    await handle.open(timeout_s, max_message_octets)
    try:
        yield handle
    finally:
        await handle.close()


class Events:
    """The events since a subscription, in order; an async iterator, and ``async with`` ends it.

    One that is not read keeps the oldest `MAX_UNREAD` events, and counts in `lost` what came after them.
    """

    def __init__(
        self, handle: FluxHandle, subscriptions: Sequence[Subscription], arrivals: Arrivals[Notice]
    ) -> None:
        self._handle, self._subscriptions, self._arrivals = handle, subscriptions, arrivals

    @property
    def lost(self) -> int:
        """Events that were dropped because too many were unread."""
        return self._arrivals.lost

    def unsubscribe(self) -> None:
        """Listen no more: the iteration ends after what is unread."""
        for subscription in self._subscriptions:
            self._handle.unsubscribe(subscription)

    def __aiter__(self) -> AsyncIterator[Notice]:
        return self

    async def __anext__(self) -> Notice:
        return await anext(self._arrivals)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unsubscribe()


class FluxHandle:
    """A connection to a broker; made by `connect`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._engine = ClientEngine()
        self._waiting = Waiting()
        self._services: dict[str, ServiceHost] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf

    @property
    def pending(self) -> int:
        """Number of requests that wait for a response."""
        return self._engine.pending

    async def open(self, timeout_s: float | None, max_message_octets: int) -> None:
        """Connect; raises FluxError."""
        try:
            async with asyncio.timeout(timeout_s):
                self._connection: LocalConnection = await open_local(
                    self._path, self._on_message, self._on_lost, max_message_octets
                )
        except TimeoutError:
            raise FluxError(ETIMEDOUT, f"no answer from the broker in {timeout_s:g} s") from None

    async def close(self) -> None:
        """Disconnect; what still waits fails with ECONNRESET."""
        try:
            await asyncio.gather(*(host.close() for host in self._services.values()))
        finally:
            self._on_lost(explain_loss(self._path, "it was closed on this side"))
            await self._connection.close()

    @overload
    async def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Reply: ...
    @overload
    async def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: type[Type],
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Type: ...
    @overload
    async def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: UnionType,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Any: ...
    async def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: Any = None,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Any:
        """Ask a service and return its response.

        Args:
            payload: an object or a Struct for JSON, a str for text, bytes as they are.
            type: return the response's JSON as this type, such as a class of
                `specwire.generated.flux.payloads`.
            nodeid: the rank that is asked; the nearest that has the service by default.
            timeout_s: the longest time until the response.
            upstream: ask those above `nodeid` only.

        Raises:
            FluxError: with the error number and text of the response; ETIMEDOUT; ECONNRESET.
        """
        if not self._connection.has_room:
            await self._connection.room()
        call = self._engine.call(
            topic, payload, self._now(), nodeid=nodeid, timeout_s=timeout_s, upstream=upstream
        )
        reply: asyncio.Future[Reply] = self._loop.create_future()
        call.waiter = reply
        try:
            self._send_call(call)
            found = await reply
            return found if type is None else found.read(type)
        except BaseException:
            self._give_up(call)
            raise

    async def tell(
        self, topic: str, payload: Content = None, *, nodeid: int = NODEID_ANY, upstream: bool = False
    ) -> None:
        """Send a request that nobody answers, whatever becomes of it; raises FluxError (ECONNRESET)."""
        await self._connection.room()
        self._connection.send(self._engine.tell(topic, payload, nodeid=nodeid, upstream=upstream))

    @overload
    def stream(
        self,
        topic: str,
        payload: Content = None,
        *,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> AsyncGenerator[Reply, None]: ...
    @overload
    def stream(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: type[Type],
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> AsyncGenerator[Type, None]: ...
    @overload
    def stream(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: UnionType,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> AsyncGenerator[Any, None]: ...
    async def stream(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: Any = None,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> AsyncGenerator[Any, None]:
        """Ask a service, when the iteration begins, and yield its responses until it has no more.

        To leave early is to give the request up: the service is told, and what it still sends is swallowed. As for any
        async generator, `contextlib.aclosing` does that at once. `timeout_s` is the longest time until the first response,
        and from one to the next. The rest is as in `rpc`; ENOBUFS means that too many responses were not read.
        """
        await self._connection.room()
        call = self._engine.call(
            topic, payload, self._now(), nodeid=nodeid, timeout_s=timeout_s, streaming=True, upstream=upstream
        )
        arrivals = Arrivals[Reply]()
        call.box = arrivals
        try:
            self._send_call(call)
            async for reply in arrivals:
                yield reply if type is None else reply.read(type)
        finally:
            self._give_up(call)

    async def publish(self, topic: str, payload: Content = None, *, private: bool = False) -> int:
        """Publish an event and return its number; a private one is for this user and the owner only."""
        await self._connection.room()
        call = self._engine.publish(topic, payload, self._now(), private=private)
        reply: asyncio.Future[Reply] = self._loop.create_future()
        call.waiter = reply
        try:
            self._send_call(call)
            return (await reply).read(Published).seq
        finally:
            self._give_up(call)

    async def announce(self, topic: str, payload: Content = None, *, private: bool = False) -> None:
        """Send an event to be published, and wait for nothing; raises FluxError (ECONNRESET)."""
        await self._connection.room()
        self._connection.send(self._engine.announce(topic, payload, private=private))

    async def subscribe(self, prefix: str = "", *others: str) -> Events:
        """Return the events from now on whose topics begin with `prefix` or one of the others; raises FluxError."""
        arrivals = Arrivals[Notice]()
        subscriptions: list[Subscription] = []
        try:
            for wanted in without_covered((prefix, *others)):
                await self._connection.room()
                subscription, actions = self._engine.subscribe(wanted, self._loop.time())
                subscriptions.append(subscription)
                agreed = Once[bool](loop=self._loop)
                self._waiting.for_events(subscription, agreed, arrivals)
                self._perform(actions)
                await agreed
        except BaseException:
            for subscription in subscriptions:
                self.unsubscribe(subscription)
            raise
        return Events(self, subscriptions, arrivals)

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; callers use `Events.unsubscribe`."""
        self._waiting.forget_subscription(subscription)
        self._perform(self._engine.unsubscribe(subscription, self._loop.time()))

    async def serve(self, name: str, service: object) -> ServiceHost:
        """Be the service `name` at this broker until the handle is closed; see `specwire.runtime.flux.service`.

        Raises FluxError: EEXIST where there is such a service, EPERM where a guest may not have that name.
        """
        if name in self._services:
            raise FluxError(EEXIST, f"this connection is the service {name!r} already")
        host = self._services[name] = ServiceHost(name, service, self._respond, self._give_way)
        try:
            await self.rpc("service.add", {"service": name})
        except BaseException:
            del self._services[name]
            raise
        return host

    async def withdraw(self, name: str) -> None:
        """Be that service no more: what it works on is cancelled, and answered so. Raises FluxError."""
        await self.rpc("service.remove", {"service": name})
        if host := self._services.pop(name, None):
            await host.close()

    def _give_up(self, call: PendingCall) -> None:
        """A caller waits no more: it has been answered, or does not want to be."""
        call.box = None
        if actions := self._engine.cancel(call):
            self._perform(actions)

    def _send_call(self, call: PendingCall) -> None:
        request = call.request
        if (
            request.matchtag == FIRST_MATCHTAG
        ):  # a lone request has it, and one in many of those that follow closely
            self._connection.send_alone(request)
        else:
            self._connection.send(request)
        if call.timeout_s != inf and self._engine.deadline < self._timer_at:
            self._set_timer()

    async def _give_way(self) -> None:
        await give_way()
        await self._connection.room()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._engine.deadline
        if self._timer_at != inf:
            self._timer = self._loop.call_at(self._timer_at, self._on_timer)

    def _on_timer(self) -> None:
        self._perform(self._engine.tick(self._loop.time()))
        self._set_timer()

    def _on_message(self, message: AnyMessage) -> None:
        for action in self._engine.receive(message, self._now()):
            if isinstance(action, Answered) and (waiter := action.call.waiter) is not None:
                if not waiter.done():
                    waiter.set_result(Reply(action.response))
            else:
                self._perform((action,))

    def _on_lost(self, error: FluxError) -> None:
        self._perform(self._engine.lose(error))
        self._set_timer()

    def _perform(self, actions: Sequence[ClientAction]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._connection.send(action.message)
            elif isinstance(action, Requested):
                self._serve(action.request)
            elif isinstance(action, Failed) and (waiter := action.call.waiter) is not None:
                if not waiter.done():
                    waiter.set_exception(action.error)
            elif (unread := self._waiting.settle(action)) is not None:
                self._perform(self._engine.cancel(unread))

    def _serve(self, request: Request) -> None:
        topic = request.topic or ""
        if host := self._services.get(topic.partition(".")[0]):
            host.receive(request)
        elif not request.flags & NORESPONSE:
            self._respond(fail(request, ENOSYS, f"No service matching {topic} is registered"))

    def _respond(self, response: Response) -> None:
        if self._engine.lost is None:
            self._connection.send(response)
