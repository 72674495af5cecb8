"""The client's engine: requests and messages in, actions out; no socket, file, thread or clock.

A connection to a broker is symmetric: besides asking, a client gets events that it subscribed to, and requests to
services that it registered, which it answers with what `answering` makes of them. Clients send userid 0xFFFFFFFF
and rolemask 0, and the broker puts in who they are. A connection that is lost stays so: a new one has a new engine.
"""

from __future__ import annotations

from base64 import b64encode
from math import inf
from typing import NoReturn

import msgspec

from specwire.generated.flux import ENODATA, NODEID_ANY, USERID_UNKNOWN, AnyMessage, Event, Request, Response
from specwire.runtime.flux.calls import PendingCall, PendingCalls
from specwire.runtime.flux.client_actions import (
    Answered,
    ClientAction,
    Failed,
    Finished,
    Requested,
    Send,
    Subscribed,
    Subscription,
)
from specwire.runtime.flux.errors import ETIMEDOUT, FluxError
from specwire.runtime.flux.flags import NORESPONSE, PRIVATE, STREAMING, UPSTREAM
from specwire.runtime.flux.payload import Content, encode_payload, text_of_error
from specwire.runtime.flux.subscriptions import Prefix, Subscriptions

HIGHEST_RANK = 0xFFFF_FFFD


class Published(msgspec.Struct):
    """The answer to ``event.publish``."""

    seq: int


class ClientEngine:
    """One connection, from the authorisation octet to its end.

    Attributes:
        lost: why there is no connection any more.
    """

    def __init__(self) -> None:
        self.lost: FluxError | None = None
        self._calls = PendingCalls()
        self._subscriptions = Subscriptions()
        self._asked: dict[PendingCall, Prefix | None] = {}
        """Calls of our own, with the prefix that is asked for; None where the outcome is of no interest."""

    @property
    def pending(self) -> int:
        """Number of calls that wait."""
        return len(self._calls)

    @property
    def abandoned(self) -> int:
        """Number of calls that were given up before their final response."""
        return len(self._calls.abandoned)

    @property
    def deadline(self) -> float:
        """When `tick` has something to do, at the earliest; infinity where it has nothing to wait for."""
        return self._calls.deadline

    def call(
        self,
        topic: str,
        content: Content,
        now: float,
        *,
        nodeid: int = NODEID_ANY,
        timeout_s: float | None = None,
        streaming: bool = False,
        upstream: bool = False,
    ) -> PendingCall:
        """Return a call whose `request` is to be sent.

        Raises:
            FluxError: the connection is lost.
            TypeError, ValueError: `content` is no payload, or `nodeid` no rank.
        """
        if self.lost is not None:
            self._refuse()
        payload = encode_payload(content)
        if not 0 <= nodeid <= HIGHEST_RANK:
            _check(nodeid)
        flags = (STREAMING if streaming else 0) | (UPSTREAM if upstream else 0)
        calls = self._calls
        matchtag = calls.free_matchtag()
        request = Request((), topic, payload, flags, USERID_UNKNOWN, 0, nodeid, matchtag)
        if timeout_s is None:
            call = PendingCall(request, streaming, inf, inf)
        else:
            call = PendingCall(request, streaming, timeout_s, now + timeout_s)
        calls.add(call)
        return call

    def tell(
        self, topic: str, content: Content, *, nodeid: int = NODEID_ANY, upstream: bool = False
    ) -> Request:
        """Return a request that nobody answers; raises as `call`."""
        self._refuse_if_lost()
        _check(nodeid)
        flags = NORESPONSE | (UPSTREAM if upstream else 0)
        return Request((), topic, encode_payload(content), flags, nodeid=nodeid)

    def cancel(self, call: PendingCall) -> list[ClientAction]:
        """Give a call up, if it is not over; what is still answered is swallowed.

        A service goes on with a stream until it is told: by convention, with ``<service>.cancel`` and the matchtag.
        """
        if not self._calls.is_pending(call):
            return []
        self._calls.abandon(call)
        return [self._take_back(call)] if call.streaming else []

    def publish(self, topic: str, content: Content, now: float, *, private: bool = False) -> PendingCall:
        """Return a call that publishes an event, and is answered with `Published`; raises as `call`."""
        payload = encode_payload(content)
        wanted: dict[str, object] = {"topic": topic, "flags": PRIVATE if private else 0}
        if payload is not None:
            wanted["payload"] = b64encode(payload).decode("ascii")
        return self.call("event.publish", wanted, now, nodeid=0)

    def announce(self, topic: str, content: Content, *, private: bool = False) -> Event:
        """Return an event to be published, of which nothing more will be heard; raises as `call`."""
        self._refuse_if_lost()
        return Event((), topic, encode_payload(content), PRIVATE if private else 0)

    def subscribe(self, prefix: str, now: float) -> tuple[Subscription, list[ClientAction]]:
        """Listen to events whose topics begin with `prefix`, any topic with the empty one; raises as `call`.

        `Subscribed` says that the broker agreed, `Ended` that it did not.
        """
        self._refuse_if_lost()
        subscription = Subscription(prefix)
        wanted = self._subscriptions.add(subscription)
        if wanted is not None:
            return subscription, [self._ask("event.subscribe", wanted.text, wanted, now)]
        confirmed = self._subscriptions.is_confirmed(subscription)
        return subscription, [Subscribed(subscription)] if confirmed else []

    def unsubscribe(self, subscription: Subscription, now: float) -> list[ClientAction]:
        """Listen no more; nothing happens where it is over already."""
        if not self._subscriptions.remove(subscription) or self.lost is not None:
            return []
        return [self._ask("event.unsubscribe", subscription.prefix, None, now)]

    def receive(self, message: AnyMessage, now: float) -> list[ClientAction]:
        """Take a message from the broker; one that concerns nobody is dropped."""
        if isinstance(message, Response):
            return self._take_response(message, now)
        if isinstance(message, Event):
            return self._subscriptions.deliver(message)
        if isinstance(message, Request):
            return [Requested(message)]
        return []

    def tick(self, now: float) -> list[ClientAction]:
        """Give up the calls whose time is over."""
        actions: list[ClientAction] = []
        for call in self._calls.expire(now):
            text = f"{call.request.topic}: no response in {call.timeout_s:g} s"
            actions.append(Failed(call, FluxError(ETIMEDOUT, text)))
            if call.streaming:
                actions.append(self._take_back(call))
        return actions

    def lose(self, error: FluxError) -> list[ClientAction]:
        """The connection is over: everything that waits fails with `error`, and whatever is asked for later."""
        if self.lost is not None:
            return []
        self.lost = error
        ours, self._asked = self._asked, {}
        failed: list[ClientAction] = [Failed(call, error) for call in self._calls.clear() if call not in ours]
        return failed + self._subscriptions.end(error)

    def _take_back(self, call: PendingCall) -> Send:
        """Tell the service, by the way that the request went."""
        request = call.request
        topic = f"{(request.topic or '').partition('.')[0]}.cancel"
        flags = NORESPONSE | request.flags & UPSTREAM
        payload = encode_payload({"matchtag": request.matchtag})
        return Send(Request((), topic, payload, flags, nodeid=request.nodeid))

    def _refuse_if_lost(self) -> None:
        if self.lost is not None:
            self._refuse()

    def _refuse(self) -> NoReturn:
        assert self.lost is not None
        raise FluxError(self.lost.errnum, self.lost.text)

    def _ask(self, topic: str, prefix: str, wanted: Prefix | None, now: float) -> Send:
        call = self.call(topic, {"topic": prefix}, now)
        self._asked[call] = wanted
        return Send(call.request)

    def _take_response(self, response: Response, now: float) -> list[ClientAction]:
        call = self._calls.match(response)
        if call is None:
            return []
        if response.errnum:
            return self._take_error(call, response)
        if self._asked and call in self._asked:
            prefix = self._asked.pop(call)
            return [] if prefix is None else self._subscriptions.confirm(prefix)
        if not call.streaming:
            return [Answered(call, response, True)]
        call.deadline = now + call.timeout_s
        return [Answered(call, response, not response.flags & STREAMING)]

    def _take_error(self, call: PendingCall, response: Response) -> list[ClientAction]:
        if response.errnum == ENODATA and call.streaming:
            return [Finished(call)]
        error = FluxError(response.errnum, text_of_error(response.payload))
        if call in self._asked:
            prefix = self._asked.pop(call)
            return [] if prefix is None else self._subscriptions.refuse(prefix, error)
        return [Failed(call, error)]


def _check(nodeid: int) -> None:
    if not 0 <= nodeid <= HIGHEST_RANK and nodeid != NODEID_ANY:
        raise ValueError(f"nodeid is a rank from 0 to {HIGHEST_RANK}, or NODEID_ANY, not {nodeid}")
