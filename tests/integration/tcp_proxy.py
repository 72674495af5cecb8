"""A TCP proxy on loopback that does to connections what networks do: cut, hold back, delay and refuse them.

`cut` resets, so both sides lose the connection at once and in the middle of whatever was under way. `hold`
lets connections stand and octets wait: neither side is told anything, as with a cable that is unplugged.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from types import TracebackType
from typing import Self

PIECE_OCTETS = 64 * 1024
WAITING_PIECES = 64
CUT_AGAIN_S = 0.05
"""At the end, for a connection that was just being made."""


class TcpProxy:
    """Stands in for `endpoint` (``tcp://HOST:PORT``); ``async with`` starts and stops it.

    Attributes:
        endpoint: where clients connect.
        delay_s: each piece is passed on so much later; the order is kept.
        refusing: new connections are closed at once.
        refused: how many were.
        passed: octets passed on from the server to clients.
    """

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self._target = (host, int(port))
        self.endpoint = ""
        self.delay_s = 0.0
        self.refusing = False
        self.refused = 0
        self.passed = 0
        self._news = asyncio.Condition()
        self._open = asyncio.Event()
        self._open.set()
        self._left: int | None = None
        self._writers: set[StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.endpoint = f"tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.close()
        while self._serving:
            self.cut()
            await asyncio.wait(self._serving, timeout=CUT_AGAIN_S)
        await self._server.wait_closed()

    def cut(self) -> None:
        """Reset every connection; what was not passed on yet is lost."""
        for writer in self._writers:
            writer.transport.abort()

    async def cut_after(self, octets: int) -> None:
        """Reset every connection once so many more octets have gone to the clients."""
        await self.until_passed(octets)
        self.cut()

    async def until_passed(self, octets: int) -> None:
        """Return once so many more octets have gone to the clients."""
        goal = self.passed + octets
        async with self._news:
            await self._news.wait_for(lambda: self.passed >= goal)

    async def until_refused(self, times: int) -> None:
        """Return once so many connections were refused in all."""
        async with self._news:
            await self._news.wait_for(lambda: self.refused >= times)

    def hold(self) -> None:
        """Pass nothing on, in either direction, until `release`."""
        self._open.clear()

    def hold_after(self, octets: int) -> None:
        """Pass exactly so many more octets on to the clients, and then `hold`."""
        self._left = octets

    def release(self) -> None:
        """Pass on what was held back, and go on."""
        self._left = None
        self._open.set()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        if self.refusing:
            writer.transport.abort()
            async with self._news:
                self.refused += 1
                self._news.notify_all()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        try:
            await asyncio.gather(
                self._pass_on(reader, far_writer, to_client=False),
                self._pass_on(far_reader, writer, to_client=True),
                return_exceptions=True,
            )
        finally:
            self._writers -= both
            for one in both:
                one.transport.abort()

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter, *, to_client: bool) -> None:
        """Carry one direction; its end, or that of the other side, is passed on when all before it was."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING_PIECES)
        taking = asyncio.create_task(self._take(reader, pieces))
        clock = asyncio.get_running_loop().time
        try:
            while (item := await pieces.get())[1]:
                due, piece = item
                if (rest := due - clock()) > 0:
                    await asyncio.sleep(rest)
                while piece:
                    await self._open.wait()
                    if writer.is_closing():
                        return  # what is dropped here was not passed on
                    octets = self._draw(len(piece)) if to_client else len(piece)
                    writer.write(piece[:octets])
                    await writer.drain()
                    piece = piece[octets:]
                    if to_client:
                        async with self._news:
                            self.passed += octets
                            self._news.notify_all()
        finally:
            taking.cancel()
            writer.close()

    def _draw(self, octets: int) -> int:
        """Return how many of so many octets may go to a client now; with the last that may, `hold`."""
        if self._left is None:
            return octets
        octets = min(octets, self._left)
        self._left -= octets
        if not self._left:
            self.hold()
        return octets

    async def _take(self, reader: StreamReader, pieces: asyncio.Queue[tuple[float, bytes]]) -> None:
        clock = asyncio.get_running_loop().time
        piece = b"-"
        while piece:
            try:
                piece = await reader.read(PIECE_OCTETS)
            except OSError:
                piece = b""
            await pieces.put((clock() + self.delay_s, piece))
