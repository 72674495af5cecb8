"""What tests of writers share."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has a minute."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


def as_killed(folder: Path, to: Path) -> Path:
    """Return a copy of a folder as it is now, of which no process knows: so it would be found after kill -9."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*-lock", "*-shm"))
    return to
