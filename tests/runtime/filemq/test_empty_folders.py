"""Empty folders: a publication lists them with a slash at the end, and an inbox creates and deletes them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from specwire.runtime.filemq.catalogue import Change, Gone, Put
from specwire.runtime.filemq.diskwork import (
    Checked,
    CheckInbox,
    CompleteFile,
    Deleted,
    DeleteFile,
    Failed,
    Held,
    ListHeld,
    Outcome,
    Stored,
)
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.names import fault_in_entry
from specwire.runtime.filemq.policy import InboxRules, PublicationRules
from specwire.runtime.filemq.publication import Publication
from tests.examples import examples
from tests.runtime.filemq.inboxes import perform

NOTHING = hashlib.sha1(b"", usedforsecurity=False).hexdigest().upper()


@contextmanager
def published(folder: Path, *ignore: str, empty_folders: bool = True) -> Iterator[Publication]:
    rules = PublicationRules(empty_folders=empty_folders, ignore=ignore)
    publication = Publication(folder, "/pub", rules=rules)
    publication.open()
    try:
        yield publication
    finally:
        publication.close()


def apply(changes: list[Change], listed: dict[str, str]) -> None:
    """Apply changes to a listing of digests."""
    for change in changes:
        match change:
            case Put(entry=entry):
                listed[entry.name] = entry.sha1
            case Gone(name=name):
                del listed[name]


def names(changes: list[Change]) -> set[str]:
    listed: dict[str, str] = {}
    apply(changes, listed)
    return {*listed}


def test_names_of_folders() -> None:
    assert fault_in_entry("/a/") is None
    assert fault_in_entry("/" + 253 * "x" + "/") is None
    for name in ("/", "//", "/a//", "/../", "/a/../", "a/", "/.specwire-inbox/", "/" + 254 * "x" + "/"):
        assert fault_in_entry(name) is not None, name


def test_empty_folders_are_listed(tmp_path: Path) -> None:
    for name in ("empty", "d/empty", "build/empty"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "empty").chmod(0o750)
    (tmp_path / "d/file").write_bytes(b"")
    os.utime(tmp_path / "d/file", ns=(10**18, 10**18))  # the digest is not fresh
    with published(tmp_path, "build") as publication:
        changes = publication.scan()
        assert names(changes) == {"/pub/empty/", "/pub/d/empty/", "/pub/d/file"}
        [entry] = [c.entry for c in changes if isinstance(c, Put) and c.entry.name == "/pub/empty/"]
        assert (entry.size, entry.sha1, entry.mode) == (0, NOTHING, 0o750)
        assert publication.scan() == []
        assert publication.examine([str(tmp_path / "empty"), str(tmp_path / "d/empty")]) == []
        (tmp_path / "empty").chmod(0o700)
        assert names(publication.scan()) == {"/pub/empty/"}
    with published(tmp_path, empty_folders=False) as publication:
        assert names(publication.scan()) == {"/pub/d/file"}


def test_publication_without_anything_lists_nothing(tmp_path: Path) -> None:
    with published(tmp_path) as publication:
        assert publication.scan() == []


def test_folder_with_only_empty_folders_in_it_may_have_lost_its_disk(tmp_path: Path) -> None:
    source, mount = tmp_path / "source", tmp_path / "mount"
    (mount / "empty").mkdir(parents=True)
    source.mkdir()
    (source / "file").write_bytes(b"")
    with published(source) as publication:
        publication.scan()
        source.rename(tmp_path / "away")
        mount.rename(source)
        assert names(publication.scan()) == {"/pub/empty/"}
        assert publication.waits


class Tree(RuleBasedStateMachine):
    """Files and folders come and go: after a walk, exactly the files and empty folders are listed."""

    NAMES = ("a", "b", "a/c", "a/d", "a/c/e")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        rules = PublicationRules(empty_folders=True)
        self.publication = Publication(self.folder, rules=rules)
        self.publication.open()
        self.publication.scan()  # as each server does first
        self.listed: dict[str, str] = {}

    @rule(name=st.sampled_from(NAMES), is_file=st.booleans())
    def put(self, name: str, is_file: bool) -> None:
        path = self.folder / name
        if not path.exists() and not any(parent.is_file() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch() if is_file else path.mkdir()

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        path = self.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True) if path.parent.is_dir() else None

    @rule(places=st.sets(st.sampled_from(NAMES), min_size=1))
    def examine(self, places: set[str]) -> None:
        apply(self.publication.examine(str(self.folder / name) for name in places), self.listed)

    @rule()
    def walk(self) -> None:
        apply(self.publication.scan(), self.listed)
        found = set()
        for place, folders, files in os.walk(self.folder):
            inner = f"/{Path(place).relative_to(self.folder)}".removesuffix(".").rstrip("/")
            found |= {f"{inner}/{file}" for file in files}
            if not folders and not files and inner:
                found.add(f"{inner}/")
        assert self.listed.keys() == found
        assert set(self.listed.values()) <= {NOTHING}

    def teardown(self) -> None:
        self.walk()
        self.publication.close()
        shutil.rmtree(self.folder)


def test_empty_folders_that_come_and_go() -> None:
    run_state_machine_as_test(
        Tree, settings=settings(max_examples=examples(60), stateful_step_count=15, deadline=None)
    )


# ---- an inbox


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    opened = Inbox(tmp_path / "inbox", sync=False, rules=InboxRules(ignore=("build/",)))
    opened.open()
    yield opened
    opened.close()


def receive(inbox: Inbox, name: str, mode: int | None = None) -> list[Outcome]:
    return perform(inbox, CompleteFile(1, name, 0, NOTHING, mode))


def held(inbox: Inbox) -> dict[str, str]:
    [outcome] = perform(inbox, ListHeld(1, "/"))
    assert isinstance(outcome, Held)
    return outcome.digests


def test_folder_is_created_and_deleted(inbox: Inbox) -> None:
    assert receive(inbox, "/d/e/", 0o4750) == [Stored(1, "/d/e/", 0, NOTHING, verified=True)]
    assert (inbox.folder / "d/e").stat().st_mode & 0o7777 == 0o750
    assert held(inbox) == {"/d/e/": NOTHING}
    assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=False)]
    assert perform(inbox, DeleteFile(1, "/d/e/")) == [Deleted(1, "/d/e/")]
    assert not (inbox.folder / "d").exists()
    assert held(inbox) == {}
    assert perform(inbox, DeleteFile(1, "/d/e/")) == []


def test_folder_with_files_is_not_deleted(inbox: Inbox) -> None:
    receive(inbox, "/d/")
    receive(inbox, "/d/file")
    assert held(inbox) == {"/d/": NOTHING, "/d/file": NOTHING}
    assert perform(inbox, DeleteFile(1, "/d/")) == []
    assert held(inbox) == {"/d/file": NOTHING}


def test_folder_that_the_user_deletes_is_sent_again(inbox: Inbox) -> None:
    receive(inbox, "/d/")
    (inbox.folder / "d").rmdir()
    assert held(inbox) == {}
    assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=True)]
    receive(inbox, "/d/")
    assert held(inbox) == {"/d/": NOTHING}


def test_folder_of_the_user_is_neither_listed_nor_deleted(inbox: Inbox) -> None:
    (inbox.folder / "mine").mkdir()
    assert held(inbox) == {}
    assert perform(inbox, DeleteFile(1, "/mine/")) == []
    assert (inbox.folder / "mine").is_dir()


@pytest.mark.parametrize("name", ["/../out/", "/.specwire-inbox/trash/", "//", "/link/", "/file/"])
def test_folder_in_an_impossible_place_is_refused(inbox: Inbox, name: str) -> None:
    (inbox.folder / "link").symlink_to("/tmp")
    (inbox.folder / "file").write_bytes(b"")
    [failed] = receive(inbox, name)
    assert isinstance(failed, Failed)
    assert not (inbox.folder.parent / "out").exists()


def test_files_before_an_impossible_folder_are_reported(inbox: Inbox) -> None:
    (inbox.folder / "link").symlink_to("/tmp")
    file = CompleteFile(1, "/a", 0, NOTHING)
    stored, failed = perform(inbox, file, CompleteFile(1, "/link/", 0, NOTHING))
    assert stored == Stored(1, "/a", 0, NOTHING, verified=True)
    assert isinstance(failed, Failed)


def test_folder_is_requested_again_when_its_place_is_free(inbox: Inbox) -> None:
    file = inbox.folder / "d"
    file.write_bytes(b"")
    receive(inbox, "/d/")
    assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=False)]
    file.unlink()
    assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=True)]
    receive(inbox, "/d/")
    assert held(inbox) == {"/d/": NOTHING}


def test_read_only_folder_takes_files(inbox: Inbox) -> None:
    receive(inbox, "/d/", 0o555)
    assert (inbox.folder / "d").stat().st_mode & 0o777 == 0o755
    receive(inbox, "/d/file")
    assert held(inbox) == {"/d/": NOTHING, "/d/file": NOTHING}


def test_ignored_folder_is_not_created(inbox: Inbox) -> None:
    assert receive(inbox, "/build/") == receive(inbox, "/build/e/") == []
    assert not (inbox.folder / "build").exists()
