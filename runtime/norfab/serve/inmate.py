"""A worker inside the broker's process: it has no socket, and to the engine it is a worker like any other.

What the engine sends to its routing id is given to it, and what it says is received from there, in the name of a user that no peer
can be. A peer of the network that takes this routing id is not listened to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specwire.runtime.norfab.access import Access, Everyone
from specwire.runtime.norfab.commands import Command

USER = "\0inmate"
"""Whose name it serves in. (The names of peers have no NUL.)"""


class Inmate(Protocol):
    """The worker."""

    @property
    def peer(self) -> bytes:
        """Its routing id."""

    def start(self) -> None:
        """Offer its service."""

    def receive(self, command: Command) -> None:
        """Take what the broker sends; what comes of it is said later, never from inside this."""

    async def close(self) -> None:
        """End what it does, and say nothing any more."""


MakeInmate = Callable[[Callable[[Command], None]], Inmate]
"""Makes one that calls its argument, on the event loop, with what it says."""


class AdmitInmate:
    """Another's rights, and that of the inmate to serve."""

    def __init__(self, access: Access | None) -> None:
        self._access: Access = access or Everyone()

    def may_serve(self, user: str, name: str, service: str) -> bool:
        """See `Access.may_serve`."""
        return user == USER or self._access.may_serve(user, name, service)

    def may_call(self, user: str, service: str, task: str) -> bool:
        """See `Access.may_call`."""
        return self._access.may_call(user, service, task)

    def may_see(self, user: str, owner: str) -> bool:
        """See `Access.may_see`."""
        return self._access.may_see(user, owner)

    def may_manage(self, user: str, task: str) -> bool:
        """See `Access.may_manage`."""
        return self._access.may_manage(user, task)
