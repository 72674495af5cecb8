"""What a client listens to: the broker is asked once for each prefix, however many listen to it here.

The broker deals with what one client asks in the order of the asking. So a prefix that is given up and wanted again
is unsubscribed from and subscribed to anew, and nobody waits in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated.flux import Event
from specwire.runtime.flux.client_actions import Arrived, ClientAction, Ended, Subscribed, Subscription
from specwire.runtime.flux.errors import FluxError


def without_covered(prefixes: Sequence[str]) -> list[str]:
    """Return the prefixes that are not covered by another one, each once, so that no event has two of them."""
    each = dict.fromkeys(prefixes)
    return [prefix for prefix in each if not any(prefix.startswith(o) for o in each if o != prefix)]


class Prefix:
    """A prefix that was asked for, and who listens."""

    __slots__ = ("confirmed", "listeners", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.listeners: list[Subscription] = []
        self.confirmed = False


class Subscriptions:
    """All of a connection."""

    def __init__(self) -> None:
        self._prefixes: dict[str, Prefix] = {}

    def add(self, subscription: Subscription) -> Prefix | None:
        """Listen; return the prefix where the broker has to be asked for it."""
        known = self._prefixes.get(subscription.prefix)
        prefix = known or Prefix(subscription.prefix)
        prefix.listeners.append(subscription)
        self._prefixes[prefix.text] = prefix
        return None if known else prefix

    def is_confirmed(self, subscription: Subscription) -> bool:
        """Tell whether the broker has agreed to send these events already."""
        return self._prefixes[subscription.prefix].confirmed

    def remove(self, subscription: Subscription) -> bool:
        """Listen no more; tell whether the broker is to be told so, as nobody else does."""
        prefix = self._prefixes.get(subscription.prefix)
        if prefix is None or subscription not in prefix.listeners:
            return False  # the broker refused, or the connection is lost
        prefix.listeners.remove(subscription)
        if not prefix.listeners:
            del self._prefixes[prefix.text]
        return not prefix.listeners

    def confirm(self, prefix: Prefix) -> list[ClientAction]:
        """The broker has agreed."""
        prefix.confirmed = True
        return [Subscribed(subscription) for subscription in prefix.listeners]

    def refuse(self, prefix: Prefix, error: FluxError) -> list[ClientAction]:
        """The broker has not."""
        if self._prefixes.get(prefix.text) is prefix:
            del self._prefixes[prefix.text]
        ended: list[ClientAction] = [Ended(subscription, error) for subscription in prefix.listeners]
        prefix.listeners.clear()
        return ended

    def deliver(self, event: Event) -> list[ClientAction]:
        """Return where `event` goes: once to each listener whose prefix it has."""
        topic = event.topic or ""
        return [
            Arrived(subscription, event)
            for prefix in self._prefixes.values()
            if topic.startswith(prefix.text)
            for subscription in prefix.listeners
        ]

    def end(self, error: FluxError) -> list[ClientAction]:
        """The connection is lost."""
        prefixes = list(self._prefixes.values())
        return [action for prefix in prefixes for action in self.refuse(prefix, error)]
