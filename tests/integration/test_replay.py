"""Recorded sides against live peers: all three runtimes answer as they had, and what is otherwise is found."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from specwire.generated import filemq, norfab_ascii
from specwire.generated import flux as flux_package
from specwire.runtime import flux
from specwire.runtime.capture import Tap
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.topology import Tree
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.replay.hosting import Stand
from specwire.runtime.rehearsal.replay.nature import Ignored
from specwire.runtime.rehearsal.replay.part import Pace
from specwire.runtime.rehearsal.replay.playing import Outcome, Performance, play
from specwire.runtime.rehearsal.replay.recording import read_recording

STORY_S = 100.0
PATIENT = Pace(patience_s=20.0)
HASTY = Pace(patience_s=1.0)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


async def replay(capture: Path, endpoint: str, pace: Pace = PATIENT, **more: Any) -> Outcome:
    recording = read_recording(capture, protocol=None, tap=None, messages=10_000)
    language = Language(import_module(f"specwire.generated.{recording.protocol}"))
    outcome = Outcome()
    performance = Performance(language, recording, "C", endpoint, pace, **more)
    await play(performance, outcome, asyncio.Event())
    return outcome


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three files, one of them of several pieces."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name, octets in (("large", 700_000), ("small", 10), ("empty", 0)):
        (folder / name).write_bytes(os.urandom(octets))
    return folder


async def record_transfer(source: Path, folder: Path) -> Path:
    """Record at the server how a client fetches everything; return the capture."""
    capture = folder / "capture"
    with Tap.open(capture, protocol="filemq", name="server") as tap:
        async with (
            FilemqServer([Publication(source)], tap=tap) as server,
            FilemqClient(server.endpoint, folder / "inbox", ["/"]) as client,
        ):
            await client.until_equal(server.digests(), timeout_s=60)
    return capture


def test_a_filemq_server_sends_the_same_files_again(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        capture = await record_transfer(source, tmp_path)
        async with FilemqServer([Publication(source)]) as server:
            outcome = await replay(capture, server.endpoint)
        assert outcome.differences == []
        assert (outcome.conversations, outcome.recorded) == (1, outcome.same)
        assert outcome.same >= 5  # OHAI-OK, ICANHAZ-OK, three files
        assert outcome.lost == {}

    run(story)


def test_a_file_that_has_changed_is_found_with_its_field(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        capture = await record_transfer(source, tmp_path)
        (source / "small").write_bytes(b"0123456789")
        (source / "empty").unlink()
        async with FilemqServer([Publication(source)]) as server:
            outcome = await replay(capture, server.endpoint, HASTY)
        assert outcome.failed
        assert {found.message for found in outcome.differences} == {"Cheezburger"}
        assert {found.kind for found in outcome.differences} == {"differs", "missing"}
        (differs,) = (found for found in outcome.differences if found.kind == "differs")
        assert differs.live != differs.recorded
        (missing,) = (found for found in outcome.differences if found.kind == "missing")
        assert '"/empty"' in missing.recorded

    run(story)


def test_a_recorded_filemq_server_is_played_to_a_live_client(tmp_path: Path, source: Path) -> None:
    """The client gets the files out of the recording, and says what the recorded client had said."""

    async def story() -> None:
        capture = await record_transfer(source, tmp_path)
        recording = read_recording(capture, protocol=None, tap=None, messages=10_000)
        outcome = Outcome()
        performance = Performance(Language(filemq), recording, "S", "", Pace(patience_s=5.0))
        stand = Stand(performance, outcome, asyncio.Event(), wait_s=60)
        try:
            endpoint = stand.bind("tcp://127.0.0.1:*")
            async with FilemqClient(endpoint, tmp_path / "again", ["/"], sync=False):
                await stand.run()
                for name in ("large", "small", "empty"):
                    while not (tmp_path / "again" / name).is_file():
                        await asyncio.sleep(0.01)
                    assert (tmp_path / "again" / name).read_bytes() == (source / name).read_bytes()
        finally:
            await stand.close()
        assert outcome.conversations == 1
        assert not any(found.message in ("Ohai", "Icanhaz") for found in outcome.differences)

    run(story)


@asynccontextmanager
async def flux_broker(folder: Path, host: str = "host", tap: Tap | None = None) -> AsyncIterator[str]:
    folder.mkdir()
    settings = Settings(Tree(size=1, fanout=2), owner=os.getuid(), hosts=(host,))
    async with FluxBroker(settings, 0, local=str(folder / "local-0"), tap=tap) as broker:
        yield broker.uri


async def record_rpcs(folder: Path) -> Path:
    """Record nine requests at a broker; return the capture."""
    capture = folder / "capture"
    with Tap.open(capture, protocol="flux", name="broker-0", edition=flux_package.EDITION) as tap:
        async with flux_broker(folder / "recorded", tap=tap) as uri, flux.connect(uri) as handle:
            for number in range(5):
                await handle.rpc("broker.ping", {"seq": number}, nodeid=0)
            names = ("size", "hostlist", "tbon.endpoint")
            await asyncio.gather(
                *(handle.rpc("attr.get", {"name": name}) for name in names), return_exceptions=True
            )
            with pytest.raises(flux.FluxError):
                await handle.rpc("no.such")
    return capture


def test_a_flux_broker_answers_the_same_again(tmp_path: Path) -> None:
    """What it says of uuids and ways differs and is not compared; with other matchtags it says the same."""

    async def story() -> None:
        capture = await record_rpcs(tmp_path)
        async with flux_broker(tmp_path / "live") as uri:
            outcome = await replay(capture, uri)
            again = await replay(capture, uri, renews=True)
        assert (outcome.sent, outcome.recorded, outcome.same) == (9, 9, 9)
        assert outcome.differences == again.differences == []

    run(story)


def test_a_value_that_differs_is_found_unless_it_is_ignored(tmp_path: Path) -> None:
    async def story() -> None:
        capture = await record_rpcs(tmp_path)
        async with flux_broker(tmp_path / "live", host="another") as uri:
            outcome = await replay(capture, uri)
            ignoring = await replay(
                capture, uri, ignored=Ignored(frozenset({"Response.payload.value"})), renews=True
            )
        (found,) = outcome.differences
        assert (found.kind, found.message, found.field) == ("differs", "Response", "payload.value")
        assert (found.recorded, found.live) == ("host", "another")
        assert ignoring.differences == []

    run(story)


def test_a_norfab_broker_answers_the_same_again(tmp_path: Path) -> None:
    async def story() -> None:
        capture = tmp_path / "capture"
        with Tap.open(capture, protocol="norfab_ascii", name="broker", edition=norfab_ascii.EDITION) as tap:
            async with (
                NorfabBroker("tcp://127.0.0.1:*", tmp_path / "a", insecure=True, tap=tap) as broker,
                NorfabClient(broker.endpoints[0], folder=tmp_path / "client") as client,
            ):
                for task in ("show_workers", "show_services", "no_such_task"):
                    await client.ask("mmi.service.broker", task)
        async with NorfabBroker("tcp://127.0.0.1:*", tmp_path / "b", insecure=True) as broker:
            outcome = await replay(capture, broker.endpoints[0])
            again = await replay(capture, broker.endpoints[0], renews=True)
        assert outcome.differences == again.differences == []
        assert outcome.same == again.same >= 3

    run(story)
