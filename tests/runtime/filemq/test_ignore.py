"""Ignored files: which names the patterns mean, and what a server and an inbox do with them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from specwire.runtime.filemq.catalogue import Change, Gone, Put
from specwire.runtime.filemq.digeststore import DigestStore
from specwire.runtime.filemq.diskwork import (
    AcceptDeletions,
    Checked,
    CheckInbox,
    CompleteFile,
    DeleteFile,
    DiskAction,
    KeepFile,
    Outcome,
    Stored,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.inotify import WatchedTree
from specwire.runtime.filemq.names import IgnoreRule, check_pattern
from specwire.runtime.filemq.policy import InboxRules, PublicationRules
from specwire.runtime.filemq.publication import Publication
from tests.runtime.filemq.inboxes import perform

LONG_AGO_NS = 10**18

TREE = ("a.tmp", "b.txt", "build/x", "build/keep", "d/a.tmp", "d/build/x", "d/e/top", "keep.tmp", "top")

RULES: dict[tuple[str, ...], set[str]] = {
    (): set(),
    ("*.tmp",): {"a.tmp", "d/a.tmp", "keep.tmp"},
    ("*.tmp", "!keep.tmp"): {"a.tmp", "d/a.tmp"},
    ("!keep.tmp", "*.tmp"): {"a.tmp", "d/a.tmp", "keep.tmp"},
    ("build/",): {"build/x", "build/keep", "d/build/x"},
    ("/build",): {"build/x", "build/keep"},
    ("build/", "!build/keep"): {"build/x", "build/keep", "d/build/x"},
    ("build/*", "!build/keep"): {"build/x"},
    ("/top",): {"top"},
    ("d/**/top",): {"d/e/top"},
    ("# comment", "", "[ab].t*"): {"a.tmp", "b.txt", "d/a.tmp"},
}
"""Ignored names of `TREE`, derived by hand from gitignore(5)."""

KEYS = pytest.mark.parametrize("patterns", RULES, ids=" ".join)


@KEYS
@pytest.mark.parametrize("path", ["/", "/pub", "/build/top"])
def test_names_that_a_rule_ignores(patterns: tuple[str, ...], path: str) -> None:
    """Patterns are relative to the folder, wherever it is published."""
    rule = IgnoreRule(patterns, path)
    prefix = "" if path == "/" else path
    assert {name for name in TREE if rule.ignores(f"{prefix}/{name}")} == RULES[patterns]


@KEYS
def test_git_ignores_the_same_names(patterns: tuple[str, ...], tmp_path: Path) -> None:
    make_tree(tmp_path)
    (tmp_path / ".gitignore").write_text("\n".join(patterns))
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    command = ["git", "check-ignore", "--no-index", *TREE]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert set(found.stdout.splitlines()) == RULES[patterns]


@pytest.mark.parametrize("pattern", ["!", "a\\", "[z-a]"])
def test_pattern_that_is_not_valid(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a pattern"):
        check_pattern(pattern)
    with pytest.raises(ValueError, match="is not a pattern"):
        IgnoreRule(["*.tmp", pattern])


# ---- a publication


def make_tree(folder: Path) -> None:
    for name in TREE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
        os.utime(folder / name, ns=(LONG_AGO_NS, LONG_AGO_NS))  # the digest is not fresh


@contextmanager
def published(folder: Path, *patterns: str, store: DigestStore | None = None) -> Iterator[Publication]:
    opened = Publication(folder, "/pub", digests=store, rules=PublicationRules(ignore=patterns))
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


def puts(changes: list[Change]) -> set[str]:
    return {change.entry.name for change in changes if isinstance(change, Put)}


def gone(changes: list[Change]) -> set[str]:
    return {change.name for change in changes if isinstance(change, Gone)}


def virtual(*names: str) -> set[str]:
    return {f"/pub/{name}" for name in names}


@KEYS
def test_ignored_files_are_not_published(patterns: tuple[str, ...], tmp_path: Path) -> None:
    make_tree(tmp_path)
    with published(tmp_path, *patterns) as opened:
        changes = opened.scan()
        assert puts(changes) == virtual(*TREE) - virtual(*RULES[patterns])
        assert len(changes) == len(puts(changes))
        assert opened.examine(str(tmp_path / name) for name in RULES[patterns]) == []


def test_ignored_folder_is_not_walked(tmp_path: Path) -> None:
    """A named pipe in it would be reported."""
    (tmp_path / "build/deep").mkdir(parents=True)
    os.mkfifo(tmp_path / "build/deep/pipe")
    os.mkfifo(tmp_path / "pipe")
    with published(tmp_path, "build/", "pipe") as opened:
        assert opened.scan() == []
        assert opened.examine([str(tmp_path / "build"), str(tmp_path / "build/deep/pipe")]) == []


def test_files_that_become_ignored_are_withdrawn_and_published_again_afterwards(tmp_path: Path) -> None:
    make_tree(tmp_path)
    with published(tmp_path) as opened:
        opened.scan()
        opened.ignore = IgnoreRule(["*.tmp", "build/"], opened.path)
        changes = opened.scan()
        ignored = virtual("a.tmp", "keep.tmp", "d/a.tmp", "build/x", "build/keep", "d/build/x")
        assert (gone(changes), puts(changes)) == (ignored, set())
        assert opened.scan() == []
        opened.ignore = IgnoreRule(["*.tmp"], opened.path)
        assert puts(opened.scan()) == virtual("build/x", "build/keep", "d/build/x")


def test_files_that_are_ignored_after_a_restart_are_not_listed(tmp_path: Path) -> None:
    """All files of the folder: it is not taken for one that has lost its disk."""
    make_tree(tmp_path / "source")
    with closing(DigestStore(tmp_path / "digests")) as store:
        with published(tmp_path / "source", store=store) as opened:
            opened.scan()
        with published(tmp_path / "source", "*", store=store) as opened:
            assert opened.scan() == []
            assert not opened.waits
        assert store.load(tmp_path / "source") == {}


def test_ignored_folder_is_not_watched(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    tree = WatchedTree(tmp_path, lambda place: place.endswith("/build"))
    try:
        (tmp_path / "d/build").mkdir(parents=True)
        assert tree.read() == {str(tmp_path / "d")}
        for folder in ("build", "d/build", "d"):
            (tmp_path / folder / "file").write_bytes(b"x")
        assert tree.read() == {str(tmp_path / "d/file")}
    finally:
        tree.close()


# ---- an inbox


def send(inbox: Inbox, name: str, content: bytes) -> list[Outcome]:
    """Receive a file in two pieces, as one that could be resumed."""
    half = len(content) // 2
    pieces: list[DiskAction] = [
        WriteChunk(1, name, 0, content[:half]),
        KeepFile(1, name),
        WriteChunk(1, name, half, content[half:]),
        CompleteFile(1, name, len(content), None),
    ]
    return [outcome for outcome in perform(inbox, *pieces) if not isinstance(outcome, Wrote)]


@contextmanager
def opened_inbox(folder: Path, *patterns: str) -> Iterator[Inbox]:
    inbox = Inbox(folder, sync=False, rules=InboxRules(ignore=patterns))
    inbox.open()
    try:
        yield inbox
    finally:
        inbox.close()


def test_ignored_files_are_not_received(tmp_path: Path) -> None:
    with opened_inbox(tmp_path, "*.tmp", "/pub/build/") as inbox:
        assert send(inbox, "/pub/a.tmp", b"1234") == []
        assert send(inbox, "/pub/build/x", b"1234") == []
        assert send(inbox, "/pub/empty.tmp", b"") == []
        [stored] = send(inbox, "/pub/b", b"1234")
        assert isinstance(stored, Stored)
        wrote = perform(inbox, WriteChunk(1, "/a.tmp", 0, b"12"), DeleteFile(1, "/a.tmp"))
        assert wrote == [Wrote(1, 2)], "credit is given for octets that are dropped"
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.glob("pub/**/*")] == ["pub/b"]


def test_ignored_files_are_not_deleted_or_repaired(tmp_path: Path) -> None:
    with opened_inbox(tmp_path) as inbox:
        for name in ("/kept.tmp", "/edited.tmp", "/b"):
            send(inbox, name, b"1234")
    with opened_inbox(tmp_path, "*.tmp") as inbox:
        (tmp_path / "edited.tmp").write_bytes(b"by the user")
        assert perform(inbox, CheckInbox(1)) == [Checked(1, repair=False)]
        assert perform(inbox, DeleteFile(1, "/kept.tmp")) == []
        perform(inbox, DeleteFile(1, "/b"))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["edited.tmp", "kept.tmp"]


def test_withheld_deletions_of_ignored_files_are_not_performed(tmp_path: Path) -> None:
    names = [f"/{n}.tmp" for n in range(12)]
    with opened_inbox(tmp_path) as inbox:
        for name in names:
            send(inbox, name, name.encode())
        for name in names:
            perform(inbox, DeleteFile(1, name))
        assert inbox.withheld == 12
    with opened_inbox(tmp_path, "*.tmp") as inbox:
        assert perform(inbox, AcceptDeletions(1)) == []
    assert len([path for path in tmp_path.iterdir() if path.is_file()]) == 12
