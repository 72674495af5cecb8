"""The inbox: whole files only, nothing outside, deletions of received files only, trouble as outcomes."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.filemq import placing, unfinished
from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.diskwork import (
    CompleteFile,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    KeepFile,
    ListHeld,
    Outcome,
    Stored,
    Unfinished,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.inbox import Inbox, InboxError
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.policy import InboxRules
from tests.examples import examples
from tests.runtime.filemq.inboxes import perform

HIDDEN = ".specwire-inbox"
RECORD = Record("A" * 40, Signature(0, 0, 0), received=True)


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest().upper()


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    opened = Inbox(tmp_path / "inbox", sync=False)
    opened.open()
    yield opened
    opened.close()


def receive(inbox: Inbox, name: str, content: bytes, *, digest: str | None = None) -> list[Outcome]:
    """Receive one file in chunks of 4 octets; return what is not `Wrote`."""
    outcomes: list[Outcome] = []
    for offset in range(0, len(content), 4):
        outcomes += perform(inbox, WriteChunk(1, name, offset, content[offset : offset + 4]))
    outcomes += perform(inbox, CompleteFile(1, name, len(content), digest or sha1(content)))
    return [outcome for outcome in outcomes if not isinstance(outcome, Wrote)]


def visible(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and HIDDEN not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def reason(outcomes: list[Outcome]) -> tuple[str, bool]:
    [failed] = outcomes
    assert isinstance(failed, Failed)
    return failed.reason, failed.again


# ---- whole files


@pytest.mark.parametrize("name", ["/a", "/d/e/f.txt", "/with space", "/ünï/文件", "/..a", "/-rf"])
@pytest.mark.parametrize("content", [b"", b"x", b"0123456789"])
def test_file_is_stored_under_its_full_path(inbox: Inbox, name: str, content: bytes) -> None:
    assert receive(inbox, name, content) == [Stored(1, name, len(content), sha1(content), True)]
    assert visible(inbox.folder) == {name[1:]: content}


def test_nothing_is_visible_before_the_file_is_complete(inbox: Inbox) -> None:
    receive(inbox, "/a", b"old content")
    perform(inbox, WriteChunk(1, "/a", 0, b"new"))
    assert visible(inbox.folder) == {"a": b"old content"}


def test_shorter_version_leaves_no_tail(inbox: Inbox) -> None:
    receive(inbox, "/a", b"a long version")
    receive(inbox, "/a", b"short")
    assert visible(inbox.folder) == {"a": b"short"}


def test_file_begun_again_is_not_mixed(inbox: Inbox) -> None:
    perform(inbox, WriteChunk(1, "/a", 0, b"first version"))
    assert receive(inbox, "/a", b"second")[0] == Stored(1, "/a", 6, sha1(b"second"), True)


def test_wrong_digest_is_refused_and_may_be_sent_again(inbox: Inbox) -> None:
    text, again = reason(receive(inbox, "/a", b"content", digest="0" * 40))
    assert "was announced" in text
    assert again
    assert visible(inbox.folder) == {}


def test_wrong_size_is_refused(inbox: Inbox) -> None:
    perform(inbox, WriteChunk(1, "/a", 0, b"abc"))
    assert reason(perform(inbox, CompleteFile(1, "/a", 5, None))) == ("was not received whole", True)


def test_file_without_announced_digest_is_unverified(inbox: Inbox) -> None:
    perform(inbox, WriteChunk(1, "/a", 0, b"abc"))
    assert perform(inbox, CompleteFile(1, "/a", 3, None)) == [Stored(1, "/a", 3, sha1(b"abc"), False)]


def test_discarded_file_leaves_nothing(inbox: Inbox) -> None:
    perform(inbox, WriteChunk(1, "/a", 0, b"abc"))
    assert perform(inbox, DiscardFile(1, "/a")) == []
    assert [path.name for path in inbox.folder.rglob("*") if path.is_file()] == ["journal"]


# ---- many files at once


def pieces(*names: str) -> list[DiskAction]:
    """What is ordered for files whose content is their name."""
    orders: list[DiskAction] = []
    for name in names:
        content = name.encode()
        orders += [
            WriteChunk(1, name, 0, content),
            CompleteFile(1, name, len(content), sha1(content)),
        ]
    return orders


def test_files_of_a_batch_are_on_the_disk_before_any_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bytes, dict[str, bytes]]] = []

    def sync_file(descriptor: int) -> OSError | None:
        content = Path(f"/proc/self/fd/{descriptor}").read_bytes()
        synced.append((content, visible(tmp_path)))
        return OSError(errno.EIO, "broken") if content == b"/b" else None

    monkeypatch.setattr(placing, "sync_file", sync_file)
    inbox = Inbox(tmp_path)
    inbox.open()
    outcomes = perform(inbox, *pieces("/a", "/b", "/d/c"))
    inbox.close()
    assert sorted(synced) == [(b"/a", {}), (b"/b", {}), (b"/d/c", {})]
    assert [outcome for outcome in outcomes if not isinstance(outcome, Wrote)] == [
        Stored(1, "/a", 2, sha1(b"/a"), True),
        Failed(1, "/b", "broken", True),
        Stored(1, "/d/c", 4, sha1(b"/d/c"), True),
    ]
    assert visible(tmp_path) == {"a": b"/a", "d/c": b"/d/c"}
    assert os.listdir(tmp_path / HIDDEN) == ["journal"]


def stored(*names: str) -> list[Outcome]:
    return [Stored(1, name, len(name), sha1(name.encode()), True) for name in names]


def test_the_next_batch_is_written_while_the_disk_is_busy_with_the_last(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.open()
    assert inbox.perform(pieces("/a", "/b")) == [Wrote(1, 2), Wrote(1, 2)]
    assert inbox.pending
    assert visible(tmp_path) == {}
    assert inbox.perform(pieces("/c")) == [Wrote(1, 2), *stored("/a", "/b")]
    assert visible(tmp_path) == {"a": b"/a", "b": b"/b"}
    assert inbox.perform([]) == stored("/c")
    assert not inbox.pending
    inbox.close()


def test_what_the_disk_is_busy_with_is_in_its_place_before_it_is_listed_or_deleted(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.open()
    inbox.perform(pieces("/a", "/b"))
    assert inbox.perform([DeleteFile(1, "/a")]) == [*stored("/a", "/b"), Deleted(1, "/a")]
    inbox.perform(pieces("/c"))
    assert inbox.perform([ListHeld(1, "/")]) == [
        *stored("/c"),
        Held(1, "/", {"/b": sha1(b"/b"), "/c": sha1(b"/c")}),
    ]
    inbox.close()


def test_what_the_disk_is_busy_with_at_the_end_is_thrown_away(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.open()
    inbox.perform(pieces("/a"))
    inbox.close()
    assert visible(tmp_path) == {}
    assert os.listdir(tmp_path / HIDDEN) == ["journal"]


@pytest.mark.parametrize("sync", [False, True])
def test_where_the_journal_has_no_room_no_file_of_the_batch_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    def append(self: Journal, lines: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    inbox = Inbox(tmp_path, sync=sync)
    inbox.open()
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_append", append)
        outcomes = perform(inbox, *pieces("/a", "/b"))
    assert outcomes[2:] == [Failed(1, "/a", "no room", True), Failed(1, "/b", "no room", True)]
    assert visible(tmp_path) == {}
    assert perform(inbox, *pieces("/a", "/b"))[2:] == stored("/a", "/b")
    inbox.close()


def test_folder_that_goes_within_a_batch_is_walked_to_again(inbox: Inbox) -> None:
    """With its last file; and the next one makes it anew."""
    outcomes = perform(inbox, *pieces("/d/a"), DeleteFile(1, "/d/a"), *pieces("/d/b", "/e/f/c", "/d/g"))
    assert [outcome for outcome in outcomes if not isinstance(outcome, Wrote)] == [
        *stored("/d/a"),
        Deleted(1, "/d/a"),
        *stored("/d/b", "/e/f/c", "/d/g"),
    ]
    assert visible(inbox.folder) == {"d/b": b"/d/b", "e/f/c": b"/e/f/c", "d/g": b"/d/g"}


def test_work_of_a_batch_is_done_in_order(inbox: Inbox) -> None:
    orders = [*pieces("/a", "/b"), DeleteFile(1, "/a"), ListHeld(1, "/"), *pieces("/a/c")]
    outcomes = perform(inbox, *orders)
    assert [outcome for outcome in outcomes if not isinstance(outcome, Wrote)] == [
        Stored(1, "/a", 2, sha1(b"/a"), True),
        Stored(1, "/b", 2, sha1(b"/b"), True),
        Deleted(1, "/a"),
        Held(1, "/", {"/b": sha1(b"/b")}),
        Stored(1, "/a/c", 4, sha1(b"/a/c"), True),
    ]


def test_batch_of_any_length_is_stored(inbox: Inbox) -> None:
    """More files than may be open at once."""
    names = [f"/{number}" for number in range(1100)]
    perform(inbox, *pieces(*names))
    assert visible(inbox.folder) == {name[1:]: name.encode() for name in names}


def test_large_chunks_are_digested_as_they_are_written(inbox: Inbox) -> None:
    first, second = os.urandom(1 << 20), os.urandom((1 << 20) + 1)
    perform(inbox, WriteChunk(1, "/a", 0, first), WriteChunk(1, "/a", len(first), second))
    whole = first + second
    assert perform(inbox, CompleteFile(1, "/a", len(whole), None)) == [
        Stored(1, "/a", len(whole), sha1(whole), False)
    ]


def test_what_a_kill_left_behind_is_removed(tmp_path: Path) -> None:
    """Of this version and of the one before, which had one name for it."""
    (tmp_path / HIDDEN).mkdir()
    for leaf in ("unfinished", "unfinished-1", "unfinished-27"):
        (tmp_path / HIDDEN / leaf).write_bytes(b"half")
    inbox = Inbox(tmp_path, sync=False)
    inbox.open()
    perform(inbox, *pieces("/a"))
    inbox.close()
    assert os.listdir(tmp_path / HIDDEN) == ["journal"]
    assert visible(tmp_path) == {"a": b"/a"}


# ---- containment


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_bytes(b"precious")
    return folder


def test_symbolic_link_on_the_way_is_refused(inbox: Inbox, outside: Path) -> None:
    (inbox.folder / "link").symlink_to(outside)
    text, again = reason(receive(inbox, "/link/new", b"content"))
    assert text == "leads through 'link', which is a symbolic link"
    assert not again
    assert reason(perform(inbox, DeleteFile(1, "/link/precious")))[0] == text
    assert visible(outside) == {"precious": b"precious"}


def test_symbolic_link_in_the_place_of_a_file_is_refused(inbox: Inbox, outside: Path) -> None:
    (inbox.folder / "link").symlink_to(outside / "precious")
    assert reason(receive(inbox, "/link", b"content")) == ("is a symbolic link here", False)
    assert reason(perform(inbox, DeleteFile(1, "/link"))) == ("is a symbolic link here", False)
    assert visible(outside) == {"precious": b"precious"}


def test_link_that_appears_while_a_file_is_received_is_refused(inbox: Inbox, outside: Path) -> None:
    perform(inbox, WriteChunk(1, "/d/new", 0, b"abc"))
    (inbox.folder / "d").symlink_to(outside)
    assert "symbolic link" in reason(perform(inbox, CompleteFile(1, "/d/new", 3, None)))[0]
    assert visible(outside) == {"precious": b"precious"}


def test_dangling_link_is_refused(inbox: Inbox, outside: Path) -> None:
    (inbox.folder / "link").symlink_to(outside / "missing")
    assert "symbolic link" in reason(receive(inbox, "/link", b"content"))[0]
    assert visible(outside) == {"precious": b"precious"}


def test_refused_place_is_found_before_content_is_written(inbox: Inbox) -> None:
    (inbox.folder / "d").mkdir()
    outcomes = perform(inbox, WriteChunk(1, "/d", 0, b"content"))
    assert outcomes == [Wrote(1, 7), Failed(1, "/d", "is a folder here", False)]
    assert perform(inbox, WriteChunk(1, "/d", 7, b"more")) == [Wrote(1, 4)]
    assert perform(inbox, CompleteFile(1, "/d", 11, None)) == [], "it is reported once"


def test_file_where_a_folder_is_needed_is_refused(inbox: Inbox) -> None:
    receive(inbox, "/a", b"content")
    assert reason(receive(inbox, "/a/b", b"content")) == ("leads through 'a', which is not a folder", False)
    assert visible(inbox.folder) == {"a": b"content"}


@pytest.mark.parametrize(
    "name", ["/..", "/../a", "/a/../../b", "/./x", "relative", "/", "//x", "/x//", "/a\0b"]
)
def test_faulty_name_is_refused_by_the_inbox_itself(inbox: Inbox, name: str) -> None:
    (inbox.folder.parent / "a").write_bytes(b"precious")
    assert [again for _, again in [reason(receive(inbox, name, b"content"))]] == [False]
    assert [again for _, again in [reason(perform(inbox, DeleteFile(1, name)))]] == [False]
    assert visible(inbox.folder.parent) == {"a": b"precious"}


@settings(max_examples=examples(30), deadline=None)
@given(
    components=st.lists(
        st.sampled_from(["a", "..", ".", "", "link", "file", "\0", "é" * 130]), min_size=1, max_size=5
    ),
    operation=st.booleans(),
)
def test_no_name_reaches_outside(
    tmp_path_factory: pytest.TempPathFactory, components: list[str], operation: bool
) -> None:
    """Whatever the name, even past the engine's own check: nothing outside is made, changed or removed."""
    base = tmp_path_factory.mktemp("contained")
    (base / "outside").mkdir()
    (base / "outside" / "a").write_bytes(b"precious")
    (base / "a").write_bytes(b"precious")
    inbox = Inbox(base / "inbox", sync=False)
    inbox.open()
    (base / "inbox" / "link").symlink_to(base / "outside")
    name = "/" + "/".join(components)
    try:
        if operation:
            perform(inbox, DeleteFile(1, name))
        else:
            receive(inbox, name, b"content")
    finally:
        inbox.close()
    assert (base / "a").read_bytes() == (base / "outside" / "a").read_bytes() == b"precious"
    assert sorted(os.listdir(base)) == ["a", "inbox", "outside"]
    assert os.listdir(base / "outside") == ["a"]


# ---- deletions


def test_received_file_is_deleted_with_folders_that_become_empty(inbox: Inbox) -> None:
    receive(inbox, "/d/e/a", b"content")
    receive(inbox, "/d/b", b"content")
    assert perform(inbox, DeleteFile(1, "/d/e/a")) == [Deleted(1, "/d/e/a")]
    assert visible(inbox.folder) == {"d/b": b"content"}
    assert not (inbox.folder / "d" / "e").exists()


def test_file_of_other_origin_is_kept(inbox: Inbox) -> None:
    (inbox.folder / "mine").write_bytes(b"mine")
    assert reason(perform(inbox, DeleteFile(1, "/mine"))) == (
        "did not come from a server, and is kept",
        False,
    )
    assert visible(inbox.folder) == {"mine": b"mine"}


def test_missing_file_is_deleted_already(inbox: Inbox) -> None:
    assert perform(inbox, DeleteFile(1, "/missing")) == []
    assert perform(inbox, DeleteFile(1, "/missing/too")) == []


def test_file_may_become_a_folder_and_a_folder_a_file(inbox: Inbox) -> None:
    receive(inbox, "/a", b"file")
    perform(inbox, DeleteFile(1, "/a"))
    receive(inbox, "/a/b", b"inner")
    assert visible(inbox.folder) == {"a/b": b"inner"}
    perform(inbox, DeleteFile(1, "/a/b"))
    receive(inbox, "/a", b"file")
    assert visible(inbox.folder) == {"a": b"file"}


# ---- what is held


def test_listing_names_every_file_with_its_digest(inbox: Inbox) -> None:
    receive(inbox, "/p/a", b"1")
    (inbox.folder / "p" / "mine").write_bytes(b"2")
    (inbox.folder / "link").symlink_to(inbox.folder / "p")
    assert perform(inbox, ListHeld(1, "/")) == [Held(1, "/", {"/p/a": sha1(b"1"), "/p/mine": sha1(b"2")})]
    assert inbox.list_held("/p/a") == {"/p/a": sha1(b"1")}
    assert inbox.list_held("/q") == inbox.list_held("/p/a/b") == {}


def test_listing_sees_a_file_that_was_changed_by_hand(inbox: Inbox) -> None:
    receive(inbox, "/a", b"received")
    (inbox.folder / "a").write_bytes(b"by hand!")
    os.utime(inbox.folder / "a", ns=(1, 1))
    assert inbox.list_held("/") == {"/a": sha1(b"by hand!")}


def test_known_files_are_not_read_again(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    receive(inbox, "/a", b"content")
    monkeypatch.setattr(
        "specwire.runtime.filemq.journal.digest_file", lambda descriptor: pytest.fail("was read")
    )
    assert inbox.list_held("/") == {"/a": sha1(b"content")}


def test_knowledge_survives_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Inbox(tmp_path, sync=False)
    first.open()
    receive(first, "/a", b"content")
    receive(first, "/b", b"content")
    perform(first, DeleteFile(1, "/b"))
    perform(first, WriteChunk(1, "/half", 0, b"half"))
    first.close()
    with (tmp_path / HIDDEN / "journal").open("ab") as journal:
        journal.write(b'\n["/cut off')
    second = Inbox(tmp_path, sync=False)
    second.open()
    assert second.lines_lost == 1
    with monkeypatch.context() as patch:
        patch.setattr(
            "specwire.runtime.filemq.journal.digest_file", lambda descriptor: pytest.fail("was read")
        )
        assert second.list_held("/") == {"/a": sha1(b"content")}
    assert receive(second, "/c", b"more")
    assert perform(second, DeleteFile(1, "/a")) == [Deleted(1, "/a")]
    second.close()
    assert visible(tmp_path) == {"c": b"more"}
    third = Inbox(tmp_path, sync=False)
    third.open()
    assert third.lines_lost == 0, "it was told, and the journal written anew"
    assert third.list_held("/") == {"/c": sha1(b"more")}
    third.close()


def trash(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in (folder / HIDDEN / "trash").glob("*")}


@pytest.mark.parametrize("kept_by", ["trash", "kept"])
def test_deleted_files_are_in_the_trash_for_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_by: str
) -> None:
    """Also those that version 0.1 has kept, in a folder with another name."""
    long = "/" + "d" * 200 + "/" + "ü" * 60
    for later_s in (6 * 86_400, 8 * 86_400):
        inbox = Inbox(tmp_path, sync=False)
        inbox.open()
        for name in ("/a/b", "/a", "/c%", long):
            receive(inbox, name, name.encode())
            assert perform(inbox, DeleteFile(1, name)) == [Deleted(1, name)]
        receive(inbox, "/a", b"new")
        assert trash(tmp_path) == {b"/a/b", b"/a", b"/c%", long.encode()}
        assert visible(tmp_path) == {"a": b"new"}
        inbox.close()
        if kept_by == "kept":
            (tmp_path / HIDDEN / "trash").rename(tmp_path / HIDDEN / "kept")
        inbox = Inbox(tmp_path, sync=False)
        with monkeypatch.context() as patch:
            now = time.time() + later_s
            patch.setattr("specwire.runtime.filemq.trash.time.time", lambda now=now: now)
            inbox.open()
        assert len(trash(tmp_path)) == (4 if later_s < 7 * 86_400 else 0)
        perform(inbox, DeleteFile(1, "/a"))
        inbox.close()


def test_replaced_file_is_in_the_trash(inbox: Inbox) -> None:
    for content in (b"first", b"second", b"third"):
        receive(inbox, "/d/a", content)
    assert (visible(inbox.folder), trash(inbox.folder)) == ({"d/a": b"third"}, {b"second"})


def test_without_a_trash_nothing_is_kept(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, sync=False, rules=InboxRules(trash_s=0))
    inbox.open()
    receive(inbox, "/a", b"first")
    receive(inbox, "/a", b"second")
    perform(inbox, DeleteFile(1, "/a"))
    inbox.close()
    assert os.listdir(tmp_path / HIDDEN) == ["journal"]


def test_long_journal_is_rewritten(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, sync=False)
    inbox.open()
    for _ in range(1200):
        receive(inbox, "/a", b"x")
    inbox.close()
    inbox = Inbox(tmp_path, sync=False)
    inbox.open()
    assert inbox.list_held("/") == {"/a": sha1(b"x")}
    assert receive(inbox, "/b", b"y")
    inbox.close()
    assert (tmp_path / HIDDEN / "journal").read_bytes().count(b"\n") == 2


@pytest.fixture
def own_folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_journal_that_cannot_be_rewritten_leaves_nothing(
    own_folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    journal = Journal(own_folder)
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        for _ in range(1200):
            journal.put("/a", RECORD)
    assert os.listdir(own_folder) == ["journal"]
    assert len(os.listdir("/proc/self/fd")) == before
    assert journal.find("/a") == RECORD
    journal.close()


def test_withheld_files_of_one_content_are_found_in_order(own_folder: int) -> None:
    journal = Journal(own_folder)
    names = [f"/{number}" for number in range(40)]
    for name in names:
        journal.put(name, RECORD)
        journal.withhold(name)
    for name in names:
        assert journal.find_withheld(RECORD.sha1) == name
        journal.remove(name)
    assert journal.find_withheld(RECORD.sha1) is None
    journal.close()


# ---- trouble


def test_inbox_is_used_by_one_client(inbox: Inbox) -> None:
    with pytest.raises(InboxError, match="in use by another client"):
        Inbox(inbox.folder).open()


def test_inbox_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InboxError, match="cannot be used"):
        Inbox(tmp_path / "file").open()


def test_inbox_that_cannot_be_opened_leaves_no_descriptor(tmp_path: Path) -> None:
    """The client tries it again and again while the folder is as it is."""
    hidden = tmp_path / "inbox" / HIDDEN
    hidden.mkdir(parents=True)
    (hidden / "trash").write_bytes(b"")
    inbox = Inbox(tmp_path / "inbox", sync=False)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(InboxError, match="cannot be used"):
            inbox.open()
    assert len(os.listdir("/proc/self/fd")) == before
    (hidden / "trash").unlink()
    inbox.open()
    assert receive(inbox, "/a", b"x") == [Stored(1, "/a", 1, sha1(b"x"), True)]
    inbox.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_full_disk_spoils_one_file_only(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported once for a file, and the next file is received when there is room again."""

    def full(descriptor: int, octets: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "write_octets", full)
        assert reason(receive(inbox, "/big", b"0123456789")) == ("No space left on device", True)
    assert visible(inbox.folder) == {}
    assert receive(inbox, "/big", b"0123456789")[0] == Stored(1, "/big", 10, sha1(b"0123456789"), True)


# ---- without taking digests


@pytest.fixture
def unchecked(tmp_path: Path) -> Iterator[Inbox]:
    opened = Inbox(tmp_path / "unchecked", sync=False, check=False)
    opened.open()
    yield opened
    opened.close()


def test_unchecked_file_counts_as_what_was_announced(unchecked: Inbox) -> None:
    announced = sha1(b"something else")
    assert receive(unchecked, "/a", b"content", digest=announced) == [Stored(1, "/a", 7, announced, False)]
    assert visible(unchecked.folder) == {"a": b"content"}
    assert unchecked.list_held("/") == {"/a": announced}


def test_unchecked_file_is_read_where_nothing_was_announced(unchecked: Inbox) -> None:
    perform(unchecked, WriteChunk(1, "/a", 0, b"content"))
    assert perform(unchecked, CompleteFile(1, "/a", 7, None)) == [Stored(1, "/a", 7, sha1(b"content"), False)]


def test_unchecked_file_of_a_wrong_size_is_refused(unchecked: Inbox) -> None:
    perform(unchecked, WriteChunk(1, "/a", 0, b"abc"))
    outcomes = perform(unchecked, CompleteFile(1, "/a", 5, sha1(b"abcde")))
    assert reason(outcomes) == ("was not received whole", True)


def test_unchecked_part_is_told_of_with_the_digest_of_what_is_there(tmp_path: Path) -> None:
    """Resuming asks the server whether it has the same beginning, so this digest is always a true one."""
    for first in (True, False):
        inbox = Inbox(tmp_path / "inbox", sync=False, check=False)
        inbox.open()
        if first:
            perform(inbox, WriteChunk(1, "/a", 0, b"con"))
            perform(inbox, WriteChunk(1, "/a", 3, b"tent"))
            perform(inbox, KeepFile(1, "/a"))
        [held] = perform(inbox, ListHeld(1, "/"))
        assert isinstance(held, Held)
        assert held.unfinished == Unfinished("/a", 7, sha1(b"content"))
        inbox.close()
