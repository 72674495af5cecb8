"""tshark reads what our peers say to each other on the loopback interface, as tcpdump records it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specwire.generated import filemq
from specwire.generator.pipeline import compile_protocol
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.flux.handle import connect
from specwire.runtime.flux.topology import Tree
from specwire.runtime.norfab.wire import Dialect
from tests.house.repository import ROOT
from tests.integration.flux_brokers import Brokers, play
from tests.integration.norfab_scene import crowd_at, run, serving_broker
from tests.wireshark.tshark import NEEDS_TSHARK, Shown, dissect, write_dissectors

pytestmark = [pytest.mark.peers, NEEDS_TSHARK]

PATIENCE_S = 60.0
LOOK_S = 0.05


def port_of(endpoint: str) -> int:
    """Return the port of a TCP endpoint."""
    return int(endpoint.rpartition(":")[2])


@asynccontextmanager
async def recording(file: Path, port: int, last: bytes) -> AsyncIterator[None]:
    """Record a port of the loopback interface until `last` was said; skips where that may not be done."""
    program = shutil.which("tcpdump")
    if program is None:
        pytest.skip("needs tcpdump, which is not installed")
    options = ("-i", "lo", "-U", "--immediate-mode", "-s", "0", "-B", "32768", "-Z", "root")
    running = await asyncio.create_subprocess_exec(
        program, *options, "-w", str(file), "tcp", "port", str(port), stderr=asyncio.subprocess.PIPE
    )
    assert running.stderr is not None
    try:
        told = (await running.stderr.readline()).decode()
        if "listening on" not in told:
            pytest.skip(f"tcpdump may not record here: {told.strip()}")
        yield
        async with asyncio.timeout(PATIENCE_S):
            while last not in file.read_bytes():
                await asyncio.sleep(LOOK_S)
    finally:
        if running.returncode is None:
            running.send_signal(signal.SIGINT)
        await running.communicate()


def read(file: Path, *names: str) -> list[Shown]:
    """Return the packets with messages, as the dissectors of these protocols show them; nothing is malformed."""
    protocols = [compile_protocol(ROOT / "grammars" / name).protocol for name in names]
    packets = [
        packet for packet in dissect(file, write_dissectors(file.parent, protocols)) if packet.layers()
    ]
    assert [fault for packet in packets for fault in packet.faults if "malformed" in fault.lower()] == []
    return packets


def said(packets: Sequence[Shown], protocol: str, sender: str) -> list[str]:
    """Return the names of what a role said."""
    return [
        name
        for packet in packets
        for name, role in zip(
            packet.values(f"{protocol}.message_name"), packet.values(f"{protocol}.sender"), strict=True
        )
        if role == sender
    ]


class Heard:
    """A tap that keeps the frames of each side."""

    def __init__(self) -> None:
        self.frames: dict[str, list[list[bytes]]] = {"C": [], "S": []}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """See `Recorder.record`."""
        self.frames[sender].append([bytes(frame) for frame in frames])


def test_a_transfer_of_filemq(tmp_path: Path) -> None:
    """Every message that the server's tap saw is shown, in its order; the file has many segments."""
    heard, file = Heard(), tmp_path / "filemq.pcap"
    publication = tmp_path / "publication"
    publication.mkdir()
    (publication / "large").write_bytes(os.urandom(300_000))
    (publication / "zlast").write_bytes(b"the last of what is said")

    async def story() -> None:
        async with (
            FilemqServer([Publication(publication)], "tcp://127.0.0.1:*", tap=heard) as server,
            recording(file, port_of(server.endpoint), b"the last of what is said"),
            FilemqClient(server.endpoint, tmp_path / "inbox", ("/",)) as client,
        ):
            await client.until_equal(server.digests("/"), timeout_s=PATIENCE_S)

    asyncio.run(story())
    packets = read(file, "filemq")
    for letter, role in (("C", "client"), ("S", "server")):
        names = said(packets, "filemq", role)
        assert names == [filemq.decode(frames).NAME for frames in heard.frames[letter]][: len(names)]
    assert "NOM" in said(packets, "filemq", "client")
    assert said(packets, "filemq", "server").count("CHEEZBURGER") >= 2
    chunks = [octets for packet in packets for octets in packet.octets("filemq.chunk")]
    messages = [filemq.decode(frames) for frames in heard.frames["S"]]
    assert (
        chunks == [one.chunk.hex() for one in messages if isinstance(one, filemq.Cheezburger)][: len(chunks)]
    )


def test_two_brokers_of_flux(tmp_path: Path) -> None:
    """A request of a client of rank 1 that rank 0 answers, in JSON that Wireshark opens."""
    file = tmp_path / "flux.pcap"

    async def story() -> None:
        brokers = Brokers(tmp_path, Tree(2, 2))
        brokers.keys = None
        brokers._endpoints[0] = "tcp://127.0.0.1:*"
        top = await brokers.start(0)
        brokers._endpoints[0] = top.endpoint
        try:
            async with recording(file, port_of(top.endpoint), b"the last of what is said"):
                await brokers.start(1)
                await brokers.until_online(1)
                async with connect(brokers.uri(1)) as handle:
                    for pad in ("first", "the last of what is said"):
                        await handle.rpc("broker.ping", {"seq": 1, "pad": pad}, nodeid=0)
        finally:
            for rank in sorted(brokers.brokers, reverse=True):
                await brokers.stop(rank)

    play(story())
    packets = read(file, "flux")
    pings = [packet for packet in packets if "broker.ping" in packet.values("flux.topic")]
    topics = [topic for packet in pings for topic in packet.values("flux.topic")]
    assert topics.count("broker.ping") == 4  # two requests, two responses; a segment may hold several
    assert {"request", "response"} <= {one for packet in pings for one in packet.values("flux.message_name")}
    assert "first" in [text for packet in pings for text in packet.values("json.value.string")]


@pytest.mark.parametrize("dialect", [Dialect.DEPLOYED, Dialect.NORFAB])
def test_a_job_of_norfab(tmp_path: Path, dialect: Dialect) -> None:
    """READY, POST and its RESPONSE on either leg, with names of the dialect."""
    file = tmp_path / "norfab.pcap"

    async def story() -> None:
        async with (
            serving_broker(tmp_path / "jobs") as (broker, _),
            recording(file, port_of(broker.endpoints[0]), b"the last of what is said"),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            worker, client = crowd.worker(dialect=dialect), crowd.client(dialect=dialect)
            await worker.register()
            client.post("j1")
            job = await worker.take_job()
            worker.end_job(job, "the last of what is said")
            await client.answer("j1", 200)

    run(story)
    name = "norfab" if dialect is Dialect.NORFAB else "norfab_ascii"
    packets = read(file, "norfab", "norfab_ascii")
    names = [one for packet in packets for one in packet.values(f"{name}.message_name")]
    assert {"READY", "POST-client", "POST-worker", "RESPONSE-client", "RESPONSE-worker"} <= set(names)
    assert said(packets, name, "client") == [
        one for one in said(packets, name, "client") if one.endswith("-client")
    ]
    assert "READY" in said(packets, name, "worker")
    assert "POST-worker" in said(packets, name, "broker")
