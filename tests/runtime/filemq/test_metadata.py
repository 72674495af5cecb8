"""Modes and modification times of files: what a publication reports, and what an inbox applies."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.filemq.catalogue import Entry, Put
from specwire.runtime.filemq.digeststore import DigestStore
from specwire.runtime.filemq.diskwork import (
    Checked,
    CheckInbox,
    CompleteFile,
    KeepFile,
    Stored,
    WriteChunk,
)
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.publication import Publication
from tests.integration.filemq_disks import open_folder, run_as_nobody
from tests.runtime.filemq.inboxes import perform

THEN_NS = 1_234_567_890_123_456_789
SHA1_OF_KEY = "A62F2225BF70BFACCBC7F1EF2A397836717377DE"
"""sha1sum of ``key``."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "key").write_bytes(b"key")
    (folder / "key").chmod(0o4640)
    os.utime(folder / "key", ns=(0, THEN_NS))
    return folder


def scan(publication: Publication) -> list[Entry]:
    return [change.entry for change in publication.scan() if isinstance(change, Put)]


def test_published_file_has_its_mode_and_time(source: Path, tmp_path: Path) -> None:
    """Also after a restart that reads no file; without the set-user-id bit."""
    with closing(DigestStore(tmp_path / "digests")) as store:
        for _ in range(2):
            publication = Publication(source, digests=store)
            publication.open()
            [entry] = scan(publication)
            assert (entry.sha1, entry.mode, entry.mtime_ns) == (SHA1_OF_KEY, 0o640, THEN_NS)
            publication.close()


def test_change_of_a_mode_is_reported(source: Path) -> None:
    publication = Publication(source)
    publication.open()
    scan(publication)
    (source / "key").chmod(0o600)
    [entry] = scan(publication)
    assert (entry.sha1, entry.mode) == (SHA1_OF_KEY, 0o600)
    assert scan(publication) == []
    publication.close()


# ---- an inbox


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    opened = Inbox(tmp_path / "inbox")
    opened.open()
    yield opened
    opened.close()


def receive(
    inbox: Inbox, name: str = "/key", *, mode: int | None = None, mtime_ns: int | None = None
) -> None:
    complete = CompleteFile(1, name, 3, SHA1_OF_KEY, mode, mtime_ns)
    outcomes = perform(inbox, WriteChunk(1, name, 0, b"key"), complete)
    assert isinstance(outcomes[-1], Stored), outcomes


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o4755, 0o2755, 0o1777])
def test_received_file_gets_its_mode_and_time(inbox: Inbox, mode: int) -> None:
    receive(inbox, mode=mode, mtime_ns=THEN_NS)
    assert mode_of(inbox.folder / "key") == mode % 0o1000
    assert (inbox.folder / "key").stat().st_mtime_ns == THEN_NS
    assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=False)]


def test_received_file_without_a_mode_has_the_default(inbox: Inbox) -> None:
    receive(inbox)
    (inbox.folder / "other").write_bytes(b"")
    assert mode_of(inbox.folder / "key") == mode_of(inbox.folder / "other")


@pytest.mark.parametrize("mtime_ns", [2**63 * 10**9, 2**200, -(2**200)])
def test_time_that_the_system_does_not_have_is_ignored(inbox: Inbox, mtime_ns: int) -> None:
    receive(inbox, mtime_ns=mtime_ns)
    assert (inbox.folder / "key").read_bytes() == b"key"


def test_key_is_never_readable_by_others(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in a folder of its owner until it has its mode."""
    rename: Callable[..., None] = os.rename
    modes: list[int] = []

    def rename_traced(leaf: str, place: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        modes.append(stat.S_IMODE(os.stat(leaf, dir_fd=src_dir_fd).st_mode))
        rename(leaf, place, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", rename_traced)
    receive(inbox, mode=0o600)
    assert modes == [0o600]
    assert mode_of(inbox.folder / ".specwire-inbox") == 0o700


def test_read_only_file_is_replaced() -> None:
    def story(folder: Path) -> None:
        with closing(opened(folder / "inbox")) as inbox:
            for _ in range(2):
                receive(inbox, mode=0o400)
            assert mode_of(folder / "inbox/key") == 0o400

    with open_folder() as folder:
        run_as_nobody(folder, lambda: story(folder))


def test_complete_file_with_a_read_only_mode_is_not_resumed_after_a_kill() -> None:
    def story(folder: Path) -> None:
        inbox = opened(folder / "inbox")
        inbox.perform([WriteChunk(1, "/key", 0, b"ke"), KeepFile(1, "/key")])
        (folder / "inbox/.specwire-inbox/unfinished-1").chmod(0o400)
        os.close(inbox._own)  # as a kill does; the files stay
        with closing(opened(folder / "inbox")) as again:
            receive(again)

    with open_folder() as folder:
        run_as_nobody(folder, lambda: story(folder))


def opened(folder: Path, **settings: Any) -> Inbox:
    inbox = Inbox(folder, **settings)
    inbox.open()
    return inbox
