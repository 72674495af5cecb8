"""The tree below a broker, found by asking its brokers while somebody looks at the page, and not otherwise.

The asking is done as any client does it, over the broker's own local socket, so it is one of the clients that the page counts.
"""

from __future__ import annotations

import asyncio

from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import connect
from specwire.runtime.flux.survey import Branch, Survey

LOOK_S = 2.0
"""How long after one look the next one begins."""

ASKED_FOR_S = 10.0
"""How long it is gone on after the page was asked for last."""

TIMEOUT_S = 2.0
"""How long each broker may take."""

MOST_BROKERS = 256
"""In a larger instance a look would take too long: only the children are shown."""


class FluxTree:
    """Keeps a picture of the tree for as long as `latest` is called.

    Args:
        uri: of the broker's local socket.
        rank: where the tree begins.
        size: of the instance.
    """

    def __init__(self, uri: str, rank: int, size: int) -> None:
        self._uri, self._rank, self._is_small = uri, rank, 1 < size <= MOST_BROKERS
        self._latest: Branch | None = None
        self._asked_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def latest(self) -> Branch | None:
        """Return what was found last, None where there is nothing yet; on the event loop."""
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        if self._is_small and (self._looking is None or self._looking.done()):
            self._looking = loop.create_task(self._look())
        return self._latest

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            async with connect(self._uri, timeout_s=TIMEOUT_S) as handle:
                while clock() - self._asked_at < ASKED_FOR_S:
                    self._latest = await Survey(handle, TIMEOUT_S).look(self._rank)
                    await asyncio.sleep(LOOK_S)
        except FluxError:
            await asyncio.sleep(LOOK_S)  # the tree as it is known without asking is shown meanwhile
        finally:
            self._latest = None
