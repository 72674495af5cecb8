"""`specwire norfab broker` as a process, which can be killed, and scripted peers that outlive it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from specwire.runtime.norfab import commands
from tests.integration.filemq_process import PeerProcess
from tests.integration.norfab_scene import Crowd, RawPeer, result

COMMAND = [sys.executable, "-m", "specwire.runtime.cli.main", "norfab"]


async def start(*arguments: str) -> PeerProcess:
    """Start `specwire norfab` with these arguments; the caller sees to its end."""
    return PeerProcess(
        await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    )


@asynccontextmanager
async def running_broker(endpoint: str, folder: Path, *arguments: str) -> AsyncIterator[PeerProcess]:
    """Run a broker until it listens, and kill it in the end if it still runs."""
    settings = () if "--keepalive" in arguments else ("--keepalive", "0.5")
    security = () if "--access" in arguments else ("--insecure",)
    broker = await start(
        "broker", "--endpoint", endpoint, "--folder", str(folder), *security, *settings, *arguments
    )
    try:
        await broker.line_with("listening on")
        yield broker
    finally:
        await broker.end()


async def connected(crowd: Crowd, name: str, *, worker: bool) -> RawPeer:
    """Return a peer that has a connection, made again until there is somebody to connect to."""
    while True:
        peer = crowd.worker(name) if worker else crowd.client(name)
        peer.say(commands.Open())
        try:
            await peer.hear(commands.Open)
        except AssertionError:
            peer.close()
            await asyncio.sleep(0.02)
        else:
            return peer


class DiligentWorker:
    """Does every job once, whatever becomes of the broker, and answers for what it has.

    Attributes:
        runs: how often each job was begun.
        results: the jobs that ended, with their results.
        patience: how many jobs are done before the next word of the broker is listened to.
    """

    def __init__(self, crowd: Crowd, name: str = "w1", service: str = "svc") -> None:
        self._crowd, self._name, self._service = crowd, name, service
        self.runs: Counter[str] = Counter()
        self.results: dict[str, bytes] = {}
        self._open: list[commands.Post] = []
        self.held = False
        """While it is set, jobs are taken and not done."""

    async def work(self) -> None:
        """Work until cancelled."""
        while True:
            peer = await connected(self._crowd, self._name, worker=True)
            try:
                peer.say(commands.Ready(self._service))
                while True:
                    self._take(peer, await peer.hear(commands.Command))
                    while self._open and not self.held:
                        self._end(peer, self._open.pop(0))
            except AssertionError:  # the connection is lost
                peer.close()

    def _take(self, peer: RawPeer, command: commands.Command) -> None:
        match command:
            case commands.Post(uuid=uuid, client=client):
                if uuid not in self.runs:
                    self.runs[uuid] += 1
                    self._open.append(command)
                peer.say(commands.Response(uuid, 201, b'{"worker":""}', client=client))
            case commands.Get(uuid=uuid, client=client):
                status = 200 if uuid in self.results else 300 if uuid in self.runs else 404
                peer.say(commands.Response(uuid, status, self.results.get(uuid, b"{}"), client=client))
            case commands.Keepalive():
                peer.say(commands.Keepalive(self._service))

    def _end(self, peer: RawPeer, job: commands.Post) -> None:
        self.results[job.uuid] = body = result(self._name, job.uuid)
        peer.say(commands.Response(job.uuid, 200, body, client=job.client))


class DiligentClient:
    """Posts jobs until each is acknowledged, and asks for each until it has ended, whatever becomes of the broker."""

    def __init__(self, crowd: Crowd, uuids: list[str], target: str = "any") -> None:
        self._crowd, self._target = crowd, target
        self.waiting = dict.fromkeys(uuids)
        self.acknowledged: set[str] = set()
        self.ended: dict[str, tuple[int, object]] = {}

    async def work(self) -> None:
        """Work until all have ended."""
        while self.waiting:
            peer = await connected(self._crowd, "c1", worker=False)
            try:
                for uuid in self.waiting:
                    if uuid in self.acknowledged:
                        peer.say(commands.Get(uuid, b"{}", "svc", self._target))
                    else:
                        peer.post(uuid, target=self._target)
                while self.waiting:
                    self._take(await peer.hear(commands.Response))
            except AssertionError:  # the connection is lost
                peer.close()

    def _take(self, reply: commands.Response) -> None:
        self.acknowledged.add(reply.uuid)
        if reply.status not in (201, 202, 300) and reply.uuid in self.waiting:
            del self.waiting[reply.uuid]
            self.ended[reply.uuid] = (reply.status, json.loads(reply.body))
