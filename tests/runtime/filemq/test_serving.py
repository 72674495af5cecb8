"""The server's shell, with a socket that has room when a test says so: what is held back is done later, all of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from specwire.generated import filemq
from specwire.generated.filemq import Cheezburger, Icanhaz, Nom, Ohai, Operation
from specwire.runtime.filemq import serving as serving_module
from specwire.runtime.filemq.catalogue import Catalogue
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.dialect import FILEMQ
from specwire.runtime.filemq.entrance import Entrance
from specwire.runtime.filemq.outflow import BATCH
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.server import ServerEngine
from specwire.runtime.filemq.serving import Serving
from specwire.runtime.filemq.settling import LONGEST_S, SETTLE_S, Settling

TIMEOUT_S = 60.0
CALM = {"heartbeat": 3600.0, "expiry": 3600.0}
PEER = b"peer"


class Socket:
    """An entrance and its router in one, with one client."""

    user = ""

    def __init__(self) -> None:
        self.full = False
        self.sent: asyncio.Queue[filemq.AnyMessage] = asyncio.Queue()
        self.router = self

    async def open(self, endpoint: str, **callbacks: Callable[..., None]) -> None:
        self._callbacks = callbacks

    def bind(self, endpoint: str) -> str:
        return endpoint

    def say(self, *commands: filemq.AnyMessage) -> None:
        for command in commands:
            self._callbacks["on_message"](PEER, command.encode())

    def make_room(self) -> None:
        self.full = False
        self._callbacks["on_room"](PEER)

    def ready(self, peer: bytes) -> bool:
        return not self.full

    def reserve(self, peer: bytes, wanted: int) -> int:
        return 0 if self.full else wanted

    def redeem(self, peer: bytes, octets: int) -> None:
        pass

    def send(self, peer: bytes, frames: Sequence[bytes]) -> None:
        self.sent.put_nowait(filemq.decode(frames))

    async def hear(self) -> filemq.AnyMessage:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.sent.get()

    def pause(self) -> None:
        pass

    def forget(self, peer: bytes) -> None:
        pass

    async def close(self, *, linger_s: float) -> None:
        pass


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Socket]:
    catalogue, socket = Catalogue(), Socket()
    work = Serving(
        ServerEngine(catalogue, timers=CALM),
        catalogue,
        [Publication(folder)],
        dialect=FILEMQ,
        tell=lambda event: None,
        counters=Counters(),
        tap=None,
        tick_s=3600.0,
        rescan_s=3600.0,
    )
    await work.open(cast(Entrance, socket), "tcp://127.0.0.1:1")
    try:
        yield socket
    finally:
        await work.close()


def resync(*stale: str) -> Icanhaz:
    """Ask for everything, by a client that holds files which are not published."""
    return Icanhaz(
        path="/", options=(("RESYNC", "1"), ("PRUNE", "1")), cache=tuple((name, "0" * 40) for name in stale)
    )


@pytest.mark.parametrize("deletions", range(BATCH - 3, BATCH + 3))
def test_a_read_and_a_pause_of_one_full_client_are_both_done_when_it_has_room(
    tmp_path: Path, deletions: int
) -> None:
    """With one of these numbers the last command of a batch is the first read of a file."""
    (tmp_path / "file").write_bytes(b"content")

    async def story() -> None:
        async with serving(tmp_path) as socket:
            socket.full = True
            socket.say(Ohai(), Nom(credit=2**40), resync(*(f"stale {i}" for i in range(deletions))))
            while not isinstance(await socket.hear(), Cheezburger):
                pass
            for _ in range(3):  # turns of the loop, in which the agenda comes to its end
                await asyncio.sleep(0)
            socket.make_room()
            deleted, content = 1, b""
            while True:
                command = await socket.hear()
                assert isinstance(command, Cheezburger)
                if command.operation == Operation.DELETE:
                    deleted += 1
                elif command.chunk:
                    content += command.chunk
                else:
                    break
            assert (deleted, content) == (deletions, b"content")

    asyncio.run(story())


def test_a_file_of_a_missing_folder_is_looked_for_ever_more_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is sent when the folder is back."""
    folder, aside = tmp_path / "folder", tmp_path / "aside"
    for place in (folder, aside):
        place.mkdir()
        (place / "file").write_bytes(place.name.encode())
    delays: asyncio.Queue[float] = asyncio.Queue()

    class Noted(Settling):
        def delay_s(self, peer: bytes, now: float) -> float:
            delay = super().delay_s(peer, now)
            delays.put_nowait(delay)
            return delay

    monkeypatch.setattr(serving_module, "Settling", Noted)

    async def story() -> None:
        async with serving(folder) as socket:
            shutil.rmtree(folder)
            socket.say(Ohai(), Nom(credit=2**40), resync())
            async with asyncio.timeout(TIMEOUT_S):
                assert [await delays.get() for _ in range(4)] == pytest.approx(
                    [SETTLE_S * 2**i for i in range(4)]
                )
            aside.rename(folder)
            while not isinstance(command := await socket.hear(), Cheezburger):
                pass
            assert command.chunk == b"aside"

    asyncio.run(story())


def test_waits_grow_for_each_client_by_itself() -> None:
    settling, now = Settling(), 100.0
    waits: list[Any] = []
    for _ in range(8):
        waits.append(settling.delay_s(b"a", now))
        now += waits[-1]
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, LONGEST_S, LONGEST_S, LONGEST_S])
    assert settling.delay_s(b"b", now) == pytest.approx(SETTLE_S)
    settling.forget(b"a")
    assert settling.delay_s(b"a", now) == pytest.approx(SETTLE_S)
