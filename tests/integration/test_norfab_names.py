"""Two peers with one name at a broker without security: the first has it, while it is connected."""

from __future__ import annotations

import asyncio
from pathlib import Path

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.events import Refused, WorkerGone, WorkerReady
from tests.integration.norfab_scene import Heard, crowd_at, run, serving_broker


def test_a_second_worker_does_not_take_over_the_name_of_the_first(tmp_path: Path) -> None:
    """At the real broker it gets the jobs of the first from then on."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            first, client = crowd.worker("w1"), crowd.client()
            await first.register()
            thief = crowd.worker("w1")
            thief.say(commands.Ready("svc"), commands.Ready("other"), commands.Disconnect("svc"))
            for number in range(20):
                shown = await client.manage("show_workers", uuid=f"m{number}")
                assert [(row["name"], row["service"]) for row in shown] == [("w1", "svc")]
                await asyncio.sleep(0.05)
            client.post("j1")
            job = await first.take_job()
            thief.say(commands.Response("j1", 200, b'{"w1":{"result":"stolen"}}', client=b"c1"))
            first.end_job(job, "mine")
            assert (await client.answer("j1", 200))["w1"]["result"] == "mine"
            assert thief.got == []
            assert len(heard.of(WorkerReady)) == 1
            assert heard.of(WorkerGone) + heard.of(Refused) == []

    run(story)


def test_a_name_is_free_when_the_first_has_hung_up(tmp_path: Path) -> None:
    """Who comes then has it, and the jobs for it."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            first, client = crowd.worker("w1"), crowd.client()
            await first.register()
            first.close()
            again = crowd.worker("w1")
            again.say(commands.Ready("svc"))
            while not again.got:  # its first connection may have met the old one's name
                await asyncio.sleep(0.2)
                if not again.got:
                    again.close()
                    again = crowd.worker("w1")
                    again.say(commands.Ready("svc"))
            client.post("j1")
            again.end_job(await again.take_job())
            assert (await client.answer("j1", 200))["w1"]["result"] == 5

    run(story)
