"""A worker's inventory may hold passwords of what it manages: it is given to that worker, and to admins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.norfab.security.table import Table

if TYPE_CHECKING:
    from specwire.runtime.norfab.serve.handlers import Handler

_KWARGS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAME = msgspec.json.Decoder(str)


class OwnInventory:
    """A handler in front of the inventory's.

    Args:
        handler: has the inventory of everybody.
        table: knows which names a peer has.
    """

    def __init__(self, handler: Handler, table: Table) -> None:
        self._handler, self._table = handler, table

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """See `Handler.perform`."""
        name = _read_name(kwargs)
        if name is None or not self._table.may_have_inventory(user, name):
            who = (
                "kwargs need a name" if name is None else f"{user} may not have the inventory of {name[:200]}"
            )
            return 400, msgspec.json.encode({"status": "FAILED", "error": who, "errors": [who]})
        return await self._handler.perform(task, args, kwargs, user)


def _read_name(kwargs: bytes) -> str | None:
    try:
        return _NAME.decode(_KWARGS.decode(kwargs)["name"])
    except (msgspec.DecodeError, KeyError, RecursionError, UnicodeDecodeError):
        return None
