"""A published folder: what is found, what counts as a change, what cannot be published."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.filemq import reading
from specwire.runtime.filemq.publication import Change, Gone, Publication, Put, Unfit
from specwire.runtime.filemq.reading import FileMovedError, TransferReader


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
    monkeypatch.setattr("specwire.runtime.filemq.publication.digest_file", lambda d: pytest.fail("was read"))
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


# ---- reading for a transfer


def reader_of(publication: Publication, name: str) -> TransferReader:
    changes = publication.scan()
    [entry] = [c.entry for c in changes if isinstance(c, Put) and c.entry.name == name]
    return TransferReader(publication, entry)


def test_file_is_read_in_pieces(publication: Publication) -> None:
    (publication.folder / "a").write_bytes(b"0123456789")
    reader = reader_of(publication, "/pub/a")
    assert [reader.read(4), reader.read(6), reader.complete] == [b"0123", b"456789", True]
    reader.close()


def test_replaced_file_is_not_read(publication: Publication) -> None:
    (publication.folder / "a").write_bytes(b"0123456789")
    reader = reader_of(publication, "/pub/a")
    (publication.folder / "b").write_bytes(b"9876543210")
    (publication.folder / "b").rename(publication.folder / "a")
    with pytest.raises(FileMovedError):
        reader.read(4)
    reader.close()


def test_file_replaced_while_it_is_read_is_read_to_its_end(publication: Publication) -> None:
    """A rename leaves the open file whole: the old version is sent, and then the new one."""
    (publication.folder / "a").write_bytes(b"0123456789")
    reader = reader_of(publication, "/pub/a")
    reader.read(4)
    (publication.folder / "b").write_bytes(b"new")
    (publication.folder / "b").rename(publication.folder / "a")
    assert reader.read(6) == b"456789"
    reader.close()


@pytest.mark.parametrize("new", [b"0123", b"0123456789ABC", b""])
def test_file_written_while_it_is_read_is_given_up(publication: Publication, new: bytes) -> None:
    (publication.folder / "a").write_bytes(b"0123456789")
    reader = reader_of(publication, "/pub/a")
    reader.read(4)
    (publication.folder / "a").write_bytes(new)
    with pytest.raises(FileMovedError):
        reader.read(6)
    reader.close()


def test_change_without_a_trace_in_the_file_system_is_found_by_the_digest(publication: Publication) -> None:
    file = publication.folder / "a"
    file.write_bytes(b"0123456789")
    reader = reader_of(publication, "/pub/a")
    state = file.stat()
    reader.read(4)
    file.write_bytes(b"0123XXXXXX")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(FileMovedError, match="digest"):
        reader.read(6)
    reader.close()


def test_file_at_rest_is_not_digested_again(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    (publication.folder / "a").write_bytes(b"0123456789")
    os.utime(publication.folder / "a", ns=(0, 0))
    reader = reader_of(publication, "/pub/a")
    monkeypatch.setattr(reading, "new_sha1", lambda: pytest.fail("was digested"))
    assert [reader.read(4), reader.read(6), reader.complete] == [b"0123", b"456789", True]
    reader.close()


@pytest.mark.parametrize("new", [b"0123XXXXXX", b"0123456789"])
def test_file_at_rest_that_was_touched_meanwhile_is_digested(publication: Publication, new: bytes) -> None:
    file = publication.folder / "a"
    file.write_bytes(b"0123456789")
    os.utime(file, ns=(0, 0))
    reader = reader_of(publication, "/pub/a")
    reader.read(4)
    before = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == before:  # a file system counts time in steps
        file.write_bytes(new)
        os.utime(file, ns=(0, 0))
    if new == b"0123456789":
        assert reader.read(6) == b"456789"
    else:
        with pytest.raises(FileMovedError, match="digest"):
            reader.read(6)
    reader.close()


def test_removed_file_is_not_read(publication: Publication) -> None:
    (publication.folder / "a").write_bytes(b"0123456789")
    reader = reader_of(publication, "/pub/a")
    (publication.folder / "a").unlink()
    with pytest.raises(FileMovedError):
        reader.read(4)
    reader.close()
