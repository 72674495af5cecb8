"""A client that behaves as the one of libfilemq, faults and all, on a plain DEALER socket.

It writes every chunk into the file that it has open, whatever name comes with it, until an empty one; it opens an
existing file without emptying it; it grants 5,000,000 octets once subscribed and 1,000,000 whenever at most
4,000,000 are left; after each silent interval it sends HUGZ, and after five it gives up. A message that its codec
does not know ends it. `closed` has the content of each file at its end. What a correct server must not do to it is collected in `faults`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import zmq
import zmq.asyncio

from tests.runtime.filemq import c_wire
from tests.runtime.filemq.c_wire import CREATE, DELETE, MalformedError, Patch, Reader

SLICE = 1_000_000
MINIMUM = 4 * SLICE + 1
SILENT_INTERVALS = 5


class CClient:
    """One client; `run` ends when it is told to stop, gives up or is ended by the server."""

    def __init__(self, endpoint: str, inbox: Path, *, path: str = "/", interval_s: float = 5.0) -> None:
        self.patches: list[Patch] = []
        self.faults: list[str] = []
        self.closed: dict[str, bytes] = {}
        self.hugz_answered = 0
        self.ended: str | None = None
        self._inbox, self._path, self._interval_s = inbox, path, interval_s
        self._credit = self._silent = 0
        self._granted = self._received = 0
        self._file: BinaryIO | None = None
        self._open_name = ""
        self._changed = asyncio.Condition()
        self._context = zmq.asyncio.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.connect(endpoint)
        self._subscribed = False

    async def run(self) -> None:
        """Talk to the server until something ends it."""
        await self._dealer.send(c_wire.ohai())
        while self.ended is None:
            if await self._dealer.poll(int(self._interval_s * 1000)):
                await self._take(await self._dealer.recv_multipart())
            else:
                self._silent += 1
                if self._silent >= SILENT_INTERVALS:
                    self.ended = "the server is not reachable"
                else:
                    await self._dealer.send(c_wire.plain(c_wire.HUGZ))
            async with self._changed:
                self._changed.notify_all()

    async def until(self, condition: Callable[[CClient], bool]) -> None:
        """Return when `condition` holds; AssertionError where the client has ended before."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self) or self.ended is not None)
        assert condition(self), f"{self.ended}; {self.faults}"

    async def say(self, frame: bytes) -> None:
        await self._dealer.send(frame)

    async def close(self) -> None:
        """Be gone; say KTHXBAI unless it is over already."""
        if self.ended is None:
            await self._dealer.send(c_wire.plain(c_wire.KTHXBAI))
        self._dealer.close(linger=500)
        self._context.term()
        if self._file is not None:
            self._file.close()

    @property
    def subscribed(self) -> bool:
        return self._subscribed

    def files(self) -> dict[str, bytes]:
        """What the inbox holds, by full virtual name."""
        files = (path for path in self._inbox.rglob("*") if path.is_file())
        return {f"/{path.relative_to(self._inbox)}": path.read_bytes() for path in files}

    async def _take(self, frames: list[bytes]) -> None:
        self._silent = 0
        try:
            reader = Reader(frames)
            if reader.number == c_wire.CHEEZBURGER:
                await self._take_patch(c_wire.read_patch(reader))
                return
            if reader.number in (c_wire.SRSLY, c_wire.RTFM):
                self.ended = f"{reader.number}: {reader.text(1)}"
            reader.end()
        except MalformedError as error:
            self.faults.append(f"malformed: {error}")
            self.ended = "malformed"
            return
        if reader.number == c_wire.OHAI_OK:
            await self._dealer.send(c_wire.icanhaz(self._path))
        elif reader.number == c_wire.ICANHAZ_OK:
            self._subscribed = True
            await self._grant()
        elif reader.number == c_wire.HUGZ_OK:
            self.hugz_answered += 1
        elif self.ended is None:
            self.faults.append(f"message {reader.number}, which halts the client")
            self.ended = "halted"

    async def _take_patch(self, patch: Patch) -> None:
        self._judge(patch)
        self.patches.append(patch)
        place = self._inbox / patch.name[1:]
        if patch.operation == CREATE:
            self._write(place, patch)
        elif patch.operation == DELETE:
            place.unlink(missing_ok=True)
            self.closed.pop(patch.name, None)
        await self._grant()

    def _write(self, place: Path, patch: Patch) -> None:
        if self._file is None:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._file = place.open("r+b" if place.exists() else "w+b")
        if patch.chunk:
            self._file.seek(patch.offset)
            self._file.write(patch.chunk)
            self._credit -= len(patch.chunk)
        else:
            self._file.close()
            self._file = None
            self.closed[patch.name] = place.read_bytes()

    async def _grant(self) -> None:
        credit = 0
        while self._credit + credit < MINIMUM:
            credit += SLICE
        if credit:
            self._credit += credit
            self._granted += credit
            await self._dealer.send(c_wire.nom(credit))

    def _judge(self, patch: Patch) -> None:
        """Note what a correct server does not do; see the faults of the C client."""
        self._received += len(patch.chunk)
        if self._received > self._granted:
            self.faults.append(f"{self._received - self._granted} octets beyond the credit")
        if patch.sequence != len(self.patches):
            self.faults.append(f"sequence {patch.sequence}, not {len(self.patches)}")
        if not patch.name.startswith("/"):
            self.faults.append(f"{patch.name} is not a full virtual path")
        if self._open_name not in ("", patch.name):
            self.faults.append(f"{patch.name} while {self._open_name} is not closed")
        ends = patch.operation == CREATE and not patch.chunk
        if patch.eof != int(ends):
            self.faults.append(f"eof {patch.eof} with {len(patch.chunk)} octets")
        if patch.operation == CREATE:
            self._open_name = "" if ends else patch.name
