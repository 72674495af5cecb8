"""Peers that do not behave, on real sockets: the server goes on serving, and a client keeps to its inbox."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    Icanhaz,
    IcanhazOk,
    Nom,
    Ohai,
    OhaiOk,
    Operation,
    Rtfm,
    Srsly,
    Wat,
)
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import FileReceived, PeerClosed
from tests.integration.filemq_raw import TIMEOUT_S, fake_server, raw_peers

TIMES = {"heartbeat": 0.1, "expiry": 1.0, "reconnect": 0.05}


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * TIMEOUT_S):
            await story()

    asyncio.run(bounded())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "file").write_bytes(os.urandom(500_000))
    (folder / "small").write_bytes(b"small")
    return folder


async def is_serving(server: FilemqServer, inbox: Path) -> None:
    """A well-behaved client still gets everything."""
    async with FilemqClient(server.endpoint, inbox, ["/"], sync=False) as client:
        await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)


# ---- clients that do not behave


def test_answers_to_what_is_wrong(tmp_path: Path, source: Path) -> None:
    """RTFM for another version and what is unexpected, WAT for what is malformed, silence for strangers."""

    async def story() -> None:
        async with FilemqServer([Publication(source)]) as server, raw_peers(server.endpoint) as peer:
            [ohai] = Ohai().encode()
            for message, answer in (
                ([ohai[:-1] + b"\x01"], Rtfm),
                (Nom(credit=1), Rtfm),
                ([b"\xaa\xa3\x63"], Rtfm),
                ([ohai + b"more"], Wat),
                ([b"\xaa\xa3"], Wat),
            ):
                raw = peer()
                raw.send([b"not a FILEMQ message"], message)
                assert type(await raw.hear()) is answer, message
            await is_serving(server, tmp_path / "a")

    run(story)


def test_random_and_damaged_frames_do_not_stop_the_server(tmp_path: Path, source: Path) -> None:
    """Some thousand messages of noise and of damaged commands; the server serves on."""
    dice = random.Random(20)
    whole = [
        Ohai().encode(),
        Icanhaz(path="/", options=(("RESYNC", "1"),), cache=(("file", "AA"),)).encode(),
        Nom(credit=5).encode(),
        Hugz().encode(),
    ]

    def damage() -> list[bytes]:
        frames = [bytearray(frame) for frame in dice.choice(whole)]
        for frame in frames:
            match dice.randrange(4):
                case 0:
                    frame[dice.randrange(len(frame))] = dice.randrange(256)
                case 1:
                    del frame[dice.randrange(len(frame)) :]
                case 2:
                    frame += dice.randbytes(dice.randrange(20))
                case 3:
                    frames = [*frames, bytearray(dice.randbytes(3))]
        return [bytes(frame) for frame in frames]

    async def story() -> None:
        async with FilemqServer([Publication(source)]) as server, raw_peers(server.endpoint) as peer:
            raws = [peer() for _ in range(10)]
            for turn in range(3000):
                raw = raws[turn % len(raws)]
                raw.send(damage() if dice.random() < 0.7 else [dice.randbytes(dice.randrange(40))])
                if turn % 100 == 0:
                    raw.send(Ohai())
                    await asyncio.sleep(0)
            await is_serving(server, tmp_path / "a")
            while server.counters.messages_in < 3000:
                await asyncio.sleep(0.01)
            await is_serving(server, tmp_path / "b")

    run(story)


def test_credit_is_exact_to_the_octet(source: Path) -> None:
    """A client that grants odd amounts gets exactly so many octets, and no more."""

    async def story() -> None:
        async with FilemqServer([Publication(source)]) as server, raw_peers(server.endpoint) as peer:
            raw = peer()
            raw.send(Ohai(), Icanhaz(path="/file", options=(("RESYNC", "1"),), cache=()))
            assert [type(await raw.hear()), type(await raw.hear())] == [OhaiOk, IcanhazOk]
            content = b""
            for credit in (1, 999, 70_001, 0, 123_456, 305_542):
                goal = len(content) + credit
                raw.send(Nom(credit=credit))
                while len(content) < goal:
                    command = await raw.hear()
                    assert isinstance(command, Cheezburger)
                    assert command.offset == len(content)
                    content += command.chunk
                assert len(content) == goal
            raw.send(Hugz())
            assert type(await raw.hear()).__name__ == "HugzOk", "nothing came beyond the credit"
            raw.send(Nom(credit=2**64 - 1))
            while content != (source / "file").read_bytes():
                command = await raw.hear()
                assert isinstance(command, Cheezburger)
                content += command.chunk
            end = await raw.hear()
            assert isinstance(end, Cheezburger)
            assert (end.offset, end.chunk) == (500_000, b"")

    run(story)


def test_credit_that_overflows_is_refused(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        async with FilemqServer([Publication(source)]) as server, raw_peers(server.endpoint) as peer:
            raw = peer()
            raw.send(Ohai(), Nom(credit=2**64 - 1), Nom(credit=2), Hugz(), Nom(credit=1))
            assert [type(await raw.hear()), type(await raw.hear())] == [OhaiOk, Srsly]
            await is_serving(server, tmp_path / "a")
            assert raw.got.empty(), "a refused client is not heard any more"

    run(story)


def test_client_that_grants_much_and_reads_nothing_costs_little(tmp_path: Path) -> None:
    """With endless credit and a socket that is not read, the server reads ahead a few chunks only.

    Another client gets 200 MB meanwhile, so there was time to send the first one as much.
    """
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "big").open("wb") as file:
        file.truncate(200 << 20)

    async def story() -> None:
        async with (
            FilemqServer([Publication(tmp_path / "source")]) as server,
            raw_peers(server.endpoint) as peer,
        ):
            raw = peer()
            raw.send(Ohai(), Icanhaz(path="/", options=(("RESYNC", "1"),), cache=()), Nom(credit=2**62))
            raw.dealer.pause()
            async with FilemqClient(server.endpoint, tmp_path / "good", ["/"], sync=False) as good:
                await good.until_equal(server.digests(), timeout_s=TIMEOUT_S)
                ahead = server.counters.content_octets - good.counters.content_octets
            assert 0 < ahead < 50 << 20, "what the sockets' queues and the system's buffers hold, and no more"

    run(story)


# ---- servers that do not behave


def test_hostile_names_write_nothing_outside(tmp_path: Path) -> None:
    """Names with '..', a NUL, empty components, through links: refused and reported, and the client goes on."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"precious")
    (tmp_path / "precious").write_bytes(b"precious")
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "link").symlink_to(outside)
    (inbox / "mine").write_bytes(b"mine")
    hostile = [
        "/../escaped", "/../precious", "/a/../../escaped", "escaped", "/", "//escaped", "/nul\0", "/.",
        "/link/escaped", "/link/precious", "/link", "/mine/x", "/.specwire-inbox/journal", "/" + "../" * 20 + "tmp/x",
    ]  # fmt: skip

    async def story() -> None:
        async with fake_server() as server, FilemqClient(server.endpoint, inbox, ["/"], sync=False) as client:
            watch = client.events()
            await server.subscribed()
            for name in hostile:
                server.send_file(name, b"evil")
                server.send_file(name, b"", offset=4)
                server.send_file(name, b"", operation=Operation.DELETE)
            server.send_file("/mine", b"", operation=Operation.DELETE)
            server.send_file("/good", b"good")
            server.send_file("/good", b"", offset=4)
            async for event in watch:
                if isinstance(event, FileReceived):
                    assert event.path == "/good"
                    assert not event.verified
                    break
            assert client.counters.refusals >= 2 * len(hostile) - 1

    run(story)
    assert sorted(os.listdir(tmp_path)) == ["inbox", "outside", "precious"]
    assert os.listdir(outside) == ["precious"]
    assert (outside / "precious").read_bytes() == (tmp_path / "precious").read_bytes() == b"precious"
    assert sorted(os.listdir(inbox)) == [".specwire-inbox", "good", "link", "mine"]


def test_server_that_exceeds_its_credit_is_left(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            fake_server() as server,
            FilemqClient(server.endpoint, tmp_path / "a", ["/"], window_octets=100) as client,
        ):
            await server.subscribed()
            server.send_file("/big", b"x" * 101)
            reason = await asyncio.wait_for(client.finished, TIMEOUT_S)
            assert reason == "the server sent 1 octets beyond its credit"

    run(story)


def test_noise_from_a_server_is_discarded(tmp_path: Path) -> None:
    async def story() -> None:
        dice = random.Random(21)
        async with fake_server() as server, FilemqClient(server.endpoint, tmp_path / "a", ["/"]) as client:
            watch = client.events()
            await server.subscribed()
            for _ in range(300):
                server.send([b"\xaa\xa3" + dice.randbytes(dice.randrange(1, 30)) + b"\xff"])
                server.send([dice.randbytes(20)])
            server.send_file("/good", b"")
            async for event in watch:
                if isinstance(event, FileReceived):
                    break

    run(story)


def test_many_empty_files_and_deletions_are_taken_in_their_time(tmp_path: Path) -> None:
    """What costs no credit is held back by the backlog of disk work, and all of it is done."""

    async def story() -> None:
        async with (
            fake_server() as server,
            FilemqClient(server.endpoint, tmp_path / "a", ["/"], sync=False) as client,
        ):
            await server.subscribed()
            for i in range(900):
                server.send_file(f"/{i % 300}", b"")
            server.send_file("/last", b"")
            empty = "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"
            expected = {f"/{i}": empty for i in range(300)} | {"/last": empty}
            await client.until_equal(expected, timeout_s=TIMEOUT_S)

    run(story)


def test_silent_server_is_tried_again(tmp_path: Path) -> None:
    """A server that stops answering is left after the expiry time, and asked anew with OHAI."""

    async def story() -> None:
        async with (
            fake_server() as server,
            FilemqClient(server.endpoint, tmp_path / "a", ["/"], timers=TIMES) as client,
        ):
            watch = client.events()
            await server.subscribed()
            async for event in watch:
                if isinstance(event, PeerClosed):
                    assert event.reason.startswith("silent for")
                    break
            await server.subscribed()

    run(story)
