"""Peers that mean harm, or are broken: a live broker drops or answers what they say, and serves the others undisturbed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from specwire.runtime.norfab import commands, wire
from specwire.runtime.norfab.events import Dropped, Refused, WorkerGone
from tests.integration.norfab_process import DiligentClient, DiligentWorker
from tests.integration.norfab_scene import SETTINGS, Crowd, Heard, crowd_at, job_body, run, serving_broker

MESSAGES = 3000
HEADERS = (b"NFPC01", b"NFPW01", b"NFPB01", b"NFPX01", b"")
COMMANDS = (
    *(bytes([n]) for n in (*range(20), 255)),
    *(b"0x%02x" % n for n in range(20)),
    b"",
    b"0x",
    b"0x0500",
)


@asynccontextmanager
async def undisturbed(crowd: Crowd, jobs: int = 100) -> AsyncIterator[None]:
    """Meanwhile a worker and a client do their work, and all of it ends as it should."""
    worker = DiligentWorker(crowd, "diligent")
    client = DiligentClient(crowd, [f"good-{number}" for number in range(jobs)], target="diligent")
    tasks = [asyncio.create_task(worker.work()), asyncio.create_task(client.work())]
    try:
        yield
        await tasks[1]
        assert {status for status, _ in client.ended.values()} == {200}
        assert [worker.runs[f"good-{number}"] for number in range(jobs)] == [1] * jobs
    finally:
        for task in tasks:
            task.cancel()


OUT_OF_TURN: tuple[tuple[commands.Command, commands.Role], ...] = (
    (commands.Ready("svc"), "worker"),
    (commands.Ready("mmi.service.broker"), "worker"),
    (commands.Keepalive("svc"), "worker"),
    (commands.Disconnect("svc"), "worker"),
    (commands.Response("bad-1", 200, b"{}", client=b"c1"), "worker"),
    (commands.Event("bad-2", 200, b"{}", client=b"c1"), "worker"),
    (commands.Stream("bad-3", 200, b"x", client=b"c1"), "worker"),
    (commands.Get("bad-1", b"[", "svc", "all"), "client"),
    (commands.Delete("bad-1", b"{}", "svc", "any"), "client"),
    (commands.Put("bad-1", b"{}", "svc", "all"), "client"),
    (commands.Post("bad-4", b"no JSON", "svc", "all"), "client"),
    (commands.Post("bad-5", job_body(), "svc", "a,b,[c"), "client"),
    (commands.Mmi("bad-6", b"{}", "mmi.service.broker", "all"), "client"),
)
"""Messages that are well written, and make no sense where they come."""


def hostile_frames(seed: int) -> list[bytes]:
    """Return a message that makes no sense, or is nearly one, or not at all."""
    chance = random.Random(seed)
    if chance.random() < 0.4:
        command, role = chance.choice(OUT_OF_TURN)
        return wire.encode(command, wire.Dialect.DEPLOYED, role, "broker")
    if chance.random() < 0.1:
        return [chance.randbytes(chance.randrange(40)) for _ in range(chance.randrange(1, 12))]
    texts = (
        b"svc",
        b"all",
        b"any",
        b"bad-1",
        b"",
        b"\xff\xfe",
        b"200",
        b"diligent",
        b"{}",
        job_body(),
        b"[" * 2000,
    )
    frames = [b"", chance.choice(HEADERS[:3]), chance.choice(COMMANDS)]
    frames += [chance.choice(texts) for _ in range(chance.randrange(7))]
    if chance.random() < 0.2:
        frames[chance.randrange(len(frames))] = chance.randbytes(chance.randrange(300))
    return frames


def test_fuzzed_frames_disturb_nobody(tmp_path: Path) -> None:
    """Thousands of messages of any kind, as client, worker and broker: a client and its worker notice nothing."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            undisturbed(crowd),
        ):
            peers = [crowd.client(f"evil-{number}") for number in range(20)]
            for number in range(MESSAGES):
                peers[number % 20].say_frames(*hostile_frames(number))
            for peer in peers:
                peer.say(commands.Mmi("last", b"{}", "mmi.service.broker", "all"))
                await peer.hear(commands.MmiReply, lambda reply: reply.uuid == "last")
        assert {event.kind for event in heard.of(Dropped)} >= {"malformed", "forged"}

    run(story)


@pytest.mark.parametrize(
    "octets",
    [b"GET / HTTP/1.1\r\n\r\n", bytes(1000), b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + b"\xff" * 5000],
    ids=["http", "zeros", "zmtp"],
)
def test_connections_that_are_no_zmtp_are_dropped(tmp_path: Path, octets: bytes) -> None:
    """What is no handshake ends its own connection."""

    async def story() -> None:
        async with (
            serving_broker(tmp_path) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            undisturbed(crowd, 20),
        ):
            host, port = broker.endpoints[0].removeprefix("tcp://").split(":")
            for _ in range(20):
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(octets)
                    connection.settimeout(0.05)
                    try:
                        connection.recv(100)
                    except OSError:
                        continue

    run(story)


def test_bodies_that_are_too_large(tmp_path: Path) -> None:
    """A little too large is answered with 400 or 500 and the bound; far too large ends the connection, of that peer alone."""
    settings = msgspec.structs.replace(SETTINGS, body_octets=100_000)

    async def story() -> None:
        async with (
            serving_broker(tmp_path, settings=settings) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            undisturbed(crowd),
        ):
            client = crowd.client("large")
            client.post("j1", kwargs={"text": "x" * 110_000})
            reply = await client.hear(commands.Response)
            assert reply.status in (400, 500)
            assert "100000 octets" in json.loads(reply.body)["errors"][0]
            client.post("j2", kwargs={"text": "x" * 1_000_000})
            await client.until_lost()

    run(story)


def test_message_of_very_many_frames_is_one_malformed_message(tmp_path: Path) -> None:
    """Frames beyond what any command has are not even kept."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            undisturbed(crowd),
        ):
            crowd.client("many").say_frames(*[b"x"] * 20_000)
            assert (await heard.until(Dropped)).kind == "malformed"

    run(story)


def test_flood_of_jobs_is_bounded_by_client(tmp_path: Path) -> None:
    """Jobs beyond a client's bound are refused with the reason; another client's are taken meanwhile."""
    settings = msgspec.structs.replace(SETTINGS, jobs_per_client=50)

    async def story() -> None:
        async with (
            serving_broker(tmp_path, settings=settings) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            flooder = crowd.client("flooder")
            for number in range(2000):
                flooder.post(f"flood-{number}", service="nobody")
            other, worker = crowd.client("other"), crowd.worker()
            await worker.register()
            other.post("j1")
            worker.end_job(await worker.take_job())
            await other.answer("j1", 200)
            statuses: Counter[int] = Counter()
            while sum(statuses.values()) < 2000:
                reply = await flooder.hear(commands.Response)
                statuses[reply.status] += 1
                assert reply.status == 300 or b"up to 50" in reply.body
            assert statuses == {300: 50, 500: 1950}
            assert broker.status().jobs.open == 50

    run(story)


def test_many_connections(tmp_path: Path) -> None:
    """Hundreds of clients that come, say something and stay, or go at once: the broker has them all, and serves."""

    async def story() -> None:
        async with (
            serving_broker(tmp_path) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            undisturbed(crowd),
        ):
            host, port = broker.endpoints[0].removeprefix("tcp://").split(":")
            idle = [socket.create_connection((host, int(port))) for _ in range(300)]
            many = [crowd.client(f"many-{number}") for number in range(100)]
            for peer in many:
                peer.say(commands.Open())
            for peer in many:
                await peer.hear(commands.Open)
            for connection in idle:
                connection.close()
            for peer in many:
                peer.close()

    run(story)


def test_worker_that_reads_nothing_holds_nobody_back(tmp_path: Path) -> None:
    """Its messages wait in bounded queues; jobs of others go on, and it is lost when its time is over."""
    settings = msgspec.structs.replace(SETTINGS, keepalive_s=0.1, liveness=20)

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, settings=settings, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            deaf = crowd.worker("deaf")
            await deaf.register("other")
            deaf._dealer.pause()
            client = crowd.client("busy")
            for number in range(500):
                client.post(f"deaf-{number}", service="other", kwargs={"text": "x" * 50_000})
            async with undisturbed(crowd):
                gone = await heard.until(WorkerGone, lambda gone: gone.worker == "deaf")
            assert "alive" in gone.reason or "silent" in gone.reason or "sign" in gone.reason

    run(story)


def test_replies_that_nobody_waits_for_go_nowhere(tmp_path: Path) -> None:
    """Results without a job, of jobs of other workers, and events of nothing reach no client."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            victim, worker, forger = crowd.client("victim"), crowd.worker("w1"), crowd.worker("forger")
            await worker.register()
            await forger.register()
            victim.post("j1", target="w1")
            job = await worker.take_job()
            await victim.answer("j1", 202)
            for uuid in ("j1", "unknown", "x" * 255):
                for kind in (commands.Response, commands.Event, commands.Stream):
                    forger.say(
                        kind(uuid, 200, b'{"w1":{"result":"forged","failed":false}}', client=b"victim")
                    )
            await heard.until(Dropped, lambda dropped: dropped.kind in ("forged", "unknown", "late"))
            worker.end_job(job, "true")
            while (reply := await victim.hear(commands.Command)).status != 200:
                assert b"forged" not in reply.body
            assert isinstance(reply, commands.Response)
            assert json.loads(reply.body)["w1"]["result"] == "true"

    run(story)


def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    """Workers whose names are not UTF-8, or mean something else, are not let in, and jobs to `all` go on."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            for name in (b"\xff\xfe", b"all", b"any", b"a,b", os.urandom(255)):
                crowd.worker(name).say(commands.Ready("svc"))
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1", target="all")
            assert (await client.answer("j1", 202))["workers"] == ["w1"]
            worker.end_job(await worker.take_job())
            await client.answer("j1", 200)
            while len({refused.peer for refused in heard.of(Refused)}) < 5:
                await asyncio.sleep(0.01)

    run(story)
