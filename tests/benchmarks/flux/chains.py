"""The processes that are asked: brokers as the command starts them, one alone and a chain, and bare sockets likewise."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.flux.bare import READY
from tests.benchmarks.flux.watching import START_S, Watch
from tests.integration.filemq_process import PeerProcess
from tests.integration.flux_processes import full_tree

SIZE = 3
ROOT = Path(__file__).parents[3]


class Stage(NamedTuple):
    """Paths of UNIX sockets, and the processes behind them: first what stands alone, then the chains, by rank."""

    bare_local: str
    bare_local_pid: int
    our_local: str
    our_local_pid: int
    bare: str
    bare_pids: tuple[int, ...]
    ours: tuple[str, ...]
    our_pids: tuple[int, ...]
    watch: Watch


@asynccontextmanager
async def chains() -> AsyncIterator[Stage]:
    """Run them all; raises SystemExit where they are not all there in `START_S`."""
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(START_S):
                stage = await _start(stack)
        except TimeoutError:
            raise SystemExit(f"not all processes were ready in {START_S:g} s") from None
        yield stage


async def _start(stack: AsyncExitStack) -> Stage:
    instance, _ = await stack.enter_async_context(full_tree(SIZE, 1))
    alone, _ = await stack.enter_async_context(full_tree(1, 1))
    folder, brokers = instance.folder, instance.brokers
    local = await _bare(stack, "local", folder / "bare-local")
    relays = [await _bare(stack, "relay", rank, folder, SIZE) for rank in range(SIZE)]
    await asyncio.gather(*(process.line_with(READY) for process in (local, *relays)))
    return Stage(
        str(folder / "bare-local"),
        local.pid,
        alone.uri(0).removeprefix("local://"),
        alone.brokers[0].pid,
        str(folder / "bare"),
        tuple(relay.pid for relay in relays),
        tuple(instance.uri(rank).removeprefix("local://") for rank in range(SIZE)),
        tuple(brokers[rank].pid for rank in range(SIZE)),
        Watch(
            {
                "bare local": local,
                "broker alone": alone.brokers[0],
                **{f"relay {rank}": relay for rank, relay in enumerate(relays)},
                **{f"broker {rank}": broker for rank, broker in brokers.items()},
            }
        ),
    )


async def _bare(stack: AsyncExitStack, *arguments: object) -> PeerProcess:
    """Start a bare process, which ends with its standard input: with this process, whatever becomes of it."""
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.flux.bare", *map(str, arguments)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    process = PeerProcess(started)
    stack.push_async_callback(process.end)
    return process
