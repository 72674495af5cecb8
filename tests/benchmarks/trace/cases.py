"""The exchanges that are traced, by peer."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from specwire.generated.filemq import Icanhaz, Nom, Ohai
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.flux import FluxBroker, connect
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.topology import Tree
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.worker import NorfabWorker, task
from specwire.runtime.zre import ZrePeer, ZreSettings
from specwire.runtime.zre.events import Whispered
from tests.benchmarks.trace.exchange import EXCHANGES, Function, Trace, beside
from tests.integration.filemq_raw import FakeServer, RawPeer, fake_server, raw_peers

DEADLINE_S = 60.0
LOOPBACK = "tcp://127.0.0.1:*"
CHUNK_OCTETS = 1 << 18

CHEEZBURGER, NOM = (b"\xaa\xa3\x08",), (b"\xaa\xa3\x07",)
WHISPER = (b"\xaa\xa1\x02",)
POST, DISPATCH = (b"NFPC01", b"0x04"), (b"NFPB01", b"0x04")
REQUEST, RESPONSE = (b"broker.ping", b"\x8e\x01\x01"), (b"broker.ping", b"\x8e\x01\x02")


async def filemq_server(folder: Path) -> Trace:
    """Trace a server from NOM to CHEEZBURGER. The client is a bare socket, which gives credit for one chunk."""
    trace = Trace(NOM, CHEEZBURGER)
    published = folder / "published"
    published.mkdir()
    (published / "large").write_bytes(bytes(EXCHANGES * CHUNK_OCTETS))
    with trace.watch_links():
        async with FilemqServer([Publication(published, "/")]) as server:
            endpoint = server.endpoint
            async with beside(lambda: raw_peers(endpoint)) as clients:
                await clients.call(request_chunks(clients.peer))
    return trace


async def request_chunks(make_client: Callable[[], RawPeer]) -> None:
    """Subscribe, and give credit for one chunk at a time."""
    client = make_client()
    client.send(Ohai())
    await client.hear()
    client.send(Icanhaz(path="/", options=(("RESYNC", "1"),)))
    await client.hear()
    for _ in range(EXCHANGES):
        client.send(Nom(CHUNK_OCTETS))
        await client.hear()


async def filemq_client(folder: Path) -> Trace:
    """Trace a client from CHEEZBURGER to NOM. The server is a bare socket, which uses all credit for one chunk."""
    trace = Trace(CHEEZBURGER, NOM)
    with trace.watch_links():
        async with (
            beside(fake_server) as server,
            FilemqClient(server.peer.endpoint, folder / "inbox", ["/"]),
        ):
            await server.call(send_chunks(server.peer))
            await trace.until()
    return trace


async def send_chunks(server: FakeServer) -> None:
    """Answer each NOM with a chunk of all the credit that it gives, as a chunk of an endless file."""
    offset = 0
    headers = (("size", str(1 << 40)), ("sha-1", 40 * "0"))
    for _ in range(EXCHANGES):
        while not isinstance(message := await server.heard.get(), Nom):
            pass
        server.send_file("/large", bytes(message.credit), offset=offset, headers=headers)
        offset += message.credit


async def zre_receiver(folder: Path) -> Trace:
    """Trace a peer from WHISPER to the program's callback."""
    trace = Trace(WHISPER)

    def on_event(event: object) -> None:
        if isinstance(event, Whispered):
            trace.end()

    with trace.watch_links():
        async with ZrePeer(ZreSettings(name="one"), on_event=on_event) as one:
            endpoint, uuid = one.status().endpoint, one.uuid
            async with beside(lambda: ZrePeer(ZreSettings(name="two", endpoint=(endpoint,)))) as two:
                await two.call(until_entered(two.peer))
                for number in range(1, EXCHANGES + 1):
                    await two.call(two.peer.whisper(uuid, [b"%d" % number]))
                    await trace.until(number)
    return trace


async def zre_sender(folder: Path) -> Trace:
    """Trace a peer from the program's call to WHISPER."""
    trace = Trace(end=WHISPER)
    with trace.watch_links():
        async with beside(lambda: ZrePeer(ZreSettings(name="two"))) as two:
            endpoint = two.peer.status().endpoint
            async with ZrePeer(ZreSettings(name="one", endpoint=(endpoint,))) as one:
                await until_entered(one)
                for number in range(1, EXCHANGES + 1):
                    trace.begin()
                    await one.whisper(two.peer.uuid, [b"%d" % number])
                    await trace.until(number)
    return trace


async def until_entered(peer: ZrePeer) -> None:
    """Return when a peer knows another one."""
    events = peer.events()
    while not peer.status().peers:
        await anext(events)


class Plugin:
    """A NORFAB plugin that does nothing."""

    @task
    async def noop(self) -> None:
        """Do nothing."""


async def norfab_broker(folder: Path) -> Trace:
    """Trace a broker from POST of a client to POST to a worker."""
    trace = Trace(POST, DISPATCH)
    with trace.watch_links():
        async with NorfabBroker(LOOPBACK, folder / "broker") as broker:
            endpoint = broker.endpoints[0]
            async with (
                beside(lambda: NorfabWorker(endpoint, "worker", "story", Plugin, folder=folder / "worker")),
                beside(lambda: NorfabClient(endpoint, folder=folder / "client")) as client,
            ):
                for _ in range(EXCHANGES):
                    await client.call(client.peer.run("story", "noop", timeout=DEADLINE_S))
    return trace


async def flux_broker(folder: Path) -> Trace:
    """Trace the broker of rank 0 from a request of its child to the response."""
    trace = Trace(REQUEST, RESPONSE)
    settings = Settings(Tree(2, 1), owner=os.getuid(), hosts=("here",))
    above, below = str(folder / "local-0"), str(folder / "local-1")
    with trace.watch_links():
        async with FluxBroker(settings, 0, local=above, bind=f"ipc://{folder}/tree") as broker:
            parent = broker.endpoint
            async with (
                beside(lambda: FluxBroker(settings, 1, local=below, parent=parent)),
                beside(lambda: connect(f"local://{below}")) as client,
            ):
                for _ in range(EXCHANGES):
                    await client.call(client.peer.rpc("broker.ping", {"seq": 1}, nodeid=0))
    return trace


CASES: dict[str, dict[str, Callable[[Path], Coroutine[Any, Any, Trace]]]] = {
    "filemq": {"server: NOM to CHEEZBURGER": filemq_server, "client: CHEEZBURGER to NOM": filemq_client},
    "zre": {
        "receiver: WHISPER to the program's callback": zre_receiver,
        "sender: the program's call to WHISPER": zre_sender,
    },
    "norfab": {"broker: POST to dispatch": norfab_broker},
    "flux": {"broker: request of a child to response": flux_broker},
}


async def run_case(case: Callable[[Path], Coroutine[Any, Any, Trace]]) -> list[Function]:
    """Return the functions of one exchange, sorted."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        async with asyncio.timeout(DEADLINE_S):
            trace = await case(Path(folder))
    return min(map(sorted, trace.exchanges[1:]), key=len)
