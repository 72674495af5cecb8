"""The `specwire flux` commands as processes, in a tree of broker processes of which one is killed."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import socket
import sys

import pytest

from tests.integration.flux_processes import COMMAND, ROOT, Processes, full_tree

TIMEOUT_S = 120.0

pytestmark = pytest.mark.peers


class Commands:
    """Runs commands that talk to rank 0."""

    def __init__(self, instance: Processes) -> None:
        self._environment = {**os.environ, "FLUX_URI": instance.uri(0)}

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a command."""
        return await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env=self._environment,
        )

    async def run(self, *arguments: str) -> tuple[int | None, str, str]:
        """Run a command to its end; return its exit status, what it has printed, and what went wrong."""
        process = await self.start(*arguments)
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


def test_a_tree_that_loses_a_broker() -> None:
    """Rank 1 is between 0 and 2, and takes 2 with it."""
    host = socket.gethostname()

    async def story() -> None:
        async with full_tree(3, 1) as (instance, _):
            commands = Commands(instance)
            status, out, err = await commands.run("ping", "--count=2", "--interval=1ms", "2")
            assert (status, err) == (0, "")
            hop = "[0-9a-f]{8}"
            line = rf"2!broker\.ping pad=0 seq=\d time=\d+\.\d{{3}} ms \({'!'.join([hop] * 5)}\)"
            assert re.fullmatch(rf"flux-ping 2!broker\n({line}\n){{2}}", out), out
            assert await commands.run("overlay", "status") == (
                0,
                f"0 {host}: full\n└─ 1 {host}: full\n   └─ 2 {host}: full\n",
                "",
            )
            await instance.kill(1)
            assert (await commands.run("overlay", "status", "--wait", "degraded", "--summary"))[
                1
            ] == "degraded\n"
            assert (await commands.run("overlay", "status"))[1] == (
                f"0 {host}: degraded\n└─ 1 {host}: lost has disconnected\n   └─ 2 {host}: lost\n"
            )
            assert (await commands.run("overlay", "errors"))[1] == f"{host} (rank 1): has disconnected\n"
            status, out, err = await commands.run("ping", "--count=1", "2")
            assert (status, out) == (1, "flux-ping 2!broker\n")
            assert err.startswith("specwire: 2!broker.ping: No route to host; ")
            log = (await commands.run("dmesg"))[1]
            assert re.search(rf"broker\.err\[0\]: rank 1 \([0-9a-f]{{8}}, {host}\) is lost: ", log)
            for rank in range(3):
                assert f"broker.info[{rank}]: rank {rank} is in the tree" in log

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))


def test_events_between_two_commands() -> None:
    """The one that listens ends by itself when it has enough, the pulse of the tree among them."""

    async def story() -> None:
        async with full_tree(1, 0) as (instance, _):
            commands = Commands(instance)
            listening = await commands.start("event", "sub", "--count=3")
            while listening.returncode is None:
                assert (await commands.run("event", "pub", "--synchronous", "my.topic", '{"n":1}'))[0] == 0
            out, err = await listening.communicate()
            assert (listening.returncode, err) == (0, b"")
            assert 'my.topic\t{"n":1}' in out.decode().splitlines()

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))


def test_commands_that_go_on_end_by_an_interrupt_without_a_word() -> None:
    async def interrupt(process: asyncio.subprocess.Process) -> None:
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert (process.returncode, err) == (130, b"")

    async def story() -> None:
        async with full_tree(1, 0) as (instance, handle):
            commands = Commands(instance)
            pinging = await commands.start("ping", "--interval=1ms", "0")
            assert pinging.stdout is not None
            assert await pinging.stdout.readline() == b"flux-ping 0!broker\n"
            assert (await pinging.stdout.readline()).startswith(b"0!broker.ping pad=0 seq=")
            await interrupt(pinging)

            await handle.rpc("log.clear")
            following = await commands.start("dmesg", "--follow")
            assert following.stdout is not None
            for text in ("before or after", "and then this"):
                await handle.rpc("log.append", f"<48>1 - 0 test 1 - - {text}")
                assert (await following.stdout.readline()).endswith(f" test.info[0]: {text}\n".encode())
            await interrupt(following)

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))


def test_reader_that_leaves_ends_the_command() -> None:
    """`specwire flux ping 0 | head -2`."""

    async def story() -> None:
        async with full_tree(1, 0) as (instance, _):
            words = shlex.join([sys.executable, *COMMAND[1:], "ping", "--interval=0", "0"])
            shell = await asyncio.create_subprocess_exec(
                "sh",
                "-c",
                f"{words} | head -2",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=ROOT,
                env={**os.environ, "FLUX_URI": instance.uri(0)},
            )
            out, err = await shell.communicate()
            assert (len(out.splitlines()), err) == (2, b"")

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))
