"""Who may do what at a broker, as the engine asks it.

`user` is whom the security of the connection knows: with CURVE the name that belongs to the key, empty without
security. The engine asks at every message and keeps no answer, so a table may change while the broker runs.
"""

from __future__ import annotations

from typing import Protocol


class Access(Protocol):
    """A table of who may do what."""

    def may_serve(self, user: str, name: str, service: str) -> bool:
        """Whether `user` may be the worker `name` of `service`."""

    def may_call(self, user: str, service: str, task: str) -> bool:
        """Whether `user` may have `task` of `service` done; `task` is empty in questions for results."""

    def may_see(self, user: str, owner: str) -> bool:
        """Whether `user` may ask for, and delete, a job that `owner` posted; empty where nobody knows who did."""

    def may_manage(self, user: str, task: str) -> bool:
        """Whether `user` may use this task of the broker's management."""


class Everyone:
    """No table: whoever is let in by the socket may do everything."""

    def may_serve(self, user: str, name: str, service: str) -> bool:
        """See `Access.may_serve`."""
        return True

    def may_call(self, user: str, service: str, task: str) -> bool:
        """See `Access.may_call`."""
        return True

    def may_see(self, user: str, owner: str) -> bool:
        """See `Access.may_see`."""
        return True

    def may_manage(self, user: str, task: str) -> bool:
        """See `Access.may_manage`."""
        return True
