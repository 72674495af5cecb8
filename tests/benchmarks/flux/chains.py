"""The processes that are asked: brokers as the command starts them, one alone and a chain, and bare sockets likewise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.flux.bare import READY
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


@asynccontextmanager
async def chains() -> AsyncIterator[Stage]:
    """Run them all."""
    async with full_tree(SIZE, 1) as (instance, _), full_tree(1, 1) as (alone, _):
        folder, brokers = instance.folder, instance.brokers
        with ExitStack() as stack:
            local = stack.enter_context(_bare("local", folder / "bare-local"))
            relays = [
                stack.enter_context(_bare("relay", rank, folder, SIZE, wait=False)) for rank in range(SIZE)
            ]
            for relay in relays:
                _await_ready(relay)
            yield Stage(
                str(folder / "bare-local"),
                local.pid,
                alone.uri(0).removeprefix("local://"),
                alone.brokers[0].pid,
                str(folder / "bare"),
                tuple(relay.pid for relay in relays),
                tuple(instance.uri(rank).removeprefix("local://") for rank in range(SIZE)),
                tuple(brokers[rank].pid for rank in range(SIZE)),
            )


@contextmanager
def _bare(*arguments: object, wait: bool = True) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.benchmarks.flux.bare", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        if wait:
            _await_ready(process)
        yield process


def _await_ready(process: subprocess.Popen[str]) -> None:
    if process.stdout is None or process.stdout.readline() != f"{READY}\n":
        raise SystemExit("a bare process has ended")
