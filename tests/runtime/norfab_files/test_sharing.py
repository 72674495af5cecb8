"""``filesharing`` at a broker's engine, asked as deployed clients ask it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.actions import Action, Send
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Disconnect,
    Event,
    Get,
    Mmi,
    Post,
    Put,
    Response,
    Stream,
)
from specwire.runtime.norfab.files import FileSharing

CONTENT = random.Random(5).randbytes(1_000_000)
NAME = "filesharing-worker-1"


class Scene:
    """An engine with the worker in it and one client; everything is committed at once."""

    def __init__(self, root: Path) -> None:
        self.now = 1000.0
        self.engine = BrokerEngine(now=self.now)
        self.sharing = FileSharing(root, lambda command: self.perform(self.from_worker(command)))
        self.heard: asyncio.Queue[Command] = asyncio.Queue()

    def from_worker(self, command: Command) -> list[Action]:
        return self.engine.receive(self.sharing.peer, "worker", command, self.now)

    def say(self, command: Command) -> None:
        """Say it as the client."""
        self.perform(self.engine.receive(b"cli", "client", command, self.now))

    def perform(self, actions: list[Action]) -> None:
        """Do what the engine wants."""
        for action in actions:
            if isinstance(action, Commit):
                self.perform(self.engine.stored(action.ticket, self.now))
            elif isinstance(action, Send) and action.peer == self.sharing.peer:
                self.sharing.receive(action.command)
            elif isinstance(action, Send):
                self.heard.put_nowait(action.command)

    async def hear(self) -> Command:
        """Return what the client is told next."""
        async with asyncio.timeout(60):
            return await self.heard.get()

    async def run(self, uuid: str, task: str, target: str = "all", **kwargs: Any) -> dict[str, Any]:
        """Have a job done that does not stream; return the worker's entry."""
        self.say(Post(uuid, json.dumps({"task": task, "kwargs": kwargs}).encode(), "filesharing", target))
        statuses = []
        while True:
            command = await self.hear()
            assert isinstance(command, Response) and command.uuid == uuid
            statuses.append(command.status)
            if command.status == 200:
                assert statuses == [202, 201, 200]
                entry: dict[str, Any] = json.loads(command.body)[NAME]
                return entry

    async def stream(
        self, uuid: str, url: str, size: int, *, chunk: int, ahead: int
    ) -> tuple[bytes, dict[str, Any]]:
        """Fetch as version 0.25 does: the first piece comes, the others are asked for, some ahead."""
        body = {"task": "fetch_file", "kwargs": {"url": url, "offset": 0, "chunk_size": chunk}}
        self.say(Post(uuid, json.dumps(body).encode(), "filesharing", json.dumps([NAME])))
        offsets = iter(range(chunk, size, chunk))
        credit, pieces = ahead, []
        while True:
            command = await self.hear()
            match command:
                case Stream():
                    pieces.append(command.body)
                    credit += 1
                    while credit and (offset := next(offsets, None)) is not None:
                        self.say(
                            Put(
                                uuid,
                                json.dumps({"offset": offset}).encode(),
                                "filesharing",
                                json.dumps([NAME]),
                            )
                        )
                        credit -= 1
                case Response(status=200):
                    return b"".join(pieces), json.loads(command.body)[NAME]
                case Response(status=201 | 202) | Event():
                    continue
                case _:
                    raise AssertionError(command)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "big.bin").write_bytes(CONTENT)
    (root / "sub/small.txt").write_text("hello\n")
    (root / "empty").write_bytes(b"")
    return root


def play(root: Path, part: Callable[[Scene], Awaitable[None]]) -> None:
    """Play a scene from the worker's registration to its end."""

    async def run() -> None:
        scene = Scene(root)
        scene.sharing.start()
        await asyncio.sleep(0)
        assert list(scene.engine.registry.workers) == [NAME]
        try:
            await part(scene)
        finally:
            await scene.sharing.close()

    asyncio.run(run())


def test_files_are_listed_described_and_walked(root: Path) -> None:
    """With the values of the deployed worker."""

    async def part(scene: Scene) -> None:
        assert (await scene.run("a", "list_files", url="nf://"))["result"] == ["big.bin", "empty", "sub"]
        walked = (await scene.run("b", "walk", url="nf://"))["result"]
        assert walked == ["nf://big.bin", "nf://empty", "nf://sub/small.txt"]
        entry = await scene.run("c", "file_details", url="nf://sub/small.txt")
        assert not entry["failed"] and entry["errors"] == []
        assert entry["result"]["md5hash"] == "b1946ac92492d2347c6235b4d2611184"
        assert (entry["result"]["size_bytes"], entry["result"]["exists"]) == (6, True)
        assert (await scene.run("d", "get_status"))["result"] == "OK"

    play(root, part)


def test_details_of_several_files_are_told_each_for_itself(root: Path) -> None:
    """One that is not there, or not to be had, spoils no other."""

    async def part(scene: Scene) -> None:
        urls = ["nf://empty", "nf://none", "nf://../x"]
        entry = await scene.run("a", "file_details", url=urls)
        assert [entry["result"][url]["failed"] for url in urls] == [False, True, True]
        assert len(entry["errors"]) == 2
        assert entry["result"]["nf://none"]["result"] == {
            "md5hash": None,
            "size_bytes": None,
            "exists": False,
        }

    play(root, part)


@pytest.mark.parametrize("ahead", [1, 10])
def test_a_file_is_streamed_on_the_clients_credit(root: Path, ahead: int) -> None:
    """One piece comes by itself, each further one when the client has said its offset."""

    async def part(scene: Scene) -> None:
        content, entry = await scene.stream("a", "nf://big.bin", len(CONTENT), chunk=64_000, ahead=ahead)
        assert hashlib.md5(content).hexdigest() == hashlib.md5(CONTENT).hexdigest()
        assert entry["result"] is True and not entry["failed"]
        small, _ = await scene.stream("b", "nf://sub/small.txt", 6, chunk=256_000, ahead=10)
        assert small == b"hello\n"
        empty, entry = await scene.stream("c", "nf://empty", 0, chunk=256_000, ahead=10)
        assert empty == b"" and entry["result"] is True

    play(root, part)


def test_a_client_that_falls_silent_ends_the_job(root: Path) -> None:
    """It says why; nothing stays open."""

    async def part(scene: Scene) -> None:
        body = {"task": "fetch_file", "kwargs": {"url": "nf://big.bin", "chunk_timeout": 0.01}}
        scene.say(Post("a", json.dumps(body).encode(), "filesharing", "any"))
        heard = [await scene.hear() for _ in range(4)]
        assert [type(command) for command in heard] == [Response, Response, Stream, Response]
        last = heard[-1]
        assert isinstance(last, Response)
        entry = json.loads(last.body)[NAME]
        assert entry["failed"] and "which offset comes next" in entry["errors"][0]

    play(root, part)


def test_a_file_that_changes_meanwhile_is_not_streamed_on(root: Path) -> None:
    """No client gets the end of another file."""

    async def part(scene: Scene) -> None:
        body = {"task": "fetch_file", "kwargs": {"url": "nf://big.bin", "chunk_timeout": 60}}
        scene.say(Post("a", json.dumps(body).encode(), "filesharing", "any"))
        while not isinstance(await scene.hear(), Stream):
            pass
        (root / "big.bin").write_bytes(CONTENT[::-1])
        scene.say(Put("a", b'{"offset": 256000}', "filesharing", "any"))
        last = await scene.hear()
        assert isinstance(last, Response)
        entry = json.loads(last.body)[NAME]
        assert entry["failed"] and "has changed" in entry["errors"][0]

    play(root, part)


@pytest.mark.parametrize(
    ("task", "kwargs", "words"),
    [
        ("fetch_file", {"url": "nf://../outside"}, "empty component, '.' or '..'"),
        ("fetch_file", {"url": "nf://none"}, "is not there"),
        ("fetch_file", {"url": "nf://big.bin", "chunk_size": 10**12}, "chunk_size is 1 to"),
        ("fetch_file", {"url": "nf://big.bin", "offset": -1}, "offset"),
        ("fetch_file", {"url": ["nf://big.bin"]}, "takes one url"),
        ("walk", {}, "url"),
        ("file_details", {"url": ["nf://a"] * 1001}, "url"),
        ("remove", {"url": "nf://big.bin"}, "there is no task"),
    ],
)
def test_what_cannot_be_done_fails_with_words(
    root: Path, task: str, kwargs: dict[str, Any], words: str
) -> None:
    """The job ends; the worker goes on."""

    async def part(scene: Scene) -> None:
        entry = await scene.run("a", task, **kwargs)
        assert entry["failed"] and words in entry["errors"][0]
        assert not (await scene.run("b", "get_status"))["failed"]

    play(root, part)


def test_bodies_and_credit_that_cannot_be_read_do_no_harm(root: Path) -> None:
    """Nor do commands about jobs that are not there."""

    async def part(scene: Scene) -> None:
        for body in (b"\xff", b"{}", b"[" * 100_000, b'{"task":5}'):
            scene.sharing.receive(Post("x", body, client=b"cli"))
            for _ in range(3):
                scene.sharing.receive(Put("x", b"[" * 100_000, client=b"cli"))
        for command in (Get("y"), Delete("y"), Put("y", b"{}"), Mmi("y", b"{}", client=b"cli")):
            scene.sharing.receive(command)
        entry = await scene.run("b", "get_status")
        assert entry["result"] == "OK"

    play(root, part)


def test_a_job_that_is_deleted_ends(root: Path) -> None:
    """While it waits for its client."""

    async def part(scene: Scene) -> None:
        body = {"task": "fetch_file", "kwargs": {"url": "nf://big.bin", "chunk_timeout": 60}}
        scene.say(Post("a", json.dumps(body).encode(), "filesharing", "any"))
        while not isinstance(await scene.hear(), Stream):
            pass
        scene.say(Delete("a", b"{}", "filesharing", "any"))
        answers = [await scene.hear(), await scene.hear()]
        assert [command.status for command in answers if isinstance(command, Response)] == [400, 200]
        content, _ = await scene.stream("b", "nf://big.bin", len(CONTENT), chunk=500_000, ahead=1)
        assert content == CONTENT

    play(root, part)


def test_it_registers_again_when_it_is_told_to(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`disconnect` in management means every worker."""
    monkeypatch.setattr("specwire.runtime.norfab.files.sharing.READY_AGAIN_S", 0.0)

    async def part(scene: Scene) -> None:
        scene.say(Mmi("a", b'{"task":"disconnect"}', "mmi.service.broker"))
        while scene.sharing.name in scene.engine.registry.workers:
            await asyncio.sleep(0)
        while scene.sharing.name not in scene.engine.registry.workers:
            await asyncio.sleep(0)
        scene.sharing.receive(Disconnect())
        while not scene.heard.empty():
            scene.heard.get_nowait()
        assert (await scene.run("b", "get_status"))["result"] == "OK"

    play(root, part)


def test_it_is_alive_as_long_as_the_broker_says_so(root: Path) -> None:
    """A sign of life is answered with one."""

    async def part(scene: Scene) -> None:
        expiry_s = scene.engine.settings.expiry_s
        for _ in range(10):
            scene.now += expiry_s / 2
            scene.perform(scene.engine.tick(scene.now))
            await asyncio.sleep(0)
        assert scene.sharing.name in scene.engine.registry.workers

    play(root, part)
