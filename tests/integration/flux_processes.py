"""`specwire flux broker` as processes, which can be frozen and killed; and the command that starts them all."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.topology import Tree
from specwire.runtime.transport.keys import make_keys
from tests.integration.filemq_process import PeerProcess

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "specwire.runtime.cli.main", "flux"]
STOP_S = 60.0
"""How long all brokers may take to stop on a machine that has other work."""
DESK = "--service=desk=tests.integration.flux_desk:Desk"


async def until_full(handle: FluxHandle) -> None:
    """Return when the subtree of the handle's broker is full."""
    async for reply in handle.stream("overlay.health"):
        if reply.json()["status"] == "full":
            return


async def until_running(handle: FluxHandle) -> None:
    """Return when the handle's broker has a parent.

    A tree is full as soon as the parent has let the last broker in; that broker learns it a moment later.
    """
    await handle.rpc("state-machine.wait")


class Processes:
    """The brokers of one instance, each a process.

    Attributes:
        brokers: those that run, by rank.
    """

    def __init__(self, folder: Path, tree: Tree, options: Sequence[str]) -> None:
        self.folder, self.tree, self._options = folder, tree, options
        self.brokers: dict[int, PeerProcess] = {}
        self._endpoints = {rank: f"ipc://{folder}/tree-{rank}" for rank in range(tree.size)}
        make_keys(folder / "keys", "instance")

    def uri(self, rank: int) -> str:
        """Where clients of a rank connect to."""
        return f"local://{self.folder}/local-{rank}"

    async def start(self, rank: int, *, within: Sequence[str] = (), bind: str | None = None) -> PeerProcess:
        """Start a broker and return it when it listens.

        Args:
            within: a command that runs the broker.
            bind: where its children connect to; a port ``*`` is asked for.
        """
        above = self.tree.parent(rank)
        broker = self.brokers[rank] = PeerProcess(
            await asyncio.create_subprocess_exec(
                *within,
                *COMMAND,
                "broker",
                *(f"--rank={rank}", f"--size={self.tree.size}", f"--fanout={self.tree.fanout}"),
                *(f"--local={self.folder}/local-{rank}", f"--keys={self.folder}/keys"),
                *([f"--bind={bind or self._endpoints[rank]}"] if self.tree.children(rank) else []),
                *([] if above is None else [f"--parent={self._endpoints[above]}"]),
                *self._options,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                cwd=ROOT,
            )
        )
        line = await broker.line_with("listening on")
        if bind is not None:
            self._endpoints[rank] = line.rpartition(" ")[2].strip()
        return broker

    async def kill(self, rank: int) -> None:
        """End a broker as `kill -9` does."""
        await self.brokers.pop(rank).kill()


@asynccontextmanager
async def processes(size: int, fanout: int, *options: str) -> AsyncIterator[Processes]:
    """Have a place for the processes of an instance; those that are left in the end are asked to stop."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        instance = Processes(Path(folder), Tree(size, fanout), options)
        try:
            yield instance
            async with asyncio.timeout(STOP_S):
                await asyncio.gather(*(broker.stop() for broker in instance.brokers.values()))
        finally:
            for broker in instance.brokers.values():
                await broker.end()


@asynccontextmanager
async def full_tree(size: int, fanout: int, *options: str) -> AsyncIterator[tuple[Processes, FluxHandle]]:
    """Run an instance, and a client of rank 0, until the tree is full."""
    async with processes(size, fanout, *options) as instance:
        await asyncio.gather(*(instance.start(rank) for rank in range(size)))
        async with connect(instance.uri(0)) as handle:
            await until_full(handle)
            yield instance, handle


async def start_command(*arguments: str, command: str = "start") -> asyncio.subprocess.Process:
    """Run `specwire flux start`, or another command; the caller sees to its end."""
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        command,
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )


async def until_ended(pids: Sequence[int]) -> None:
    """Return when none of these processes, which are others' children, is there any more."""
    loop = asyncio.get_running_loop()
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
