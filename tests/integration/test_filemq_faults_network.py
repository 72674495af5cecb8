"""What networks do to a FILEMQ client and its server: cut, slow, silent and refused connections.

Between the two stands a proxy. Whatever it does, the client tells of it and holds everything in the end.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import PeerClosed, PeerOpened, Subscribed
from specwire.runtime.kernel.log import LogEvent
from tests.integration.filemq_process import kept_endpoint
from tests.integration.filemq_scene import digests, event_of, own_files, run, serving, subscribing
from tests.integration.filemq_watch import DialogWatch
from tests.integration.tcp_proxy import TcpProxy

CUTS = min(10, int(os.environ.get("SPECWIRE_SOAK_ROUNDS", "5")))  # the delay after each doubles
SEED = int(os.environ.get("SPECWIRE_SEED", random.randrange(2**32)))
OCTETS = 12_000_000
EQUAL_S = 100.0
QUICK = {"heartbeat": 0.1, "expiry": 2.0, "reconnect": 0.05}
PATIENT = {"heartbeat": 0.1, "expiry": 30.0, "reconnect": 0.05}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """One large file, and some small ones before and after it in order of name."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(random.Random(1).randbytes(OCTETS))
    for name in ("a", "b", "y", "z"):
        (folder / name).write_text(name)
    return folder


class Here(NamedTuple):
    """A server, a client behind a proxy, and what each side was seen to do."""

    server: FilemqServer
    heard: DialogWatch
    proxy: TcpProxy
    client: FilemqClient
    said: DialogWatch


@asynccontextmanager
async def behind_proxy(source: Path, timers: Mapping[str, float]) -> AsyncIterator[Here]:
    """Serve a folder through a proxy; when all is over, the inbox beside it is equal and holds no rest."""
    inbox = source.parent / "inbox"
    async with (
        serving(source, timers=timers) as (server, heard),
        TcpProxy(server.endpoint) as proxy,
        subscribing(proxy.endpoint, inbox, timers=timers) as (client, said),
    ):
        yield Here(server, heard, proxy, client, said)
    assert digests(inbox) == digests(source)
    assert own_files(inbox) == {"journal"}


def test_connection_cut_during_a_transfer(source: Path) -> None:
    """Each cut is told of, and costs no more than a new connection."""
    rng = random.Random(SEED)
    print(f"SPECWIRE_SEED={SEED}")

    async def story() -> None:
        async with behind_proxy(source, PATIENT) as here:
            events = here.client.events()
            for number in range(CUTS):
                await event_of(events, Subscribed)
                (source / "large").write_bytes(rng.randbytes(OCTETS))
                await here.proxy.cut_after(rng.randrange(OCTETS // 2))
                closed = await event_of(events, PeerClosed)
                assert not closed.final, closed
                (source / f"made after cut {number}").write_text("new")
            await here.client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert here.client.counters.peerings == CUTS + 1
            assert here.client.counters.refusals == 0
            assert not here.heard.strays, "nothing is said on a connection that the server does not know"

    run(story)


def test_connections_cut_before_the_subscription_is_confirmed(tmp_path: Path, source: Path) -> None:
    """Time and again between OHAI-OK and ICANHAZ-OK: no cut counts as the server's RTFM, of which two are final."""
    inbox, opened = tmp_path / "inbox", 0

    async def story() -> None:
        def cut_when_opened(event: LogEvent) -> None:
            nonlocal opened
            opened += isinstance(event, PeerOpened)
            if isinstance(event, PeerOpened) and opened <= CUTS:
                proxy.cut()  # at once: ICANHAZ has not left yet

        async with serving(source, timers=PATIENT) as (server, heard), TcpProxy(server.endpoint) as proxy:
            client = FilemqClient(
                proxy.endpoint, inbox, ["/"], timers=PATIENT, sync=False, on_event=cut_when_opened
            )
            async with client:
                equal = asyncio.create_task(client.until_equal(digests(source), timeout_s=EQUAL_S))
                either: set[asyncio.Future[Any]] = {equal, client.finished}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                assert not client.finished.done(), client.finished.result()
                await equal
                assert opened == client.counters.peerings == CUTS + 1
            assert not heard.strays

    run(story)


def test_a_server_that_is_not_there_yet(tmp_path: Path, source: Path) -> None:
    """The client tries again at growing intervals and tells of each second, fourth, eighth ... try alone."""

    async def story(endpoint: str) -> None:
        client = FilemqClient(endpoint, tmp_path / "inbox", ["/"], timers=QUICK, sync=False)
        events = client.events()
        async with client:
            for ending in ("possible", "try 2", "try 4"):
                closed = await event_of(events, PeerClosed)
                assert closed.reason.startswith("no connection is possible")
                assert closed.reason.endswith(ending)
                assert not closed.final
            async with FilemqServer([Publication(source)], endpoint):
                await client.until_equal(digests(source), timeout_s=EQUAL_S)

    with kept_endpoint() as endpoint:
        run(lambda: story(endpoint))


def test_delay_longer_than_the_heartbeat_ends_nothing(source: Path) -> None:
    """Signs of life come late all the time, as over a satellite, and content with them."""

    async def story() -> None:
        async with behind_proxy(source, PATIENT) as here:
            here.proxy.delay_s = 3 * PATIENT["heartbeat"]
            await here.client.until_equal(digests(source), timeout_s=EQUAL_S)
            (source / "later").write_text("later")
            await here.client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert here.client.counters.peerings == 1
            assert here.server.clients == 1
            assert here.said.seen["S:HugzOk"], "the client has asked for life meanwhile"

    run(story)


def test_silence_longer_than_expiry_ends_the_connection_on_both_sides(source: Path) -> None:
    """In the middle of a file nothing gets through any more; later it does again."""

    async def story() -> None:
        async with behind_proxy(source, QUICK) as here:
            told, seen = here.client.events(), here.server.events()
            here.proxy.hold_after(OCTETS // 3)
            lost, forgotten = await asyncio.gather(event_of(told, PeerClosed), event_of(seen, PeerClosed))
            assert lost.reason.startswith("silent for")
            assert not lost.final
            assert forgotten.reason.startswith("silent for")
            assert here.server.clients == 0
            (source / "made meanwhile").write_text("new")
            here.proxy.release()
            await event_of(told, PeerOpened)
            await here.client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert here.client.counters.refusals == 0

    run(story)


def test_refused_connections_are_tried_again(source: Path) -> None:
    """Cut in the middle, and then nobody answers for a while."""

    async def story() -> None:
        async with behind_proxy(source, QUICK) as here:
            told, seen = here.client.events(), here.server.events()
            here.proxy.hold_after(OCTETS // 3)
            await here.proxy.until_passed(OCTETS // 3)
            here.proxy.refusing = True
            here.proxy.cut()
            here.proxy.release()
            await here.proxy.until_refused(5)
            closed = await event_of(told, PeerClosed)
            assert not closed.final
            await event_of(seen, PeerClosed)
            here.proxy.refusing = False
            await here.client.until_equal(digests(source), timeout_s=EQUAL_S)

    run(story)


def test_server_that_is_cut_off_from_one_client_serves_the_other(tmp_path: Path, source: Path) -> None:
    """One client's network is dead in the middle of a file; the other gets everything meanwhile."""

    async def story() -> None:
        async with behind_proxy(source, PATIENT) as here:
            here.proxy.hold_after(OCTETS // 3)
            await here.proxy.until_passed(OCTETS // 3)
            async with subscribing(here.server.endpoint, tmp_path / "alive", timers=PATIENT) as (alive, _):
                (source / "made meanwhile").write_text("new")
                await alive.until_equal(digests(source), timeout_s=EQUAL_S)
            assert here.client.holdings.keys() <= {"/a", "/b"}
            here.proxy.release()
            await here.client.until_equal(digests(source), timeout_s=EQUAL_S)

    run(story)
