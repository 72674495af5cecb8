"""CURVE keys of a server that are read again: where they have changed, the server proves itself by the new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyFileError, KeyPair


class Rekeying:
    """Follows the keys of one server.

    Args:
        load: reads the keys as they are by now; may raise KeyFileError or ValueError.
        keys: those that the server has.
        change: has the server take others; returns when it listens by them.
        say: writes a line of the server's log.
    """

    def __init__(
        self,
        load: Callable[[], KeyPair],
        keys: KeyPair,
        change: Callable[[KeyPair], Awaitable[None]],
        say: Callable[[str], None],
    ) -> None:
        self._load, self._keys, self._change, self._say = load, keys, change, say
        self._work: set[asyncio.Task[None]] = set()

    def reread(self) -> None:
        """Read the keys; those that cannot be used change nothing."""
        try:
            keys = self._load()
        except (KeyFileError, ValueError) as error:
            self._say(f"the keys stay as they were: {error}")
            return
        if keys != self._keys:
            work = asyncio.create_task(self._take(keys, self._keys))
            self._keys = keys
            self._work.add(work)
            work.add_done_callback(self._work.discard)

    async def _take(self, keys: KeyPair, previous: KeyPair) -> None:
        try:
            await self._change(keys)
        except TransportError as error:
            if self._keys is keys:  # otherwise a later change is under way
                self._keys = previous
            self._say(f"the keys stay as they were: {error}")
            return
        self._say(f"the server proves itself by other keys now; who connects has to expect {keys.public}")
