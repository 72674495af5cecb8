"""A FILEMQ server and a client in this process, with the dialog of both watched, for tests that disturb them.

The watches are looked at when a peer has stopped: no test of a fault passes where it broke the dialog.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.kernel.log import LogEvent
from tests.integration.filemq_watch import DialogWatch

STORY_S = 120.0
NEVER_S = 3600.0
RESERVED = ".specwire-inbox"

E = TypeVar("E", bound=LogEvent)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has two minutes."""

    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


@asynccontextmanager
async def serving(
    *sources: Path | Publication,
    timers: Mapping[str, float] | None = None,
    rescan_s: float = NEVER_S,
    **settings: Any,
) -> AsyncIterator[tuple[FilemqServer, DialogWatch]]:
    """Serve folders; what changes in them is known from notifications alone."""
    watch = DialogWatch("S")
    publications = [source if isinstance(source, Publication) else Publication(source) for source in sources]
    server = FilemqServer(publications, tap=watch, timers=timers, rescan_s=rescan_s, **settings)
    async with server:
        yield server, watch
    assert not watch.violations, watch.violations


@asynccontextmanager
async def subscribing(
    endpoint: str, inbox: Path, *paths: str, timers: Mapping[str, float] | None = None, **settings: Any
) -> AsyncIterator[tuple[FilemqClient, DialogWatch]]:
    """Keep an inbox equal to what is served at `endpoint` under the paths, or to all of it."""
    watch = DialogWatch("C")
    async with FilemqClient(
        endpoint, inbox, paths or ("/",), tap=watch, timers=timers, sync=False, **settings
    ) as client:
        yield client, watch
    assert not watch.violations, watch.violations


async def in_step(server: FilemqServer, *clients: FilemqClient, path: str = "/") -> None:
    """Wait until every inbox holds what is published now."""
    await server.rescan()
    expected = server.digests(path)
    await asyncio.gather(*(client.until_equal(expected, timeout_s=STORY_S) for client in clients))


async def event_of(
    watch: AsyncIterator[LogEvent], kind: type[E], wanted: Callable[[E], bool] = lambda _: True
) -> E:
    """Return the next event of this kind that is wanted."""
    async for event in watch:
        if isinstance(event, kind) and wanted(event):
            return event
    raise AssertionError(f"the service stopped before {kind.__name__} came")


def digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files in a folder by virtual name, without an inbox's own."""
    files = (path for path in folder.rglob("*") if path.is_file() and RESERVED not in path.parts)
    return {
        f"/{path.relative_to(folder)}": hashlib.sha1(path.read_bytes()).hexdigest().upper() for path in files
    }


def own_files(inbox: Path) -> set[str]:
    """Return what an inbox keeps for itself, besides the trash."""
    return {path.name for path in (inbox / RESERVED).iterdir()} - {"trash"}
