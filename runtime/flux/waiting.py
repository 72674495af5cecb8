"""Who waits for what on a connection: for the replies to a call, for a subscription, for its events.

Takes the actions of `ClientEngine` that say how something went, and puts it where the reader looks; how a reader waits
is the shell's. A call has its box with it (`PendingCall.box`); subscriptions have theirs here. What nobody waits for any
more is passed over.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from specwire.runtime.flux.calls import PendingCall
from specwire.runtime.flux.client_actions import (
    Answered,
    Arrived,
    Ended,
    Failed,
    Finished,
    Subscribed,
    Subscription,
)
from specwire.runtime.flux.errors import ENOBUFS, FluxError
from specwire.runtime.flux.views import Notice, Reply

Outcome = Answered | Finished | Failed | Subscribed | Ended | Arrived
Item_contra = TypeVar("Item_contra", contravariant=True)


class Box(Protocol[Item_contra]):
    """Where a reader looks."""

    def put(self, item: Item_contra) -> bool:
        """Take an item; False where there is no room."""

    def end(self, error: FluxError | None = None) -> None:
        """Say that nothing follows."""


class Waiting:
    """All who wait."""

    def __init__(self) -> None:
        self._asked: dict[Subscription, Box[bool]] = {}
        self._listeners: dict[Subscription, Box[Notice]] = {}

    def for_events(self, subscription: Subscription, agreed: Box[bool], box: Box[Notice]) -> None:
        """Put something into `agreed` when the broker has agreed, and the events into `box`."""
        self._asked[subscription], self._listeners[subscription] = agreed, box

    def forget_subscription(self, subscription: Subscription) -> None:
        """Nobody listens any more; the box ends after what is in it."""
        self._asked.pop(subscription, None)
        if (box := self._listeners.pop(subscription, None)) is not None:
            box.end()

    def settle(self, outcome: Outcome) -> PendingCall | None:
        """Put what came into its box; return a call that is to be given up because its box is full."""
        match outcome:
            case Answered():
                return _answer(outcome)
            case Arrived(subscription=subscription, event=event):
                if (listener := self._listeners.get(subscription)) is not None:
                    listener.put(Notice(event))
            case Finished(call=call):
                _end_call(call, None)
            case Failed(call=call, error=error):
                _end_call(call, error)
            case Subscribed(subscription=subscription):
                if (agreed := self._asked.pop(subscription, None)) is not None:
                    agreed.put(True)
            case Ended(subscription=subscription, error=error):
                self._end_events(subscription, error)
        return None

    def _end_events(self, subscription: Subscription, error: FluxError) -> None:
        if (agreed := self._asked.pop(subscription, None)) is not None:
            agreed.end(error)
        if (listener := self._listeners.get(subscription)) is not None:
            listener.end(error)


def _answer(outcome: Answered) -> PendingCall | None:
    call, response = outcome.call, outcome.response
    box = call.box
    if box is None:
        return None
    if not box.put(Reply(response)):
        box.end(FluxError(ENOBUFS, f"{response.topic}: too many responses are unread"))
        return call
    if call.streaming and outcome.last:  # one reply is an end in itself
        box.end()
    return None


def _end_call(call: PendingCall, error: FluxError | None) -> None:
    if call.box is not None:
        call.box.end(error)
