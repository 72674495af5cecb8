"""`specwire peer` and `specwire replay` as a user types them: what they print, and how they end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from specwire.generated import filemq
from specwire.runtime.capture import Tap
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.router import Router
from tests.runtime.cli.commands import specwire

STORY_S = 100.0


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


async def command(*arguments: str) -> tuple[int, str, str]:
    """Run `specwire ARGUMENTS`; return its exit status and what it printed."""
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "specwire.runtime.cli.main", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
    return running.returncode or 0, out.decode(), err.decode()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "file").write_bytes(b"content")
    return folder


def test_a_server_is_tried_and_its_recording_played_again(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        capture = tmp_path / "capture"
        with Tap.open(capture, protocol="filemq", name="server") as tap:
            async with FilemqServer([Publication(source)], tap=tap) as server:
                at = ("peer", "filemq", "--role", "C", "--connect", server.endpoint, "--seed", "7")
                status, out, err = await command(
                    *(*at, "--messages", "30", "--patience", "20", "--json"),
                    *("--set", "Icanhaz.path=/", "--set", "Icanhaz.options=[]", "--set", "Icanhaz.cache=[]"),
                )
                assert (status, err) == (0, "")
                report: dict[str, Any] = json.loads(out)
                assert (report["protocol"], report["role"], report["seed"]) == ("filemq", "C", 7)
                assert (report["violations"], report["unreadable"], report["unanswered"]) == (0, 0, 0)
                assert report["sent"]["Ohai"] == report["received"]["OhaiOk"] == report["conversations"]
                async with FilemqClient(server.endpoint, tmp_path / "inbox", ["/"]) as client:
                    await client.until_equal(server.digests(), timeout_s=60)
        async with FilemqServer([Publication(source)]) as server:
            at = ("replay", str(capture), "--to", server.endpoint, "--side", "C", "--patience", "20")
            status, out, err = await command(*at)
            assert (status, err) == (0, ""), out
            assert "0 differ, 0 missing, 0 extra, 0 unreadable" in out

    run(story)


def test_the_recording_of_a_server_that_was_stopped_plays_as_well(tmp_path: Path, source: Path) -> None:
    """It said KTHXBAI to who was there; the live one stays, and that is no fault of it."""

    async def story() -> None:
        capture = tmp_path / "capture"
        with Tap.open(capture, protocol="filemq", name="server") as tap:
            server = FilemqServer([Publication(source)], tap=tap)
            await server.start()
            async with FilemqClient(server.endpoint, tmp_path / "inbox", ["/"]) as client:
                await client.until_equal(server.digests(), timeout_s=60)
                await server.stop()
        async with FilemqServer([Publication(source)]) as server:
            at = ("replay", str(capture), "--to", server.endpoint, "--side", "C", "--patience", "60")
            status, out, err = await command(*at)
            assert (status, err) == (0, ""), out
            assert "0 differ, 0 missing, 0 extra, 0 unreadable" in out

    run(story)


def answer_ohai_twice(router: list[Router]) -> Callable[[bytes, Sequence[bytes]], None]:
    def answer(peer: bytes, frames: Sequence[bytes]) -> None:
        if isinstance(filemq.decode(frames), filemq.Ohai):
            router[0].send(peer, filemq.OhaiOk().encode())
            router[0].send(peer, filemq.OhaiOk().encode())

    return answer


def test_a_violation_is_told_and_ends_with_status_1() -> None:
    async def story() -> None:
        context, routers = TransportContext(), list[Router]()
        router = Router(
            context,
            on_message=answer_ohai_twice(routers),
            on_sent=lambda _peer, _frames: None,
            on_room=lambda _peer: None,
            on_gone=lambda _peer, _reason: None,
        )
        routers.append(router)
        try:
            endpoint = router.bind("tcp://127.0.0.1:*")
            status, out, err = await command(
                *("peer", "filemq", "--role", "C", "--connect", endpoint, "--seed", "7"),
                *("--messages", "20", "--patience", "1", "--loose"),
            )
        finally:
            router.close()
            await context.close()
        assert (status, err) == (1, "")
        assert "S:OhaiOk in state USE: expected " in out
        assert "aaa304" in out

    run(story)


def test_nobody_there_is_told_with_the_reason(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(
        capfd,
        *("peer", "filemq", "--role", "C", "--connect", f"ipc://{tmp_path}/nobody", "--seconds", "0.3"),
    )
    assert outcome.status == 1
    assert "specwire: nothing was heard at ipc://" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--role", "C"), "--connect ENDPOINT or --bind ENDPOINT is wanted, one of them"),
        (
            ("--role", "X", "--connect", "tcp://127.0.0.1:1"),
            "filemq has no role 'X'; it has C (client), S (server)",
        ),
        (
            ("--role", "C", "--connect", "tcp://10.0.0.1:1"),
            "tcp://10.0.0.1:1 is not on this machine; say --anywhere",
        ),
        (("--role", "S", "--bind", "tcp://*:1"), "tcp://*:1 would be open to other machines"),
        (("--role", "C", "--connect", "127.0.0.1:1"), "127.0.0.1:1 is no endpoint"),
        (("--role", "C", "--connect", "local:///x"), "only flux is spoken on a local socket"),
        (
            ("--role", "C", "--connect", "tcp://127.0.0.1:1", "--set", "Nom.credit=x"),
            "--set Nom.credit=x: Nom.credit wants int, not 'x'",
        ),
    ],
)
def test_bad_usage_is_one_sentence(
    arguments: tuple[str, ...], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = specwire(capfd, "peer", "filemq", *arguments)
    assert outcome.status == 2
    assert told in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--pace", "fast"), "--pace fast: real is wanted, or a number and x, such as 10x"),
        (("--bind", "tcp://127.0.0.1:*"), "--to ENDPOINT or --bind ENDPOINT is wanted, one of them"),
        ((), "there is no such capture folder"),
    ],
)
def test_a_replay_that_cannot_be_is_one_sentence(
    arguments: tuple[str, ...], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ("replay", str(tmp_path / "none"), "--to", "tcp://127.0.0.1:1", "--side", "C", *arguments)
    outcome = specwire(capfd, *given)
    assert outcome.status == 2
    assert told in outcome.err
