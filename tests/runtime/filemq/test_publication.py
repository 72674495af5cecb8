"""A published folder: what is found, what counts as a change, what cannot be published."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from specwire.runtime.filemq import publication as publication_module
from specwire.runtime.filemq.catalogue import Change, Gone, Put, Unfit
from specwire.runtime.filemq.disk import Answer, walk
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.publication import Publication
from tests.examples import examples


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest().upper()


@pytest.fixture
def publication(tmp_path: Path) -> Iterator[Publication]:
    (tmp_path / "src").mkdir()
    opened = Publication(tmp_path / "src", "/pub")
    opened.open()
    yield opened
    opened.close()


def puts(changes: list[Change]) -> dict[str, str]:
    return {change.entry.name: change.entry.sha1 for change in changes if isinstance(change, Put)}


def gone(changes: list[Change]) -> list[str]:
    return [change.name for change in changes if isinstance(change, Gone)]


def settle(folder: Path) -> None:
    """Give every file an old time, so that its digest is not fresh."""
    for path in folder.rglob("*"):
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)


def test_scan_finds_every_file(publication: Publication) -> None:
    (publication.folder / "d").mkdir()
    (publication.folder / "d" / "a b.txt").write_bytes(b"1")
    (publication.folder / "ü").write_bytes(b"")
    assert puts(publication.scan()) == {"/pub/d/a b.txt": sha1(b"1"), "/pub/ü": sha1(b"")}


def test_root_publication_has_short_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    publication = Publication(tmp_path)
    publication.open()
    assert puts(publication.scan()) == {"/a": sha1(b"1")}
    os.close(publication.open_entry("/a"))
    publication.close()


def test_second_scan_tells_only_changes(publication: Publication, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("same", "changed", "removed"):
        (publication.folder / name).write_bytes(b"1")
    settle(publication.folder)
    publication.scan()
    (publication.folder / "changed").write_bytes(b"2")
    (publication.folder / "removed").unlink()
    changes = publication.scan()
    assert isinstance(changes[0], Gone), "deletions come first"
    assert (puts(changes), gone(changes)) == ({"/pub/changed": sha1(b"2")}, ["/pub/removed"])


def test_unchanged_files_are_not_read_again(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    (publication.folder / "a").write_bytes(b"1")
    settle(publication.folder)
    publication.scan()
    monkeypatch.setattr("specwire.runtime.filemq.index.digest_file", lambda d: pytest.fail("was read"))
    assert publication.scan() == []


def test_file_written_twice_within_one_step_of_time_is_noticed(publication: Publication) -> None:
    """A digest taken right after a change is not trusted, because the file's time may stand still."""
    file = publication.folder / "a"
    file.write_bytes(b"1")
    state = file.stat()
    publication.scan()
    file.write_bytes(b"2")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert puts(publication.scan()) == {"/pub/a": sha1(b"2")}


def test_examine_looks_at_the_named_places_only(publication: Publication) -> None:
    folder = publication.folder
    (folder / "a").write_bytes(b"1")
    (folder / "b").write_bytes(b"1")
    publication.scan()
    (folder / "a").write_bytes(b"22")
    (folder / "b").write_bytes(b"22")
    (folder / "new" / "deep").mkdir(parents=True)
    (folder / "new" / "deep" / "c").write_bytes(b"3")
    changes = publication.examine([str(folder / "a"), str(folder / "new")])
    assert puts(changes) == {"/pub/a": sha1(b"22"), "/pub/new/deep/c": sha1(b"3")}


def test_examine_of_a_removed_folder(publication: Publication, tmp_path: Path) -> None:
    folder = publication.folder
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "d" / "e" / "a").write_bytes(b"1")
    (folder / "d2").write_bytes(b"1")
    publication.scan()
    (folder / "d").rename(tmp_path / "elsewhere")
    assert gone(publication.examine([str(folder / "d")])) == ["/pub/d/e/a"]


def test_file_that_became_a_folder(publication: Publication) -> None:
    place = publication.folder / "a"
    place.write_bytes(b"1")
    publication.scan()
    place.unlink()
    place.mkdir()
    (place / "b").write_bytes(b"2")
    changes = publication.examine([str(place), str(place / "b")])
    assert gone(changes) == ["/pub/a"]
    assert puts(changes) == {"/pub/a/b": sha1(b"2")}
    assert isinstance(changes[0], Gone)


def test_links_and_devices_are_not_published_and_told_of_once(
    publication: Publication, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (publication.folder / "link").symlink_to(tmp_path / "secret")
    (publication.folder / "up").symlink_to(tmp_path)
    os.mkfifo(publication.folder / "fifo")
    places = [str(publication.folder / name) for name in ("link", "up", "fifo")]
    assert publication.examine(places[:1]) == [Unfit("/pub/link", "is a symbolic link, and not published")]
    assert publication.scan() == [
        Unfit("/pub/fifo", "is a named pipe, and not published"),
        Unfit("/pub/up", "is a symbolic link, and not published"),
    ]
    assert publication.scan() == publication.examine(places) == []


def test_file_that_becomes_a_link_is_gone(publication: Publication, tmp_path: Path) -> None:
    file = publication.folder / "file"
    file.write_bytes(b"1")
    publication.scan()
    file.unlink()
    file.symlink_to(tmp_path)
    changes = publication.examine([str(file)])
    assert changes == [Gone("/pub/file"), Unfit("/pub/file", "is a symbolic link, and not published")]


def test_names_as_long_as_the_protocol_allows(publication: Publication) -> None:
    """A format whose names have four octets of length takes what FILEMQ v2 does not."""
    publication.close()
    publication.open(longest_octets=4095)
    long = publication.folder / ("n" * 200)
    long.mkdir()
    (long / ("m" * 200)).write_bytes(b"1")
    assert puts(publication.scan()) == {f"/pub/{'n' * 200}/{'m' * 200}": sha1(b"1")}


def test_unfit_names_are_reported_once(publication: Publication) -> None:
    long = publication.folder
    for _ in range(3):
        long /= "x" * 100
    long.mkdir(parents=True)
    (long / "a").write_bytes(b"1")
    (publication.folder / os.fsdecode(b"\xff")).write_bytes(b"1")
    reasons = [change.reason for change in publication.scan() if isinstance(change, Unfit)]
    assert sorted(reasons) == ["is 307 octets long, and 255 are allowed", "is not valid UTF-8"]
    assert publication.scan() == []


def test_overlapping_paths() -> None:
    a, b, c = (Publication(Path(), path) for path in ("/a", "/a/b", "/ab"))
    assert a.overlaps(b)
    assert b.overlaps(a)
    assert not a.overlaps(c)


@pytest.mark.parametrize("path", ["a", "/a/../b", "/a//b"])
def test_impossible_virtual_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"begin|component"):
        Publication(Path(), path)


# ---- changes during walks, and between them


def test_a_folder_that_vanishes_during_a_walk_is_not_taken_for_deletions(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (publication.folder / name).write_bytes(b"1")
    settle(publication.folder)
    publication.scan()

    def walk_and_vanish(*given: Any, **named: Any) -> Iterator[Answer]:
        answers = walk(*given, **named)
        yield next(answers)
        publication.folder.rename(publication.folder.with_name("aside"))
        # What follows is not met: the files are gone from the path.

    monkeypatch.setattr(publication_module, "walk", walk_and_vanish)
    (told,) = publication.scan()
    monkeypatch.setattr(publication_module, "walk", walk)
    assert isinstance(told, Unfit) and told.name == "/pub"
    assert publication.scan() == [], "told once"
    assert publication.examine([str(publication.folder / "a")]) == []
    publication.folder.with_name("aside").rename(publication.folder)
    assert publication.scan() == []


class Tree(RuleBasedStateMachine):
    """Files come and go: what was told of them is always what is known, and true in the end."""

    NAMES = ("a", "b", "c/a", "c/b", "d", "d/e", "f")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.publication = Publication(Path(self._folder.name))
        self.publication.open()
        self.publication.scan()  # files that only the first walk misses would stay listed
        self.listed: dict[str, str] = {}
        self.number = 0

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            match change:
                case Put(entry=entry):
                    covered = [
                        name for name in self.listed if covers(entry.name, name) and name != entry.name
                    ]
                    assert not covered, "a file comes when the files below it are gone"
                    self.listed[entry.name] = entry.sha1
                case Gone(name=name):
                    self.listed.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def write(self, name: str) -> None:
        path = self.publication.folder / name
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            if path.is_dir():
                shutil.rmtree(path)
            path.write_bytes(str(self.number).encode())
            os.utime(path, ns=(10**18 + self.number * 10**8, 10**18 + self.number * 10**8))
            self.number += 1

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        path = self.publication.folder / name
        if path.is_file():
            path.unlink()
            if path.parent != self.publication.folder and not any(path.parent.iterdir()):
                path.parent.rmdir()

    @rule()
    def scan(self) -> None:
        self.take(self.publication.scan())

    @rule(names=st.sets(st.sampled_from(NAMES), min_size=1))
    def look(self, names: set[str]) -> None:
        self.take(self.publication.examine(str(self.publication.folder / name) for name in names))

    def teardown(self) -> None:
        self.take(self.publication.scan())
        files = (path for path in self.publication.folder.rglob("*") if path.is_file())
        there = {f"/{path.relative_to(self.publication.folder)}": sha1(path.read_bytes()) for path in files}
        self.publication.close()
        self._folder.cleanup()
        assert self.listed == there


def test_files_that_come_and_go() -> None:
    run_state_machine_as_test(
        Tree, settings=settings(max_examples=examples(40), stateful_step_count=20, deadline=None)
    )


def test_an_inbox_in_a_publication_is_told_of_once_and_none_of_its_files(tmp_path: Path) -> None:
    """Whether it is met by a walk or by a notification of a file in it; one that is a file is the same."""
    inner = tmp_path / "below/.specwire-inbox"
    inner.mkdir(parents=True)
    (tmp_path / ".specwire-inbox").write_bytes(b"")
    publication = Publication(tmp_path)
    publication.open()
    told = [change.name for change in publication.scan() if isinstance(change, Unfit)]
    assert told == ["/.specwire-inbox", "/below/.specwire-inbox"]
    for i in range(3):
        (inner / f"unfinished-{i}").write_bytes(b"x")
        assert publication.examine([str(inner / f"unfinished-{i}"), str(inner)]) == []
    assert publication.scan() == []
    publication.close()
