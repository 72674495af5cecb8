"""A broker's client for a plain program: ``with open("local://PATH") as handle``, without asyncio and threads.

    with flux.open() as handle:
        print(handle.rpc("attr.get", {"name": "size"}).json()["value"])
        for reply in handle.stream("log.dmesg", {"follow": False}):
            print(reply.text)

The engine is the one of `connect`. Whoever waits reads the socket for all: what comes for others is kept for them, so
a request can be made while events or the responses of a stream are still to come. One thread at a time may use it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from types import UnionType
from typing import Any, Self, TypeVar, overload

from specwire.generated.flux import NODEID_ANY, AnyMessage, Request
from specwire.runtime.flux.answering import fail
from specwire.runtime.flux.calls import PendingCall
from specwire.runtime.flux.client import ClientEngine, Published
from specwire.runtime.flux.client_actions import ClientAction, Requested, Send, Subscription
from specwire.runtime.flux.client_limits import MAX_MESSAGE_OCTETS
from specwire.runtime.flux.errors import ENOSYS, FluxError
from specwire.runtime.flux.flags import NORESPONSE
from specwire.runtime.flux.payload import Content
from specwire.runtime.flux.plain_socket import PlainSocket
from specwire.runtime.flux.subscriptions import without_covered
from specwire.runtime.flux.unread import Unread
from specwire.runtime.flux.uri import explain_loss, local_path
from specwire.runtime.flux.views import Notice, Reply
from specwire.runtime.flux.waiting import Waiting

Item = TypeVar("Item")
Type = TypeVar("Type")


@contextmanager
def open(
    uri: str | None = None,
    *,
    timeout_s: float | None = None,
    max_message_octets: int = MAX_MESSAGE_OCTETS,
) -> Iterator[BlockingHandle]:
    """Connect to a broker, and disconnect at the end; arguments and errors are those of `connect`."""
    handle = BlockingHandle(local_path(uri), timeout_s, max_message_octets)
    try:
        yield handle
    finally:
        handle.close()


class BlockingEvents:
    """The events since a subscription, in order; an iterator, and ``with`` ends it.

    With `timeout_s` the iteration ends where no event comes for so long, and may be taken up again. What is not read is
    kept up to a bound, and counted in `lost` over it.
    """

    def __init__(
        self,
        handle: BlockingHandle,
        subscriptions: Sequence[Subscription],
        unread: Unread[Notice],
        timeout_s: float | None,
    ) -> None:
        self._handle, self._subscriptions, self._unread = handle, subscriptions, unread
        self._timeout_s = inf if timeout_s is None else timeout_s

    @property
    def lost(self) -> int:
        """Events that were dropped because too many were unread."""
        return self._unread.lost

    def unsubscribe(self) -> None:
        """Listen no more: the iteration ends after what is unread."""
        for subscription in self._subscriptions:
            self._handle.unsubscribe(subscription)

    def __iter__(self) -> Iterator[Notice]:
        return self

    def __next__(self) -> Notice:
        event = self._handle.next_of(self._unread, time.monotonic() + self._timeout_s)
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.unsubscribe()


class BlockingHandle:
    """A connection to a broker; made by `open`."""

    def __init__(self, path: str, timeout_s: float | None, max_message_octets: int) -> None:
        self._path = path
        self._engine = ClientEngine()
        self._waiting = Waiting()
        self._socket = PlainSocket(path, timeout_s, max_message_octets)

    @property
    def pending(self) -> int:
        """Number of requests that wait for a response."""
        return self._engine.pending

    def close(self) -> None:
        """Disconnect."""
        self._perform(self._engine.lose(explain_loss(self._path, "it was closed on this side")))
        self._socket.close()

    @overload
    def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Reply: ...
    @overload
    def rpc(
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
    def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: UnionType,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Any: ...
    def rpc(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: Any = None,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Any:
        """Ask a service and return its response; see `FluxHandle.rpc`."""
        reply = self._reply_to(
            self._engine.call(
                topic, payload, time.monotonic(), nodeid=nodeid, timeout_s=timeout_s, upstream=upstream
            )
        )
        return reply if type is None else reply.read(type)

    def tell(
        self, topic: str, payload: Content = None, *, nodeid: int = NODEID_ANY, upstream: bool = False
    ) -> None:
        """Send a request that nobody answers; see `FluxHandle.tell`."""
        self._send(self._engine.tell(topic, payload, nodeid=nodeid, upstream=upstream))

    @overload
    def stream(
        self,
        topic: str,
        payload: Content = None,
        *,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Iterator[Reply]: ...
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
    ) -> Iterator[Type]: ...
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
    ) -> Iterator[Any]: ...
    def stream(
        self,
        topic: str,
        payload: Content = None,
        *,
        type: Any = None,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        upstream: bool = False,
    ) -> Iterator[Any]:
        """Ask a service, when the iteration begins, and yield its responses; see `FluxHandle.stream`."""
        now = time.monotonic()
        call = self._engine.call(
            topic, payload, now, nodeid=nodeid, timeout_s=timeout_s, streaming=True, upstream=upstream
        )
        unread = Unread[Reply]()
        call.box = unread
        try:
            self._send(call.request)
            while (reply := self.next_of(unread)) is not None:
                yield reply if type is None else reply.read(type)
        finally:
            self._give_up(call)

    def publish(self, topic: str, payload: Content = None, *, private: bool = False) -> int:
        """Publish an event and return its number; see `FluxHandle.publish`."""
        call = self._engine.publish(topic, payload, time.monotonic(), private=private)
        return self._reply_to(call).read(Published).seq

    def announce(self, topic: str, payload: Content = None, *, private: bool = False) -> None:
        """Send an event to be published, and wait for nothing; see `FluxHandle.announce`."""
        self._send(self._engine.announce(topic, payload, private=private))

    def events(self, prefix: str = "", *others: str, timeout_s: float | None = None) -> BlockingEvents:
        """Return the events from now on whose topics begin with `prefix` or one of the others; raises FluxError."""
        unread = Unread[Notice]()
        subscriptions: list[Subscription] = []
        try:
            for wanted in without_covered((prefix, *others)):
                subscription, actions = self._engine.subscribe(wanted, time.monotonic())
                subscriptions.append(subscription)
                agreed = Unread[bool]()
                self._waiting.for_events(subscription, agreed, unread)
                self._perform(actions)
                self.next_of(agreed)
        except BaseException:
            for subscription in subscriptions:
                self.unsubscribe(subscription)
            raise
        return BlockingEvents(self, subscriptions, unread, timeout_s)

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; callers use `BlockingEvents.unsubscribe`."""
        self._waiting.forget_subscription(subscription)
        self._perform(self._engine.unsubscribe(subscription, time.monotonic()))

    def next_of(self, unread: Unread[Item], deadline: float = inf) -> Item | None:
        """Return what comes next; None at its end, or where `deadline` (monotonic) passes. For this module."""
        while not unread:
            self._turn(deadline)
            if not unread and time.monotonic() >= deadline:
                return None
        return unread.take()

    def _reply_to(self, call: PendingCall) -> Reply:
        unread = Unread[Reply]()
        call.box = unread
        try:
            self._send(call.request)
            reply = self.next_of(unread)
            assert reply is not None  # what is no stream has a reply or an error
            return reply
        finally:
            self._give_up(call)

    def _give_up(self, call: PendingCall) -> None:
        call.box = None
        self._perform(self._engine.cancel(call))

    def _send(self, message: AnyMessage) -> None:
        try:
            self._socket.send(message)
        except FluxError as error:
            self._perform(self._engine.lose(error))

    def _turn(self, deadline: float) -> None:
        """Take what comes next, for whomever it is; return by `deadline`."""
        try:
            messages = self._socket.wait(min(deadline, self._engine.deadline))
        except FluxError as error:
            self._perform(self._engine.lose(error))
            return
        now = time.monotonic()
        for message in messages:
            self._perform(self._engine.receive(message, now))
        self._perform(self._engine.tick(now))

    def _perform(self, actions: Sequence[ClientAction]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(action.message)
            elif isinstance(action, Requested):
                self._refuse(action.request)
            elif (unread := self._waiting.settle(action)) is not None:
                self._perform(self._engine.cancel(unread))

    def _refuse(self, request: Request) -> None:
        """A plain program is no service: it would have to wait for requests all the time."""
        if not request.flags & NORESPONSE:
            text = f"No service matching {request.topic or ''} is registered"
            self._send(fail(request, ENOSYS, text))
