"""Clients of one server beside each other: what one of them takes is not at the cost of another.

Counted in chunks in the order in which the server sends them, not timed: however slow the machine, the order is its
own doing.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from specwire.generated.filemq import Cheezburger, Icanhaz, IcanhazOk, Nom, Ohai, OhaiOk
from specwire.runtime.filemq import FilemqClient
from specwire.runtime.filemq.events import FilePublished, FileReceived
from specwire.runtime.kernel.log import LogEvent
from tests.integration.filemq_raw import RawPeer, raw_peers
from tests.integration.filemq_scene import digests, event_of, in_step, run, serving, subscribing
from tests.integration.filemq_watch import Line

RESYNC = (("RESYNC", "1"),)
CALM = {"heartbeat": 3600.0, "expiry": 3600.0}
"""A test that says nothing for a while is not asked for life."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


async def join(raw: RawPeer, path: str = "/") -> None:
    """Let a bare client subscribe."""
    for command, answer in ((Ohai(), OhaiOk), (Icanhaz(path=path, options=RESYNC, cache=()), IcanhazOk)):
        raw.send(command)
        assert type(await raw.hear()) is answer


@pytest.mark.parametrize(("chunk", "count"), [(32 * 1024, 4000), (512 * 1024, 250)], ids=["small", "large"])
def test_one_big_transfer_does_not_starve_small_ones(
    tmp_path: Path, source: Path, chunk: int, count: int
) -> None:
    """While one client takes chunks as fast as it can, each new small file for another waits for a few of them."""
    for folder in ("big", "small"):
        (source / folder).mkdir()
    with (source / "big/file").open("wb") as file:
        file.truncate(chunk * count)

    begun: dict[str, int] = {}
    lines: list[Line] = []

    def note(event: LogEvent) -> None:
        if isinstance(event, FilePublished):
            begun[event.path] = len(lines)

    def waited(name: str) -> int:
        """Count the big file's chunks between the publication of a file and its own end."""
        end = next(i for i, line in enumerate(lines) if line.name == name and line.octets == 0)
        return sum(line.name == "/big/file" for line in lines[begun[name] : end])

    async def story() -> None:
        nonlocal lines
        async with (
            serving(source, chunk_octets=chunk, on_event=note) as (server, watch),
            subscribing(server.endpoint, tmp_path / "b", "/small") as (small, _),
        ):
            lines = watch.keep_transcript()
            received = small.events()
            names: list[str] = []
            async with subscribing(server.endpoint, tmp_path / "a", "/big", window_octets=64 << 20) as (
                big,
                _,
            ):
                while not watch.begun["/big/file"]:
                    await asyncio.sleep(0)
                while not big.counters.files:
                    names.append(f"/small/{len(names)}")
                    (source / names[-1][1:]).write_bytes(b"a little")
                    await event_of(received, FileReceived)
                await in_step(server, big, path="/big")
            waits = [waited(name) for name in names]
            meanwhile = lines[min(begun[name] for name in names) :]
            assert len(waits) > 2, "the big transfer was over too soon to say anything"
            assert sum(line.name == "/big/file" for line in meanwhile) > len(waits), (
                "it was over before they began"
            )
            assert max(waits) < 20, waits

    run(story)


def test_equal_clients_get_equal_shares(tmp_path: Path, source: Path) -> None:
    """Of ten clients that take the same file at once, none is half a file behind when the first one has it."""
    chunk, count = 10_000, 400
    (source / "file").write_bytes(os.urandom(chunk * count))

    async def story() -> None:
        async with AsyncExitStack() as stack:
            server, watch = await stack.enter_async_context(serving(source, chunk_octets=chunk, timers=CALM))
            peer = await stack.enter_async_context(raw_peers(server.endpoint))
            raws = [peer() for _ in range(10)]
            for raw in raws:
                await join(raw)
            lines = watch.keep_transcript()
            for raw in raws:
                raw.send(Nom(credit=2**62))
            for raw in raws:
                for _ in range(count + 1):
                    assert isinstance(await raw.hear(), Cheezburger)
            end = next(i for i, line in enumerate(lines) if line.octets == 0)
            shares = Counter(line.conversation for line in lines[:end])
            assert len(shares) == len(raws)
            assert min(shares.values()) > count / 2, shares

    run(story)


def test_twenty_clients_of_different_speeds(tmp_path: Path, source: Path) -> None:
    """Windows from one chunk to sixteen, a client that grants a little, none, and one that does not read.

    Everyone who takes what is sent has everything while the others still wait, and these get theirs later.
    """
    chunk = 20_000
    for i in range(20):
        (source / f"{i:02}").write_bytes(os.urandom(i * 9_999))
    total = sum(i * 9_999 for i in range(20))

    async def story() -> None:
        async with AsyncExitStack() as stack:
            server, _ = await stack.enter_async_context(serving(source, chunk_octets=chunk, timers=CALM))
            peer = await stack.enter_async_context(raw_peers(server.endpoint))
            idle, thrifty, deaf, late = (peer() for _ in range(4))
            for raw in (idle, thrifty, deaf, late):
                await join(raw)
            thrifty.send(Nom(credit=1234))
            deaf.send(Nom(credit=2**62))
            deaf.dealer.pause()
            clients: list[FilemqClient] = []
            for i in range(1, 17):
                inbox = tmp_path / str(i)
                window = subscribing(server.endpoint, inbox, window_octets=i * chunk)
                client, _ = await stack.enter_async_context(window)
                clients.append(client)
            await in_step(server, *clients)
            for i in range(1, 17):
                assert digests(tmp_path / str(i)) == digests(source)
            deaf.dealer.resume()
            late.send(Nom(credit=total))
            thrifty.send(Nom(credit=total - 1234))
            for raw in (deaf, late, thrifty):
                octets = ends = 0
                while ends < 20:
                    command = await raw.hear()
                    assert isinstance(command, Cheezburger)
                    octets += len(command.chunk)
                    ends += not command.chunk
                assert octets == total
            assert idle.got.qsize() == 1, "the empty file costs no credit"

    run(story)
