"""Growth of server processes whose peers send endless messages.

SPECWIRE_ENDLESS_OCTETS is the number of octets that each test sends; `make soak` sends 2 GB.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import Event, PeerRefused
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.topology import Tree
from tests.integration import filemq_process, norfab_process
from tests.integration.endless import Flood, RawPeer, flood
from tests.integration.filemq_process import PeerProcess

OCTETS = int(os.environ.get("SPECWIRE_ENDLESS_OCTETS", str(30 << 20)))
TIMEOUT_S = 60 + OCTETS / 2e6
MIB = 1 << 20
STRANGER_OCTETS = 64 * MIB
"""Limit of a server's growth for peers that have not delivered a message."""

BODY_OCTETS = 64 * MIB
GROWTH = 2.5
FRAMES = (0, 8, 100, 1000)
HELLO = b"hello"

pytestmark = pytest.mark.peers


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story()

    asyncio.run(bounded())


async def pour(server: PeerProcess, size: int, *, first: bytes | None = None) -> Flood:
    """Send frames of this size to a server, and check that it still answers."""
    line = await server.line_with("tcp://127.0.0.1:")
    endpoint = re.findall(r"tcp://[0-9.:]+", line)[0]
    poured = await asyncio.to_thread(flood, endpoint, bytes(size), OCTETS, first=first, pid=server.pid)
    print(f"frames of {size}, {'after a message' if first else 'first message'}: {poured}")
    assert poured.connections > 1
    assert "octets of an unfinished message" in await server.line_with("was disconnected")
    with await asyncio.to_thread(RawPeer, endpoint):
        pass  # the server still performs the handshake
    return poured


@pytest.mark.parametrize("size", FRAMES)
def test_a_filemq_server_grows_by_little(tmp_path: Path, size: int) -> None:
    async def story() -> None:
        given = ("serve", str(tmp_path), "--endpoint", "tcp://127.0.0.1:*", "--set", "no-digests=true")
        async with filemq_process.running(*given) as server:
            poured = await pour(server, size)
            assert poured.grew < STRANGER_OCTETS
            await server.stop()

    run(story)


@pytest.mark.parametrize("size", FRAMES)
def test_a_norfab_broker_grows_by_little(tmp_path: Path, size: int) -> None:
    async def story() -> None:
        async with norfab_process.running_broker("tcp://127.0.0.1:*", tmp_path) as broker:
            assert (await pour(broker, size)).grew < STRANGER_OCTETS
            await broker.stop()

    run(story)


@pytest.mark.parametrize("size", FRAMES if OCTETS > 1 << 30 else (0,))
def test_growth_after_a_first_message_is_bounded_by_the_largest_message(tmp_path: Path, size: int) -> None:
    async def story() -> None:
        async with norfab_process.running_broker("tcp://127.0.0.1:*", tmp_path) as broker:
            assert (await pour(broker, size, first=HELLO)).grew < GROWTH * BODY_OCTETS
            await broker.stop()

    run(story)


def test_bounds_are_options_of_a_filemq_server(tmp_path: Path) -> None:
    """A message below the default bound is cut with a smaller one."""

    async def story() -> None:
        given = ("serve", str(tmp_path), "--endpoint", "tcp://127.0.0.1:*", "--set", "no-digests=true")
        async with filemq_process.running(*given, "--set", "message-octets=1000") as server:
            endpoint = re.findall(r"tcp://[0-9.:]+", await server.line_with("tcp://"))[0]
            with await asyncio.to_thread(RawPeer, endpoint) as peer:
                peer.socket.sendall(b"\3" + (1 << 19).to_bytes(8, "big") + bytes(1 << 17))
                assert await asyncio.to_thread(peer.is_cut)
            assert "may have 66,551" in await server.line_with("was disconnected")
            await server.stop()

    run(story)


def test_a_flux_broker_cuts_a_child_off_and_counts_it(tmp_path: Path) -> None:
    async def story() -> None:
        events: list[Event] = []
        settings = Settings(Tree(2), owner=os.getuid(), message_octets=MIB)
        bind = "tcp://127.0.0.1:*"
        async with FluxBroker(
            settings, 0, local=str(tmp_path / "local"), bind=bind, on_event=events.append
        ) as broker:
            with await asyncio.to_thread(RawPeer, broker.endpoint) as peer:
                await asyncio.to_thread(peer.pour, bytes(1000), 1 << 30)
            while not broker.status().counters.cut_off:
                await asyncio.sleep(0.01)
            [refused] = [event for event in events if isinstance(event, PeerRefused)]
            assert "octets of an unfinished message" in refused.reason

    run(story)
