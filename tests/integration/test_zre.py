"""ZRE peers over loopback: two of ours, and ours with zeromq-pyre, another implementation."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import urlopen

import pytest
import zmq

from specwire.runtime.kernel.log import LogEvent
from specwire.runtime.kernel.service import HostStoppedError
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.zre import ZreError, ZrePeer, ZreSettings
from specwire.runtime.zre.events import (
    GroupJoined,
    GroupLeft,
    MessageIgnored,
    PeerEntered,
    PeerExited,
    Shouted,
    Whispered,
)
from tests.runtime.kernel.store.stores import run

pytestmark = pytest.mark.peers

E = TypeVar("E", bound=LogEvent)


async def next_of(events: AsyncIterator[LogEvent], kind: type[E]) -> E:
    """Return the next event of this kind."""
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the peer stopped before {kind.__name__}")


def peer(name: str, *endpoints: str, **settings: Any) -> ZrePeer:
    """Return a peer in the group chat."""
    settings.setdefault("groups", ("chat",))
    return ZrePeer(ZreSettings(name=name, endpoint=endpoints, **settings))


def test_two_peers() -> None:
    """Headers, groups, messages of several frames in both directions, and the end of one."""

    async def story() -> None:
        async with peer("alice", headers={"X-ROLE": "first"}) as alice:
            at_alice = alice.events()
            endpoint = alice.status().endpoint
            async with peer("bob", endpoint.replace("127.0.0.1", "localhost")) as bob:
                at_bob = bob.events()
                found = await next_of(at_bob, PeerEntered)
                assert (found.peer, found.endpoint) == (alice.uuid, endpoint)
                assert found.headers == {"X-ROLE": "first"}
                assert (await next_of(at_bob, GroupJoined)).group == "chat"
                assert (await next_of(at_alice, PeerEntered)).name == "bob"
                await alice.whisper(bob.uuid, [b"", b"\xff" * 70_000])
                assert (await next_of(at_bob, Whispered)).content == (b"", b"\xff" * 70_000)
                longest = [b"%d" % number for number in range(63)]
                await alice.whisper(bob.uuid, longest)
                assert (await next_of(at_bob, Whispered)).content == tuple(longest)
                for call in (alice.whisper(bob.uuid, [*longest, b""]), alice.shout("chat", [*longest, b""])):
                    with pytest.raises(ZreError, match="at most 63 frames"):
                        await call
                assert await bob.shout("chat", [b"hello"]) == 1
                assert await next_of(at_alice, Shouted) == Shouted(bob.uuid, "bob", "chat", (b"hello",))
                await bob.leave("chat")
                assert (await next_of(at_alice, GroupLeft)).group == "chat"
                assert await alice.shout("chat", [b"nobody"]) == 0
                await bob.join("other")
                assert (await next_of(at_alice, GroupJoined)).group == "other"
                (known,) = alice.status().peers
                assert (known.name, known.uuid, known.groups) == ("bob", bob.uuid, ("other",))
                assert alice.status().host.messages_in == 4  # HELLO, SHOUT, LEAVE, JOIN
                with pytest.raises(ZreError, match="there is no peer"):
                    await alice.whisper(alice.uuid, [b"me"])
                with pytest.raises(ZreError, match="no UUID"):
                    await alice.whisper("bob", [b"me"])
                with pytest.raises(ZreError, match="255 octets"):
                    await alice.join("é" * 128)
            assert (await next_of(at_alice, PeerExited)).name == "bob"

    run(story)


def test_message_of_too_many_frames() -> None:
    """Refused as a whole: no part of it is a message."""

    async def story() -> None:
        async with peer("alice") as alice:
            events = alice.events()
            with zmq.Context() as context, context.socket(zmq.DEALER) as them:
                them.setsockopt(zmq.LINGER, 0)
                them.setsockopt(zmq.ROUTING_ID, b"\x01" + bytes(16))
                them.connect(alice.status().endpoint)
                them.send_multipart([b"\xaa\xa1\x02\x02\x00\x02", *[b"frame"] * 100])
                assert "64" in (await next_of(events, MessageIgnored)).reason
            assert alice.status().host.counters.malformed == 1

    run(story)


def test_peer_that_starts_later_and_again() -> None:
    """Its endpoint is greeted until it is there, and again after it has gone."""

    async def story() -> None:
        async with peer("first") as first:
            endpoint = first.status().endpoint
        async with peer("bob", endpoint) as bob:
            events = bob.events()
            for name in ("second", "third"):
                async with peer(name, bind=endpoint):
                    assert (await next_of(events, PeerEntered)).name == name
                assert (await next_of(events, PeerExited)).name == name
            assert bob.status().host.counters.faults == 0

    run(story)


def test_settings_that_cannot_work() -> None:
    """A sentence each: no endpoint, a mailbox that nobody can be told of, a name that nobody has, a taken port."""
    with pytest.raises(ValueError, match="is no endpoint"):
        peer("alice", "nonsense")
    with pytest.raises(ValueError, match="name the address to which other peers connect"):
        peer("alice", bind="tcp://*:5670")
    with pytest.raises(ValueError, match="names a source address"):
        peer("alice", "tcp://127.0.0.1:0;127.0.0.1:5670")
    for text in ({"name": "é" * 128}, {"groups": ("é" * 128,)}, {"headers": {"é" * 128: "value"}}):
        with pytest.raises(ValueError, match="at most 255 octets"):
            ZrePeer(ZreSettings(**text))

    async def story() -> None:
        with pytest.raises(TransportError, match=r"tcp://no-such-host\.invalid:1"):
            await peer("alice", "tcp://no-such-host.invalid:1").start()
        async with peer("alice") as alice:
            with pytest.raises(TransportError, match="cannot listen on"):
                await peer("bob", bind=alice.status().endpoint).start()

    run(story)


def test_command(tmp_path: Path) -> None:
    """Two processes: lines of the input are sent, events are printed; status and metrics have both peers."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "specwire", "zre"]

    file = tmp_path / "zre.toml"
    file.write_text('[zre.join]\ngroups = ["chat"]\nheaders = {a = "b"}\n')

    @contextmanager
    def start(*arguments: str) -> Iterator[subprocess.Popen[str]]:
        join = [*command, "join", *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(join, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            try:
                yield process
            except BaseException:
                process.kill()  # else the end of the block would wait for it
                raise

    def line_with(process: subprocess.Popen[str], words: str) -> str:
        assert process.stdout is not None
        return next(line for line in process.stdout if words in line)

    def write(process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()

    with start("--name", "alice", "--config", str(file), "--metrics", "0") as alice:
        endpoint = line_with(alice, "alice listens on").split()[-1]
        page = line_with(alice, "metrics and a page at ").split()[-1]
        with start("chat", "--name", "bob", "--endpoint", endpoint, "--json") as bob:
            entered = json.loads(line_with(bob, "PeerEntered"))
            assert entered["data"]["name"] == "alice" and entered["data"]["headers"] == {"a": "b"}
            line_with(alice, "bob joined chat")
            write(alice, "hello")
            assert json.loads(line_with(bob, '"Shouted"'))["data"]["content"] == ["hello"]
            write(bob, "/whisper alice only you")
            line_with(alice, "bob whispers: only you")
            file.write_text('[zre.join]\ngroups = ["chat", "news"]\n')
            alice.send_signal(signal.SIGHUP)
            assert json.loads(line_with(bob, '"news"'))["data"]["name"] == "alice"
            line_with(alice, "headers")  # they need a restart
            write(alice, "/peers")
            assert endpoint not in line_with(alice, "bob ")
            asked = subprocess.run(
                [*command, "status", "--json"], env=environment, capture_output=True, check=True
            )
            known = {one["name"]: [peer["name"] for peer in one["peers"]] for one in json.loads(asked.stdout)}
            assert known == {"alice": ["bob"], "bob": ["alice"]}
            with urlopen(f"{page}metrics", timeout=20.0) as answer:
                metrics = answer.read().decode().splitlines()
            assert any(line.startswith('specwire_info{protocol="zre",role="zre-peer"') for line in metrics)
            assert "specwire_zre_peers 1.0" in metrics and "specwire_zre_connections 1.0" in metrics
            with urlopen(f"{page}view.json", timeout=20.0) as answer:
                view = json.load(answer)["view"]
            assert view["name"] == "alice" and [one["name"] for one in view["tree"]["children"]] == ["bob"]
            bob.terminate()
        assert bob.returncode == 0
        line_with(alice, "bob")
        alice.send_signal(signal.SIGINT)
    assert alice.returncode == 0


def test_events_of_a_peer_that_does_not_run() -> None:
    """They end: after a start that fails, after a stop, and for a peer that was stopped while it started."""

    async def story() -> None:
        async with peer("alice") as alice:
            taken = peer("bob", bind=alice.status().endpoint)
            events = taken.events()
            with pytest.raises(TransportError, match="cannot listen on"):
                await taken.start()
            assert [event async for event in events] == []
        assert [event async for event in alice.events()] == []

        early = peer("carol", alice.status().endpoint.replace("127.0.0.1", "localhost"))
        starting = asyncio.create_task(early.start())
        await asyncio.sleep(0)  # it resolves the host name
        await early.stop()
        with pytest.raises(HostStoppedError, match="the host is stopped; it runs once"):
            await starting

    run(story)


# ---- zeromq-pyre: it has no way to connect by endpoint, so its node listens on loopback, and ours greets it


@pytest.fixture
def pyre(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Return a function that starts a node of Pyre without beacons. It has ``endpoint()`` as in Pyre's API."""
    module = pytest.importorskip("pyre.pyre", reason="needs zeromq-pyre: pip install zeromq-pyre")
    zmq = pytest.importorskip("zmq")
    nodes = []

    class LoopbackNode(module.PyreNode):  # type: ignore[misc,name-defined]
        def start(self) -> None:
            """Listen on loopback."""
            port = self.inbox.bind_to_random_port("tcp://127.0.0.1")
            self.bound, self.endpoint = True, f"tcp://127.0.0.1:{port}"
            self.poller.register(self.inbox, zmq.POLLIN)

    monkeypatch.setattr(module, "PyreNode", LoopbackNode)

    def start(name: str) -> Any:
        node = module.Pyre(name)
        node.set_header("X-IMPLEMENTATION", "pyre")
        node.join("chat")
        node.start()
        nodes.append(node)
        return node

    yield start
    for node in nodes:
        node.stop()


def received(node: Any, kind: str) -> list[bytes]:
    """Return the frames of the next event of this kind, after its kind and the peer's UUID."""
    while node.inbox.poll(20_000):
        frames: list[bytes] = node.recv()
        if frames[0] == kind.encode():
            return frames[2:]
    raise AssertionError(f"Pyre has told of no {kind}")


def test_pyre(pyre: Callable[[str], Any]) -> None:
    """HELLO with headers, groups, and every kind of message in both directions."""

    async def story() -> None:
        node = pyre("theirs")
        async with peer("ours", node.endpoint(), headers={"X-A": "b"}, evasive_after=0.3) as ours:
            events = ours.events()
            found = await next_of(events, PeerEntered)
            assert found.peer == node.uuid().hex and found.name == "theirs"
            assert found.headers == {"X-IMPLEMENTATION": "pyre"}
            assert (await next_of(events, GroupJoined)).group == "chat"
            name, headers, endpoint = await asyncio.to_thread(received, node, "ENTER")
            assert (name, headers) == (b"ours", b'{"X-A": "b"}')
            assert endpoint.decode() == ours.status().endpoint
            assert await asyncio.to_thread(received, node, "JOIN") == [b"ours", b"chat"]

            await ours.whisper(found.peer, [b"a", b"b"])
            assert await asyncio.to_thread(received, node, "WHISPER") == [b"ours", b"a", b"b"]
            assert await ours.shout("chat", [b"all"]) == 1
            assert await asyncio.to_thread(received, node, "SHOUT") == [b"ours", b"chat", b"all"]
            await ours.join("x")
            assert await asyncio.to_thread(received, node, "JOIN") == [b"ours", b"x"]
            await ours.leave("x")
            assert await asyncio.to_thread(received, node, "LEAVE") == [b"ours", b"x"]

            node.whisper(node.uuid().__class__(ours.uuid), [b"c", b"d"])
            assert (await next_of(events, Whispered)).content == (b"c", b"d")
            node.shout("chat", b"everybody")
            assert await next_of(events, Shouted) == Shouted(found.peer, "theirs", "chat", (b"everybody",))
            node.join("y")
            assert (await next_of(events, GroupJoined)).group == "y"
            node.leave("y")
            assert (await next_of(events, GroupLeft)).group == "y"

            before = ours.status().host.messages_in
            while ours.status().host.messages_in == before:  # PING-OK to the PING of a silent peer
                await asyncio.sleep(0.01)
            assert [one.name for one in ours.status().peers] == ["theirs"]
        # Pyre has no way to learn of a lost connection: it waits for 30 s of silence.

    run(story)
