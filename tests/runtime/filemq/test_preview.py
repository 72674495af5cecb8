"""Dry run of a subscriber: a listing is compared with an inbox, of which nothing changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specwire.runtime.filemq.codec import FILEMQ
from specwire.runtime.filemq.connection import Paths
from specwire.runtime.filemq.diskwork import CompleteFile, DeleteFile, Failed, WriteChunk
from specwire.runtime.filemq.inbox import Inbox, InboxError
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.filemq.preview import ListedFile, Preview, preview
from tests.runtime.filemq.inboxes import perform

HERE, OTHER = "tcp://here:5670", "tcp://other:5670"
JOURNAL = ".specwire-inbox/journal"


def file(name: str, content: bytes) -> ListedFile:
    return ListedFile(name, len(content), hashlib.sha1(content).hexdigest().upper())


@contextmanager
def opened(folder: Path, origin: str = HERE, rules: InboxRules | None = None) -> Iterator[Inbox]:
    inbox = Inbox(folder, sync=False, origin=origin, rules=rules or InboxRules())
    inbox.open()
    yield inbox
    inbox.close()


def receive(inbox: Inbox, **files: bytes) -> None:
    for name, content in files.items():
        perform(
            inbox,
            *([WriteChunk(1, f"/{name}", 0, content)] if content else []),
            CompleteFile(1, f"/{name}", len(content), None),
        )


def look(
    folder: Path, *files: ListedFile, paths: tuple[str, ...] = ("/",), folders: bool = False, **rules: object
) -> Preview:
    """Return the preview; the inbox must be as before."""
    before = snapshot(folder)
    found = preview(
        files,
        folder,
        Paths(paths, FILEMQ.habits, folders=folders),
        rules=InboxRules(**rules),  # type: ignore[arg-type]
        origin=HERE,
        folders=folders,
    )
    assert snapshot(folder) == before
    return found


def snapshot(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Return modification time and content of everything in a folder."""
    paths = [folder, *folder.rglob("*")] if folder.exists() else []
    return {path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"\0") for path in paths}


A, B, C = file("/a", b"content"), file("/b", b"b"), file("/c", b"new")


def test_inbox_that_does_not_exist_receives_everything(tmp_path: Path) -> None:
    assert look(tmp_path / "in", A, B) == Preview(missing=[A, B])
    assert not (tmp_path / "in").exists()


def test_folder_without_a_subscriber(tmp_path: Path) -> None:
    """Everything in it is the user's: it is compared, and never deleted."""
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "c").write_bytes(b"mine")
    (tmp_path / "own").write_bytes(b"")
    assert look(tmp_path, A, B, C) == Preview(missing=[B], changed=[C])


def test_inbox_is_compared(tmp_path: Path) -> None:
    """It is in use meanwhile. What another server has sent, and what the user has made, stays."""
    with opened(tmp_path, OTHER) as inbox:
        receive(inbox, others=b"x")
    with opened(tmp_path) as inbox:
        receive(inbox, a=b"content", c=b"old", gone=b"", edited=b"1")
        (tmp_path / "own").write_bytes(b"")
        (tmp_path / "edited").write_bytes(b"2")
        assert look(tmp_path, A, B, C) == Preview(missing=[B], changed=[C], deleted=["/edited", "/gone"])


def test_only_what_the_paths_cover_is_compared(tmp_path: Path) -> None:
    with opened(tmp_path) as inbox:
        receive(inbox, a=b"", b=b"", gone=b"")
    outside = file("/x", b"")
    found = look(tmp_path, B, outside, paths=("/b", "/gone", "/none"))
    assert found == Preview(
        changed=[B], deleted=["/gone"], refused=[("/x", "is under no path that was subscribed to")]
    )


def test_hostile_names_are_refused(tmp_path: Path) -> None:
    names = ("/../a", "/.specwire-inbox/journal", "a")
    found = look(tmp_path / "in", *(ListedFile(name, 0, "A" * 40) for name in names))
    assert [name for name, _ in found.refused] == [*names]
    assert (found.missing, found.changed) == ([], [])


def test_ignored_files_are_neither_received_nor_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as inbox:
        receive(inbox, **{"old.tmp": b"", "old": b""})
    new = file("/new.tmp", b"")
    assert look(tmp_path, A, new, ignore=("*.tmp",)) == Preview(missing=[A], deleted=["/old"])


def test_empty_folders_count_where_they_are_preserved(tmp_path: Path) -> None:
    with opened(tmp_path) as inbox:
        receive(inbox, **{"here/": b"", "gone/": b""})
    here, new = file("/here/", b""), file("/new/", b"")
    assert look(tmp_path, here, new, folders=True) == Preview(missing=[new], deleted=["/gone/"])
    assert look(tmp_path, A) == Preview(missing=[A])


def test_too_many_deletions_would_be_withheld(tmp_path: Path) -> None:
    """Half of 24 files may be deleted."""
    names = [f"f{number:02}" for number in range(24)]
    with opened(tmp_path) as inbox:
        receive(inbox, **dict.fromkeys(names, b""))
    published = [file(f"/{name}", b"") for name in names]
    assert not look(tmp_path, *published[12:]).withholds
    found = look(tmp_path, *published[13:])
    assert found == Preview(deleted=[f"/{name}" for name in names[:13]], withholds=True)
    assert not look(tmp_path, *published[13:], accept_deletions=True).withholds
    assert not look(tmp_path, *published).withholds


def test_withheld_deletions_stay_withheld(tmp_path: Path) -> None:
    """The file is still withdrawn, or published again, or outside of the paths."""
    strict = InboxRules(always=0, delete_files=0)
    with opened(tmp_path, rules=strict) as inbox:
        receive(inbox, a=b"content", other=b"")
        [failed] = perform(inbox, DeleteFile(1, "/a"))
        assert isinstance(failed, Failed)
    assert look(tmp_path) == Preview(deleted=["/a", "/other"], withholds=True)
    assert look(tmp_path, A) == Preview(deleted=["/other"])
    assert look(tmp_path, paths=("/other",)) == Preview(deleted=["/other"], withholds=True)


def test_lines_of_the_journal_that_are_cut_off_stay(tmp_path: Path) -> None:
    """The subscriber rewrites such a journal when it starts."""
    with opened(tmp_path) as inbox:
        receive(inbox, a=b"content")
    with (tmp_path / JOURNAL).open("ab") as journal:
        journal.write(b'\n["/b",nul')
    assert look(tmp_path, B) == Preview(missing=[B], deleted=["/a"])


@pytest.mark.parametrize("is_link", [False, True])
def test_inbox_that_cannot_be_used(tmp_path: Path, is_link: bool) -> None:
    folder = tmp_path / "in"
    if is_link:
        folder.mkdir()
        (folder / ".specwire-inbox").symlink_to(tmp_path)
    else:
        folder.write_bytes(b"")
    with pytest.raises(InboxError, match=f"the inbox {folder} cannot be used: "):
        look(folder, A)
