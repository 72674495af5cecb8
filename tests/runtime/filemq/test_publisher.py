"""The server on real sockets, with raw clients: one that does not read, and a published folder that is missing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio

from specwire.generated import filemq
from specwire.generated.filemq import Cheezburger, IcanhazOk, Kthxbai, Nom, Ohai, OhaiOk
from specwire.runtime.filemq.catalogue import CheckPart, Entry
from specwire.runtime.filemq.events import ServerCounters
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.publisher import FilemqServer
from specwire.runtime.filemq.reading import FileReader
from specwire.runtime.filemq.status import ClientStatus
from specwire.runtime.kernel.service import HostStoppedError
from tests.runtime.filemq.server_driver import PRUNE, RESYNC, subscription
from tests.runtime.kernel.store.stores import run

pytestmark = pytest.mark.peers

QUIET = {"heartbeat": 3600.0, "expiry": 3600.0}
LARGE = 32 << 20
CREDIT = Nom(credit=2**40)


class Client:
    """A raw client.

    Args:
        high_water: messages that its socket takes in advance; with 1 only the buffers of TCP are beyond it.
    """

    def __init__(self, endpoint: str, *, high_water: int = 1000) -> None:
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, high_water)
        self._socket.connect(endpoint)

    async def send(self, *commands: filemq.AnyMessage) -> None:
        """Send commands."""
        for command in commands:
            await self._socket.send_multipart(command.encode())

    async def receive(self) -> filemq.AnyMessage:
        """Return the next command."""
        return filemq.decode(await self._socket.recv_multipart())

    async def receive_file(self) -> bytes:
        """Return the content of the next file; everything before its first chunk is skipped."""
        octets = b""
        while True:
            command = await self.receive()
            if isinstance(command, Cheezburger) and command.operation == filemq.Operation.CREATE:
                assert command.offset == len(octets)
                if not command.chunk:
                    return octets
                octets += command.chunk

    def close(self) -> None:
        """Leave without a command."""
        self._context.destroy(linger=0)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[FilemqServer]:
    """Serve a folder."""
    async with FilemqServer([Publication(folder)], timers=QUIET, rescan_s=3600.0) as server:
        yield server


@asynccontextmanager
async def connecting(server: FilemqServer, **options: Any) -> AsyncIterator[Client]:
    """Connect a client."""
    client = Client(server.endpoint, **options)
    try:
        yield client
    finally:
        client.close()


async def until(server: FilemqServer, condition: Callable[[ClientStatus], bool]) -> ClientStatus:
    """Return the status of the only client when it is as expected."""
    while not ((clients := server.status().clients) and condition(clients[0])):
        await asyncio.sleep(0.001)
    return clients[0]


def write_large(folder: Path) -> bytes:
    """Write a file that no socket has room for."""
    content = bytes(range(256)) * (LARGE >> 8)
    (folder / "large").write_bytes(content)
    return content


def test_client_that_does_not_read_is_waited_for(tmp_path: Path) -> None:
    """Chunks are read when its socket has room, and not before. It gets everything when it reads."""
    content = write_large(tmp_path)

    async def story() -> None:
        async with serving(tmp_path) as server, connecting(server, high_water=1) as client:
            stale = tuple((f"stale {number}", "0" * 40) for number in range(100))
            await client.send(Ohai(), CREDIT, subscription("/", (RESYNC, PRUNE), stale))
            status = await until(server, lambda status: status.waits_for == "the client to receive")
            assert status.octets_sent < LARGE
            assert (await client.receive(), await client.receive()) == (OhaiOk(), IcanhazOk())
            deletions = [await client.receive() for _ in range(100)]
            assert {type(command) for command in deletions} == {Cheezburger}
            assert await client.receive_file() == content
            done = await until(server, lambda status: status.waits_for != "the client to receive")
            assert (done.octets_sent, done.queued) == (LARGE, 0)

    run(story)


def test_stop_before_the_start(tmp_path: Path) -> None:
    """It is harmless, and the server can be started later."""

    async def story() -> None:
        server = FilemqServer([Publication(tmp_path)])
        await server.stop()
        async with server:
            assert server.status().counters == ServerCounters()
        assert server.counters == ServerCounters()

    run(story)


def test_stop_while_starting(tmp_path: Path) -> None:
    """The start fails, and the server can be started again."""

    async def story() -> None:
        server = FilemqServer([Publication(tmp_path)])
        starting = asyncio.create_task(server.start())
        await asyncio.sleep(0)
        await server.stop()
        with pytest.raises(HostStoppedError):
            await starting
        async with server:
            assert server.status().counters == ServerCounters()

    run(story)


def test_stop_while_a_client_does_not_read(tmp_path: Path) -> None:
    """The server stops, whatever waits for the client."""
    write_large(tmp_path)

    async def story() -> None:
        async with serving(tmp_path) as server, connecting(server, high_water=1) as client:
            await client.send(Ohai(), CREDIT, subscription("/", (RESYNC,)))
            await until(server, lambda status: status.waits_for == "the client to receive")
            await server.stop()
            assert server.clients == 0

    run(story)


def test_stop_while_a_part_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is cancelled, and the client gets KTHXBAI."""
    (tmp_path / "file").write_bytes(b"content")
    checked: list[Entry] = []

    async def check(reader: FileReader, request: CheckPart) -> str | None:
        try:
            await asyncio.Event().wait()
        finally:
            checked.append(request.entry)
        return None

    monkeypatch.setattr(FileReader, "check", check)

    async def story() -> None:
        async with serving(tmp_path) as server, connecting(server) as client:
            part = (("RESUME", f"3:{'A' * 40}"),)
            await client.send(Ohai(), CREDIT, subscription("/"), subscription("/file", part))
            received = [await client.receive() for _ in range(3)]
            assert received == [OhaiOk(), IcanhazOk(), IcanhazOk()]
            assert checked == []
            await server.stop()
            assert [entry.name for entry in checked] == ["/file"]
            assert await client.receive() == Kthxbai()

    run(story)


def test_file_of_a_missing_folder_is_sent_when_the_folder_is_back(tmp_path: Path) -> None:
    """Until then it is published as it was, and is read again and again."""
    folder, aside = tmp_path / "folder", tmp_path / "aside"
    for place in (folder, aside):
        place.mkdir()
        (place / "file").write_bytes(place.name.encode())

    async def story() -> None:
        async with serving(folder) as server, connecting(server) as client:
            shutil.rmtree(folder)
            await client.send(Ohai(), CREDIT, subscription("/", (RESYNC,)))
            await until(server, lambda status: status.waits_for == "the file, which cannot be read")
            aside.rename(folder)
            assert await client.receive_file() == b"aside"

    run(story)
