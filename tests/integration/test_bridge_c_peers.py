"""The bridge between FILEMQ v2 and the C implementation, whose client and server are played as they were measured.

They keep the faults of the C programs (`tests.runtime.filemq`): the server stops for good when credit runs out or a frame is
malformed, the client keeps the tail of a longer version and takes neither HUGZ nor KTHXBAI.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import Mapping
from pathlib import Path

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from tests.integration.test_bridge import bridging, play, read_tree
from tests.runtime.filemq.c_client import CClient
from tests.runtime.filemq.c_server import CServer

TIMEOUT_S = 100.0
TIMES = {"heartbeat": 0.2, "expiry": 30.0, "reconnect": 0.05}


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """What a client is to hold."""
    return {name: hashlib.sha1(content).hexdigest().upper() for name, content in files.items()}


def test_a_c_client_keeps_a_folder_equal_to_a_server_of_v2(tmp_path: Path) -> None:
    """Files that were there before, a shorter version, which leaves no tail, and a deletion; the server asks for life."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    for folder in (source, inbox):
        folder.mkdir()
    for name, size in {"empty": 0, "one": 1, "large": 700_000}.items():
        (source / name).write_bytes(random.Random(name).randbytes(size))

    async def story() -> None:
        async with (
            FilemqServer([Publication(source)], timers=TIMES) as server,
            bridging("libfilemq", "filemq", server.endpoint) as (endpoint, bridged),
        ):
            client = CClient(endpoint, inbox)
            running = asyncio.create_task(client.run())
            try:
                await client.until(lambda c: c.files() == by_name(source) and len(c.closed) == 3)
                heard = bridged.to_listener
                (source / "large").write_bytes(b"short now")
                (source / "empty").unlink()
                await server.rescan()
                await client.until(lambda c: c.files() == by_name(source))
                while bridged.to_listener < heard + 3:  # HUGZ-OK, which the client knows nothing of
                    await asyncio.sleep(0.05)
                assert client.faults == []
                assert bridged.unsaid == {}
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await client.close()

    play(story)


def by_name(folder: Path) -> dict[str, bytes]:
    """Return a folder's files by virtual path."""
    return {f"/{name}": content for name, content in read_tree(folder).items()}


def test_a_client_of_v2_fetches_from_a_c_server(tmp_path: Path) -> None:
    """With a window smaller than the server's chunks, before which that server would stop for good."""
    files = {"/docs/a": os.urandom(900_000), "/docs/b": b"", "/docs/deep/c": b"1"}

    async def story() -> None:
        server = CServer()
        running = asyncio.create_task(server.run())
        try:
            async with (
                bridging("filemq", "libfilemq", server.endpoint) as (endpoint, bridged),
                FilemqClient(
                    endpoint, tmp_path / "inbox", ["/docs"], sync=False, window_octets=60_000
                ) as client,
            ):
                await server.until(lambda s: s.is_subscribed("/docs"))
                await server.create("/docsother", b"not subscribed to")
                for name, content in files.items():
                    await server.create(name, content)
                await client.until_equal(digests(files), timeout_s=TIMEOUT_S)
                await server.delete("/docs/b")
                del files["/docs/b"]
                await client.until_equal(digests(files), timeout_s=TIMEOUT_S)
                assert client.counters.refusals == 0
                assert bridged.unsaid == {}
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            server.close()
        assert (server.ended, server.livelocked) == (None, False)

    play(story)
    assert by_name(tmp_path / "inbox") == files
