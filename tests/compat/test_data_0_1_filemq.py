"""A FILEMQ inbox and a digest store of version 0.1.0: nothing is fetched, read or deleted that need not be.

Expected values are those that `tests/data/0.1/write/filemq.py.txt` put in.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from specwire.runtime.filemq import journal
from specwire.runtime.filemq.digeststore import DigestStore, StoredDigests
from specwire.runtime.filemq.diskwork import Held, ListHeld, Unfinished
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.publication import Publication
from tests.house.repository import ROOT
from tests.integration.filemq_scene import in_step, run, serving, subscribing
from tests.runtime.filemq.inboxes import perform

DATA = ROOT / "tests/data/0.1/filemq"
SERVER = "tcp://127.0.0.1:5670"
"""The endpoint by which the inbox knows the server that filled it."""

FILES = {
    "a.txt": b"hello\n",
    "2013/b.bin": bytes(range(256)) * 4,
    "2013/c d.txt": b"a name with a space\n",
    "empty": b"",
}
LARGE = b"0123456789" * 1000
RECEIVED_OCTETS = 4000
"""Of `LARGE`, which the inbox has unfinished."""


def sha1(content: bytes) -> str:
    """Return the digest as FILEMQ peers print it."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest().upper()


DIGESTS = {f"/photos/{name}": sha1(content) for name, content in FILES.items()}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A copy of the inbox."""
    return shutil.copytree(DATA / "inbox", tmp_path / "inbox")


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder with the files that the server of 0.1.0 published."""
    folder = tmp_path / "photos"
    for name, content in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DigestStore]:
    """A copy of the digest store."""
    with closing(DigestStore(shutil.copytree(DATA / "digests", tmp_path / "digests"))) as opened:
        yield opened


def put_on_this_disk(inbox: Path) -> None:
    """Give the journal the times and inodes of the copied files, as if the inbox had stayed on its disk."""
    journal = inbox / ".specwire-inbox/journal"
    lines = []
    for line in journal.read_text(encoding="utf-8").splitlines():
        said = json.loads(line) if line else None
        if said is not None and isinstance(said[1], list) and (inbox / said[0][1:]).exists():
            state = os.stat(inbox / said[0][1:])
            said[1][1] = [state.st_size, state.st_mtime_ns, state.st_ino]
        lines.append("" if said is None else json.dumps(said, separators=(",", ":")))
    journal.write_text("\n".join(lines), encoding="utf-8")


def list_held(folder: Path) -> Held:
    """Return what an inbox holds, as its client asks at each connection."""
    inbox = Inbox(folder, origin=SERVER)
    inbox.open()
    try:
        assert inbox.lines_lost == 0
        [held] = perform(inbox, ListHeld(1, "/photos"))
    finally:
        inbox.close()
    assert isinstance(held, Held)
    return held


def test_inbox_lists_files_and_what_is_unfinished(inbox: Path) -> None:
    held = list_held(inbox)
    assert held.digests == DIGESTS
    beginning = LARGE[:RECEIVED_OCTETS]
    assert held.unfinished == Unfinished("/photos/large.bin", RECEIVED_OCTETS, sha1(beginning))


def test_digests_of_the_journal_are_used(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is read that is in the state that the journal notes."""
    put_on_this_disk(inbox)
    monkeypatch.delattr(journal, "digest_file")
    assert list_held(inbox).digests == DIGESTS


@pytest.mark.peers
def test_files_are_not_fetched_again(inbox: Path, published: Path) -> None:
    async def story() -> None:
        async with (
            serving(Publication(published, "/photos")) as (server, _),
            subscribing(server.endpoint, inbox, "/photos", origin=SERVER) as (client, _),
        ):
            await in_step(server, client)
            assert (client.counters.files, client.counters.content_octets) == (0, 0)
            assert client.holdings == DIGESTS

    run(story)
    assert {name: (inbox / "photos" / name).read_bytes() for name in FILES} == FILES


@pytest.mark.peers
def test_unfinished_file_is_resumed(inbox: Path, published: Path) -> None:
    (published / "large.bin").write_bytes(LARGE)

    async def story() -> None:
        async with (
            serving(Publication(published, "/photos")) as (server, _),
            subscribing(server.endpoint, inbox, "/photos", origin=SERVER) as (client, _),
        ):
            await in_step(server, client)
            assert (client.counters.files, client.counters.resumed) == (1, 1)
            assert client.counters.octets_saved == RECEIVED_OCTETS
            assert client.counters.content_octets == len(LARGE) - RECEIVED_OCTETS

    run(story)
    assert (inbox / "photos/large.bin").read_bytes() == LARGE


@pytest.mark.peers
def test_server_of_the_journal_may_delete(inbox: Path, published: Path) -> None:
    (published / "a.txt").unlink()

    async def story() -> None:
        async with (
            serving(Publication(published, "/photos")) as (server, _),
            subscribing(server.endpoint, inbox, "/photos", origin=SERVER) as (client, _),
        ):
            await in_step(server, client)
            assert client.counters.deletions == 1

    run(story)
    assert not (inbox / "photos/a.txt").exists()


@pytest.mark.peers
def test_another_server_may_not_delete(inbox: Path, published: Path) -> None:
    """The journal says from which server a file came."""
    (published / "a.txt").unlink()

    async def story() -> None:
        async with (
            serving(Publication(published, "/photos")) as (server, _),
            subscribing(server.endpoint, inbox, "/photos") as (client, _),
        ):
            while not client.status().refusals:
                await asyncio.sleep(0.01)
            [refusal] = client.status().refusals
            assert (refusal.name, client.counters.deletions) == ("/photos/a.txt", 0)
            assert SERVER in refusal.reason

    run(story)
    assert (inbox / "photos/a.txt").read_bytes() == FILES["a.txt"]


def stored_states() -> tuple[Path, dict[str, os.stat_result]]:
    """Return the folder that was published, and the state of each file as the system told it then."""
    told = json.loads((DATA / "published.json").read_text(encoding="utf-8"))
    return Path(told["folder"]), {name: make_state(**state) for name, state in told["files"].items()}


def make_state(*, size: int, mtime_ns: int, inode: int, ctime_ns: int) -> os.stat_result:
    """Return a file's state."""
    seconds = (0, mtime_ns // 10**9, ctime_ns // 10**9)
    exact = {"st_mtime_ns": mtime_ns, "st_ctime_ns": ctime_ns}
    state = os.stat_result((0o100644, inode, 0, 1, 0, 0, size, *seconds), exact)
    assert (state.st_mtime_ns, state.st_ctime_ns) == (mtime_ns, ctime_ns)
    return state


def test_digests_of_published_files_are_used(store: DigestStore) -> None:
    """A file in the state that the store notes needs no reading."""
    folder, states = stored_states()
    kept = StoredDigests(store, folder)
    found = {name: kept.find(f"/{name}", state) for name, state in states.items()}
    assert {name: digest and digest.sha1 for name, digest in found.items()} == {
        name: sha1(content) for name, content in FILES.items()
    }


def test_digests_of_changed_files_are_not_used(store: DigestStore) -> None:
    folder, states = stored_states()
    kept = StoredDigests(store, folder)
    for name, state in states.items():
        changed = make_state(
            size=state.st_size,
            mtime_ns=state.st_mtime_ns,
            inode=state.st_ino,
            ctime_ns=state.st_ctime_ns + 1,
        )
        assert kept.find(f"/{name}", changed) is None


def test_deleted_files_have_no_digest(store: DigestStore) -> None:
    folder, _ = stored_states()
    assert store.load(folder).keys() == FILES.keys()
