"""Digests kept from one run to the next: nothing is read twice, and nothing wrong is ever believed."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.filemq import digeststore, index
from specwire.runtime.filemq.catalogue import Change, Gone, Put, Signature
from specwire.runtime.filemq.digeststore import NAME, DigestStore
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.reading import Digest, digest_file, new_sha1, time_step_ns
from specwire.runtime.kernel.store.database import BUSY_S
from specwire.runtime.kernel.store.lock import StoreLock

LONG_AGO_NS = 10**18


class Reads:
    """How many files a publication has read."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._count = 0
        patch.setattr(index, "digest_file", self._digest)

    def _digest(self, descriptor: int, is_abandoned: Callable[[], bool]) -> Digest:
        self._count += 1
        return digest_file(descriptor, is_abandoned)

    def take(self) -> int:
        """Return how many files were read since the last time."""
        count, self._count = self._count, 0
        return count


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for name in ("a", "b c/d", "b c/ü"):
        write(folder / name, name.encode())
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def write(path: Path, content: bytes) -> None:
    """Write a file that looks old, so that its digest is not fresh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


@contextmanager
def published(source: Path, cache: Path, path: str = "/", busy_s: float = BUSY_S) -> Iterator[Publication]:
    """Publish a folder, as one run of a server does."""
    with closing(DigestStore(cache, busy_s=busy_s)) as store:
        opened = Publication(source, path, digests=store)
        opened.open()
        try:
            yield opened
        finally:
            opened.close()


def scan(source: Path, cache: Path, path: str = "/", busy_s: float = BUSY_S) -> dict[str, str]:
    """Return the digests that one run of a server finds."""
    with published(source, cache, path, busy_s) as opened:
        return digests(opened.scan())


def digests(changes: list[Change]) -> dict[str, str]:
    return {change.entry.name: change.entry.sha1 for change in changes if isinstance(change, Put)}


def expected(source: Path) -> dict[str, str]:
    """Return the digests of what is in a folder now."""
    found = {}
    for path in source.rglob("*"):
        if path.is_file():
            sha1 = new_sha1()
            sha1.update(path.read_bytes())
            found[f"/{path.relative_to(source)}"] = sha1.hexdigest().upper()
    return found


def rows(cache: Path) -> int:
    with closing(sqlite3.connect(cache / NAME)) as connection:
        [count] = connection.execute("SELECT count(*) FROM digest").fetchone()
        assert isinstance(count, int)
        return count


def test_restart_reads_nothing(source: Path, cache: Path, reads: Reads) -> None:
    assert scan(source, cache) == expected(source)
    assert reads.take() == 3
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0


def test_without_a_store_each_run_reads_everything(source: Path, reads: Reads) -> None:
    for _ in range(2):
        opened = Publication(source)
        opened.open()
        opened.scan()
        opened.close()
        assert reads.take() == 3


def test_another_virtual_path_changes_nothing(source: Path, cache: Path, reads: Reads) -> None:
    scan(source, cache)
    reads.take()
    assert scan(source, cache, "/pub") == {f"/pub{name}": sha1 for name, sha1 in expected(source).items()}
    assert reads.take() == 0


def test_only_what_changed_is_read(source: Path, cache: Path, reads: Reads) -> None:
    scan(source, cache)
    reads.take()
    write(source / "a", b"other")
    write(source / "new", b"new")
    (source / "b c" / "d").unlink()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 2
    assert rows(cache) == 3
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0


def test_what_changes_while_a_server_runs_is_kept_too(source: Path, cache: Path, reads: Reads) -> None:
    with published(source, cache) as opened:
        opened.scan()
        write(source / "e", b"e")
        (source / "a").unlink()
        changes = opened.examine([str(source / "e"), str(source / "a")])
        assert Gone("/a") in changes
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0
    assert rows(cache) == 3


def test_file_with_everything_but_its_content_as_before(source: Path, cache: Path, reads: Reads) -> None:
    """Size, modification time and inode are put back; the time of the last change of state cannot be."""
    scan(source, cache)
    before = (source / "a").stat()
    while (source / "a").stat().st_ctime_ns == before.st_ctime_ns:  # a file system counts time in steps
        write(source / "a", b"A")
    after = (source / "a").stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 1


def test_fresh_digest_is_not_kept(source: Path, cache: Path, reads: Reads) -> None:
    """A file that was written just before it was read could have been written again within the same step."""
    (source / "a").write_bytes(b"a")
    later = (source / "a").stat().st_mtime_ns + 60 * 10**9
    os.utime(source / "a", ns=(later, later))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specwire.runtime.filemq.reading.time.time_ns", lambda: later + 1)
        scan(source, cache)
    assert reads.take() == 3
    assert scan(source, cache) == expected(source)
    assert reads.take() == 1
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0


@pytest.mark.parametrize("shift_ns", [-(10**18), -3600 * 10**9, 3600 * 10**9])
def test_moved_clock(source: Path, cache: Path, reads: Reads, shift_ns: int) -> None:
    """Whatever the clock says, files that are as they were need no reading, and others are read."""
    scan(source, cache)
    reads.take()
    write(source / "b c" / "d", b"changed")
    now = time.time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specwire.runtime.filemq.reading.time.time_ns", lambda: int(now * 1e9) + shift_ns)
        assert scan(source, cache) == expected(source)
        assert reads.take() == 1
        assert scan(source, cache) == expected(source)
    assert reads.take() == 0


def test_step_of_a_file_system_that_counts_seconds() -> None:
    """A whole second is what such a file system says, and two writes within two may look the same."""
    assert time_step_ns(5 * 10**9) == 2 * 10**9
    assert time_step_ns(5 * 10**9 + 1) < 10**9


def test_names_of_any_kind(tmp_path: Path, cache: Path, reads: Reads) -> None:
    source = tmp_path / os.fsdecode(b"not \xff UTF-8\nand two lines")
    for name in ("two\nlines", "sp ace", "ü", "'; DROP TABLE digest --", "%00"):
        write(source / name, name.encode())
    (source / os.fsdecode(b"\xfe")).write_bytes(b"cannot be published")
    names = {f"/{name}" for name in ("two\nlines", "sp ace", "ü", "'; DROP TABLE digest --", "%00")}
    assert scan(source, cache).keys() == names
    assert reads.take() == 5
    assert scan(source, cache).keys() == names
    assert reads.take() == 0


def test_folders_do_not_share_digests(source: Path, tmp_path: Path, cache: Path, reads: Reads) -> None:
    """A copy of a folder is another folder, even with every time preserved."""
    scan(source, cache)
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    reads.take()
    assert scan(copy, cache) == expected(copy)
    assert reads.take() == 3
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0


def test_killed_while_it_reads_for_the_first_time(
    source: Path, cache: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is written as it goes, not only in the end."""
    monkeypatch.setattr(digeststore, "BATCH_FILES", 1)
    with published(source, cache) as opened:
        monkeypatch.setattr(
            opened._index, "forget", lambda names: pytest.fail("the end of the look was reached")
        )
        with pytest.raises(pytest.fail.Exception):
            opened.scan()
    assert reads.take() == 3
    monkeypatch.undo()
    again = Reads(monkeypatch)
    assert scan(source, cache) == expected(source)
    assert again.take() == 0


def test_folder_that_is_empty_for_once_loses_nothing(source: Path, cache: Path, reads: Reads) -> None:
    """A disk that was not mounted at one start: the files stay listed as an earlier run knew them."""
    scan(source, cache)
    reads.take()
    away = source.with_name("away")
    source.rename(away)
    source.mkdir()
    assert scan(source, cache) == expected(away)
    source.rmdir()
    away.rename(source)
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0


def test_folder_that_nobody_publishes_is_forgotten(
    source: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(source, cache)
    now = time.time()
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "file", b"file")
    for days, left in ((digeststore.KEEP_DAYS - 1, 4), (digeststore.KEEP_DAYS + 1, 1)):
        monkeypatch.setattr(time, "time", lambda then=now + days * digeststore.DAY_S: then)
        scan(tmp_path / "other", cache)
        assert rows(cache) == left


# ---- what goes wrong


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def damage_header(path: Path) -> None:
    path.write_bytes(b"This is no database, but a poem.\n" * 1000)


def damage_middle(path: Path) -> None:
    octets = bytearray(path.read_bytes())
    octets[4096:] = bytes(len(octets) - 4096)
    path.write_bytes(octets)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize("damage", [damage_header, damage_middle, cut])
def test_damaged_store_is_replaced(
    source: Path,
    cache: Path,
    reads: Reads,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
) -> None:
    scan(source, cache)
    reads.take()
    damage(cache / NAME)
    assert scan(source, cache) == expected(source)
    assert reads.take() == 3
    [warning] = warnings(caplog)
    assert "was damaged" in warning
    assert [*cache.glob(f"{NAME}.damaged-*")], "nothing is deleted"
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0
    assert len(warnings(caplog)) == 1


def test_digests_that_can_be_read_in_a_damaged_store_are_kept(
    source: Path, cache: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(300):
        write(source / f"{n:03}", b"%d" % n)
    scan(source, cache)
    octets = bytearray((cache / NAME).read_bytes())
    page = octets.find(b"150")  # one page in the middle of the digests
    octets[page // 4096 * 4096 : page // 4096 * 4096 + 4096] = bytes(4096)
    (cache / NAME).write_bytes(octets)
    reads.take()
    assert scan(source, cache) == expected(source)
    assert 0 < reads.take() < 303
    assert len(warnings(caplog)) == 1


def test_store_of_a_newer_version_is_left_alone(
    source: Path, cache: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    scan(source, cache)
    with closing(sqlite3.connect(cache / NAME)) as connection:
        connection.execute("PRAGMA user_version = 1000")
    octets = (cache / NAME).read_bytes()
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 3
    [warning] = warnings(caplog)
    assert "has version 1000" in warning
    assert (cache / NAME).read_bytes() == octets


def test_store_that_lacks_a_table_is_not_used(
    source: Path, cache: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    scan(source, cache)
    with closing(sqlite3.connect(cache / NAME)) as connection:
        connection.execute("DROP TABLE digest")
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 3
    [warning] = warnings(caplog)
    assert "no such table" in warning


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_no_damage_makes_a_digest_wrong(place: int, change: int) -> None:
    """Any octet of any row may be another one: then the row is not believed."""
    connection = sqlite3.connect(":memory:")
    for statement in digeststore.SCHEMA.statements:
        connection.execute(statement)
    digest = Digest("AB" * 20, Signature(5, LONG_AGO_NS, 2**64 - 1), fresh=False, touched_ns=-1)
    digeststore._save(connection, b"/folder", {"name": digest})
    assert digeststore._load(connection, b"/folder") == {"name": digest}
    assert digeststore._load(connection, b"/other") == {}
    [(name, record)] = connection.execute("SELECT name, record FROM digest").fetchall()
    octets = bytearray(name + record)
    octets[place % len(octets)] ^= change
    row = (bytes(octets[: len(name)]), bytes(octets[len(name) :]))
    connection.execute("UPDATE digest SET name = ?, record = ?", row)
    assert digeststore._load(connection, b"/folder") == {}
    connection.close()


def test_cache_folder_that_cannot_be_made(
    source: Path, tmp_path: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    for _ in range(2):
        assert scan(source, tmp_path / "file" / "cache") == expected(source)
        assert reads.take() == 3
    assert [("cannot be used" in warning) for warning in warnings(caplog)] == [True, True]  # one in each run


def test_full_disk(source: Path, cache: Path, reads: Reads, caplog: pytest.LogCaptureFixture) -> None:
    """The store may not grow: what it holds still holds, and the server runs."""
    scan(source, cache)
    for n in range(300):
        write(source / f"{n:03} {'x' * 200}", b"%d" % n)
    reads.take()
    with published(source, cache) as opened:
        store = opened._digests
        assert store is not None
        store.load(source)
        connection = store._connection
        assert connection is not None
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        assert digests(opened.scan()) == expected(source)
        assert reads.take() == 300
        write(source / "later", b"later")
        assert digests(opened.examine([str(source / "later")])).keys() == {"/later"}
    [warning] = warnings(caplog)
    assert "full" in warning
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 301


def test_store_locked_by_another_program(
    source: Path, cache: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    scan(source, cache)
    reads.take()
    with closing(sqlite3.connect(cache / NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert scan(source, cache, busy_s=0.01) == expected(source)
    assert reads.take() == 3
    [warning] = warnings(caplog)
    assert "locked" in warning


def test_store_that_another_server_opens_for_very_long(
    source: Path, cache: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir()
    lock = StoreLock(cache / NAME)
    assert scan(source, cache, busy_s=0.01) == expected(source)
    [warning] = warnings(caplog)
    assert "is in use by process" in warning
    lock.release()
    assert scan(source, cache, busy_s=0.01) == expected(source)
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0


def test_store_that_another_server_replaces_meanwhile(source: Path, cache: Path, reads: Reads) -> None:
    """A server that has the old file open loses what it writes there, and nothing else."""
    scan(source, cache)
    with published(source, cache) as opened:
        opened.scan()
        damage_header(cache / NAME)
        assert scan(source, cache) == expected(source)
        write(source / "later", b"later")
        assert digests(opened.examine([str(source / "later")])).keys() == {"/later"}
    reads.take()
    assert scan(source, cache) == expected(source)
    assert reads.take() <= 1


def test_store_inside_the_published_folder(
    source: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be published, and each of its changes would be one more to note."""
    assert scan(source, source / "b c" / "cache") == expected(source)
    [warning] = warnings(caplog)
    assert "is published" in warning
    assert not (source / "b c" / "cache").exists()


SCANS = """
import sys
import time
from pathlib import Path
from specwire.runtime.filemq.digeststore import DigestStore
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.kernel.store.database import BUSY_S
from specwire.runtime.kernel.store.lock import StoreLock

for _ in range(5):
    store = DigestStore(Path(sys.argv[2]))
    publication = Publication(Path(sys.argv[1]), digests=store)
    publication.open()
    print(sorted((change.entry.name, change.entry.sha1) for change in publication.scan()))
    publication.close()
    store.close()
"""


def test_two_servers_with_one_store(source: Path, cache: Path, reads: Reads) -> None:
    """Both make it, read and write it at the same time; both find what is right, without a word."""
    for n in range(300):
        write(source / str(n), b"%d" % n)
    command = [sys.executable, "-c", SCANS, str(source), str(cache)]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    for process in both:
        out, complaints = process.communicate(timeout=120)
        assert complaints == ""
        assert set(out.splitlines()) == {str(sorted(expected(source).items()))}
    assert scan(source, cache) == expected(source)
    assert reads.take() == 0
