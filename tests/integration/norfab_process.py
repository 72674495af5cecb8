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
from typing import Any

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
    """Does every job once, across broker restarts, and answers for the jobs that it has.

    Attributes:
        runs: how often each job was begun.
        results: the jobs that ended, with their results.
    """

    def __init__(self, crowd: Crowd, name: str = "w1", service: str = "svc") -> None:
        self._crowd, self._name, self._service = crowd, name, service
        self.runs: Counter[str] = Counter()
        self.results: dict[str, bytes] = {}
        self._open: list[commands.Post] = []
        self.limit = sys.maxsize
        """Jobs are ended up to this count; further ones are taken and stay open."""

    async def work(self) -> None:
        """Work until cancelled."""
        while True:
            peer = await connected(self._crowd, self._name, worker=True)
            try:
                peer.say(commands.Ready(self._service))
                while True:
                    self._take(peer, await peer.hear(commands.Command))
                    while self._open and len(self.results) < self.limit:
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
    """Posts each job until it is acknowledged, then asks for it until it has ended, across broker restarts."""

    def __init__(self, crowd: Crowd, uuids: list[str], target: str = "any") -> None:
        self._crowd, self._target = crowd, target
        self.waiting = dict.fromkeys(uuids)
        self.acknowledged: set[str] = set()
        self.reported: set[str] = set()
        """Jobs of which progress arrived."""
        self.ended: dict[str, tuple[int, Any]] = {}

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
                    self._take(await peer.hear(commands.Command))
            except AssertionError:  # the connection is lost
                peer.close()

    def _take(self, reply: commands.Command) -> None:
        match reply:
            case commands.Event(uuid=uuid):
                self.reported.add(uuid)
            case commands.Response(uuid=uuid, status=status, body=body):
                self.acknowledged.add(uuid)
                if status not in (201, 202, 300) and uuid in self.waiting:
                    del self.waiting[uuid]
                    self.ended[uuid] = (status, json.loads(body))
