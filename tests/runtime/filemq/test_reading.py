"""Reading of published files: chunks that prove their version, and digests of the beginnings; on real files."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.filemq import reading
from specwire.runtime.filemq.catalogue import CheckPart, Entry, Put, ReadChunk
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.reading import AT_ONCE_OCTETS, FileChangedError, FileReader

DIGITS = b"0123456789"
CONTENT = bytes(range(256)) * 40
OLD_NS = 10**18


def sha1(content: bytes) -> str:
    """Return the digest of some octets."""
    return hashlib.sha1(content).hexdigest().upper()


class Folder:
    """A published folder, and a reader of its files.

    Attributes:
        looked: names of the files that the reader found changed.
        opened: thread of each time that a file was opened.
        hold: called each time before a file is opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.publication = Publication(path, "/pub")
        self.publication.open()
        self.looked: list[str] = []
        self.opened: list[int] = []
        self.hold: Callable[[], object] = lambda: None
        self.reader = FileReader(self._open, self._look_again)

    def _open(self, name: str) -> int:
        self.opened.append(threading.get_ident())
        self.hold()
        return self.publication.open_entry(name)

    async def _look_again(self, name: str) -> None:
        self.looked.append(name)

    def write(self, content: bytes, *, at_ns: int | None = None) -> Path:
        """Write the file, with this time; return its path."""
        file = self.path / "file"
        file.write_bytes(content)
        if at_ns is not None:
            os.utime(file, ns=(at_ns, at_ns))
        return file

    def publish(self, content: bytes, *, at_ns: int | None = None) -> Entry:
        """Write the file, and return its entry."""
        self.write(content, at_ns=at_ns)
        [entry] = [change.entry for change in self.publication.scan() if isinstance(change, Put)]
        return entry

    def chunks(self, entry: Entry, *sizes: int, offset: int = 0) -> Iterator[bytes]:
        """Read one chunk after the other."""
        for size in sizes:
            yield self.reader.read_now(ReadChunk(entry, offset, size))
            offset += size


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Return a folder without files; no descriptor may stay open."""
    before = open_descriptors()
    made = Folder(tmp_path)
    yield made
    asyncio.run(made.reader.close())
    made.publication.close()
    # Those of an earlier test may be closed in the meantime.
    assert open_descriptors() <= before


def open_descriptors() -> int:
    """Return how many descriptors are open."""
    return len(os.listdir("/proc/self/fd"))


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test on an event loop."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


# ---- chunks


def test_file_is_read_in_chunks(folder: Folder) -> None:
    """Together they are the file."""
    assert [*folder.chunks(folder.publish(DIGITS), 4, 6)] == [b"0123", b"456789"]


def test_replaced_file_is_not_read(folder: Folder) -> None:
    """Its name belongs to another file, of the same size."""
    entry = folder.publish(DIGITS)
    (folder.path / "other").write_bytes(DIGITS[::-1])
    (folder.path / "other").rename(folder.path / "file")
    with pytest.raises(FileChangedError):
        next(folder.chunks(entry, 4))


def test_file_that_is_replaced_while_it_is_read_is_given_up(folder: Folder) -> None:
    """It is opened for each chunk, and the new file is another one."""
    chunks = folder.chunks(folder.publish(DIGITS), 4, 6)
    next(chunks)
    (folder.path / "other").write_bytes(b"new")
    (folder.path / "other").rename(folder.path / "file")
    with pytest.raises(FileChangedError):
        next(chunks)


@pytest.mark.parametrize("new", [b"0123", b"0123456789ABC", b""])
def test_file_that_is_written_while_it_is_read_is_given_up(folder: Folder, new: bytes) -> None:
    """It is shorter or longer now."""
    chunks = folder.chunks(folder.publish(DIGITS), 4, 6)
    next(chunks)
    folder.write(new)
    with pytest.raises(FileChangedError):
        next(chunks)


def test_change_without_a_trace_in_the_file_system_is_found_by_the_digest(folder: Folder) -> None:
    """The digest was computed just after a change, so it is computed again before the last chunk."""
    entry = folder.publish(DIGITS)
    chunks = folder.chunks(entry, 4, 6)
    next(chunks)
    folder.write(b"0123XXXXXX", at_ns=entry.signature.mtime_ns)
    with pytest.raises(FileChangedError):
        next(chunks)


def test_file_at_rest_is_not_digested_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size and times prove its content."""
    entry = folder.publish(DIGITS, at_ns=0)
    for name in ("new_sha1", "digest_file"):
        monkeypatch.setattr(reading, name, lambda *args: pytest.fail("was digested"))
    assert [*folder.chunks(entry, 4, 6)] == [b"0123", b"456789"]


@pytest.mark.parametrize("new", [b"0123XXXXXX", DIGITS])
def test_file_at_rest_that_is_touched_while_it_is_read_is_digested(folder: Folder, new: bytes) -> None:
    """Its time was put back, so only the digest says whether its content is the same."""
    entry = folder.publish(DIGITS, at_ns=0)
    chunks = folder.chunks(entry, 4, 6)
    next(chunks)
    file = folder.path / "file"
    before = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == before:  # a file system counts time in steps
        folder.write(new, at_ns=0)
    if new == DIGITS:
        assert next(chunks) == b"456789"
    else:
        with pytest.raises(FileChangedError):
            next(chunks)


def test_removed_file_is_not_read(folder: Folder) -> None:
    """There is nothing to open."""
    entry = folder.publish(DIGITS)
    (folder.path / "file").unlink()
    with pytest.raises(FileChangedError):
        next(folder.chunks(entry, 4))


def test_error_of_the_disk_is_a_change(tmp_path: Path) -> None:
    """Here a folder is opened in place of the file; reading it is an error."""
    entry = Folder(tmp_path).publish(DIGITS)
    before = open_descriptors()
    reader = FileReader(lambda name: os.open(tmp_path, os.O_RDONLY), lambda name: asyncio.sleep(0))
    with pytest.raises(FileChangedError, match="Is a directory"):
        reader.read_now(ReadChunk(entry, 0, 4))
    # Those of an earlier test may be closed in the meantime.
    assert open_descriptors() <= before


@pytest.mark.parametrize("offset", [1, 5000, len(CONTENT) - 1])
@pytest.mark.parametrize("fresh", [False, True])
def test_file_is_read_from_the_middle(folder: Folder, offset: int, fresh: bool) -> None:
    """The client has the beginning."""
    entry = msgspec.structs.replace(folder.publish(CONTENT, at_ns=OLD_NS), fresh=fresh)
    left = len(CONTENT) - offset
    sizes = [999] * (left // 999) + [left % 999] * bool(left % 999)
    assert b"".join(folder.chunks(entry, *sizes, offset=offset)) == CONTENT[offset:]


@pytest.mark.parametrize("where", [0, len(CONTENT) - 1])
def test_file_that_is_read_from_the_middle_is_proved_as_a_whole(folder: Folder, where: int) -> None:
    """A change of the same length in the same step of the clock, before or behind the beginning of reading."""
    entry = msgspec.structs.replace(folder.publish(CONTENT, at_ns=OLD_NS), fresh=True)
    octets = bytearray(CONTENT)
    octets[where] ^= 1
    with (folder.path / "file").open("r+b") as file:
        file.write(octets)
    os.utime(folder.path / "file", ns=(OLD_NS, OLD_NS))
    with pytest.raises(FileChangedError):
        [*folder.chunks(entry, 5000, len(CONTENT) - 10_000, offset=5000)]


def test_chunk_of_a_changed_file_is_none(folder: Folder) -> None:
    """The list of files is updated before the answer."""
    entry = folder.publish(DIGITS)
    (folder.path / "file").unlink()

    async def story() -> None:
        assert await folder.reader.read(ReadChunk(entry, 0, 4)) is None
        assert folder.looked == ["/pub/file"]

    play(story)


@pytest.mark.parametrize(
    ("size", "chunk", "at_once"),
    [
        (AT_ONCE_OCTETS, range(AT_ONCE_OCTETS), True),
        (10 * AT_ONCE_OCTETS, range(AT_ONCE_OCTETS), True),
        (10 * AT_ONCE_OCTETS, range(AT_ONCE_OCTETS + 1), False),
        (10 * AT_ONCE_OCTETS, range(10 * AT_ONCE_OCTETS - 1, 10 * AT_ONCE_OCTETS), False),
    ],
    ids=["small file", "small chunk", "large chunk", "end of a large file"],
)
def test_only_what_takes_little_time_is_read_on_the_event_loop(
    folder: Folder, size: int, chunk: range, at_once: bool
) -> None:
    """At the end of a large file all of it may have to be digested."""
    entry = folder.publish(bytes(size), at_ns=OLD_NS)

    async def story() -> None:
        answer = await folder.reader.read(ReadChunk(entry, chunk.start, len(chunk)))
        assert answer == bytes(len(chunk))
        assert (folder.opened == [threading.get_ident()]) == at_once

    play(story)


# ---- digests of beginnings


@pytest.mark.parametrize("piece", [1, 100, 4096, 1 << 20])
def test_digest_is_that_of_the_beginning(folder: Folder, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of any length, many at a time."""
    monkeypatch.setattr(reading, "PIECE_OCTETS", piece)
    entry = folder.publish(CONTENT, at_ns=OLD_NS)
    sizes = [1, 99, 100, 101, 4096, len(CONTENT)]

    async def story() -> None:
        digests = await asyncio.gather(*(folder.reader.check(CheckPart(entry, size)) for size in sizes))
        assert digests == [sha1(CONTENT[:size]) for size in sizes]

    play(story)


def rewrite(path: Path) -> None:
    path.write_bytes(CONTENT)


def truncate(path: Path) -> None:
    path.write_bytes(CONTENT[:10])
    os.utime(path, ns=(OLD_NS, OLD_NS))


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [rewrite, truncate, link, Path.unlink])
def test_changed_file_has_no_digest(folder: Folder, change: Callable[[Path], None]) -> None:
    """Whatever its octets are. The list of files is updated before the answer."""
    entry = folder.publish(CONTENT, at_ns=OLD_NS)
    change(folder.path / "file")

    async def story() -> None:
        assert await folder.reader.check(CheckPart(entry, 100)) is None
        assert folder.looked == ["/pub/file"]

    play(story)


def test_file_that_changes_between_two_pieces_has_no_digest(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it is not read."""
    monkeypatch.setattr(reading, "PIECE_OCTETS", 10)
    entry = folder.publish(CONTENT, at_ns=OLD_NS)

    def change() -> None:
        if len(folder.opened) == 3:
            rewrite(folder.path / "file")

    folder.hold = change

    async def story() -> None:
        assert await folder.reader.check(CheckPart(entry, 100)) is None

    play(story)
    assert len(folder.opened) == 3


def test_cancelled_check_ends_with_its_piece(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """`close` waits for the piece, and its file is closed."""
    monkeypatch.setattr(reading, "PIECE_OCTETS", 1)
    entry = folder.publish(CONTENT, at_ns=OLD_NS)
    reached, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        assert go_on.wait(20)

    folder.hold = hold

    async def story() -> None:
        check = asyncio.create_task(folder.reader.check(CheckPart(entry, 100)))
        await asyncio.to_thread(reached.wait)
        check.cancel()
        with pytest.raises(asyncio.CancelledError):
            await check
        asyncio.get_running_loop().call_soon(go_on.set)
        await folder.reader.close()

    play(story)
    assert len(folder.opened) == 1
    assert folder.looked == []


def test_chunks_do_not_wait_for_digests(folder: Folder) -> None:
    """However many there are; they have threads of their own."""
    entry = folder.publish(bytes(2 * AT_ONCE_OCTETS), at_ns=OLD_NS)
    go_on = threading.Event()

    def hold() -> None:
        if threading.current_thread().name.startswith("filemq-check"):
            assert go_on.wait(20)

    folder.hold = hold

    async def story() -> None:
        checks = [asyncio.create_task(folder.reader.check(CheckPart(entry, size))) for size in range(1, 10)]
        await asyncio.sleep(0)
        chunk = await folder.reader.read(ReadChunk(entry, 0, 2 * AT_ONCE_OCTETS))
        assert chunk is not None
        assert not any(check.done() for check in checks)
        go_on.set()
        assert await asyncio.gather(*checks) == [sha1(bytes(size)) for size in range(1, 10)]

    play(story)
