"""What tests of writers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has a minute."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())
