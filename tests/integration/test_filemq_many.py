"""Many publications, many subscriptions, many clients, on one server: each has its own place, and nothing comes twice."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import FileDeleted, FileReceived, Subscribed
from tests.integration.filemq_process import running
from tests.integration.filemq_scene import digests, event_of, in_step, run, serving, subscribing

PLACES = [
    "/p", "/pp", "/p p", "/P", "/p.", "/q/r", "/q/rr", "/q/s/t/u/v", "/é", "/🧀", "/%70", "/-", "/.p", "/1", "/11",
    "/111", "/q/r2", "/longer" * 20, "/z", "/y/x",
]  # fmt: skip
"""Twenty virtual paths that look like the beginnings of one another, and are not."""

FILES = ("file", "folder/file", "folder/deep/file", "folder2/file")


@pytest.fixture
def publications(tmp_path: Path) -> list[Publication]:
    """A folder for each place, with the same names of files and other content."""
    for i, place in enumerate(PLACES):
        for name in FILES:
            file = tmp_path / "sources" / str(i) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{place}/{name}")
    return [Publication(tmp_path / "sources" / str(i), place) for i, place in enumerate(PLACES)]


def names_below(*paths: str) -> set[str]:
    every = {f"{place}/{name}" for place in PLACES for name in FILES}
    return {name for name in every if any(name == path or name.startswith(f"{path}/") for path in paths)}


def test_twenty_publications(tmp_path: Path, publications: list[Publication]) -> None:
    """All of them, each by itself, and a path above several: everyone has what is below its path and no more."""

    async def story() -> None:
        async with AsyncExitStack() as stack:
            server, _ = await stack.enter_async_context(serving(*publications))
            for i, path in enumerate(["/", "/q", *PLACES]):
                inbox = tmp_path / f"inbox {i}"
                client, _ = await stack.enter_async_context(subscribing(server.endpoint, inbox, path))
                await in_step(server, client, path=path)
                wanted = (
                    {f"{place}/{name}" for place in PLACES for name in FILES}
                    if path == "/"
                    else names_below(path)
                )
                assert digests(inbox).keys() == wanted
            changed = tmp_path / "sources/0/folder/file"
            watch = client.events()
            changed.write_bytes(b"changed")
            (tmp_path / "sources" / str(len(PLACES) - 1) / "new").write_bytes(b"new")
            assert (await event_of(watch, FileReceived)).path == f"{PLACES[-1]}/new"

    run(story)


def paths_of_every_kind() -> list[str]:
    """Two hundred: of each place the whole, folders in it, files, what does not exist yet; and some that never will."""
    inner = (
        "",
        "/folder",
        "/folder/file",
        "/folder/deep",
        "/folder/deep/file",
        "/later",
        "/later/file",
        "/fold",
        "/file",
    )
    paths = [place + path for place in PLACES for path in inner]
    return [*paths, *(f"/nowhere/{i}" for i in range(20))]


def test_two_hundred_paths_of_one_client(tmp_path: Path, publications: list[Publication]) -> None:
    """They nest, overlap and begin alike; a file below nine of them is one file, and comes once for each change."""
    paths = paths_of_every_kind()
    assert len(paths) == len(set(paths)) == 200

    async def story() -> None:
        async with (
            serving(*publications) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox", *paths[:150]) as (client, _),
        ):
            subscribed = client.events()
            await event_of(subscribed, Subscribed, lambda event: event.path == paths[149])
            for path in paths[150:]:
                client.subscribe(path)
            await event_of(subscribed, Subscribed, lambda event: event.path == paths[-1])
            await in_step(server, client)
            assert watch.seen["C:Icanhaz"] == watch.seen["S:IcanhazOk"] == 200
            lines = watch.keep_transcript()
            for i in range(len(PLACES)):
                later = tmp_path / "sources" / str(i) / "later/file"
                later.parent.mkdir()
                later.write_bytes(b"later")
                (tmp_path / "sources" / str(i) / "folder/deep/file").unlink()
            await in_step(server, client)
            said = sorted((line.name, line.deletes) for line in lines if line.offset == 0)
            wanted = [
                [(f"{place}/folder/deep/file", True), (f"{place}/later/file", False)] for place in PLACES
            ]
            assert said == sorted(pair for pairs in wanted for pair in pairs)

    run(story)


def test_a_file_below_several_paths_comes_once_at_the_start_too(
    tmp_path: Path, publications: list[Publication]
) -> None:
    """With a window so small that the second path is asked for while files of the first are on their way."""

    async def story() -> None:
        async with (
            serving(*publications) as (server, watch),
            subscribing(
                server.endpoint,
                tmp_path / "inbox",
                "/",
                "/p",
                "/p/folder",
                "/p/folder/file",
                window_octets=10,
            ) as (client, _),
        ):
            await event_of(client.events(), Subscribed, lambda event: event.path == "/p/folder/file")
            await in_step(server, client)
            assert max(watch.begun.values()) == 1, watch.begun

    run(story)


def test_fifty_clients_come_and_go(tmp_path: Path, publications: list[Publication]) -> None:
    """In the end the server knows of none, and has served each its own path."""

    async def story() -> None:
        async with serving(*publications) as (server, _):
            for i in range(50):
                place = PLACES[i % len(PLACES)]
                async with subscribing(server.endpoint, tmp_path / str(i), place) as (client, _):
                    await in_step(server, client, path=place)
            await until_alone(server)

    run(story)


def test_files_of_another_server_are_not_deleted(tmp_path: Path) -> None:
    """An inbox that had one server and gets another keeps what the first one sent; each deletes its own."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of the {name}").write_bytes(name.encode())
    inbox = tmp_path / "inbox"

    async def story() -> None:
        async with (
            serving(tmp_path / "first") as (server, _),
            subscribing(server.endpoint, inbox) as (client, _),
        ):
            await in_step(server, client)
        async with (
            serving(tmp_path / "second") as (server, _),
            subscribing(server.endpoint, inbox) as (client, _),
        ):
            watch = client.events()
            await event_of(watch, FileReceived)  # deletions come before it
            assert digests(inbox).keys() == {"/of the first", "/of the second"}
            (tmp_path / "second/of the second").unlink()
            await event_of(watch, FileDeleted)
            assert digests(inbox).keys() == {"/of the first"}

    run(story)


def test_a_server_that_has_moved_is_the_same_where_its_old_endpoint_is_given(tmp_path: Path) -> None:
    """Without that, its deletions are refused, with the reason."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    (source / "file").write_bytes(b"content")

    async def story() -> None:
        async with serving(source) as (server, _):
            old = server.endpoint
            async with running("subscribe", old, "/", "--inbox", str(inbox)) as client:
                await client.line_with("received /file")
                await client.stop()
        (source / "file").unlink()
        async with serving(source) as (server, _):
            subscribe = ("subscribe", server.endpoint, "/", "--inbox", str(inbox))
            async with running(*subscribe) as client:
                await client.line_with(f"came from {old}, and is kept")
                await client.stop()
            assert (inbox / "file").exists()
            async with running(*subscribe, "--set", f"origin={old}") as client:
                await client.line_with("deleted /file")
                await client.stop()
        assert not (inbox / "file").exists()

    run(story)


async def until_alone(server: FilemqServer) -> None:
    """Wait until the server has taken the last goodbye."""
    watch = server.events()
    while server.clients:
        await watch.__anext__()


@pytest.mark.parametrize("path", ["", "p", "///", "/p//folder", "/p/..", "/p/.", "/a\0b", "/" + "x" * 255])
def test_paths_that_nobody_can_subscribe_to(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match=r"is \d+ octets|is not|has a|contains a NUL"):
        FilemqClient("tcp://127.0.0.1:1", tmp_path / "inbox", [path])
