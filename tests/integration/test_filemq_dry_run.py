"""`specwire filemq subscribe --dry-run`, with our server, with one that knows no listings, and with none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from specwire.generated.filemq import Icanhaz, Kthxbai
from specwire.runtime.filemq import Publication
from specwire.runtime.filemq.codec import FILEMQ
from specwire.runtime.filemq.connection import Paths
from specwire.runtime.filemq.policy import PublicationRules
from specwire.runtime.filemq.preview import ListingError, list_files
from tests.integration.filemq_raw import fake_server
from tests.integration.filemq_scene import run, serving, subscribing
from tests.runtime.cli.commands import Outcome, specwire

ALL = Paths(("/",), FILEMQ.habits)


def test_dry_run_shows_changes_and_makes_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    (source / "empty").mkdir(parents=True)
    (source / "b").write_bytes(b"bb")
    (source / "c").write_bytes(b"old")
    publication = Publication(source, rules=PublicationRules(empty_folders=True))

    async def story() -> None:
        async with serving(publication) as (server, watch):

            async def dry_run(*options: str) -> Outcome:
                arguments = ("filemq", "subscribe", server.endpoint, "/", "--inbox", str(inbox), "--dry-run")
                return await asyncio.to_thread(specwire, capfd, *arguments, *options)

            new = await dry_run("--preserve")
            assert new.out.splitlines() == [
                "receive /b (2 octets)",
                "receive /c (3 octets)",
                "receive /empty/ (0 octets)",
                "2 files to receive (5 octets), 0 to delete",
            ]
            assert not inbox.exists()
            async with subscribing(server.endpoint, inbox) as (client, _):
                await client.until_equal(server.digests(), timeout_s=60)
            before = sorted(inbox.rglob("*"))
            (source / "a").write_bytes(b"content")
            (source / "a.tmp").write_bytes(b"")
            (source / "b").unlink()
            (source / "c").write_bytes(b"newer one")
            await server.rescan()
            later = await dry_run("--ignore", "*.tmp")
            assert later.out.splitlines() == [
                "receive /a (7 octets)",
                "replace /c (9 octets)",
                "delete /b",
                "2 files to receive (16 octets), 1 to delete",
            ]
            assert (new.status, later.status, later.err) == (0, 0, "")
            assert sorted(inbox.rglob("*")) == before
            assert (inbox / "c").read_bytes() == b"old"
            assert watch.seen["C:Nom"] == 1  # of the subscriber

    run(story)


def test_listing_of_many_files(tmp_path: Path) -> None:
    """Many more than the server sends without waiting for room."""
    for number in range(3000):
        (tmp_path / str(number)).touch()

    async def story() -> None:
        async with serving(tmp_path) as (server, _):
            files = await list_files(server.endpoint, ALL)
            assert {file.name: file.sha1 for file in files} == server.digests()

    run(story)


def test_older_server_is_recognized(tmp_path: Path) -> None:
    """It takes the request for a subscription, and answers HUGZ."""

    async def story() -> None:
        async with fake_server(lively=True) as server:
            with pytest.raises(ListingError, match="does not list its files"):
                await list_files(server.endpoint, ALL)
            heard = [server.heard.get_nowait() for _ in range(server.heard.qsize())]
            assert [message.options for message in heard if isinstance(message, Icanhaz)] == [
                (("LIST", "1"),)
            ]
            assert not any(isinstance(message, Kthxbai) for message in heard)
        async with fake_server() as server:
            with pytest.raises(ListingError, match=r"no answer for 0\.2 s"):
                await list_files(server.endpoint, ALL, timers={"expiry": 0.2})

    run(story)


def test_server_that_is_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("filemq", "subscribe", "tcp://127.0.0.1:1", "/", "--inbox", str(tmp_path / "a"), "--dry-run")
    done = specwire(capfd, *arguments)
    assert (done.status, done.out) == (1, "")
    assert "the files of tcp://127.0.0.1:1 cannot be listed: no connection is possible" in done.err
    done = specwire(capfd, *arguments, "--protocol", "libfilemq")
    assert (done.status, done.out) == (2, "")
    assert "dry-run requires the protocol filemq" in done.err
    assert [*tmp_path.iterdir()] == []
