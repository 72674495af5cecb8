"""The client over real sockets at a real broker: jobs, progress, losses, several threads, and kill -9."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.client import (
    BlockingClient,
    ClientClosedError,
    ClientSettings,
    JobError,
    NorfabClient,
    Progress,
    RequestError,
    State,
    UnknownJobError,
)
from specwire.runtime.norfab.client.events import Connected, ConnectionLost, Happening, JobAccepted
from specwire.runtime.norfab.events import JobAccepted as Taken
from specwire.runtime.norfab.security.keyring import Keyring
from specwire.runtime.norfab.serve.events import CutOff
from tests.integration.norfab_scene import Heard, RawPeer, crowd_at, run, serving_broker
from tests.integration.norfab_serving import Serving
from tests.integration.norfab_watch import NorfabWatch

LIVELY = ClientSettings(poll_s=1.0, silence_s=30.0, longest_reconnect_s=0.3, move_on_s=1.0)


class Events:
    """What a client told, which a test can wait for."""

    def __init__(self) -> None:
        self.all: list[Happening] = []
        self._changed = asyncio.Event()

    def __call__(self, happening: Happening) -> None:
        """Take one."""
        self.all.append(happening)
        self._changed.set()

    async def until(self, kind: type[Happening], times: int = 1) -> None:
        """Wait for so many of a kind."""
        while sum(isinstance(one, kind) for one in self.all) < times:
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def client_at(endpoint: str | list[str], **given: Any) -> AsyncIterator[NorfabClient]:
    """Run a client, and see that it keeps to the dialog."""
    watch = NorfabWatch("C")
    async with NorfabClient(endpoint, settings=LIVELY, tap=watch, **given) as client:
        yield client
    assert not watch.faults, watch.faults


async def work(worker: RawPeer, jobs: int = 1, value: object = 5) -> None:
    """Do so many jobs."""
    for _ in range(jobs):
        worker.end_job(await worker.take_job(), value)


@pytest.mark.parametrize("protocol", ["norfab_ascii", "norfab"])
def test_a_job_of_two_workers(tmp_path: Path, protocol: str) -> None:
    """Submitted, followed, ended; in both dialects."""

    async def story() -> None:
        async with (
            serving_broker(tmp_path / "b") as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            client_at(broker.endpoints[0], folder=tmp_path / "c", protocol=protocol) as client,
        ):
            workers = [crowd.worker("w1"), crowd.worker("w2")]
            for worker in workers:
                await worker.register()
            heard: list[Progress] = []
            running = asyncio.create_task(
                client.run("svc", "add", 1, 2, kwargs={"c": 3}, timeout=50, on_progress=heard.append)
            )
            posts = [await worker.take_job() for worker in workers]
            body = commands.Event(
                posts[0].uuid,
                200,
                b'{"worker":"w1","event_type":"progress","message":"half"}',
                client=posts[0].client,
            )
            workers[0].say(body)
            for worker, post in zip(workers, posts, strict=True):
                worker.end_job(post, worker.name.decode())
            result = await running
            assert result.values() == {"w1": "w1", "w2": "w2"}
            assert [progress.message for progress in heard] == ["half"]
            [entry] = await client.history()
            assert (entry.uuid, entry.state, entry.workers) == (result.uuid, "COMPLETED", ("w1", "w2"))
            assert (await client.collect(result.uuid)).values() == result.values()
            assert len(await client.progress(result.uuid)) == 1

    run(story)


def test_questions_and_refusals(tmp_path: Path) -> None:
    """Management, unknown tasks, deletion, and what the caller is told when it goes wrong."""

    async def story() -> None:
        async with (
            serving_broker(tmp_path / "b") as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            client_at(broker.endpoints[0], name="ops") as client,
        ):
            await crowd.worker("w1").register()
            assert [row["name"] for row in await client.manage("mmi.service.broker", "show_workers")] == [
                "w1"
            ]
            [row] = await client.manage("mmi.service.broker", "show_clients")
            assert row["name"].startswith("ops-")
            with pytest.raises(RequestError, match="Unsupported task 'dance'") as refused:
                await client.manage("mmi.service.broker", "dance")
            assert refused.value.code == 400
            uuid = await client.submit("svc", "add")
            following = client.follow(uuid)
            await client.delete(uuid)
            assert [progress async for progress in following] == []
            with pytest.raises(UnknownJobError, match=uuid):
                await client.look(uuid)
            with pytest.raises(RequestError, match="unknown"):
                await client.delete("never-seen", service="svc")
            with pytest.raises(UnknownJobError, match="name its service"):
                await client.collect("never-seen")
            unknown = await client.collect("never-seen", service="nobody", timeout=40)
            assert (unknown.state, unknown.code) == (State.FAILED, 400)

    run(story)


def test_the_arguments_are_checked(tmp_path: Path) -> None:
    """What makes no sense is refused before anything is sent."""

    async def story() -> None:
        async with serving_broker(tmp_path / "b") as (broker, _), client_at(broker.endpoints[0]) as client:
            for fault in (
                {"service": "", "task": "t"},
                {"service": "svc", "task": "t", "targets": []},
                {"service": "svc", "task": "t", "targets": ["a b"]},
                {"service": "svc", "task": "t", "timeout": 0},
                {"service": "svc", "task": "t", "timeout": float("nan")},
                {"service": "svc", "task": "t", "uuid": "a b"},
            ):
                with pytest.raises(ValueError, match=r"."):
                    await client.submit(**fault)
            with pytest.raises(TypeError):
                await client.submit("svc", "t", object())
            assert await client.history() == []
            await client.submit("svc", "t", uuid="mine", timeout=50)
            with pytest.raises(ValueError, match="there is a job mine already"):
                await client.submit("svc", "t", uuid="mine")

    run(story)
    with pytest.raises(ValueError, match="a client has a name"):
        NorfabClient("tcp://127.0.0.1:1", name="a b")
    with pytest.raises(ValueError, match="needs the endpoint"):
        NorfabClient([])


def test_a_broker_that_is_restarted_in_the_middle(tmp_path: Path) -> None:
    """The job goes on with the broker that comes back; nobody does anything."""

    async def story() -> None:
        events, before = Events(), Heard()
        async with serving_broker(tmp_path / "b", heard=before) as (broker, watch):
            [endpoint] = broker.endpoints
            client = NorfabClient(endpoint, folder=tmp_path / "c", settings=LIVELY, on_event=events)
            await client.start()
            running = asyncio.create_task(client.run("svc", "add", timeout=50))
            await before.until(Taken)
        await events.until(ConnectionLost)
        async with (
            serving_broker(tmp_path / "b", endpoint=endpoint, after=watch),
            crowd_at(endpoint) as crowd,
        ):
            worker = crowd.worker("w1")
            worker.say(commands.Ready("svc"))
            await work(worker)
            assert (await running).values() == {"w1": 5}
            await events.until(Connected, 2)
            await client.stop()

    run(story)


def test_a_broker_that_is_gone_for_good(tmp_path: Path) -> None:
    """The next broker of the list knows nothing of the job, and gets it under the same uuid."""

    async def story() -> None:
        accepted = Events()
        async with serving_broker(tmp_path / "b2") as (second, _), crowd_at(second.endpoints[0]) as crowd:
            async with serving_broker(tmp_path / "b1") as (first, _), crowd_at(first.endpoints[0]) as others:
                old = others.worker("w1")
                await old.register()
                endpoints = [first.endpoints[0], second.endpoints[0]]
                client = NorfabClient(endpoints, folder=tmp_path / "c", settings=LIVELY, on_event=accepted)
                await client.start()
                running = asyncio.create_task(client.run("svc", "add", timeout=50))
                uuid = (await old.take_job()).uuid
                await accepted.until(JobAccepted)
            worker = crowd.worker("w1")
            worker.say(commands.Ready("svc"))
            asked = await worker.hear(commands.Get)
            worker.say(commands.Response(uuid, 404, b"{}", client=asked.client))
            post = await worker.hear(commands.Post)
            assert post.uuid == uuid
            worker.say(commands.Response(uuid, 201, b'{"worker":"w1"}', client=post.client))
            worker.end_job(post, 9)
            assert (await running).values() == {"w1": 9}
            await client.stop()

    run(story)


def test_any_client_that_knows_the_uuid_gets_the_result(tmp_path: Path) -> None:
    """Results are kept by the broker."""

    async def story() -> None:
        async with (
            serving_broker(tmp_path / "b") as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            client_at(broker.endpoints[0]) as one,
            client_at(broker.endpoints[0]) as other,
        ):
            worker = crowd.worker("w1")
            await worker.register()
            uuid = await one.submit("svc", "add")
            waiting = asyncio.create_task(other.collect(uuid, service="svc"))
            await work(worker)
            assert (await one.collect(uuid)).values() == (await waiting).values() == {"w1": 5}
            assert (await other.look(uuid)).ok

    run(story)


def test_no_broker_at_all(tmp_path: Path) -> None:
    """408 names the cause, and the job can be collected when there is a broker."""

    async def story() -> None:
        async with crowd_at("tcp://127.0.0.1:1"):
            client = NorfabClient(f"ipc://{tmp_path}/none", folder=tmp_path / "c", settings=LIVELY)
            await client.start()
            result = await client.run("svc", "add", timeout=1)
            assert (result.state, result.code) == (State.STALE, 408)
            with pytest.raises(
                JobError, match="no broker has taken it within 1 s: no connection is possible"
            ):
                result.check()
            await client.stop()
            with pytest.raises(ClientClosedError):
                await client.submit("svc", "add")
        async with (
            serving_broker(tmp_path / "b") as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            client_at(broker.endpoints[0], folder=tmp_path / "c") as client,
        ):
            worker = crowd.worker("w1")
            worker.say(commands.Ready("svc"))
            waiting = asyncio.create_task(client.collect(result.uuid, timeout=50))
            await work(worker)
            assert (await waiting).ok

    run(story)


def test_submitting_waits_while_too_many_have_not_ended(tmp_path: Path) -> None:
    """Back-pressure: the eleventh job waits for one of ten to end."""

    async def story() -> None:
        async with serving_broker(tmp_path / "b") as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            worker = crowd.worker("w1")
            await worker.register()
            async with NorfabClient(broker.endpoints[0], settings=ClientSettings(jobs=10)) as client:
                uuids = [await client.submit("svc", "add", timeout=50) for _ in range(10)]
                late = asyncio.create_task(client.submit("svc", "add", timeout=50))
                posts = [await worker.take_job() for _ in range(10)]
                assert not late.done()
                worker.end_job(posts[0])
                uuids.append(await late)
                for post in posts[1:]:
                    worker.end_job(post)
                await work(worker)
                assert all([(await client.collect(uuid)).ok for uuid in uuids])

    run(story)


def test_a_large_result(tmp_path: Path) -> None:
    """Twenty megabytes, more than a frame of most peers."""

    async def story() -> None:
        async with (
            serving_broker(tmp_path / "b") as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            client_at(broker.endpoints[0], folder=tmp_path / "c") as client,
        ):
            worker = crowd.worker("w1")
            await worker.register()
            running = asyncio.create_task(client.run("svc", "add", timeout=50))
            await work(worker, value="y" * 20_000_000)
            assert len((await running).values()["w1"]) == 20_000_000

    run(story)


@pytest.mark.parametrize("protocol", ["norfab_ascii", "norfab"])
def test_a_large_first_job(tmp_path: Path, protocol: str) -> None:
    """More than a broker accepts as the first message of a connection."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path / "b", heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            client_at(broker.endpoints[0], folder=tmp_path / "c", protocol=protocol) as client,
        ):
            worker = crowd.worker("w1")
            await worker.register()
            text = "x" * 12_000_000
            running = asyncio.create_task(client.run("svc", "add", kwargs={"text": text}, timeout=50))
            job = await worker.take_job()
            assert len(job.body) > len(text)
            worker.end_job(job)
            assert (await running).values() == {"w1": 5}
        assert heard.of(CutOff) == []

    run(story)


def test_a_client_with_a_key(tmp_path: Path) -> None:
    """CURVE: with the key of a client, jobs; the management is not for it. A stranger does not get in."""

    async def story() -> None:
        ring = Keyring(tmp_path / "keys")
        ring.prepare()
        async with serving_broker(tmp_path / "b", security=ring.server(), access=ring.table()) as (broker, _):
            [endpoint] = broker.endpoints
            async with client_at(endpoint, security=ring.peer("client"), name="client") as client:
                uuid = await client.submit("svc", "add", timeout=50)
                await client.delete(uuid)
                with pytest.raises(RequestError, match="may not use 'shutdown'"):
                    await client.manage("mmi.service.broker", "shutdown")
            stranger = Keyring(tmp_path / "strange")
            stranger.prepare()
            keys = stranger.peer("client")
            async with NorfabClient(endpoint, security=keys, settings=LIVELY) as client:
                answer = await client.ask("mmi.service.broker", "show_broker", timeout=1)
                assert answer.code == 408

    run(story)


# --- threads and processes


def test_one_blocking_client_of_several_threads(tmp_path: Path) -> None:
    """Each thread gets its own results; the end of the client ends whoever waits."""
    with Serving(tmp_path / "b") as serving:
        client = BlockingClient(serving.endpoint, folder=tmp_path / "c")
        ends: list[object] = []

        def use(number: int) -> None:
            for turn in range(10):
                uuid = client.submit("svc", "add", number, turn, timeout=50)
                ends.append(client.collect(uuid, 50).values())

        threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
        assert ends == [{"w1": 5}] * 40 and len(client.history(1000)) == 40
        assert client.manage("mmi.service.broker", "show_broker")["status"] == "active"

        told: list[BaseException] = []
        submitted = threading.Event()

        def wait() -> None:
            uuid = client.submit("nobody", "add", timeout=50)
            submitted.set()
            try:
                list(client.follow(uuid))
                client.collect(uuid, 50)
            except ClientClosedError as error:
                told.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert submitted.wait(30)
        client.close()
        client.close()
        waiting.join(30)
        assert len(told) == 1
        with pytest.raises(ClientClosedError):
            client.run("svc", "add")


def test_a_blocking_client_in_its_own_callback(tmp_path: Path) -> None:
    """It would wait for itself: it is told so instead."""
    clients: list[BlockingClient] = []
    told: list[str] = []

    def hear(_: Happening) -> None:
        try:
            for client in clients:
                client.history()
        except RuntimeError as error:
            told.append(str(error))

    with Serving(tmp_path / "b") as serving, BlockingClient(serving.endpoint, on_event=hear) as client:
        clients.append(client)
        assert client.run("svc", "add", timeout=50).ok
    assert told and "callback" in told[0]


SUBMITTER = """
import sys
from specwire.runtime.norfab.client import BlockingClient

client = BlockingClient(sys.argv[1], folder=__import__("pathlib").Path(sys.argv[2]))
for number in range(20):
    print(client.submit("svc", "add", number, timeout=120), flush=True)
print("all", flush=True)
client.collect("none of them", service="svc")
sys.stdin.read()
"""


def test_kill_9_of_the_client_in_the_middle(tmp_path: Path) -> None:
    """Whatever was told to be submitted ends, at the next client in the same folder, without a person's help."""

    async def story() -> None:
        async with serving_broker(tmp_path / "b") as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            [endpoint] = broker.endpoints
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                SUBMITTER,
                endpoint,
                str(tmp_path / "c"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdout is not None
            uuids = []
            while (line := (await process.stdout.readline()).decode().strip()) not in ("all", ""):
                uuids.append(line)
                if len(uuids) == 15:
                    process.kill()
            assert await process.wait() == -signal.SIGKILL
            assert len(uuids) >= 15
            worker = crowd.worker("w1")
            worker.say(commands.Ready("svc"))
            busy = asyncio.create_task(work(worker, 1000))
            async with client_at(endpoint, folder=tmp_path / "c") as client:
                for uuid in uuids:
                    assert (await client.collect(uuid, 50)).values() == {"w1": 5}
                entries = await client.history(1000)
                assert {entry.uuid for entry in entries} >= set(uuids)
            busy.cancel()

    run(story)


def test_following_a_job_that_is_over(tmp_path: Path) -> None:
    """There is nothing to come: the iteration ends at once, also for a stale job."""

    async def story() -> None:
        client = NorfabClient(f"ipc://{tmp_path}/none", settings=LIVELY)
        async with client:
            uuid = await client.submit("svc", "add", timeout=0.2)
            assert [progress async for progress in client.follow(uuid)] == []
            assert (await client.look(uuid)).state is State.STALE
            assert [progress async for progress in client.follow(uuid)] == []
            assert [progress async for progress in client.follow("nobody's")] == []

    run(story)


@pytest.mark.filterwarnings("ignore")
def test_a_fault_is_told_to_whoever_waits(tmp_path: Path) -> None:
    """A callback that raises ends the client, loudly: nobody waits for what nobody does any more."""

    async def story() -> None:
        def fail(_: Progress) -> None:
            raise ZeroDivisionError("in a callback")

        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with (
            serving_broker(tmp_path / "b") as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            NorfabClient(broker.endpoints[0], folder=tmp_path / "c") as client,
        ):
            worker = crowd.worker("w1")
            await worker.register()
            other = asyncio.create_task(client.run("nobody", "add"))
            running = asyncio.create_task(client.run("svc", "add", on_progress=fail))
            post = await worker.take_job()
            said = b'{"worker":"w1","event_type":"progress","message":"half"}'
            worker.say(commands.Event(post.uuid, 200, said, client=post.client))
            for waiting in (running, other):
                with pytest.raises(ZeroDivisionError):
                    await waiting
            with pytest.raises(ClientClosedError):
                await client.submit("svc", "add")

    run(story)
