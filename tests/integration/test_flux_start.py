"""`specwire flux start`: an instance for a command or until it is told to stop, and nothing left of it afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.generated import flux
from specwire.generated.flux.machine import Session
from specwire.runtime.capture.segments import read_segments
from specwire.runtime.cli import flux_start
from specwire.runtime.flux import instance
from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.instance import Instance, Plan
from specwire.runtime.flux.topology import Tree
from tests.integration.flux_brokers import play
from tests.integration.flux_processes import start_command, until_ended, until_full

ASK = """
import os, sys
from specwire.runtime.flux import blocking
with blocking.open() as handle:
    size = int(handle.rpc("attr.get", {"name": "size"}).json()["value"])
    for rank in range(size):
        assert handle.rpc("broker.ping", {"seq": rank}, nodeid=rank).json()["rank"] == rank
    print(size, os.environ["FLUX_URI"])
sys.exit(7)
"""

pytestmark = pytest.mark.peers


async def pids_of(handle: FluxHandle, size: int) -> list[int]:
    """Return the process of each rank."""
    asked = {"name": "broker.pid"}
    return [int((await handle.rpc("attr.get", asked, nodeid=rank)).json()["value"]) for rank in range(size)]


def test_command_runs_in_a_full_tree_and_gives_the_exit_status(tmp_path: Path) -> None:
    """The tree is there for the command, its traffic is in the capture, and the run directory goes with it."""

    async def story() -> None:
        capture = tmp_path / "capture"
        process = await start_command(*("--size=2", f"--capture={capture}", "--", sys.executable, "-c", ASK))
        out, err = await process.communicate()
        assert (process.returncode, err.decode()) == (7, "")
        size, uri = out.decode().split()
        assert size == "2"
        assert not Path(uri.removeprefix("local://")).parent.exists()
        sessions: dict[str, Session] = {}
        rows = read_segments(capture).sort_by([("tap", "ascending"), ("seq", "ascending")]).to_pylist()
        for row in rows:
            session = sessions.setdefault(row["conversation"], Session("S"))
            assert session.observe(row["sender"], flux.decode(row["frames"])) is None
        assert {row["tap"].partition("-")[0] for row in rows} == {"broker"}

    play(story())


def test_instance_runs_until_it_is_told_to_stop_and_restarts_what_dies() -> None:
    """A broker that is killed comes again, under another name, and so does what was below it."""

    async def story() -> None:
        process = await start_command("--size=3", "--fanout=1", "--restart")
        assert process.stdout is not None and process.stderr is not None
        try:
            uri = (await process.stdout.readline()).decode().strip()
            async with connect(uri) as handle:
                before = await pids_of(handle, 3)
                changes = handle.stream("overlay.health")
                assert (await anext(changes)).json()["status"] == "full"  # so that nothing of it is missed
                os.kill(before[1], signal.SIGKILL)
                while b"the broker of rank 1" not in await process.stderr.readline():
                    pass
                async for reply in changes:
                    if reply.json()["status"] != "full":
                        break
                await changes.aclose()
                await until_full(handle)
                after = await pids_of(handle, 3)
                assert (after[0], after[2]) == (before[0], before[2])
                assert after[1] != before[1]
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
            await until_ended(after)
            assert not Path(uri.removeprefix("local://")).parent.exists()
        finally:
            if process.returncode is None:
                process.kill()

    play(story())


@pytest.fixture
def at_terminal() -> Iterator[None]:
    """A program that is started ends by SIGHUP, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("at_terminal")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_brokers_end_with_who_started_them(number: signal.Signals) -> None:
    """Where `specwire flux start` is killed, or its terminal is closed, no broker is left behind, and no key."""

    async def story() -> None:
        process = await start_command("--size=2")
        assert process.stdout is not None
        try:
            uri = (await process.stdout.readline()).decode().strip()
            async with connect(uri) as handle:
                pids = await pids_of(handle, 2)
            process.send_signal(number)
            await until_ended(pids)
            await process.communicate()
            assert not Path(uri.removeprefix("local://")).parent.exists()
        finally:
            if process.returncode is None:
                process.kill()

    play(story())


def test_instance_without_rank_0_is_none() -> None:
    """When rank 0 dies the command is ended, and the exit status is 1."""

    async def story() -> None:
        code = "import signal; print('ready', flush=True); signal.pause()"
        process = await start_command("--size=2", "--verbose", "--", sys.executable, "-c", code)
        assert process.stdout is not None and process.stderr is not None
        assert await process.stdout.readline() == b"ready\n"
        told = b""
        while b"listening" not in told or b"/local-0" not in told:
            told = await process.stderr.readline()
        async with connect(told.split()[4].decode()) as handle:
            (pid,) = await pids_of(handle, 1)
        os.kill(pid, signal.SIGKILL)
        _, err = await process.communicate()
        assert process.returncode == 1
        assert err.decode().splitlines()[-1] == "specwire: the broker of rank 0 has ended: killed by SIGKILL"

    play(story())


def test_status_tells_of_every_broker_of_this_user(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for by a command in the instance; each broker answers for itself, and none of another instance."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("own")))

    async def story() -> None:
        asking = f"{shlex.quote(sys.executable)} -m specwire.runtime.cli.main flux status"
        process = await start_command(
            "--size=3", "--fanout=1", "--", "sh", "-c", f"{asking} --json; {asking}"
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        told, end = json.JSONDecoder().raw_decode(out.decode())
        assert [broker["rank"] for broker in told] == [0, 1, 2]
        assert {(broker["phase"], broker["subtree"]) for broker in told} == {("online", "full")}
        assert [[child["uuid"] for child in broker["children"]] for broker in told[:2]] == [
            [told[1]["uuid"]],
            [told[2]["uuid"]],
        ]
        rows = out.decode()[end:].splitlines()
        assert rows[1].endswith(": 3 brokers")
        assert [row.split()[:5] for row in rows[3:]] == [
            [str(broker["pid"]), str(broker["rank"]), broker["uuid"][:8], "online", "full"] for broker in told
        ]

    play(story())


def test_instance_that_cannot_become_full_is_given_up() -> None:
    """A broker that ends before the tree is full has its reason on standard error; nobody waits for it."""

    async def story() -> None:
        process = await start_command("--size=3", "--capture=/proc/nosuch")
        out, err = await process.communicate()
        assert (process.returncode, out) == (1, b"")
        assert "/proc/nosuch" in err.decode()
        assert err.decode().splitlines()[-1].endswith("has ended: exit status 2")

    play(story())


def test_command_that_is_not_there() -> None:
    """The exit status is that of a shell."""

    async def story() -> None:
        process = await start_command("--", "/nosuch/command")
        _, err = await process.communicate()
        assert process.returncode == 127
        assert "/nosuch/command" in err.decode()

    play(story())


IGNORES = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
)


def test_command_that_does_not_let_itself_be_ended(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is killed after a while, as an interactive shell has to be."""
    monkeypatch.setattr(flux_start, "ENDING_S", 0.1)

    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", IGNORES, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None and await process.stdout.readline() == b"ready\n"
        running = asyncio.create_task(process.wait())
        await flux_start.end_command("shell", process, running)
        assert running.result() == -signal.SIGKILL

    play(story())
    assert capfd.readouterr().err == "specwire: shell did not end within 0.1 s, and is killed\n"


def test_what_an_instance_waits_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that runs and does not join keeps the tree from being full."""
    monkeypatch.setattr(instance, "TELL_EVERY_S", 0.2)
    spawn = Instance._spawn

    async def idle(self: Instance, rank: int) -> asyncio.subprocess.Process:
        if rank == 0:
            return await spawn(self, rank)
        code = "import sys; sys.stdin.read()"
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
        )

    monkeypatch.setattr(Instance, "_spawn", idle)

    async def story() -> None:
        told: asyncio.Queue[str] = asyncio.Queue()
        starting = asyncio.create_task(Instance(Plan(Tree(2)), told.put_nowait).start())
        while await told.get() != "the tree is not full yet: rank 1 is offline":
            pass
        starting.cancel()
        await asyncio.wait((starting,))

    play(story())


@pytest.mark.parametrize(("options", "mode"), [((), 0o700), (("--allow-guests",), 0o711)])
def test_who_can_enter_the_run_directory(options: tuple[str, ...], mode: int) -> None:
    """Guests pass through it to the sockets of clients; keys and overlay are the owner's in any case."""

    async def story() -> None:
        process = await start_command("--size=2", *options)
        assert process.stdout is not None
        try:
            uri = (await process.stdout.readline()).decode().strip()
            folder = Path(uri.removeprefix("local://")).parent
            modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
            assert modes == {
                folder.name: mode,
                "keys": 0o700,
                "tree": 0o700,
                "local-0": 0o666,
                "local-1": 0o666,
            }
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()

    play(story())
