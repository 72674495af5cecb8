"""What an inbox keeps: files whose deletion is one of too many, versions that were changed in it, and its trash."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specwire.runtime.filemq.deletion import WITHHELD
from specwire.runtime.filemq.diskwork import (
    AcceptDeletions,
    Checked,
    CheckInbox,
    CompleteFile,
    Deleted,
    DeleteFile,
    Failed,
    Held,
    ListHeld,
    Outcome,
    Restored,
    Stored,
    WriteChunk,
)
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.names import conflict_name, is_conflict_copy
from tests.runtime.filemq.inboxes import perform
from tests.runtime.filemq.test_inbox import HIDDEN, receive, sha1, visible

NAMES = [f"/d/{number}" for number in range(40)]
Open = Callable[[], Inbox]


class Clock:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """Opens the inbox, and closes the one before."""
    inboxes: list[Inbox] = []

    def open_again() -> Inbox:
        while inboxes:
            inboxes.pop().close()
        inboxes.append(Inbox(tmp_path / "inbox", sync=False, clock=clock))
        inboxes[0].open()
        return inboxes[0]

    yield open_again
    inboxes.pop().close()


def delete(inbox: Inbox, *names: str) -> list[Outcome]:
    return perform(inbox, *(DeleteFile(1, name) for name in names))


def fill(inbox: Inbox) -> None:
    for name in NAMES:
        receive(inbox, name, name.encode())


def names(outcomes: list[Outcome], kind: type[Outcome]) -> set[str]:
    return {outcome.name for outcome in outcomes if isinstance(outcome, kind)}  # type: ignore[union-attr]


REPLACED = Failed(1, "/", "the inbox was replaced", again=True)
ALL = {name[1:]: name.encode() for name in NAMES}


def test_too_many_deletions_are_undone_and_withheld(opened: Open) -> None:
    inbox = opened()
    fill(inbox)
    outcomes = delete(inbox, *NAMES)
    assert names(outcomes, Deleted) == names(outcomes, Restored) == {*NAMES[:20]}
    assert names(outcomes, Failed) == {*NAMES}
    assert Failed(1, NAMES[-1], WITHHELD, again=False) in outcomes
    assert (visible(inbox.folder), inbox.withheld) == (ALL, len(NAMES))
    inbox = opened()
    assert inbox.withheld == len(NAMES), "it is in the journal"
    outcomes = perform(inbox, AcceptDeletions(1))
    assert names(outcomes, Deleted) == {*NAMES}
    assert (visible(inbox.folder), inbox.withheld) == ({}, 0)
    assert len(os.listdir(inbox.folder / HIDDEN / "trash")) == len(NAMES)


def test_deletions_that_are_asked_for_again_are_withheld_again(opened: Open) -> None:
    """At a listing the server says again what it has withdrawn; what it does not say is published again."""
    inbox = opened()
    fill(inbox)
    delete(inbox, *NAMES)
    for run in range(2):
        if run:
            inbox = opened()
        [held] = perform(inbox, ListHeld(1, "/"))
        assert isinstance(held, Held) and held.digests.keys() == {*NAMES}
        assert inbox.withheld == 0
        outcomes = delete(inbox, *NAMES[1:])
        assert names(outcomes, Deleted) == set()
        assert inbox.withheld == len(NAMES) - 1
    assert visible(inbox.folder) == ALL


def test_a_withheld_file_that_comes_again_is_withheld_no_more(opened: Open) -> None:
    inbox = opened()
    fill(inbox)
    delete(inbox, *NAMES)
    receive(inbox, NAMES[0], b"published again")
    assert inbox.withheld == len(NAMES) - 1
    perform(inbox, AcceptDeletions(1))
    assert visible(inbox.folder) == {NAMES[0][1:]: b"published again"}


def test_a_withheld_file_is_deleted_when_its_content_has_another_name(opened: Open) -> None:
    inbox = opened()
    fill(inbox)
    delete(inbox, *NAMES)
    for name in NAMES:
        outcomes = receive(inbox, f"/renamed{name}", name.encode())
        assert [type(outcome) for outcome in outcomes] == [Stored, Deleted]
    assert visible(inbox.folder) == {f"renamed/{name}": content for name, content in ALL.items()}
    assert delete(inbox, f"/renamed{NAMES[0]}") == [Deleted(1, f"/renamed{NAMES[0]}")], "nothing is withheld"


def test_deletions_over_a_long_time_are_not_too_many(opened: Open, clock: Clock) -> None:
    inbox = opened()
    fill(inbox)
    for name in NAMES:
        assert delete(inbox, name) == [Deleted(1, name)]
        clock.now += 100.0


def test_a_trash_that_somebody_removes_is_made_again(opened: Open) -> None:
    inbox = opened()
    for content in (b"first", b"second", b"third"):
        receive(inbox, "/a", content)
        if content == b"second":
            shutil.rmtree(inbox.folder / HIDDEN / "trash")
    assert (inbox.folder / HIDDEN / "trash/a").read_bytes() == b"second"
    shutil.rmtree(inbox.folder / HIDDEN / "trash")
    assert delete(inbox, "/a") == [Deleted(1, "/a")]
    assert (inbox.folder / HIDDEN / "trash/a").read_bytes() == b"third"


# ---- what was changed here


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("later", [True, False])
def test_a_changed_file_is_kept_beside_its_new_version(opened: Open, known: bool, later: bool) -> None:
    """Also a file that did not come from the server, also in a later run, and after it was listed as it is."""
    inbox = opened()
    if known:
        receive(inbox, "/d/a.txt", b"received")
    else:
        (inbox.folder / "d").mkdir()
    (inbox.folder / "d/a.txt").write_bytes(b"changed")
    if later:
        inbox.list_held("/")
        inbox = opened()
        inbox.list_held("/")
    [stored] = receive(inbox, "/d/a.txt", b"new")
    assert (
        isinstance(stored, Stored) and stored.copy.startswith("a.conflict-") and is_conflict_copy(stored.copy)
    )
    assert visible(inbox.folder) == {"d/a.txt": b"new", f"d/{stored.copy}": b"changed"}
    assert inbox.list_held("/") == {"/d/a.txt": sha1(b"new")}, "the server is not asked about a conflict copy"


def test_a_file_that_was_touched_or_has_the_new_content_is_no_conflict(opened: Open) -> None:
    inbox = opened()
    receive(inbox, "/a", b"received")
    receive(inbox, "/b", b"received")
    os.utime(inbox.folder / "a", ns=(1, 1))
    (inbox.folder / "b").write_bytes(b"new")
    for name in ("/a", "/b"):
        [stored] = receive(inbox, name, b"new")
        assert isinstance(stored, Stored) and stored.copy == ""
    assert visible(inbox.folder) == {"a": b"new", "b": b"new"}


def test_changed_files_of_one_second_have_names_of_their_own(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.localtime()
    monkeypatch.setattr(time, "localtime", lambda: now)
    inbox = opened()
    for content in (b"first", b"second", b"third"):
        receive(inbox, "/a", content)
        (inbox.folder / "a").write_bytes(content + b" changed")
    [deleted] = delete(inbox, "/a")
    assert isinstance(deleted, Deleted) and deleted.copy.endswith("-2")
    assert {*visible(inbox.folder).values()} == {b"first changed", b"second changed", b"third changed"}


@pytest.mark.parametrize(
    "leaf", ["a", "a.txt", ".hidden", "a.tar.gz", "no extension. really, no", "ü" * 127, "x." + "y" * 250]
)
def test_names_of_conflict_copies(leaf: str) -> None:
    name = conflict_name(leaf, time.localtime(0), 3)
    assert is_conflict_copy(name) and len(name.encode()) <= 255
    assert not is_conflict_copy(leaf)


# ---- what is compared, and a folder that is away


def test_a_check_asks_once_for_each_change(opened: Open) -> None:
    inbox = opened()
    receive(inbox, "/a", b"received")
    (inbox.folder / "mine").write_bytes(b"mine")
    check = CheckInbox(1)
    assert perform(inbox, check) == [Checked(1, repair=False)]
    (inbox.folder / "a").unlink()
    assert [perform(inbox, check) for _ in range(2)] == [
        [Checked(1, repair=True)],
        [Checked(1, repair=False)],
    ]
    receive(inbox, "/a", b"received")
    (inbox.folder / "a").unlink()
    assert perform(inbox, check) == [Checked(1, repair=True)]


def test_nothing_goes_into_a_folder_that_was_moved_aside(opened: Open, tmp_path: Path) -> None:
    inbox = opened()
    receive(inbox, "/a", b"received")
    inbox.folder.rename(tmp_path / "aside")
    away = f"the inbox {inbox.folder} is away: No such file or directory"
    assert receive(inbox, "/b", b"new")[0] == Failed(1, "/", away, again=True)
    assert delete(inbox, "/a") == [Failed(1, "/", away, again=True)]
    assert perform(inbox, ListHeld(1, "/"))[0] == Held(1, "/", {"/a": sha1(b"received")}), (
        "nothing is asked for"
    )
    assert visible(tmp_path / "aside") == {"a": b"received"}
    inbox.folder.mkdir()
    assert perform(inbox, ListHeld(1, "/")) == [REPLACED, Held(1, "/", {})]
    receive(inbox, "/b", b"new")
    assert (visible(tmp_path / "aside"), visible(inbox.folder)) == ({"a": b"received"}, {"b": b"new"})


def test_a_folder_in_the_place_of_the_inbox_is_filled_again(tmp_path: Path) -> None:
    """A file that waited for the disk is lost with the old folder. The engine requests all again."""
    inbox = Inbox(tmp_path / "inbox")
    inbox.open()
    inbox.perform([WriteChunk(1, "/a", 0, b"content"), CompleteFile(1, "/a", 7, sha1(b"content"))])
    inbox.folder.rename(tmp_path / "aside")
    inbox.folder.mkdir()
    assert perform(inbox, CheckInbox(2)) == [
        Failed(2, "/", "the inbox was replaced", again=True),
        Checked(2, repair=False),
    ]
    assert perform(inbox, CheckInbox(2)) == [Checked(2, repair=False)]
    assert (visible(inbox.folder), visible(tmp_path / "aside")) == ({}, {})
    inbox.close()


def test_a_folder_that_comes_back_after_it_was_deleted_is_filled_again(opened: Open) -> None:
    inbox = opened()
    receive(inbox, "/a", b"received")
    shutil.rmtree(inbox.folder)
    assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=False)]
    inbox.folder.mkdir()
    assert perform(inbox, CheckInbox(1)) == [REPLACED, Checked(1, repair=False)]


def test_a_reserved_folder_that_somebody_removes_is_made_again(opened: Open) -> None:
    """What it knew is lost: no server may delete those files any more."""
    inbox = opened()
    receive(inbox, "/a", b"received")
    shutil.rmtree(inbox.folder / HIDDEN)
    replaced, stored = receive(inbox, "/b", b"new")
    assert (replaced, type(stored)) == (REPLACED, Stored)
    assert delete(inbox, "/a") == [Failed(1, "/a", "did not come from a server, and is kept", again=False)]
    assert visible(inbox.folder) == {"a": b"received", "b": b"new"}


def test_the_journal_of_a_running_subscriber_stays_short(opened: Open) -> None:
    inbox = opened()
    for number in range(3000):
        receive(inbox, "/a", b"%d" % number)
    assert (inbox.folder / HIDDEN / "journal").read_bytes().count(b"\n") < 1100
    assert opened().list_held("/") == {"/a": sha1(b"2999")}
