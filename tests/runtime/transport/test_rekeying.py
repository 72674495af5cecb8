"""Other keys for a server that runs: who knows the new one comes in, at every endpoint, and nobody else does."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path

import pytest

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.rekeying import change_keys
from specwire.runtime.transport.security import CurveClient, CurveServer
from tests.runtime.transport.test_security import gate, new_pair


def never(line: str) -> None:
    raise AssertionError(line)


@pytest.mark.parametrize("scheme", ["tcp", "ipc"])
def test_the_new_key_holds_at_every_endpoint(scheme: str) -> None:
    old, new, client = new_pair(), new_pair(), new_pair()

    async def story(folder: Path) -> None:
        async with gate(CurveServer(old), any_key=True) as g:
            other = "tcp://127.0.0.1:*" if scheme == "tcp" else f"ipc://{folder}/socket"
            endpoints = (g.endpoint, g.router.bind(other))
            for round_, (keys, stale) in enumerate([(new, old), (old, new)]):
                await change_keys(g.router.link, keys, endpoints, never)
                for endpoint in endpoints:
                    g.endpoint = endpoint
                    g.knock(CurveClient(client, stale.public), b"stale")
                    for word in (b"first", b"second"):
                        g.knock(CurveClient(client, keys.public), b"%d %b" % (round_, word))
                    # Two handshakes that began later have ended: the stale one had its time.
                    heard = {(await g.heard.get())[1][0] for _ in range(2)}
                    assert heard == {b"%d first" % round_, b"%d second" % round_}

    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        asyncio.run(story(Path(folder)))


def test_who_was_connected_is_disconnected() -> None:
    old, new, client = new_pair(), new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(old), any_key=True) as g:
            lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            g.knock(CurveClient(client, old.public), b"hello")
            g.dealers[0]._on_lost = lost.set_result
            await g.heard.get()
            await change_keys(g.router.link, new, (g.endpoint,), never)
            assert "lost" in await lost

    asyncio.run(story())


def test_an_endpoint_that_is_none_closes_no_other() -> None:
    keys, new, client = new_pair(), new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(keys), any_key=True) as g:
            with pytest.raises(TransportError, match="was not listened on"):
                await change_keys(g.router.link, new, (g.endpoint, "tcp://127.0.0.1:1"), never)
            g.knock(CurveClient(client, new.public), b"hello")
            assert await g.heard.get() == (client.public, [b"hello"])

    asyncio.run(story())


def test_keys_that_are_none_change_nothing() -> None:
    keys, client = new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(keys), any_key=True) as g:
            with pytest.raises(TransportError, match="not usable as credentials"):
                await change_keys(g.router.link, KeyPair(keys.public, "no key"), (g.endpoint,), never)
            g.knock(CurveClient(client, keys.public), b"hello")
            assert await g.heard.get() == (client.public, [b"hello"])

    asyncio.run(story())


def test_an_endpoint_that_cannot_be_had_again_is_told_and_tried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else took the port at the wrong moment."""
    monkeypatch.setattr("specwire.runtime.transport.rekeying.TELL_AFTER_S", 0.0)
    keys, client = new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(keys), any_key=True) as g:
            told: asyncio.Queue[str] = asyncio.Queue()
            g.router.link.unbind(g.endpoint)
            other = await take_port(int(g.endpoint.rpartition(":")[2]))
            with monkeypatch.context() as patched:
                patched.setattr(g.router.link, "unbind", lambda endpoint: None)
                changing = asyncio.create_task(
                    change_keys(g.router.link, keys, (g.endpoint,), told.put_nowait)
                )
                line = await told.get()
            assert line.startswith(f"nobody can connect: cannot listen on {g.endpoint}: ")
            assert line.endswith("; it is tried again")
            other.close()
            await changing
            g.knock(CurveClient(client, keys.public), b"hello")
            assert (await g.heard.get())[1] == [b"hello"]

    asyncio.run(story())


async def take_port(port: int) -> socket.socket:
    """Return a socket that has the port, which libzmq lets go of a moment after it was told to."""
    while True:
        other = socket.socket()
        try:
            other.bind(("127.0.0.1", port))
        except OSError:
            other.close()
            await asyncio.sleep(0.001)
        else:
            other.listen()
            return other


def test_a_server_that_ends_meanwhile_is_not_waited_for() -> None:
    keys = new_pair()

    async def story() -> None:
        async with gate(CurveServer(keys), any_key=True) as g:
            changing = asyncio.create_task(change_keys(g.router.link, keys, (g.endpoint,), never))
            await asyncio.sleep(0)
            g.router.close()
            await changing

    asyncio.run(story())
