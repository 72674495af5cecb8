"""Files and inventory of a broker over sockets: our client, clients of two deployed versions, and peers that mean no good."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.events import Dropped
from specwire.runtime.norfab.files import FetchError
from specwire.runtime.norfab.security.keyring import Keyring
from specwire.runtime.norfab.security.table import Peer
from specwire.runtime.norfab.serve.events import Began, Noticed
from specwire.runtime.norfab.worker import Job, NorfabWorker, SharedFile, task
from tests.integration.norfab_chaos import NORFAB, Party
from tests.integration.norfab_real import NotInstallableError, python_with_norfab, real_peer
from tests.integration.norfab_scene import Heard, RawPeer, crowd_at, run, serving_broker
from tests.integration.norfab_watch import NorfabWatch

pytestmark = pytest.mark.peers

CONTENT = random.Random(11).randbytes(3_000_001)
INVENTORY = """\
workers:
  "*": [{service: nornir, tags: [a]}, layers/all.yaml]
  w2: [{service: netbox, tags: [a, b]}]
"""
SHARING = "filesharing-worker-1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "base"
    (root / "configs").mkdir(parents=True)
    (root / "configs/big.bin").write_bytes(CONTENT)
    (root / "hello.txt").write_text("hello\n")
    (root / "layers").mkdir()
    (root / "layers/all.yaml").write_text("where: '{{ env.get('NO_SUCH', 'here') }}'\n")
    (root / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "outside.txt").write_text("secret")
    return root


@asynccontextmanager
async def sharing_broker(root: Path, heard: Heard | None = None) -> AsyncIterator[str]:
    """Run a broker that shares `root`, in which it also keeps its own folder; return its endpoint."""
    given: dict[str, Any] = {"files": root, "inventory": root / "inventory.yaml"}
    async with serving_broker(root / "__norfab__", heard=heard, **given) as (broker, _):
        yield broker.endpoints[0]


async def asked(client: RawPeer, uuid: str, service: str, task: str, **kwargs: Any) -> tuple[int, bytes]:
    """Ask as version 0.6 does, with GET."""
    client.say(commands.Get(uuid, json.dumps({"task": task, "kwargs": kwargs}).encode(), service, "any"))
    answer = await client.hear(commands.Response, lambda response: response.uuid == uuid)
    return answer.status, answer.body


def test_our_client_fetches_files_whole(root: Path, tmp_path: Path) -> None:
    """To its cache, or to where they are wanted."""

    async def story() -> None:
        watch = NorfabWatch("C")
        async with (
            sharing_broker(root) as endpoint,
            NorfabClient(endpoint, name="c1", folder=tmp_path / "c1", tap=watch) as client,
        ):
            assert (await client.fetch("nf://configs/big.bin")).read_bytes() == CONTENT
            target = await client.fetch("nf://hello.txt", tmp_path / "got.txt")
            assert target.read_text() == "hello\n"
            for url in ("nf://../outside.txt", "nf://none", "nf://__norfab__/broker.sqlite3"):
                with pytest.raises(FetchError):
                    await client.fetch(url)
        assert not watch.faults, watch.faults

    run(story)


def test_a_fetch_outlives_the_broker(root: Path, tmp_path: Path) -> None:
    """It is killed in the middle and started again; what was fetched before is not asked for again."""

    async def story() -> None:
        content = random.Random(2).randbytes(20_000_000)
        (root / "large.bin").write_bytes(content)
        with tempfile.TemporaryDirectory(prefix="specwire-") as short:  # a path that is short enough for ipc
            broker = Party(
                "broker",
                [
                    *NORFAB,
                    "broker",
                    "--insecure",
                    "--endpoint",
                    f"ipc://{short}/b",
                    "--folder",
                    str(tmp_path / "b"),
                    "--files",
                    str(root),
                ],
                tmp_path,
            )
            await broker.start()
            try:
                async with NorfabClient(f"ipc://{short}/b", name="c1", folder=tmp_path / "c1") as client:
                    fetching = asyncio.create_task(client.fetch("nf://large.bin"))
                    while not any(
                        part.stat().st_size > 5_000_000 for part in (tmp_path / "c1").rglob("*.part")
                    ):
                        assert not fetching.done()
                        await asyncio.sleep(0.001)
                    await broker.kill()
                    assert not fetching.done()
                    await broker.start()
                    assert (await fetching).read_bytes() == content
            finally:
                await broker.kill()

    run(story)


class Reader:
    """A service whose tasks need the broker's files and inventory."""

    @task
    def digest(self, job: Job, url: str) -> str:
        """Return the SHA-256 of a shared file."""
        return hashlib.sha256(job.fetch(url).read_bytes()).hexdigest()

    @task
    def compare(self, files: list[SharedFile]) -> list[str]:
        """Return the SHA-256 of shared files."""
        return [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]

    @task
    async def measure(self, file: SharedFile) -> int:
        """Return the size of a shared file."""
        return (await file.fetched()).stat().st_size

    @task
    def inventory(self, job: Job) -> Any:
        """Return what this worker is to know."""
        return job.worker.ask("sid.service.broker", "get_inventory", name=job.worker.name)


def test_tasks_fetch_files_and_ask_for_inventory_under_curve(root: Path, tmp_path: Path) -> None:
    """Whoever proves to be a worker may; the worker inside the broker proves nothing, and serves all the same."""

    async def story() -> None:
        ring = Keyring(tmp_path / "keys")
        ring.prepare()
        ring.add(Peer(name="w2", key="", roles=("worker",), serve=("reader",)))
        given: dict[str, Any] = {
            "files": root,
            "inventory": root / "inventory.yaml",
            "security": ring.server(),
        }
        async with (
            serving_broker(root / "__norfab__", access=ring.table(), **given) as (broker, _),
            NorfabWorker(
                broker.endpoints, "w2", "reader", Reader, security=ring.peer("w2"), folder=tmp_path / "w2"
            ),
            NorfabClient(broker.endpoints, name="admin", security=ring.peer("admin")) as client,
        ):
            done = await client.run("reader", "digest", "nf://configs/big.bin", timeout=50)
            assert done.values() == {"w2": hashlib.sha256(CONTENT).hexdigest()}
            done = await client.run("reader", "compare", ["nf://configs/big.bin"], timeout=50)
            assert done.values() == {"w2": [hashlib.sha256(CONTENT).hexdigest()]}
            done = await client.run("reader", "measure", "nf://configs/big.bin", timeout=50)
            assert done.values() == {"w2": len(CONTENT)}
            failed = await client.run("reader", "measure", "nf://nosuch.bin", timeout=50)
            assert "nosuch.bin" in failed.failures["w2"]
            failed = await client.run("reader", "digest", "nf://../outside.txt", timeout=50)
            assert "'.' or '..'" in failed.failures["w2"]
            told = await client.run("reader", "inventory", timeout=50)
            assert told.values() == {"w2": {"service": "netbox", "tags": ["a", "b"], "where": "here"}}
            listed = await client.run("filesharing", "list_files", timeout=50, kwargs={"url": "nf://configs"})
            assert listed.values() == {SHARING: ["big.bin"]}

    run(story)


def test_version_06_fetches_by_question_and_answer(root: Path) -> None:
    """All pieces with one uuid, asked for together; they come in order, and the short one is the last."""

    async def story() -> None:
        async with sharing_broker(root) as endpoint, crowd_at(endpoint) as crowd:
            client = crowd.client()
            url = "nf://configs/big.bin"
            status, body = await asked(client, "f1", "fss.service.broker", "file_details", url=url)
            assert status == 200
            assert json.loads(body)["md5hash"] == hashlib.md5(CONTENT).hexdigest()
            for offset in range(0, len(CONTENT), 250_000):
                kwargs = {"url": url, "offset": offset, "chunk_size": 250_000}
                question = json.dumps({"task": "fetch_file", "kwargs": kwargs}).encode()
                client.say(commands.Get("f2", question, "fss.service.broker", "any"))
            got = b""
            while len(got) < len(CONTENT):
                answer = await client.hear(commands.Response, lambda response: response.uuid == "f2")
                assert answer.status == 200
                got += answer.body
            assert got == CONTENT
            status, body = await asked(
                client, "f3", "fss.service.broker", "fetch_file", url="nf://../outside.txt"
            )
            assert status == 400 and b"secret" not in body

    run(story)


def test_a_client_streams_from_the_worker_inside_the_broker(root: Path) -> None:
    """As version 0.25 does: 202, 201, a piece for each offset that is said, and the result."""

    async def story() -> None:
        async with sharing_broker(root) as endpoint, crowd_at(endpoint) as crowd:
            client = crowd.client()
            kwargs = {
                "url": "nf://configs/big.bin",
                "offset": 0,
                "chunk_size": 1_000_000,
                "chunk_timeout": 50,
            }
            client.post("s1", service="filesharing", target="any", task="fetch_file", kwargs=kwargs)
            assert (await client.answer("s1", 202))["workers"] == [SHARING]
            got = (await client.hear(commands.Stream)).body
            for offset in (1_000_000, 2_000_000, 3_000_000):
                client.say(commands.Put("s1", json.dumps({"offset": offset}).encode(), "filesharing", "any"))
                got += (await client.hear(commands.Stream)).body
            assert got == CONTENT
            assert (await client.answer("s1", 200))[SHARING]["result"] is True

    run(story)


def test_nobody_takes_the_name_of_the_worker_inside(root: Path) -> None:
    """What comes with its routing id is dropped, and it goes on."""

    async def story() -> None:
        heard = Heard()
        async with sharing_broker(root, heard) as endpoint, crowd_at(endpoint) as crowd:
            forger = crowd.worker(SHARING)
            forger.say(commands.Ready("filesharing"), commands.Disconnect("filesharing"))
            forger.say_frames(b"", b"NFPW01", b"what is this")
            await heard.until(Dropped, lambda _: len(heard.of(Dropped)) == 3)
            assert {event.kind for event in heard.of(Dropped)} == {"forged"}
            client = crowd.client()
            client.post("d1", service="filesharing", task="list_files", kwargs={"url": "nf://configs"})
            assert (await client.answer("d1", 200))[SHARING]["result"] == ["big.bin"]

    run(story)


def test_who_asks_for_much_and_reads_nothing_costs_little(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it is dropped beyond a bound, and the others are served meanwhile."""
    monkeypatch.setattr("specwire.runtime.norfab.serve.entrance.WAITING_OCTETS", 40 << 20)

    async def story() -> None:
        given: dict[str, Any] = {"files": root, "inventory": root / "inventory.yaml"}
        async with (
            serving_broker(root / "__norfab__", **given) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            NorfabClient(broker.endpoints, name="c1", folder=tmp_path / "c1") as client,
        ):
            greedy = crowd.client("greedy", high_water=4)  # else its own libzmq would take everything
            await greedy.manage("show_broker")
            greedy.pause()
            kwargs = {"url": "nf://configs/big.bin", "offset": 0, "chunk_size": 1 << 20}
            body = json.dumps({"task": "fetch_file", "kwargs": kwargs}).encode()
            fetching = asyncio.create_task(client.fetch("nf://configs/big.bin"))
            for number in range(1_000):
                greedy.say(commands.Get(f"g{number}", body, "fss.service.broker", "any"))
            assert (await fetching).read_bytes() == CONTENT
            while not broker.counters.undelivered:
                await asyncio.sleep(0.01)

    run(story)


def test_a_restarted_broker_shares_again(root: Path) -> None:
    """Its worker begins anew with it."""

    async def story() -> None:
        heard = Heard()
        async with sharing_broker(root, heard) as endpoint:
            async with crowd_at(endpoint) as crowd:
                assert (await crowd.client().manage("restart")) == {"status": "restarting"}
                await heard.until(Began, lambda _: len(heard.of(Began)) == 2)
            async with crowd_at(endpoint) as crowd:
                client = crowd.client("c2")
                client.post("d1", service="filesharing", task="list_files", kwargs={"url": "nf://configs"})
                assert (await client.answer("d1", 200))[SHARING]["result"] == ["big.bin"]

    run(story)


def test_workers_are_told_what_they_are_to_know(root: Path) -> None:
    """By MMI and by GET; with the layers of nobody else, and with what the file says now."""

    async def story() -> None:
        async with sharing_broker(root) as endpoint, crowd_at(endpoint) as crowd:
            client = crowd.client("w1-NFPClient")
            sid = "sid.service.broker"
            for name, wanted in (
                ("w2", {"service": "netbox", "tags": ["a", "b"], "where": "here"}),
                ("w1", {"service": "nornir", "tags": ["a"], "where": "here"}),
            ):
                status, body = await asked(client, f"i-{name}", sid, "get_inventory", name=name)
                assert (status, json.loads(body)) == (200, wanted)
            (root / "layers/all.yaml").write_text("where: [\n")
            status, body = await asked(client, "i-3", sid, "get_inventory", name="w1")
            assert status == 500 and "layers/all.yaml:2:1" in json.loads(body)["error"]
            shown = await client.manage("show_broker_inventory")
            assert list(shown["workers"]) == ["*", "w2"]

    run(story)


def test_a_broken_inventory_is_told_at_the_start(root: Path) -> None:
    """The broker runs all the same."""

    async def story() -> None:
        (root / "inventory.yaml").write_text("workers:\n  w1: [none.yaml]\n")
        heard = Heard()
        async with sharing_broker(root, heard):
            told = await heard.until(Noticed)
        assert "inventory.yaml:2:8: 'none.yaml' cannot be read" in told.sentence

    run(story)


def test_a_folder_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    """A slip in its path would else be found by the first client."""

    async def story() -> None:
        heard = Heard()
        async with serving_broker(tmp_path / "b", heard=heard, files=tmp_path / "none"):
            told = await heard.until(Noticed)
        assert told.sentence.endswith("none cannot be opened: No such file or directory")

    run(story)


def test_the_real_client_fetches_files(root: Path, tmp_path: Path) -> None:
    """Version 0.25 from PyPI: small ones, large ones on its credit, and what it must not have."""
    try:
        python = python_with_norfab()
    except NotInstallableError as error:
        pytest.skip(str(error))

    async def story() -> None:
        async with (
            sharing_broker(root) as endpoint,
            real_peer(python, "client", tmp_path / "real", endpoint, "real1") as client,
        ):
            text = await client.call("fetch_file", url="nf://hello.txt", read=True)
            assert text == {"status": "200", "content": "hello\n", "error": None}
            big = await client.call("fetch_file", url="nf://configs/big.bin", timeout=50)
            assert big["status"] == "200", big
            assert Path(big["content"]).read_bytes() == CONTENT
            for url in ("nf://none", "nf://__norfab__/broker.sqlite3"):
                assert (await client.call("fetch_file", url=url))["status"] == "404"

    run(story)
