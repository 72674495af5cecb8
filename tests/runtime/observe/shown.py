"""A server that is nothing but its page, and a way to ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import msgspec

from specwire.runtime.observe.families import gauge
from specwire.runtime.observe.filemq import view_server
from specwire.runtime.observe.place import LOOPBACK, Place
from specwire.runtime.observe.showing import Showing
from specwire.runtime.observe.view import Counted, Subject, View
from tests.runtime.observe import statuses

ANY = Place(LOOPBACK, 0)
PATIENCE_S = 120.0

Result = TypeVar("Result")


class Still:
    """A server of which nothing changes but what a test changes.

    Attributes:
        shown: its view.
        looks: how often that was asked for.
    """

    def __init__(self, view: View | None = None) -> None:
        self.shown = view or view_server(statuses.FILEMQ_SERVER)
        self.looks = 0

    def subject(self) -> Subject:
        """Return it as it is shown."""
        return Subject(
            counted=(Counted("content", "octets"), Counted("files")),
            totals=lambda: (2500, 5),
            measure=lambda: [gauge("specwire_test_depth", "Depth.", 3)],
            view=self._look,
            health=lambda: self.shown.health,
        )

    def _look(self) -> View:
        self.looks += 1
        return self.shown


class Answer(msgspec.Struct):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: str


async def ask(
    showing: Showing, path: str, *, host: str = "localhost", method: str = "GET", authorization: str = ""
) -> Answer:
    """Ask for a path on a connection of its own."""
    reader, writer = await connect(showing)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close"]
    if authorization:
        lines.append(f"Authorization: {authorization}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    whole = (await reader.read()).decode()
    writer.close()
    head, _, body = whole.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answer(int(first.split()[1]), headers, body)


async def connect(showing: Showing) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to the page."""
    return await asyncio.open_connection(LOOPBACK, port_of(showing))


def port_of(showing: Showing) -> int:
    """Return the port that it took."""
    return int(showing.url.rstrip("/").rpartition(":")[2])


def play(story: Coroutine[object, object, Result]) -> Result:
    """Run a story, and give up after a while."""

    async def bounded() -> Result:
        async with asyncio.timeout(PATIENCE_S):
            return await story

    return asyncio.run(bounded())
