"""What the real broker gets wrong (norfab 0.25, measured), at a live broker of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.events import Dropped
from tests.integration.norfab_scene import Heard, crowd_at, job_body, run, serving_broker


@pytest.mark.parametrize("target", ["w1", "any"])
def test_worker_lost_with_seven_jobs(tmp_path: Path, target: str) -> None:
    """The real one leaves all seven STARTED for ever. Here each fails with the cause, or goes to the other worker."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            worker, client = crowd.worker("w1"), crowd.client()
            await worker.register()
            for number in range(7):
                client.post(f"j{number}", target=target)
                await worker.take_job()
                await client.answer(f"j{number}", 202)
            other = crowd.worker("w2")
            await other.register()
            worker.close()
            if target == "any":
                for _ in range(7):
                    other.end_job(await other.take_job())
            for number in range(7):
                body = await client.answer(f"j{number}", 200 if target == "any" else 500)
                told = json.dumps(body)
                assert "w1" in told
                assert ('"attempt": 2' in told) == (target == "any")

    run(story)


def test_three_frames_do_not_end_the_broker(tmp_path: Path) -> None:
    """READY without a service, as short as it can be."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            crowd.worker("short").say_frames(b"", b"NFPW01", b"0x01")
            crowd.worker("octet").say_frames(b"", b"NFPW01", b"\x01")
            await heard.until(Dropped, lambda dropped: dropped.peer == b"short")
            await heard.until(Dropped, lambda dropped: dropped.peer == b"octet")
            assert (await crowd.client().manage("show_broker"))["status"] == "active"

    run(story)


def test_body_that_is_no_json_reaches_no_worker(tmp_path: Path) -> None:
    """At the real one it kills the worker's thread. Here the client is told, and the worker gets the next job."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.say(commands.Post("bad", b"\xff not JSON", "svc", "all"))
            assert "JSON" in (await client.answer("bad", 400))["errors"][0]
            client.post("good")
            assert (await worker.take_job()).uuid == "good"

    run(story)


def test_second_peer_does_not_take_over_a_name(tmp_path: Path) -> None:
    """Who comes second under a routing id gets nothing while the first is there; jobs go to the first."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            first, client = crowd.worker("w1"), crowd.client()
            await first.register()
            second = crowd.worker("w1")
            second.say(commands.Ready("svc"), commands.Ready("stolen"))
            for number in range(5):
                client.post(f"j{number}")
                first.end_job(await first.take_job())
                await client.answer(f"j{number}", 200)
            assert second.got == []
            assert [row["service"] for row in await client.manage("show_workers")] == ["svc"]

    run(story)


def test_duplicate_uuid_is_acknowledged_and_not_run_again(tmp_path: Path) -> None:
    """The real one says nothing. Here the client hears 202 again, and then the one result."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1")
            job = await worker.take_job()
            await client.answer("j1", 202)
            client.post("j1")
            await client.answer("j1", 202)
            worker.end_job(job)
            await client.answer("j1", 200)
            client.post("j1")
            await client.answer("j1", 202)
            await client.answer("j1", 200)
            client.say(commands.Post("j2", job_body(), "svc", "all"))
            assert (await worker.hear(commands.Post)).uuid == "j2"

    run(story)


def test_delete_and_disconnect_are_answered(tmp_path: Path) -> None:
    """DELETE does something, and DISCONNECT ends what the broker sends."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1")
            await worker.take_job()
            client.say(commands.Delete("j1", b"{}", "svc", "all"))
            await client.answer("j1", 200)
            assert (await worker.hear(commands.Delete)).uuid == "j1"
            worker.say(commands.Disconnect("svc"))
            client.post("j2")
            await client.answer("j2", 300)
            assert not any(isinstance(command, commands.Post) for command in worker.got)

    run(story)
