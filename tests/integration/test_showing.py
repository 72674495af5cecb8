"""Real servers that show themselves: over HTTP with `--metrics`, and in a log for programs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.integration import filemq_process, flux_processes, norfab_process
from tests.integration.filemq_process import PeerProcess

pytestmark = pytest.mark.peers

PATIENCE_S = 90.0
SHOWN = "metrics and a page at "
AT_ANY_PORT = ("--metrics", "0", "--log-format", "json")
PLUGIN = "tests.integration.norfab_plugin:Fleet"


def play(story: Coroutine[Any, Any, None]) -> None:
    """Run a story, and give up after a while."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await story

    asyncio.run(bounded())


async def url_of(server: PeerProcess) -> str:
    """Return where a server shows itself, as its log says."""
    return str(json.loads(await server.line_with(SHOWN))["message"]).removeprefix(f"{SHOWN}")


async def fetch(url: str) -> str:
    """Return what is there."""

    def get() -> str:
        with urlopen(url, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(get)


async def metrics_of(url: str) -> dict[str, float]:
    """Return the measures by name and labels."""
    text = await fetch(f"{url}metrics")
    return {
        name: float(value)
        for line in text.splitlines()
        if not line.startswith("#")
        for name, _, value in (line.rpartition(" "),)
    }


async def until(look: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Return when it is so."""
    while not await look():
        await asyncio.sleep(0.05)


def names_in(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the names in the tree of a view, as nested dictionaries."""
    return {child["name"]: names_in(child) for child in tree["children"]}


def objects(lines: Iterable[str]) -> Sequence[dict[str, Any]]:
    """Return the lines of a log, each of which is an object."""
    return [json.loads(line) for line in lines]


def test_a_filemq_server_and_its_subscriber(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_text("hello")

    async def story(endpoint: str) -> None:
        folder, inbox = str(tmp_path / "docs"), str(tmp_path / "in")
        async with (
            filemq_process.running("serve", folder, "--endpoint", endpoint, *AT_ANY_PORT) as server,
            filemq_process.running("subscribe", endpoint, "/", "--inbox", inbox, *AT_ANY_PORT) as client,
        ):
            await client.line_with("FileReceived")
            shown, received = await metrics_of(await url_of(server)), await metrics_of(await url_of(client))
            assert shown["specwire_filemq_clients"] == 1
            assert shown['specwire_filemq_published_bytes{path="/"}'] == 5
            assert received['specwire_filemq_connection{state="open"}'] == 1
            assert received["specwire_filemq_files_total"] == received["specwire_filemq_held_files"] == 1
            view = json.loads(await fetch(f"{await url_of(server)}view.json"))["view"]
            assert view["name"] == endpoint and len(names_in(view["tree"])["/"]) == 1
            await client.stop()
            await server.stop()
        log = objects(client.lines)
        (received_line,) = (line for line in log if line.get("event") == "FileReceived")
        assert received_line["role"] == "filemq-subscriber"
        assert (received_line["data"]["path"], received_line["data"]["size"]) == ("/a.txt", 5)
        assert {line["role"] for line in objects(server.lines)} == {"filemq-server"}

    with filemq_process.kept_endpoint() as endpoint:
        play(story(endpoint))


def test_the_brokers_of_an_instance_show_the_tree_below_each() -> None:
    """A chain of three, so that rank 0 has to ask for what is below its only child."""

    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            *flux_processes.COMMAND,
            *("start", "--size", "3", "--fanout", "1", *AT_ANY_PORT),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        instance = PeerProcess(process)
        try:
            urls = {}
            for rank in range(3):
                line = await instance.line_with(f'"rank": {rank}, "message": "{SHOWN}')
                urls[rank] = json.loads(line)["message"].removeprefix(SHOWN)

            async def whole() -> bool:
                view = json.loads(await fetch(f"{urls[0]}view.json"))["view"]
                return names_in(view["tree"]) == {"rank 1": {"rank 2": {}}}

            await until(whole)
            assert (await metrics_of(urls[1]))['specwire_flux_child_present{rank="2"}'] == 1
            assert (await metrics_of(urls[2]))["specwire_flux_children"] == 0

            async def full() -> bool:
                return await fetch(f"{urls[0]}health") == "full\n"

            await until(full)
            await instance.stop()
        finally:
            await instance.end()

    play(story())


def test_a_norfab_broker_and_its_worker(tmp_path: Path) -> None:
    async def story(endpoint: str) -> None:
        worker = await norfab_process.start(
            *("worker", "--insecure", "--service", "lab", "--name", "w1", "--plugin", PLUGIN),
            *("--broker", endpoint, "--folder", str(tmp_path / "worker"), *AT_ANY_PORT),
        )
        try:
            async with norfab_process.running_broker(endpoint, tmp_path / "broker", *AT_ANY_PORT) as broker:
                await worker.line_with("registered for lab")
                there = await url_of(broker)

                async def registered() -> bool:
                    view = json.loads(await fetch(f"{there}view.json"))["view"]
                    return names_in(view["tree"]) == {"lab": {"w1": {}}}

                await until(registered)
                assert (await metrics_of(there))['specwire_norfab_workers{service="lab"}'] == 1
                asking = await norfab_process.start(
                    *("client", "run", "lab", "add", "2", "--insecure", "--broker", endpoint),
                    *("--folder", str(tmp_path / "client")),
                )
                assert await asking.until_ended() == 0, asking.lines
                ended, done = await metrics_of(there), await metrics_of(await url_of(worker))
                assert ended['specwire_norfab_part_duration_seconds_count{service="lab"}'] == 1
                assert done['specwire_norfab_worker_job_duration_seconds_count{task="add"}'] == 1
                assert done['specwire_norfab_worker_ended_jobs_total{outcome="completed"}'] == 1
                assert done["specwire_norfab_worker_registered"] == 1
                await worker.stop()
                assert "WorkerGone" in json.loads(await broker.line_with("is gone"))["event"]
                await broker.stop()
        finally:
            await worker.end()
        assert {line["role"] for line in objects(broker.lines)} == {"norfab-broker"}
        assert {line.get("event") for line in objects(worker.lines)} >= {"Connected"}

    with filemq_process.kept_endpoint() as endpoint:
        play(story(endpoint))


def test_a_place_that_is_taken_ends_the_server_with_a_sentence(tmp_path: Path) -> None:
    """Before it has read what it publishes, which may take long."""

    async def story() -> None:
        async with filemq_process.running(
            "serve", str(tmp_path), "--endpoint", "tcp://127.0.0.1:*", *AT_ANY_PORT
        ) as first:
            found = re.search(r":(\d+)/$", await url_of(first))
            assert found is not None
            second = await filemq_process.start("serve", str(tmp_path), "--metrics", found[1])
            line = await second.line_with("cannot listen")
            await second.end()
        assert line.startswith(
            f"specwire: cannot listen on tcp://127.0.0.1:{found[1]}: Address already in use"
        )

    play(story())
