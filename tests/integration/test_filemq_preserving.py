"""What goes beyond the content of files, between our own peers: renames, modes, modification times, empty folders."""

from __future__ import annotations

import os
from pathlib import Path

from specwire.runtime.filemq import Publication
from specwire.runtime.filemq.policy import InboxRules, PublicationRules
from tests.integration.filemq_scene import in_step, run, serving, subscribing

MTIME_NS = 1_234_567_890_123_456_789
LARGE = b"0123456789abcdef" * 1024


def test_renamed_files_are_not_sent_again(tmp_path: Path) -> None:
    """A file, and a folder with files; each arrives under its new name, and the old name goes."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    (source / "photos").mkdir(parents=True)
    (source / "report").write_bytes(LARGE)
    for number in range(5):
        (source / "photos" / str(number)).write_bytes(LARGE + bytes([number]))

    async def story() -> None:
        async with serving(source) as (server, _), subscribing(server.endpoint, inbox) as (client, _):
            await in_step(server, client)
            sent = server.counters.content_octets
            (source / "report").rename(source / "final report")
            (source / "photos").rename(source / "pictures")
            await in_step(server, client)
            assert server.counters.content_octets == sent
            assert client.counters.refusals == 0
        names = sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.is_file())
        assert names == ["final report", *(f"pictures/{number}" for number in range(5))]
        for name in names:
            assert (inbox / name).read_bytes() == (source / name).read_bytes()
        assert not (inbox / "photos").exists() and not (inbox / "report").exists()

    run(story)


def test_a_renamed_file_is_sent_where_the_old_one_is_gone(tmp_path: Path) -> None:
    """Somebody has emptied the trash: the client asks again, and gets the content."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    (source / "old").write_bytes(LARGE)
    (source / "other").write_bytes(b"other")

    async def story() -> None:
        timers = {"heartbeat": 1.0, "expiry": 30.0, "reconnect": 0.05}
        async with (
            serving(source, timers=timers) as (server, _),
            subscribing(server.endpoint, inbox, timers=timers) as (client, _),
        ):
            await in_step(server, client)
            (source / "old").rename(tmp_path / "aside")
            await in_step(server, client)
            (inbox / ".specwire-inbox" / "trash" / "old").unlink()
            (tmp_path / "aside").rename(source / "new")
            await in_step(server, client)
            assert client.counters.refusals == 1
        assert (inbox / "new").read_bytes() == LARGE

    run(story)


def test_without_a_trash_a_renamed_file_is_sent(tmp_path: Path) -> None:
    """Such a client does not say that it keeps deleted files."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    (source / "old").write_bytes(LARGE)

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, inbox, rules=InboxRules(trash_s=0)) as (client, _),
        ):
            await in_step(server, client)
            (source / "old").rename(source / "new")
            await in_step(server, client)
            assert server.counters.content_octets == 2 * len(LARGE)
            assert client.counters.refusals == 0

    run(story)


def test_modes_and_times_are_kept_for_those_who_ask(tmp_path: Path) -> None:
    """A key that only its owner can read, and a script; another client gets them as before."""
    source, kept, plain = tmp_path / "source", tmp_path / "kept", tmp_path / "plain"
    source.mkdir()
    for name, mode in (("key", 0o600), ("script", 0o755), ("empty", 0o640)):
        (source / name).write_bytes(b"" if name == "empty" else name.encode())
        (source / name).chmod(mode)
        os.utime(source / name, ns=(MTIME_NS, MTIME_NS))

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, kept, preserve=True) as (first, _),
            subscribing(server.endpoint, plain) as (second, _),
        ):
            await in_step(server, first, second)
        found = {name: (kept / name).stat() for name in ("key", "script", "empty")}
        assert {name: oct(state.st_mode & 0o777) for name, state in found.items()} == {
            "key": "0o600",
            "script": "0o755",
            "empty": "0o640",
        }
        assert {state.st_mtime_ns for state in found.values()} == {MTIME_NS}
        assert (plain / "key").stat().st_mtime_ns != MTIME_NS
        assert (plain / "script").stat().st_mode & 0o111 == 0

    run(story)


def test_empty_folders_come_and_go_for_those_who_ask(tmp_path: Path) -> None:
    """A client that does not ask sees no names with a slash at the end."""
    source, kept, plain = tmp_path / "source", tmp_path / "kept", tmp_path / "plain"
    (source / "empty" / "inner").mkdir(parents=True)
    (source / "file").write_bytes(b"content")
    publication = Publication(source, rules=PublicationRules(empty_folders=True))

    async def story() -> None:
        async with (
            serving(publication) as (server, _),
            subscribing(server.endpoint, kept, preserve=True) as (first, _),
            subscribing(server.endpoint, plain) as (second, heard),
        ):
            lines = heard.keep_transcript()
            await in_step(server, first, second)
            assert server.digests().keys() == first.holdings.keys() == {"/file"}
            assert server.status().publications[0].files == first.status().files == 1
            assert (kept / "empty" / "inner").is_dir()
            (source / "empty" / "inner").rmdir()
            (source / "more").mkdir()
            await server.rescan()
            (source / "last").write_bytes(b"it is sent after the changes of folders")
            await in_step(server, first)
            assert sorted(path.name for path in kept.iterdir() if path.name[0] != ".") == [
                "empty",
                "file",
                "last",
                "more",
            ]
            assert not (kept / "empty" / "inner").exists()
            names = {line.name for line in lines}
            assert names <= {"/file", "/last"}
        assert not (plain / "empty").exists() and not (plain / "more").exists()

    run(story)
