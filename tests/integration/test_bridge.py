"""Bridges between real peers of two dialects, on sockets: each side hears its own dialect, and what it asked for is done."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import pytest

from specwire.generated import cmb1, filemq, flux, libfilemq, norfab_ascii
from specwire.generated.errors import DecodeError
from specwire.runtime.bridge.bridging import Bridged, BridgeWatch
from specwire.runtime.bridge.pairs import find_bridge
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.handle import connect
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.topology import Tree
from specwire.runtime.flux.wires import find_wire
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.relay import Relay
from tests.integration.flux_brokers import News
from tests.integration.norfab_scene import SETTINGS, crowd_at

TIMEOUT_S = 100.0


def play(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story; one that hangs is a failure."""

    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story()

    asyncio.run(bounded())


class Heard:
    """A tap that decodes everything as one dialect, and fails where it is not."""

    def __init__(self, package: ModuleType) -> None:
        self.seen: set[str] = set()
        self.faults: list[str] = []
        self._package = package

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        try:
            self.seen.add(type(self._package.decode(frames)).__name__)
        except DecodeError as error:
            self.faults.append(str(error))


@asynccontextmanager
async def bridging(clients: str, server: str, target: str) -> AsyncIterator[tuple[str, Bridged]]:
    """Run a bridge in front of `target`; give where clients connect, and its counts."""
    watch = BridgeWatch(find_bridge(clients, server))
    relay = Relay("tcp://127.0.0.1:*", target, watch)
    await relay.open()
    try:
        yield relay.endpoint, watch.bridged
    finally:
        await relay.close()


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return the files of an inbox."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".specwire-inbox" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(("clients", "server"), [("filemq", "libfilemq"), ("libfilemq", "filemq")])
def test_files_reach_clients_of_the_other_dialect(tmp_path: Path, clients: str, server: str) -> None:
    """All of them, then a change and a deletion; each peer hears its own dialect alone."""
    packages = {"filemq": filemq, "libfilemq": libfilemq}
    source = tmp_path / "source"
    source.mkdir()
    (source / "empty").write_bytes(b"")
    (source / "one").write_bytes(b"1")
    (source / "large").write_bytes(os.urandom(1_500_000))
    at_server, at_client = Heard(packages[server]), Heard(packages[clients])

    async def story() -> None:
        async with (
            FilemqServer([Publication(source)], protocol=server, tap=at_server) as serving,
            bridging(clients, server, serving.endpoint) as (endpoint, bridged),
            FilemqClient(
                endpoint,
                tmp_path / "inbox",
                ["/"],
                protocol=clients,
                tap=at_client,
                sync=False,
                window_octets=400_000,
            ) as client,
        ):
            await client.until_equal(serving.digests(), timeout_s=TIMEOUT_S)
            (source / "one").write_bytes(b"a longer one")
            (source / "empty").unlink()
            await serving.rescan()
            await client.until_equal(serving.digests(), timeout_s=TIMEOUT_S)
            assert bridged.unsaid == {}
            assert client.counters.refusals == 0

    play(story)
    assert read_tree(tmp_path / "inbox") == read_tree(source)
    assert (at_server.faults, at_client.faults) == ([], [])
    assert at_server.seen >= {"Ohai", "OhaiOk", "Icanhaz", "IcanhazOk", "Nom", "Cheezburger"}


@pytest.mark.parametrize(("child", "parent"), [("flux", "cmb1"), ("cmb1", "flux")])
def test_a_broker_of_another_edition_joins_the_tree(child: str, parent: str) -> None:
    """Its clients reach the root, the root's clients reach it, and events pass."""
    packages = {"flux": flux, "cmb1": cmb1}
    above, below, news = Heard(packages[parent]), Heard(packages[child]), News()

    async def story() -> None:
        with tempfile.TemporaryDirectory(prefix="sw-") as folder:

            def make(
                rank: int, protocol: str, tap: Heard, bind: str | None = None, parent: str | None = None
            ) -> FluxBroker:
                settings = Settings(Tree(2, 2), owner=os.getuid(), hosts=("here",), wire=find_wire(protocol))
                local = f"{folder}/local-{rank}"
                return FluxBroker(
                    settings, rank, local=local, tap=tap, bind=bind, parent=parent, on_event=news.take
                )

            async with (
                make(0, parent, above, bind="tcp://127.0.0.1:*") as root,
                bridging(child, parent, root.endpoint) as (endpoint, bridged),
                make(1, child, below, parent=endpoint) as leaf,
                connect(f"local://{folder}/local-1") as leaf_handle,
                connect(f"local://{folder}/local-0") as root_handle,
            ):
                async for reply in root_handle.stream("overlay.health"):
                    if reply.json()["status"] == "full":
                        break
                await news.until_so(lambda: leaf.engine.is_online)  # its welcome may be on its way still
                assert (await leaf_handle.rpc("broker.ping", {"seq": 1}, nodeid=0)).json()["rank"] == 0
                assert (await root_handle.rpc("broker.ping", {"seq": 2}, nodeid=1)).json()["rank"] == 1
                async with await leaf_handle.subscribe("news") as events:
                    await root_handle.publish("news.item", {"a": 1})
                    assert (await anext(aiter(events))).json() == {"a": 1}
                assert bridged.unsaid == {}

    play(story)
    assert (above.faults, below.faults) == ([], [])
    assert above.seen >= {"Request", "Response", "Event"}


def test_peers_by_the_letter_use_a_deployed_broker(tmp_path: Path) -> None:
    """A job from a client to a worker and back; the broker hears commands of four octets alone."""
    heard = Heard(norfab_ascii)

    async def story() -> None:
        async with (
            NorfabBroker("tcp://127.0.0.1:*", tmp_path, settings=SETTINGS, tap=heard) as broker,
            bridging("norfab", "norfab_ascii", broker.endpoints[0]) as (endpoint, bridged),
            crowd_at(endpoint) as crowd,
        ):
            worker = crowd.worker(dialect=Dialect.NORFAB)
            client = crowd.client(dialect=Dialect.NORFAB)
            await worker.register()
            client.post("j1")
            job = await worker.take_job()
            assert (await client.answer("j1", 202))["workers"] == ["w1"]
            worker.end_job(job, 42)
            assert (await client.answer("j1", 200))["w1"]["result"] == 42
            assert bridged.unsaid == {}

    play(story)
    assert heard.faults == []
    assert heard.seen >= {
        "PostClient",
        "PostWorker",
        "ResponseWorker",
        "ResponseClient",
        "Ready",
        "Keepalive",
    }


def test_the_command(tmp_path: Path) -> None:
    """It says where it listens, stops at SIGTERM, and prints its counts."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "one").write_bytes(b"1")

    async def story() -> None:
        async with FilemqServer([Publication(source)]) as server:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "specwire", "bridge", "libfilemq", "filemq", "--to", server.endpoint, "--json",
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert process.stderr is not None
            line = (await process.stderr.readline()).decode()
            found = re.search(r"bridging (tcp://\S+) to ", line)
            assert found is not None, line
            async with FilemqClient(
                found[1], tmp_path / "inbox", ["/"], protocol="libfilemq", sync=False
            ) as client:
                await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)
            process.send_signal(signal.SIGTERM)
            out, err = await process.communicate()
            assert (process.returncode, err) == (0, b"")
            counts = json.loads(out)
            assert (counts["connections"], counts["not_passed_on"]) == (1, {})
            assert counts["to_server"] > 2 < counts["to_clients"]

    play(story)
