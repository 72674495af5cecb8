"""The status socket: one whole document for each who asks, nothing for who sends, and bounds on who does not read."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from specwire.runtime.transport import status_socket
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_socket import (
    LONGEST_PATH_OCTETS,
    MAX_ANSWERS,
    NobodyListensError,
    StatusSocket,
    ask_status,
    remove_stale,
)

TIMEOUT_S = 60.0
LARGE = bytes(range(256)) * (1 << 14)
"""Four mebioctets: more than a socket takes at once."""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a socket may be; pytest's own folders have names too long for one."""
    with TemporaryDirectory(prefix="sw-") as folder:
        yield Path(folder) / "role-1.sock"


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story()

    asyncio.run(bounded())


@asynccontextmanager
async def answering(place: Path, describe: Callable[[], bytes]) -> AsyncIterator[StatusSocket]:
    status = StatusSocket(place, describe)
    await status.open()
    try:
        yield status
    finally:
        await status.close()


async def ask(place: Path, *, timeout_s: float = TIMEOUT_S) -> bytes:
    return await asyncio.to_thread(ask_status, place, timeout_s=timeout_s)


def test_each_who_asks_gets_the_document_of_the_moment(place: Path) -> None:
    documents = [b"first", LARGE]

    async def story() -> None:
        async with answering(place, lambda: documents.pop(0)):
            assert [path.name for path in place.parent.iterdir()] == [place.name]
            assert await ask(place) == b"first"
            assert await ask(place) == LARGE
        assert not place.exists()

    run(story)


def test_what_is_sent_to_it_is_not_read(place: Path) -> None:
    """Who talks instead of listening fills the system's buffer, and nothing of ours."""

    async def story() -> None:
        async with answering(place, lambda: b"status"):
            with closing(socket.socket(socket.AF_UNIX)) as talker:
                talker.setblocking(False)
                talker.connect(str(place))
                with pytest.raises((BlockingIOError, BrokenPipeError)):
                    while True:
                        talker.send(LARGE)
                        await asyncio.sleep(0)
            assert await ask(place) == b"status"

    run(story)


def test_who_does_not_read_is_bounded_in_number(place: Path) -> None:
    """One more than `MAX_ANSWERS` is hung up on; and closing waits for none of them."""

    async def story() -> None:
        lazy = [socket.socket(socket.AF_UNIX) for _ in range(MAX_ANSWERS)]
        described: asyncio.Queue[None] = asyncio.Queue()

        def describe() -> bytes:
            described.put_nowait(None)
            return LARGE

        async with answering(place, describe):
            for one in lazy:
                one.connect(str(place))
                await described.get()
            with pytest.raises(TransportError, match="too many ask at once"):
                await ask(place)
        for one in lazy:
            one.close()

    run(story)


def test_who_does_not_read_is_bounded_in_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_socket, "ANSWER_S", 0.05)

    async def story() -> None:
        async with answering(place, lambda: LARGE):
            assert 0 < await asyncio.to_thread(read_after_hang_up, place) < len(LARGE)

    run(story)


def read_after_hang_up(place: Path) -> int:
    """Connect, read nothing until the other side gives up, and return how much of its answer came."""
    with closing(socket.socket(socket.AF_UNIX)) as lazy:
        lazy.connect(str(place))
        hang_up = select.poll()
        hang_up.register(lazy, 0)
        assert hang_up.poll(TIMEOUT_S * 1000)
        octets = 0
        while block := lazy.recv(1 << 16):
            octets += len(block)
        return octets


def test_the_socket_of_a_dead_process_is_told_from_a_silent_one(place: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(place))
        listener.listen()
        with pytest.raises(TransportError, match=r"no answer within 0\.05 s"):
            ask_status(place, timeout_s=0.05)
    with pytest.raises(NobodyListensError):
        ask_status(place, timeout_s=TIMEOUT_S)
    remove_stale(place)
    assert not place.exists()
    remove_stale(place)  # another may be quicker
    with pytest.raises(NobodyListensError):
        ask_status(place, timeout_s=TIMEOUT_S)


def test_a_dead_process_with_our_number_is_replaced(place: Path) -> None:
    for name in (place, place.with_suffix(".new")):
        with closing(socket.socket(socket.AF_UNIX)) as dead:
            dead.bind(str(name))

    async def story() -> None:
        async with answering(place, lambda: b"alive"):
            assert await ask(place) == b"alive"

    run(story)


def test_an_answer_without_end_is_cut(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_socket, "MAX_DOCUMENT_OCTETS", 1 << 20)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(place))
        listener.listen()

        async def story() -> None:
            asking = asyncio.create_task(ask(place))
            listener.setblocking(False)
            talker, _ = await asyncio.get_running_loop().sock_accept(listener)
            with closing(talker), pytest.raises(OSError):
                while True:
                    await asyncio.get_running_loop().sock_sendall(talker, LARGE)
            with pytest.raises(TransportError, match="more than"):
                await asking

        run(story)


def test_a_document_that_is_too_large_is_not_sent(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_socket, "MAX_DOCUMENT_OCTETS", 10)

    async def story() -> None:
        async with answering(place, lambda: b"a status of more than ten octets"):
            with pytest.raises(TransportError, match="no answer"):
                await ask(place)

    run(story)


def test_a_path_that_no_socket_can_have_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / ("long" * LONGEST_PATH_OCTETS)
    with pytest.raises(TransportError, match="too long for a socket"):
        asyncio.run(StatusSocket(place, bytes).open())
    with pytest.raises(TransportError, match=r"cannot listen on .*: No such file"):
        asyncio.run(StatusSocket(Path("/no/such.sock"), bytes).open())
