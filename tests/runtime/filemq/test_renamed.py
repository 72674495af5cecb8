"""Renamed files in an inbox: content from the trash, or from the place where a deletion is withheld."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.filemq.diskwork import (
    CompleteRenamed,
    ContentLost,
    Deleted,
    DeleteFile,
    Failed,
    Outcome,
    Stored,
)
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.journal import Journal
from specwire.runtime.filemq.policy import InboxRules
from tests.runtime.filemq.inboxes import perform
from tests.runtime.filemq.test_inbox import HIDDEN, receive, sha1, visible

OLD, NEW = b"old content", b"new content"
KEEPS_ALL = InboxRules(delete_files=1, always=1)
"""No second deletion is allowed."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "inbox"


def opened(folder: Path, rules: InboxRules | None = None) -> Iterator[Inbox]:
    """Yield an open inbox."""
    inbox = Inbox(folder, sync=False, rules=rules or InboxRules())
    inbox.open()
    yield inbox
    inbox.close()


@pytest.fixture
def inbox(folder: Path) -> Iterator[Inbox]:
    yield from opened(folder)


@pytest.fixture
def strict(folder: Path) -> Iterator[Inbox]:
    """An inbox that withholds all deletions but the first."""
    yield from opened(folder, KEEPS_ALL)


def complete(inbox: Inbox, name: str, content: bytes) -> list[Outcome]:
    """Order a renamed file."""
    return perform(inbox, CompleteRenamed(1, name, len(content), sha1(content)))


def own_files(folder: Path) -> set[str]:
    """Return what is in the inbox's own folder besides the journal and the trash."""
    return {path.name for path in (folder / HIDDEN).iterdir()} - {"journal", "trash"}


def test_content_of_a_deleted_file_is_used(inbox: Inbox, folder: Path) -> None:
    receive(inbox, "/d/old", OLD)
    perform(inbox, DeleteFile(1, "/d/old"))
    assert complete(inbox, "/e/new", OLD) == [Stored(1, "/e/new", len(OLD), sha1(OLD), True)]
    assert visible(folder) == {"e/new": OLD}
    assert complete(inbox, "/second", OLD) == [ContentLost(1, "/second")], "it can be used once"
    assert own_files(folder) == set()


def test_another_version_in_the_trash_stays_there(inbox: Inbox, folder: Path) -> None:
    """The trash has the last version of a name only; what it has is not destroyed."""
    receive(inbox, "/a", OLD)
    perform(inbox, DeleteFile(1, "/a"))
    receive(inbox, "/a", NEW)
    receive(inbox, "/a", b"newest")
    assert complete(inbox, "/b", OLD) == [ContentLost(1, "/b")]
    assert (folder / HIDDEN / "trash" / "a").read_bytes() == NEW
    assert own_files(folder) == set()


def test_withheld_file_moves_to_its_new_name(strict: Inbox, folder: Path) -> None:
    """Its deletion is performed with that, and no second name of the file remains."""
    for name in ("/1", "/2", "/3"):
        receive(strict, name, name.encode() * 5)
    perform(strict, DeleteFile(1, "/1"))
    assert any(isinstance(one, Failed) for one in perform(strict, DeleteFile(1, "/2"))), "it is withheld"
    content = b"/2" * 5
    assert complete(strict, "/two", content) == [
        Deleted(1, "/2"),
        Stored(1, "/two", len(content), sha1(content), True),
    ]
    assert not (folder / "2").exists()
    assert os.stat(folder / "two").st_nlink == 1
    assert own_files(folder) == set()


def test_withheld_file_that_is_published_again_stays(strict: Inbox, folder: Path) -> None:
    """Under its own name there is nothing to move."""
    for name in ("/1", "/2", "/3"):
        receive(strict, name, name.encode() * 5)
    perform(strict, DeleteFile(1, "/1"))
    perform(strict, DeleteFile(1, "/2"))
    withheld, content = strict.withheld, b"/2" * 5
    assert complete(strict, "/2", content) == [Stored(1, "/2", len(content), sha1(content), True)]
    assert strict.withheld == withheld - 1
    assert (folder / "2").read_bytes() == content
    assert own_files(folder) == set()


@pytest.mark.parametrize("change", ["removed", "edited"])
def test_withheld_file_that_the_user_touched_is_not_used(strict: Inbox, folder: Path, change: str) -> None:
    """The content is asked for; an edited file stays."""
    for name in ("/1", "/2", "/3"):
        receive(strict, name, name.encode() * 5)
    perform(strict, DeleteFile(1, "/1"))
    perform(strict, DeleteFile(1, "/2"))
    if change == "removed":
        (folder / "2").unlink()
    else:
        (folder / "2").write_bytes(b"edited by the user")
    assert complete(strict, "/two", b"/2" * 5) == [ContentLost(1, "/two")]
    assert (folder / "2").exists() == (change == "edited")
    assert own_files(folder) == set()


def test_file_that_cannot_be_opened_stays_in_the_trash(inbox: Inbox, folder: Path) -> None:
    """A folder took its place there, as an example of what may go wrong."""
    receive(inbox, "/a", OLD)
    perform(inbox, DeleteFile(1, "/a"))
    (folder / HIDDEN / "trash" / "a").unlink()
    (folder / HIDDEN / "trash" / "a").mkdir()
    assert complete(inbox, "/b", OLD) == [ContentLost(1, "/b")]
    assert own_files(folder) == set()


@pytest.mark.parametrize("change", ["removed", "edited"])
def test_withheld_file_that_is_published_again_is_asked_for_if_the_user_touched_it(
    strict: Inbox, folder: Path, change: str
) -> None:
    for name in ("/1", "/2", "/3"):
        receive(strict, name, name.encode() * 5)
    perform(strict, DeleteFile(1, "/1"))
    perform(strict, DeleteFile(1, "/2"))
    if change == "removed":
        (folder / "2").unlink()
    else:
        (folder / "2").write_bytes(b"edited by the user")
    assert complete(strict, "/2", b"/2" * 5) == [ContentLost(1, "/2")]
    assert (folder / "2").exists() == (change == "edited")


def test_full_disk_ends_neither_the_client_nor_loses_a_moved_file(
    strict: Inbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal cannot be written: the content is asked for, and what is withheld stays."""
    for name in ("/1", "/2", "/3"):
        receive(strict, name, name.encode() * 5)
    perform(strict, DeleteFile(1, "/1"))
    perform(strict, DeleteFile(1, "/2"))

    def full(journal: Journal, lines: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "_append", full)
        assert complete(strict, "/2", b"/2" * 5) == [ContentLost(1, "/2")]
        outcomes = complete(strict, "/two", b"/2" * 5)
    assert outcomes[0] == Deleted(1, "/2")
    assert isinstance(outcomes[1], Failed) and outcomes[1].again
    assert own_files(folder) == set()
