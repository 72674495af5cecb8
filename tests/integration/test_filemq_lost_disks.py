"""A server whose disk is away, or cannot be read, deletes no file of a subscriber; see findings, section 2.

The processes are real, they run as a user who is not root, and what is mounted is mounted. The subscribers would delete
everything that they are asked to (`ALLOW_ALL`), unless it is about their own limit.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.filemq import Publication
from specwire.runtime.filemq.digeststore import DigestStore
from specwire.runtime.filemq.events import FileReceived
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.kernel.log import Refused
from tests.integration import filemq_scene as scene
from tests.integration.filemq_disks import (
    as_nobody,
    give_to_nobody,
    open_folder,
    run,
    run_as_nobody,
    run_with_own_mounts,
)
from tests.integration.filemq_process import COMMAND, PeerProcess, kept_endpoint, running
from tests.integration.filemq_scene import digests, event_of, in_step, serving, subscribing

pytestmark = pytest.mark.peers

STORY_S = 120.0
RULES = InboxRules(delete_share=1)
ALLOW_ALL = ("--set", "delete-share=1", "--set", "trash-days=0")


class Pair:
    """A server and a subscriber of `base`/pub, which is published from one start to the next at one endpoint."""

    def __init__(self, base: Path, endpoint: str, wrapper: list[str]) -> None:
        self.base, self.endpoint, self._wrapper = base, endpoint, wrapper
        self.pub, self.inbox = base / "pub", base / "in"

    def fill(self, *names: str) -> None:
        """Publish files whose content is their name."""
        for name in names:
            path = self.pub / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        give_to_nobody(self.base)

    @asynccontextmanager
    async def serving(self, *options: str, folder: str = "pub") -> AsyncIterator[PeerProcess]:
        """Run the server until the block ends."""
        command = ("serve", f"{self.base / folder}=/", "--endpoint", self.endpoint)
        store = ("--set", f"digests={self.base / 'digests'}")
        async with running(*command, *store, *options, wrapper=self._wrapper) as server:
            await server.line_with("serving ")
            yield server
            await server.stop()

    @asynccontextmanager
    async def subscribing(self, *options: str) -> AsyncIterator[PeerProcess]:
        """Run the subscriber until the block ends."""
        command = ("subscribe", self.endpoint, "/", "--inbox", str(self.inbox), *options)
        async with running(*command, wrapper=self._wrapper) as client:
            yield client
            await client.stop()

    async def arrives(self, client: PeerProcess, name: str) -> None:
        """Publish a new file, and wait for it: deletions that the server wants come before it."""
        (self.pub / name).write_text(name)
        await client.line_with(f"received /{name} ")

    async def until_held(self, *names: str) -> None:
        """Wait until the inbox holds exactly these files."""
        while self.held() != {f"/{name}" for name in names}:
            await asyncio.sleep(0.02)

    def held(self) -> set[str]:
        """Return what the inbox holds; nothing where it changes meanwhile."""
        try:
            return {*digests(self.inbox)}
        except OSError:
            return set()

    def status(self) -> Any:
        """Return what the server says of its publication."""
        command = [*self._wrapper, *COMMAND, "status", self.endpoint, "--json"]
        answers = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return next(each for each in answers if each["role"] == "server")["publications"][0]


Story = Callable[[Pair], Coroutine[Any, Any, None]]


def play(story: Story, *, wrapper: Sequence[str] | None = None) -> None:
    """Run a story with processes that are not root, or are started by `wrapper`."""
    if wrapper is None:
        wrapper = as_nobody()

    async def bounded(pair: Pair) -> None:
        async with asyncio.timeout(STORY_S):
            await story(pair)

    with open_folder() as folder, kept_endpoint() as endpoint:
        (folder / "run").mkdir()
        pair = Pair(folder, endpoint, ["env", f"XDG_RUNTIME_DIR={folder / 'run'}", *wrapper])
        try:
            asyncio.run(bounded(pair))
        finally:
            for place in ("pub/sub", "pub", "disk"):
                subprocess.run(["umount", "--lazy", "-q", str(folder / place)], check=False)


FILES = tuple(f"sub/{number}" for number in range(14))


def said(peer: PeerProcess, text: str) -> bool:
    return any(text in line for line in peer.lines)


def test_server_that_starts_on_an_empty_mount_point() -> None:
    """Nothing is withdrawn until somebody confirms it; what is new there is published all the same."""

    async def story(pair: Pair) -> None:
        disk = pair.base / "disk"
        for folder in (disk, pair.pub):
            folder.mkdir()
        run("mount", "-t", "tmpfs", "disk", disk)
        run("mount", "--bind", disk, pair.pub)
        pair.fill(*FILES)
        async with pair.subscribing(*ALLOW_ALL) as client:
            async with pair.serving():
                await pair.until_held(*FILES)
            run("umount", pair.pub)
            async with pair.serving() as server:
                await server.line_with("--accept-empty")
                await pair.arrives(client, "new")
                await pair.until_held(*FILES, "new")
                assert "--accept-empty" in pair.status()["doubts"][0]["reason"]
                assert not said(server, "withdrawn")
            assert not said(client, "deleted")
            async with pair.serving("--accept-empty"):
                await pair.until_held("new")

    run_with_own_mounts(lambda: play(story, wrapper=[]))


def test_disk_that_is_away_for_several_starts_and_comes_back() -> None:
    """With a file in the mount point: what the disk holds stays listed, and afterwards what it does not hold is gone."""

    async def story(base: Path, store: DigestStore) -> None:
        disk, pub, inbox = base / "disk", base / "pub", base / "in"
        disk.mkdir()
        shutil.rmtree(pub / "sub")
        run("mount", "-t", "tmpfs", "disk", disk)
        try:
            for name in FILES:
                (disk / name).parent.mkdir(exist_ok=True)
                (disk / name).write_text("on the disk")
            for mounted in (True, False, False, True):
                if mounted:
                    run("mount", "--bind", disk, pub)
                publication = Publication(pub, digests=store)
                async with (
                    serving(publication) as (server, _),
                    subscribing(server.endpoint, inbox, rules=RULES, origin="the server") as (client, _),
                ):
                    await in_step(server, client)
                    expected = named(*FILES) if mounted else named("top", *FILES)
                    while digests(inbox).keys() != expected:
                        await asyncio.sleep(0.01)
                    assert publication.waits is not mounted
                if mounted:
                    run("umount", pub)
        finally:
            run("umount", disk)

    run_with_own_mounts(lambda: look(story, mounts=True))


def test_folder_with_a_typing_error_in_its_name() -> None:
    """The subscriber keeps what the server withdraws, as it is too much at once; until somebody confirms it."""

    async def story(pair: Pair) -> None:
        pair.fill(*FILES)
        (pair.base / "pup").mkdir()
        (pair.base / "pup/other").write_text("other")
        async with pair.serving(), pair.subscribing():
            await pair.until_held(*FILES)
        async with pair.serving(folder="pup"):
            for _ in range(2):
                async with pair.subscribing() as client:
                    await client.line_with("--accept-deletions")
                    await client.until_lines("too many files would be deleted at once", len(FILES))
                    await pair.until_held(*FILES, "other")
            async with pair.subscribing("--accept-deletions"):
                await pair.until_held("other")
        assert len([*(pair.inbox / ".specwire-inbox/trash").iterdir()]) == len(FILES)

    play(story)


def look(story: Callable[[Path, DigestStore], Coroutine[Any, Any, None]], *, mounts: bool = False) -> None:
    """Run a story in one process that is not root, unless it mounts."""
    with open_folder() as base:
        for name in ("top", *FILES):
            path = base / "pub" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

        def told() -> None:
            with closing(DigestStore(base / "digests")) as store:
                scene.run(lambda: story(base, store))

        told() if mounts else run_as_nobody(base, told)


def named(*names: str) -> set[str]:
    return {f"/{name}" for name in names}


@pytest.mark.parametrize("mode", [0o444, 0o000, 0o111])
@pytest.mark.parametrize("digests_kept", [True, False])
def test_folder_that_cannot_be_looked_at_at_the_start(mode: int, digests_kept: bool) -> None:
    """Its files stay listed as an earlier run knew them; a run that knows nothing lets nobody delete there."""

    async def story(base: Path, store: DigestStore) -> None:
        pub, inbox = base / "pub", base / "in"
        async with (
            serving(Publication(pub, digests=store)) as (server, _),
            subscribing(server.endpoint, inbox, rules=RULES, origin="the server") as (client, _),
        ):
            await in_step(server, client)
        (pub / "sub").chmod(mode)
        (pub / "new").write_text("new")
        async with (
            serving(Publication(pub, digests=store if digests_kept else None)) as (server, _),
            subscribing(server.endpoint, inbox, rules=RULES, origin="the server") as (client, _),
        ):
            names = [doubt.name for doubt in server.status().publications[0].doubts]
            assert names == (["/sub"] if mode != 0o444 else sorted(named(*FILES)))
            events = client.events()
            await event_of(events, FileReceived, lambda event: event.path == "/new")
            await server.rescan()
            assert digests(inbox).keys() == named("top", "new", *FILES)
            assert len(server.digests()) == (2 + len(FILES) if digests_kept else 2)
            (pub / "sub").chmod(0o755)
            (pub / FILES[0]).unlink()
            await server.rescan()
            (pub / "newer").write_text("newer")
            await event_of(events, FileReceived, lambda event: event.path == "/newer")
            assert digests(inbox).keys() == named("top", "new", "newer", *FILES[digests_kept:])
            assert server.status().publications[0].doubts == ()

    look(story)


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_folder_that_becomes_unreadable_while_it_is_served(mode: int) -> None:
    """By notification and by a walk; what is gone elsewhere is gone, and a walk finds what is new."""

    async def story(base: Path, store: DigestStore) -> None:
        pub, inbox = base / "pub", base / "in"
        async with (
            serving(Publication(pub, digests=store)) as (server, _),
            subscribing(server.endpoint, inbox, rules=RULES) as (client, _),
        ):
            await in_step(server, client)
            events, refusals = client.events(), server.events()
            (pub / "sub").chmod(mode)
            refused = await event_of(refusals, Refused)
            assert refused.reason == "cannot be read: Permission denied; what was known there stays as it was"
            (pub / "top").unlink()
            (pub / "new").write_text("new")
            for _ in range(2):
                await server.rescan()
            await event_of(events, FileReceived, lambda event: event.path == "/new")
            assert digests(inbox).keys() == named("new", *FILES)

    look(story)


def test_folder_on_a_disk_that_is_unmounted_while_it_is_served() -> None:
    async def story(pair: Pair) -> None:
        disk = pair.base / "disk"
        disk.mkdir()
        (pair.pub / "sub").mkdir(parents=True)
        run("mount", "-t", "tmpfs", "disk", disk)
        run("mount", "--bind", disk, pair.pub / "sub")
        pair.fill("top", *FILES)
        async with pair.subscribing(*ALLOW_ALL) as client:
            async with pair.serving() as server:
                await pair.until_held("top", *FILES)
                run("umount", "--lazy", pair.pub / "sub")
                await pair.arrives(client, "new")  # a walk follows each change
                await server.line_with("another device than before")
                await pair.until_held("top", "new", *FILES)
            async with pair.serving() as server:
                await server.line_with("--accept-empty")
                await pair.arrives(client, "newer")
                await pair.until_held("top", "new", "newer", *FILES)
                run("mount", "--bind", disk, pair.pub / "sub")
                (pair.pub / FILES[0]).unlink()
                await pair.until_held("top", "new", "newer", *FILES[1:])

    run_with_own_mounts(lambda: play(story, wrapper=[]))


def test_file_that_cannot_be_read_at_a_restart() -> None:
    """Its last version stays listed, and it is sent when it can be read."""

    async def story(base: Path, store: DigestStore) -> None:
        pub, inbox = base / "pub", base / "in"
        async with (
            serving(Publication(pub, digests=store)) as (server, _),
            subscribing(server.endpoint, inbox, rules=RULES, origin="the server") as (client, _),
        ):
            await in_step(server, client)
        (pub / "top").chmod(0)
        (pub / "new").write_text("new")
        async with (
            serving(Publication(pub, digests=store)) as (server, _),
            subscribing(server.endpoint, inbox, rules=RULES, origin="the server") as (client, _),
        ):
            [doubt] = server.status().publications[0].doubts
            assert (doubt.name, doubt.reason) == ("/top", "cannot be read: Permission denied")
            await in_step(server, client)
            assert digests(inbox).keys() == named("top", "new", *FILES)
            (pub / "top").chmod(0o644)
            (pub / "top").write_text("changed")
            await in_step(server, client)
            assert (inbox / "top").read_text() == "changed"

    look(story)


def test_edit_in_the_inbox_is_kept_as_a_conflict_copy() -> None:
    """Whether the server withdraws the file, changes it, or sends it again because the inbox differs."""

    async def story(pair: Pair) -> None:
        pair.fill("withdrawn.txt", "changed", "again", "calm")
        async with pair.serving() as server:
            async with pair.subscribing("--set", "check-every=3600") as client:
                await client.until_lines("received", 4)
                for name in ("withdrawn.txt", "changed"):
                    (pair.inbox / name).write_text("edited")
                (pair.pub / "withdrawn.txt").unlink()
                (pair.pub / "changed").write_text("by the server")
                await client.line_with("deleted /withdrawn.txt; it was changed here")
                await client.line_with("that version is kept as changed.conflict-")
                (pair.inbox / "again").write_text("edited")
            async with pair.subscribing() as client:
                await client.line_with("that version is kept as again.conflict-")
                assert not said(client, "refused")
            assert not said(server, "refused")
        found = {path.name: path.read_text() for path in pair.inbox.iterdir() if path.is_file()}
        copies = {name: content for name, content in found.items() if ".conflict-" in name}
        assert [*copies.values()] == ["edited"] * 3
        assert any(name.startswith("withdrawn.conflict-") and name.endswith(".txt") for name in copies)
        assert {name: found[name] for name in found.keys() - copies.keys()} == {
            "changed": "by the server",
            "again": "again",
            "calm": "calm",
        }

    play(story)


def test_configuration_that_is_read_again_confirms() -> None:
    """SIGHUP, as for every other setting that can change while the process runs."""

    async def story(pair: Pair) -> None:
        pair.fill(*FILES)
        (pair.base / "pup").mkdir()
        (pair.base / "pup/other").write_text("other")
        config = pair.base / "config.toml"
        config.write_text("")
        async with pair.serving(), pair.subscribing():
            await pair.until_held(*FILES)
        async with pair.serving(folder="pup"), pair.subscribing("--config", str(config)) as client:
            await client.until_lines("too many files would be deleted at once", len(FILES))
            config.write_text("[filemq.subscribe]\naccept-deletions = true\n")
            run("kill", "-HUP", str(client.pid))
            await pair.until_held("other")

    play(story)


def test_a_renamed_folder_is_not_too_many_deletions() -> None:
    """Its files come under other names: each deletion that was withheld is performed when its content is there."""
    names = [f"sub/{number}" for number in range(40)]

    async def story(pair: Pair) -> None:
        pair.fill("top", *names)
        async with pair.serving(), pair.subscribing():
            await pair.until_held("top", *names)
            (pair.pub / "sub").rename(pair.pub / "renamed")
            await pair.until_held("top", *(f"renamed/{number}" for number in range(40)))

    play(story)
