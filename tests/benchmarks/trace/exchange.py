"""Functions that run between two messages, and peers in other threads."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import specwire
from specwire.runtime.transport.link import Link

Frames = Sequence[bytes | memoryview]
Pattern = tuple[bytes, ...]
"""Octets, each of which is the beginning of a frame."""

SOURCES = Path(specwire.__file__).parent
PEER = "peer"
APART = {"runtime/transport/": "transport", "runtime/kernel/store/": "store", "generated/": "generated"}
"""Folders that are counted separately, with the name of their part."""
COMPREHENSION = re.compile(r"\.<locals>\.<(listcomp|setcomp|dictcomp|genexpr)>")
EXCHANGES = 8
"""Exchanges of a case."""


class Function(NamedTuple):
    """A function, by its file below `SOURCES` and its qualified name."""

    file: str
    name: str

    @property
    def part(self) -> str:
        """What it is counted as."""
        return next((part for folder, part in APART.items() if self.file.startswith(folder)), PEER)

    @property
    def owner(self) -> str:
        """The class of a method, empty for other functions."""
        return self.name.rpartition("<locals>.")[2].rpartition(".")[0]


class Trace:
    """Functions that run in this thread between two messages.

    Args:
        begin: message with which an exchange begins when it is received. Without it, `begin` is called.
        end: message with which it ends when it is sent. Without it, `end` is called.

    Attributes:
        exchanges: the functions of each completed exchange.
    """

    def __init__(self, begin: Pattern | None = None, end: Pattern | None = None) -> None:
        self.exchanges: list[frozenset[Function]] = []
        self._first, self._last = begin, end
        self._thread = threading.current_thread()
        self._changed = asyncio.Event()
        self._functions: set[Function] | None = None

    def begin(self) -> None:
        """Begin an exchange, unless one has begun."""
        if self._functions is None:
            self._functions = set()
            sys.setprofile(self._note)

    def end(self) -> None:
        """Complete an exchange that has begun."""
        sys.setprofile(None)
        if self._functions is not None:
            self.exchanges.append(frozenset(self._functions))
            self._functions = None
            self._changed.set()

    async def until(self, count: int = EXCHANGES) -> None:
        """Return when so many exchanges are complete."""
        while len(self.exchanges) < count:
            self._changed.clear()
            await self._changed.wait()

    @contextmanager
    def watch_links(self) -> Iterator[None]:
        """Observe what each `Link` of this thread receives and sends."""
        make, send, send_all = Link.__init__, Link.send, Link.send_all

        def made(link: Link, *given: Any, **settings: Any) -> None:
            one, many = settings.pop("on_message", None), settings.pop("on_messages", None)
            settings["on_message"] = one and self._before(one, lambda frames: [frames])
            settings["on_messages"] = many and self._before(many, lambda pairs: [pair[1] for pair in pairs])
            make(link, *given, **settings)

        def sent(link: Link, frames: Frames) -> bool:
            self._see(self._last, [frames], self.end)
            return send(link, frames)

        def sent_all(link: Link, messages: Sequence[Sequence[bytes]], at: int) -> int:
            self._see(self._last, messages[at:], self.end)
            return send_all(link, messages, at)

        with (
            patch.object(Link, "__init__", made),
            patch.object(Link, "send", sent),
            patch.object(Link, "send_all", sent_all),
        ):
            yield

    def _before(
        self, callback: Callable[[Any], None], messages: Callable[[Any], Sequence[Frames]]
    ) -> Callable[[Any], None]:
        def receive(received: Any) -> None:
            self._see(self._first, messages(received), self.begin)
            callback(received)

        return receive

    def _see(self, pattern: Pattern | None, messages: Sequence[Frames], act: Callable[[], None]) -> None:
        if pattern is not None and threading.current_thread() is self._thread:
            for frames in messages:
                if all(any(frame[: len(head)] == head for frame in frames) for head in pattern):
                    act()
                    return

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and self._functions is not None and code.co_filename.startswith(f"{SOURCES}/"):
            name = COMPREHENSION.sub("", code.co_qualname)
            self._functions.add(Function(code.co_filename.removeprefix(f"{SOURCES}/"), name))


class Beside:
    """A peer in another thread, with the event loop of that thread."""

    def __init__(self, peer: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.peer, self.loop = peer, loop

    async def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the peer's thread."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.loop))


@asynccontextmanager
async def beside(make: Callable[[], AbstractAsyncContextManager[Any]]) -> AsyncIterator[Beside]:
    """Run a peer in another thread."""
    ready: Future[tuple[Beside, asyncio.Event]] = Future()

    async def hold() -> None:
        try:
            async with make() as peer:
                ended = asyncio.Event()
                ready.set_result((Beside(peer, asyncio.get_running_loop()), ended))
                await ended.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    other, ended = await asyncio.wrap_future(ready)
    try:
        yield other
    finally:
        other.loop.call_soon_threadsafe(ended.set)
        await asyncio.to_thread(thread.join)
