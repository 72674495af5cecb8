"""`specwire filemq status`: what it tells of servers and subscribers that run, are stuck, or are dead."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from specwire.generated.filemq import Cheezburger, Icanhaz, Nom, Ohai
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq import client as client_module
from specwire.runtime.filemq import server as server_module
from specwire.runtime.filemq.events import Progress
from specwire.runtime.filemq.status import UnderWay
from tests.integration.filemq_process import COMMAND, running
from tests.integration.filemq_raw import RawPeer, fake_server, raw_peers
from tests.integration.filemq_scene import event_of, run

LARGE_OCTETS = 3_000_000
CREDIT = 1_000_000
TIMEOUT_S = 60.0


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the sockets of a test's processes; pytest's own folders have names too long for a socket."""
    with TemporaryDirectory(prefix="sw-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder) / "specwire"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(LARGE_OCTETS))
    (folder / "small").write_bytes(b"small")
    return folder


def status(*arguments: str, ends: int = 0) -> subprocess.CompletedProcess[str]:
    """Ask, as a user does."""
    done = subprocess.run(
        [*COMMAND, "status", *arguments], check=False, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == ends, done.stderr
    assert "Traceback" not in done.stderr
    return done


async def documents(*arguments: str) -> list[dict[str, Any]]:
    """Return what is told as JSON."""
    told = (await asyncio.to_thread(status, *arguments, "--json")).stdout
    assert told.isascii()
    answers: list[dict[str, Any]] = json.loads(told)
    return answers


async def take_all_that_credit_allows(peer: RawPeer) -> None:
    """Subscribe with so much credit, and hear until it is used up."""
    peer.send(Ohai(), Icanhaz(path="/", options=(("RESYNC", "1"),), cache=()), Nom(credit=CREDIT))
    heard = 0
    while heard < CREDIT:
        message = await peer.hear()
        heard += len(message.chunk) if isinstance(message, Cheezburger) else 0


def test_server_tells_of_a_client_that_is_stuck(source: Path) -> None:
    """A client that has used up its credit: how far its file is, to the octet, and what it is still to get."""

    async def story() -> None:
        async with running("serve", str(source), "--endpoint", "tcp://127.0.0.1:*") as server:
            endpoint = (await server.line_with("serving 2 files on")).split()[-1]
            async with raw_peers(endpoint, lively=True) as peer:
                await take_all_that_credit_allows(peer())
                [told] = await documents()
                assert (told["role"], told["endpoint"], told["protocol"]) == ("server", endpoint, "filemq")
                assert told["process"]["pid"] == server.pid
                assert told["publications"] == [
                    {"path": "/", "folder": str(source), "files": 2, "octets": LARGE_OCTETS + 5}
                    | {"doubts": [], "missing": False}
                ]
                [client] = told["clients"]
                assert (client["subscriptions"], client["credit"], client["queued"]) == (["/"], 0, 1)
                assert client["octets_sent"] == CREDIT
                file = client["under_way"]
                assert (file["path"], file["octets"], file["size"]) == ("/large", CREDIT, LARGE_OCTETS)
                counters = told["counters"]
                heard = counters["commands_in"]
                assert [heard[name] for name in ("OHAI", "ICANHAZ", "NOM")] == [1, 1, 1]
                assert counters["content_octets"] == CREDIT
                assert (counters["peerings"], counters["resyncs"], counters["files"]) == (1, 1, 0)
                shown = (await asyncio.to_thread(status, str(server.pid))).stdout
                assert "/large" in shown and "33 %" in shown and client["label"] in shown
            await server.stop()
            assert await documents() == []

    run(story)


def test_subscriber_tells_of_the_file_that_comes(tmp_path: Path) -> None:
    """A server that stops in the middle of a file: what has come of it, and that the connection is open."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        async with (
            fake_server(lively=True) as fake,
            running("subscribe", fake.endpoint, "/", "--inbox", str(inbox)) as peer,
        ):
            await fake.subscribed()
            fake.send_file("/evil\x1b[31m", b"half", headers=(("size", "8"),))
            fake.send_file("/evil\x1b[31m", b"\x9b8", offset=4, headers=(("size", "8"),))
            fake.send([b"\xaa\xa3\x63 no command"])
            await peer.line_with("refused")
            [told] = await documents("subscriber")
            assert (told["role"], told["endpoint"]) == ("subscriber", fake.endpoint)
            assert (told["inbox"], told["paths"], told["connection"]) == (str(inbox), ["/"], "open")
            file = told["under_way"]
            assert (file["path"], file["octets"], file["size"]) == ("/evil\x1b[31m", 6, 8)
            assert (told["counters"]["malformed"], told["counters"]["refusals"]) == (1, 1)
            [refusal] = told["refusals"]
            assert refusal["reason"] in (await peer.line_with("refused"))
            for target in (fake.endpoint, str(inbox), str(peer.pid), "subscriber"):
                shown = (await asyncio.to_thread(status, target)).stdout
                assert "\x1b" not in shown and "/evil\\x1b[31m" in shown and "75 %" in shown
            assert "no FILEMQ peer of yours is 'server'" in status("server", ends=1).stderr

    run(story)


def test_server_makes_progress_known(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a client takes in small pieces: events until somebody has heard of it."""
    monkeypatch.setattr(server_module, "LOOK_S", 0.01)

    async def story() -> None:
        async with (
            FilemqServer([Publication(source)]) as server,
            raw_peers(server.endpoint, lively=True) as peers,
        ):
            peer, watch = peers(), server.events()
            await take_all_that_credit_allows(peer)
            [client] = server.status().clients
            assert client.under_way == UnderWay("/large", CREDIT, LARGE_OCTETS, client.label)
            hearing = asyncio.create_task(event_of(watch, Progress))
            while not hearing.done():
                peer.send(Nom(credit=1))
                assert len((await peer.hear()).chunk) == 1  # type: ignore[union-attr]
            told = hearing.result()
            assert (told.path, told.size, told.peer) == ("/large", LARGE_OCTETS, client.label)
            assert CREDIT < told.octets <= server.counters.content_octets
            assert told.octets_per_s > 0

    run(story)


def test_client_makes_progress_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LOOK_S", 0.01)

    async def story() -> None:
        async with (
            fake_server(lively=True) as fake,
            FilemqClient(fake.endpoint, tmp_path / "in", ["/"]) as client,
        ):
            hearing = asyncio.create_task(event_of(client.events(), Progress))
            await fake.subscribed()
            sent = 0
            while not hearing.done():
                fake.send_file("/large", b".", offset=sent, headers=(("size", "1000000"),))
                sent += 1
                while client.counters.content_octets < sent:
                    await asyncio.sleep(0)
            told = hearing.result()
            assert (told.path, told.size, told.peer) == ("/large", 1_000_000, "")
            assert 0 < told.octets <= sent
            file = client.status().under_way
            assert file is not None and (file.path, file.octets) == ("/large", sent)

    run(story)


def test_sockets_of_dead_processes_are_removed(source: Path, sockets: Path) -> None:
    """kill -9 leaves a socket; whoever asks removes it, and nobody is told of it."""

    async def story() -> None:
        async with running("serve", str(source), "--endpoint", "tcp://127.0.0.1:*") as server:
            await server.line_with("serving")
            assert len(await documents()) == 1
            await server.kill()
        assert len(list(sockets.iterdir())) == 1
        assert await documents() == []
        assert list(sockets.iterdir()) == []

    run(story)


def test_a_process_that_does_not_answer_is_named(source: Path, sockets: Path) -> None:
    """The others are still told of; only the exit status says that not all is well."""

    async def story() -> None:
        async with running("serve", str(source), "--endpoint", "tcp://127.0.0.1:*") as server:
            await server.line_with("serving")
            await documents()
            with (
                closing(socket.socket(socket.AF_UNIX)) as mute,
                closing(socket.socket(socket.AF_UNIX)) as odd,
            ):
                mute.bind(str(sockets / "filemq-server-1.sock"))
                mute.listen()
                odd.bind(str(sockets / "filemq-subscriber-2.sock"))
                odd.listen()
                asking = asyncio.create_task(asyncio.to_thread(status, ends=1))
                odd.setblocking(False)
                asker, _ = await asyncio.get_running_loop().sock_accept(odd)
                asker.sendall(b'{"role": "emperor"}')
                asker.close()
                answer = await asking
            assert f"process {server.pid}" in answer.stdout
            assert "process 1 does not answer: " in answer.stderr
            assert "process 2 is of another version of specwire: " in answer.stderr

    run(story)


def test_a_peer_that_cannot_be_asked_does_its_work(source: Path, sockets: Path) -> None:
    """A folder that somebody else may enter is not used, and the log says so; the asker refuses it too."""
    sockets.mkdir()
    sockets.chmod(0o755)

    async def story() -> None:
        async with running("serve", str(source), "--endpoint", "tcp://127.0.0.1:*") as server:
            await server.line_with("is open to others, so it is not used")
            await server.stop()
        assert list(sockets.iterdir()) == []

    run(story)
    assert "is open to others, so it is not used" in status(ends=1).stderr


def test_no_status_leaves_no_socket(source: Path, sockets: Path) -> None:
    async def story() -> None:
        arguments = ("serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--set", "status=false")
        async with running(*arguments, "--set", "report-every=0.01") as server:
            await server.line_with("0 clients with credit for 0 octets")
            assert not sockets.exists()
            await server.stop()

    run(story)


def test_nothing_runs() -> None:
    told = status()
    assert (told.stdout, told.stderr) == ("", "no FILEMQ peer of yours runs on this machine\n")
    assert json.loads(status("--json").stdout) == []
    assert "'12'" in status("12", "--json", ends=1).stderr


def test_stopped_in_the_middle_of_a_file(source: Path) -> None:
    """SIGTERM: the log says what is left, and the last words on standard output are the whole status."""

    async def story() -> None:
        arguments = ("serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--json")
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            endpoint = (await process.stderr.readline()).decode().split()[-1]
            async with raw_peers(endpoint, lively=True) as peer:
                await take_all_that_credit_allows(peer())
                process.terminate()
                output, log = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0
        left = f"/large after {CREDIT:,} of {LARGE_OCTETS:,} octets and 1 change; sent when it connects again"
        assert left in log.decode()
        told = json.loads(output)
        assert (told["role"], told["clients"]) == ("server", [])
        assert told["counters"]["content_octets"] == CREDIT
        assert told["counters"]["commands_out"]["KTHXBAI"] == 1

    run(story)


def test_subscriber_stopped_in_the_middle_of_a_file(tmp_path: Path) -> None:
    """Nothing of the unfinished file is visible, and the log names it."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        async with (
            fake_server(lively=True) as fake,
            running("subscribe", fake.endpoint, "/", "--inbox", str(inbox)) as peer,
        ):
            await fake.subscribed()
            fake.send_file("/large", b"." * 1000, headers=(("size", "2000"),))
            fake.send([b"\xaa\xa3\x63 no command"])
            await peer.line_with("refused")
            await peer.stop()
            await peer.line_with("left: /large after 1,000 of 2,000 octets; the next start continues")
        assert [path.name for path in inbox.iterdir()] == [".specwire-inbox"]

    run(story)


def test_quiet_leaves_out_single_files(tmp_path: Path) -> None:
    """Peers, refusals and the sums at the end are told all the same."""

    async def story() -> None:
        arguments = ("--inbox", str(tmp_path / "in"), "--quiet")
        async with (
            fake_server(lively=True) as fake,
            running("subscribe", fake.endpoint, "/", *arguments) as peer,
        ):
            await fake.subscribed()
            fake.send_file("/a", b"a", headers=(("size", "1"),))
            fake.send_file("/a", b"", offset=1, headers=(("size", "1"),))
            fake.send([b"\xaa\xa3\x63 no command"])
            await peer.line_with("refused")
            await peer.stop()
        assert (tmp_path / "in" / "a").read_bytes() == b"a"
        assert "received 1 file, deleted 0" in peer.lines[-1]
        assert not [line for line in peer.lines if "/a " in line]

    run(story)


def test_names_that_are_no_utf_8_are_told_escaped(tmp_path: Path) -> None:
    """A published folder, a file in it and an inbox whose names have an octet that no JSON can hold."""
    source, inbox = (Path(os.fsdecode(os.fsencode(tmp_path) + name)) for name in (b"/source\xff", b"/in\xff"))
    source.mkdir()
    (source / "good").write_bytes(b"good")
    (source / os.fsdecode(b"bad\xfe")).write_bytes(b"bad")

    async def story() -> None:
        async with running("serve", f"{source}=/", "--endpoint", "tcp://127.0.0.1:*", "--json") as server:
            endpoint = (await server.line_with("serving 1 file on")).split()[-1]
            async with running("subscribe", endpoint, "/", "--inbox", str(inbox), "--json") as client:
                await client.line_with("received /good")
                [told] = await documents("server")
                assert [publication["folder"] for publication in told["publications"]] == [
                    f"{tmp_path}/source\\udcff"
                ]
                assert [refusal["name"] for refusal in told["refusals"]] == ["/bad\\udcfe"]
                [told] = await documents(str(inbox))
                assert (told["inbox"], told["files"]) == (f"{tmp_path}/in\\udcff", 1)

    run(story)
