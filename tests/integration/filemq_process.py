"""`specwire filemq` as a process, whose log can be waited for, and which can be frozen and killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

COMMAND = [sys.executable, "-m", "specwire.runtime.cli.main", "filemq"]


class PeerProcess:
    """One running `specwire filemq`; `lines` is its log so far, standard error line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.lines: list[str] = []
        self.pid = process.pid
        self._process = process
        self._news = asyncio.Condition()
        self._ended = False
        self._reading = asyncio.create_task(self._read())

    async def line_with(self, text: str) -> str:
        """Return the first line of the log that holds `text`, which may be there already."""
        async with self._news:
            await self._news.wait_for(lambda: self._ended or self._find(text) is not None)
        line = self._find(text)
        assert line is not None, f"the process ended without saying {text!r}:\n{''.join(self.lines[-20:])}"
        return line

    async def until_lines(self, text: str, times: int) -> None:
        """Return once so many lines of the log hold `text`, or the process has ended."""
        async with self._news:
            await self._news.wait_for(
                lambda: self._ended or sum(text in line for line in self.lines) >= times
            )

    def freeze(self) -> None:
        """Stop the process where it is, as seen from outside: it holds everything, and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        """End the process as `kill -9` does, and wait until everything that it started has ended too."""
        self._process.kill()
        assert await self._process.wait() == -signal.SIGKILL
        await self._reading

    async def stop(self) -> None:
        """Ask the process to stop, and see that it does so without a fault."""
        self._process.send_signal(signal.SIGTERM)
        status = await self._process.wait()
        await self._reading
        assert status == 0, "".join(self.lines[-20:])

    async def until_ended(self) -> int:
        """Return the status with which the process has ended by itself."""
        status = await self._process.wait()
        await self._reading
        return status

    async def end(self) -> None:
        """Kill the process where it still runs."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._reading

    def _find(self, text: str) -> str | None:
        return next((line for line in self.lines if text in line), None)

    async def _read(self) -> None:
        assert self._process.stderr is not None
        try:
            async for line in self._process.stderr:
                async with self._news:
                    self.lines.append(line.decode())
                    self._news.notify_all()
        finally:
            async with self._news:
                self._ended = True
                self._news.notify_all()


async def start(*arguments: str, wrapper: Sequence[str] = ()) -> PeerProcess:
    """Start `specwire filemq` with these arguments, by another command if there is one; the caller sees to its end."""
    return PeerProcess(
        await asyncio.create_subprocess_exec(
            *wrapper, *COMMAND, *arguments, stderr=asyncio.subprocess.PIPE, stdin=subprocess.DEVNULL
        )
    )


@asynccontextmanager
async def running(*arguments: str, wrapper: Sequence[str] = ()) -> AsyncIterator[PeerProcess]:
    """Run `specwire filemq`, and kill it in the end if it still runs."""
    peer = await start(*arguments, wrapper=wrapper)
    try:
        yield peer
    finally:
        await peer.end()


@contextmanager
def kept_endpoint() -> Iterator[str]:
    """An endpoint that nobody else on this machine takes, for a server that is started more than once.

    The socket is bound and never listens, so another with SO_REUSEADDR (libzmq sets it) can be bound
    beside it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{holder.getsockname()[1]}"
