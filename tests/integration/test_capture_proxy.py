"""`specwire capture proxy` between peers that know nothing of it: it records what a tap at the server records."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from specwire.generated import filemq, norfab, norfab_ascii
from specwire.runtime.capture.proxy import ProxyWatch
from specwire.runtime.capture.segments import read_segments
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.access import Client, Clients
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.keys import load_keys, load_public_key, make_keys
from specwire.runtime.transport.relay import Relay
from specwire.runtime.transport.security import (
    NULL,
    CurveClient,
    CurveServer,
    Null,
    PlainClient,
    PlainServer,
)
from tests.integration.norfab_scene import SETTINGS, crowd_at

TIMEOUT_S = 100.0


class Tap:
    """A recorder that keeps what it is given, by sender and peer."""

    def __init__(self) -> None:
        self.said: dict[tuple[str, str], list[list[bytes]]] = {}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        self.said.setdefault((sender, conversation), []).append([bytes(frame) for frame in frames])


class Proxy:
    """The running command."""

    def __init__(self, process: asyncio.subprocess.Process, endpoint: str) -> None:
        self.process, self.endpoint = process, endpoint
        self.counts: dict[str, object] = {}

    async def stop(self) -> None:
        """Ask it to stop, and take its counts."""
        self.process.send_signal(signal.SIGTERM)
        out, err = await self.process.communicate()
        assert self.process.returncode == 0, err.decode()
        self.counts = json.loads(out)


@asynccontextmanager
async def proxying(target: str, capture: Path, *options: str) -> AsyncIterator[Proxy]:
    """Run the command in front of `target`; it is killed in the end where it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "specwire", "capture", "proxy", "--to", target,
        "--capture", os.fspath(capture), "--protocol=filemq", *options, "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = (await process.stderr.readline()).decode()
        found = re.search(r"passing on (tcp://\S+) to ", line)
        assert found is not None, line + (await process.stderr.read()).decode()
        yield Proxy(process, found[1])
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def fetch(
    endpoint: str, server: FilemqServer, inbox: Path, security: CurveClient | PlainClient | Null = NULL
) -> None:
    """Fetch all files of a server."""
    async with FilemqClient(endpoint, inbox, ["/"], security=security, sync=False) as client:
        await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)


def test_a_transfer_is_recorded_as_the_server_sees_it(tmp_path: Path) -> None:
    """Two clients get all files; each direction of each connection has the server's messages, in their order."""
    source = tmp_path / "source"
    source.mkdir()
    files = {"empty": b"", "small": b"1", "large": os.urandom(700_000)}
    for name, content in files.items():
        (source / name).write_bytes(content)
    tap = Tap()

    async def story() -> Proxy:
        async with (
            asyncio.timeout(TIMEOUT_S),
            FilemqServer([Publication(source)], tap=tap) as server,
            proxying(server.endpoint, tmp_path / "capture") as proxy,
        ):
            for name in ("a", "b"):
                await fetch(proxy.endpoint, server, tmp_path / name)
            await proxy.stop()
            return proxy

    proxy = asyncio.run(story())
    for name, content in files.items():
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() == content
    said: dict[tuple[str, str], list[list[bytes]]] = {}
    for row in read_segments(tmp_path / "capture").to_pylist():
        assert row["protocol"] == "filemq"
        said.setdefault((row["sender"], row["conversation"]), []).append(row["frames"])
    assert sorted(said.values(), key=len) == sorted(tap.said.values(), key=len)
    counts = proxy.counts
    assert (counts["connections"], counts["refused"], counts["dropped"]) == (2, 0, 0)
    assert counts["messages"] == {
        role: sum(len(frames) for (sender, _), frames in tap.said.items() if sender == role) for role in "CS"
    }


def test_peers_that_use_curve_are_recorded_by_who_has_the_keys(tmp_path: Path) -> None:
    """A client whose key is in the folder gets the files; one with another key is not let in."""
    source, keys, known = tmp_path / "source", tmp_path / "keys", tmp_path / "known"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(700_000))
    for name in ("server", "proxy", "stranger"):
        make_keys(keys, name)
    make_keys(known, "alice")
    (known / "alice.key_secret").rename(keys / "alice.key_secret")
    server_key = load_public_key(keys / "server.key")
    pair = load_keys(keys / "server.key_secret")
    clients = Clients([Client("proxy", ("/",), load_public_key(keys / "proxy.key"))])
    tap = Tap()
    options = (
        f"--curve={keys / 'server.key_secret'}", f"--client-keys={known}",
        f"--server-key={keys / 'server.key'}", f"--as={keys / 'proxy.key_secret'}",
    )  # fmt: skip

    async def story() -> Proxy:
        async with (
            asyncio.timeout(TIMEOUT_S),
            FilemqServer(
                [Publication(source)], tap=tap, security=CurveServer(pair), clients=clients
            ) as server,
            proxying(server.endpoint, tmp_path / "capture", *options) as proxy,
        ):
            stranger = CurveClient(load_keys(keys / "stranger.key_secret"), server_key)
            refused = FilemqClient(proxy.endpoint, tmp_path / "b", ["/"], security=stranger, sync=False)
            async with refused:
                alice = CurveClient(load_keys(keys / "alice.key_secret"), server_key)
                await fetch(proxy.endpoint, server, tmp_path / "a", alice)
            await proxy.stop()
            return proxy

    proxy = asyncio.run(story())
    assert (tmp_path / "a" / "large").read_bytes() == (source / "large").read_bytes()
    assert not (tmp_path / "b" / "large").exists()
    rows = read_segments(tmp_path / "capture").to_pylist()
    for role in "CS":
        (said,) = [frames for (sender, _), frames in tap.said.items() if sender == role]
        assert [row["frames"] for row in rows if row["sender"] == role] == said
    assert (proxy.counts["connections"], proxy.counts["dropped"]) == (1, 0)
    assert int(str(proxy.counts["refused"])) >= 1


@asynccontextmanager
async def relaying(watch: ProxyWatch, target: str) -> AsyncIterator[Relay]:
    """Run a proxy in this process."""
    relay = Relay("tcp://127.0.0.1:*", target, watch)
    await relay.open()
    try:
        yield relay
    finally:
        await relay.close()


def test_passwords_pass(tmp_path: Path) -> None:
    """PLAIN is proved to the server; a wrong password is refused by it, and nothing is recorded of that."""
    source, tap, kept = tmp_path / "source", Tap(), Tap()
    source.mkdir()
    (source / "one").write_bytes(b"1")
    watch = ProxyWatch({"filemq": kept}, [filemq])
    users = Clients([Client("ada", ("/",), password="lovelace")])

    async def story() -> None:
        server = FilemqServer([Publication(source)], tap=tap, security=PlainServer(), clients=users)
        async with asyncio.timeout(TIMEOUT_S), server, relaying(watch, server.endpoint) as relay:
            wrong = FilemqClient(
                relay.endpoint, tmp_path / "b", ["/"], security=PlainClient("ada", "byron"), sync=False
            )
            async with wrong:
                while not relay.connections:
                    await asyncio.sleep(0.01)
            await fetch(relay.endpoint, server, tmp_path / "a", PlainClient("ada", "lovelace"))

    asyncio.run(story())
    assert (tmp_path / "a" / "one").read_bytes() == b"1"
    assert sorted(kept.said.values()) == sorted(tap.said.values())
    assert len(kept.said) == 2


def test_peers_of_two_dialects_at_one_broker(tmp_path: Path) -> None:
    """Each message is recorded as what it is, with the role of its sender: a client, a worker, or the broker."""
    kept = {"norfab": Tap(), "norfab_ascii": Tap()}
    watch = ProxyWatch(kept, [norfab, norfab_ascii])

    async def story() -> None:
        async with (
            asyncio.timeout(TIMEOUT_S),
            NorfabBroker("tcp://127.0.0.1:*", tmp_path, settings=SETTINGS) as broker,
            relaying(watch, broker.endpoints[0]) as relay,
            crowd_at(relay.endpoint) as crowd,
        ):
            worker, client = crowd.worker(dialect=Dialect.DEPLOYED), crowd.client(dialect=Dialect.NORFAB)
            await worker.register()
            client.post("j1")
            worker.end_job(await worker.take_job(), 42)
            assert (await client.answer("j1", 200))["w1"]["result"] == 42

    asyncio.run(story())
    assert {sender for sender, _ in kept["norfab"].said} == {"C", "B"}
    assert {sender for sender, _ in kept["norfab_ascii"].said} == {"W", "B"}
    assert watch.proxied.unread == {}
