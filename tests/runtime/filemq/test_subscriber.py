"""The client as a service, without a server: starting, stopping, calls, and faults of its disk work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.filemq import FilemqClient, InboxError
from specwire.runtime.filemq.diskwork import DiskAction, Outcome
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.kernel.service import HostStoppedError

pytestmark = pytest.mark.peers

NOBODY = "tcp://127.0.0.1:1"
TIMEOUT_S = 60.0


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story()

    asyncio.run(bounded())


def make_client(folder: Path, *paths: str) -> FilemqClient:
    return FilemqClient(NOBODY, folder, paths or ("/",), sync=False)


def is_free(folder: Path) -> bool:
    """Whether no client holds the inbox."""
    inbox = Inbox(folder)
    try:
        inbox.open()
    except InboxError:
        return False
    inbox.close()
    return True


def hold_disk(client: FilemqClient) -> threading.Event:
    """Let the disk work of a client wait for an event."""
    gate, perform = threading.Event(), client._inbox.perform

    def perform_later(actions: Sequence[DiskAction]) -> list[Outcome]:
        assert gate.wait(TIMEOUT_S)
        return perform(actions)

    client._inbox.perform = perform_later  # type: ignore[method-assign]
    return gate


def test_stop_before_the_start(tmp_path: Path) -> None:
    """It is harmless, and the client can be started later."""

    async def story() -> None:
        client = make_client(tmp_path)
        await client.stop()
        await client.stop()
        async with client:
            assert client.status().counters.messages_in == 0
        assert is_free(tmp_path)

    run(story)


def test_start_after_one_that_failed(tmp_path: Path) -> None:
    async def story() -> None:
        other, client = make_client(tmp_path), make_client(tmp_path)
        async with other:
            with pytest.raises(InboxError, match="is in use"):
                await client.start()
        async with client:
            assert not is_free(tmp_path)
        assert is_free(tmp_path)

    run(story)


def test_stop_while_starting(tmp_path: Path) -> None:
    """The start fails, and the inbox is free again."""

    async def story() -> None:
        client = make_client(tmp_path)
        starting = asyncio.create_task(client.start())
        await asyncio.sleep(0)
        await client.stop()
        with pytest.raises(HostStoppedError):
            await starting
        assert is_free(tmp_path)

    run(story)


def test_a_second_start_does_not_disturb_the_first(tmp_path: Path) -> None:
    async def story() -> None:
        async with make_client(tmp_path) as client:
            with pytest.raises(HostStoppedError, match="the client is running"):
                await client.start()
            assert not is_free(tmp_path)
            await client.until_equal({}, timeout_s=TIMEOUT_S)
        assert is_free(tmp_path)

    run(story)


def test_a_client_can_be_started_again(tmp_path: Path) -> None:
    """It subscribes to the paths that it has by then, and counts on."""

    async def story() -> None:
        client = make_client(tmp_path, "/a")
        for _ in range(2):
            async with client:
                client.subscribe("/b/")
                assert client.status().paths == ("/a", "/b")
                assert not client.finished.done()
            assert await client.finished == "closed by request"
        assert client.status().connection == "ended"

    run(story)


def test_stop_waits_for_disk_work_under_way(tmp_path: Path) -> None:
    async def story() -> None:
        client = make_client(tmp_path)
        gate = hold_disk(client)
        await client.start()
        client.accept_deletions()
        stopping = asyncio.create_task(client.stop())
        assert await client.finished == "closed by request"
        assert not stopping.done()
        assert not is_free(tmp_path)
        gate.set()
        await stopping
        assert is_free(tmp_path)

    run(story)


def test_calls_end_with_the_client(tmp_path: Path) -> None:
    async def story() -> None:
        client = make_client(tmp_path)
        await client.start()
        waiting = asyncio.create_task(client.until_equal({"/a": "AA"}, timeout_s=TIMEOUT_S))
        with pytest.raises(TimeoutError, match=r"1 files differ after 0\.01 s: /a"):
            await client.until_equal({"/a": "AA"}, timeout_s=0.01)
        await client.stop()
        with pytest.raises(HostStoppedError):
            await waiting
        with pytest.raises(HostStoppedError):
            await client.until_equal({}, timeout_s=TIMEOUT_S)

    run(story)


def test_a_fault_of_the_inbox_ends_the_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`finished` raises it, and the inbox is released as ever."""

    def fail(actions: Sequence[DiskAction]) -> list[Outcome]:
        raise KeyError("no such thing")

    async def story() -> None:
        client = make_client(tmp_path)
        client._inbox.perform = fail  # type: ignore[method-assign]
        async with client:
            client.accept_deletions()
            with pytest.raises(KeyError, match="no such thing"):
                await client.finished
            while client.status().connection != "ended":
                await asyncio.sleep(0)
        assert is_free(tmp_path)

    run(story)
    assert "a fault in handling DiskBatch" in caplog.text
