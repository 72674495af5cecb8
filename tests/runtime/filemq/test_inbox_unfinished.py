"""What an inbox keeps unfinished: over a close and over a kill, one file, gone on with or thrown away."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.filemq import placing, unfinished
from specwire.runtime.filemq.diskwork import (
    CompleteFile,
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
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, fault_in_name
from tests.examples import examples
from tests.runtime.filemq.inboxes import perform

HIDDEN = ".specwire-inbox"
HALF, REST = b"the first half, ", b"and the rest"
WHOLE = HALF + REST
NAME = "/d/a file"


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest().upper()


@contextmanager
def opened(folder: Path) -> Iterator[Inbox]:
    inbox = Inbox(folder, sync=False)
    inbox.open()
    yield inbox
    inbox.close()


def killed(inbox: Inbox) -> None:
    """Let go of an inbox as a kill does: nothing is tidied up, and the lock is gone."""
    os.close(inbox._own)
    os.close(inbox._root)


def begin(inbox: Inbox, name: str = NAME, content: bytes = HALF) -> None:
    perform(inbox, WriteChunk(1, name, 0, content), KeepFile(1, name))


def go_on(inbox: Inbox, name: str = NAME, rest: bytes = REST, whole: bytes = WHOLE) -> list[Outcome]:
    orders: list[DiskAction] = [
        WriteChunk(2, name, len(whole) - len(rest), rest),
        CompleteFile(2, name, len(whole), sha1(whole)),
    ]
    return [outcome for outcome in perform(inbox, *orders) if not isinstance(outcome, Wrote)]


def find_unfinished(inbox: Inbox) -> Unfinished | None:
    [held] = perform(inbox, ListHeld(2, "/"))
    assert isinstance(held, Held)
    return held.unfinished


def own_files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / HIDDEN))


def test_kept_file_is_gone_on_with_in_the_same_run(tmp_path: Path) -> None:
    """Another connection: nothing is read again."""
    with opened(tmp_path) as inbox:
        begin(inbox)
        part = tmp_path / HIDDEN / "unfinished-1"
        assert find_unfinished(inbox) == Unfinished(NAME, len(HALF), sha1(HALF))
        part.chmod(0)
        assert go_on(inbox) == [Stored(2, NAME, len(WHOLE), sha1(WHOLE), True)]
        assert own_files(tmp_path) == ["journal"]
    assert (tmp_path / NAME[1:]).read_bytes() == WHOLE


@pytest.mark.parametrize("end", [Inbox.close, killed])
def test_kept_file_is_gone_on_with_by_the_next_run(tmp_path: Path, end: object) -> None:
    assert callable(end)
    first = Inbox(tmp_path, sync=False)
    first.open()
    begin(first)
    end(first)
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) == Unfinished(NAME, len(HALF), sha1(HALF))
        assert go_on(inbox) == [Stored(2, NAME, len(WHOLE), sha1(WHOLE), True)]
        assert own_files(tmp_path) == ["journal"]
        begin(inbox, "/next", b"x")
    assert own_files(tmp_path) == ["journal", "unfinished-2", "unfinished-2.name"]


def test_kept_file_outlives_several_runs(tmp_path: Path) -> None:
    for octet in WHOLE[:-1]:
        with opened(tmp_path) as inbox:
            left = find_unfinished(inbox)
            offset = 0 if left is None else left.size
            begun: list[DiskAction] = [WriteChunk(1, NAME, offset, bytes([octet])), KeepFile(1, NAME)]
            assert perform(inbox, *begun) == [Wrote(1, 1)]
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) == Unfinished(NAME, len(WHOLE) - 1, sha1(WHOLE[:-1]))
        assert go_on(inbox, rest=WHOLE[-1:]) == [Stored(2, NAME, len(WHOLE), sha1(WHOLE), True)]


def test_kept_file_need_not_be_listed_to_be_gone_on_with(tmp_path: Path) -> None:
    """Whoever writes to it first, its digest is that of the octets on the disk."""
    with opened(tmp_path) as inbox:
        begin(inbox)
    with opened(tmp_path) as inbox:
        assert go_on(inbox) == [Stored(2, NAME, len(WHOLE), sha1(WHOLE), True)]


@pytest.mark.parametrize("end", [Inbox.close, killed])
def test_file_that_is_not_to_be_kept_is_removed(tmp_path: Path, end: object) -> None:
    assert callable(end)
    first = Inbox(tmp_path, sync=False)
    first.open()
    perform(first, WriteChunk(1, NAME, 0, HALF))
    assert find_unfinished(first) is None
    end(first)
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) is None
        assert own_files(tmp_path) == ["journal"]


@pytest.mark.parametrize(
    "action", [DiscardFile(2, NAME), DeleteFile(2, NAME), WriteChunk(2, "/other", 0, b"x")]
)
@pytest.mark.parametrize("anew", [False, True])
def test_kept_file_of_no_use_any_more_is_removed(tmp_path: Path, action: DiskAction, anew: bool) -> None:
    """Thrown away, deleted by the server, or followed by another file."""
    with opened(tmp_path) as inbox:
        begin(inbox)
        if not anew:
            perform(inbox, action)
            assert find_unfinished(inbox) is None
    with opened(tmp_path) as inbox:
        if anew:
            perform(inbox, action)
        assert find_unfinished(inbox) is None
    assert own_files(tmp_path) == ["journal"]


def test_kept_file_that_begins_anew_is_not_mixed(tmp_path: Path) -> None:
    with opened(tmp_path) as inbox:
        begin(inbox)
    with opened(tmp_path) as inbox:
        whole = b"another version"
        assert go_on(inbox, rest=whole, whole=whole) == [Stored(2, NAME, len(whole), sha1(whole), True)]
    assert own_files(tmp_path) == ["journal"]


def test_kept_file_that_was_damaged_is_told_as_it_is(tmp_path: Path) -> None:
    """The server finds another digest, and begins at 0; if it did not, the digest of the whole would tell."""
    with opened(tmp_path) as inbox:
        begin(inbox)
    part = tmp_path / HIDDEN / "unfinished-1"
    part.write_bytes(HALF[:-1] + b"!")
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) == Unfinished(NAME, len(HALF), sha1(HALF[:-1] + b"!"))
        [failed] = go_on(inbox)
        assert isinstance(failed, Failed)
        assert failed.again
        assert "was announced" in failed.reason
        assert find_unfinished(inbox) is None
        assert own_files(tmp_path) == ["journal"]


def test_chunk_that_does_not_fit_the_kept_file_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as inbox:
        begin(inbox)
    with opened(tmp_path) as inbox:
        outcomes = perform(inbox, WriteChunk(2, NAME, len(HALF) + 1, b"x"))
        assert [type(outcome) for outcome in outcomes] == [Wrote, Failed]
        assert own_files(tmp_path) == ["journal"]


def test_kill_between_whole_and_placed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk is waited for, a file is whole and not in its place."""
    first = Inbox(tmp_path, sync=False)
    first.open()
    begin(first)

    class Killed(BaseException):
        pass

    def die(self: object) -> list[Outcome]:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(placing.Placing, "place_all", die)
        with pytest.raises(Killed):
            go_on(first)
    killed(first)
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) == Unfinished(NAME, len(WHOLE), sha1(WHOLE))
        assert perform(inbox, CompleteFile(2, NAME, len(WHOLE), sha1(WHOLE))) == [
            Stored(2, NAME, len(WHOLE), sha1(WHOLE), True)
        ]
    assert own_files(tmp_path) == ["journal"]


def test_file_without_room_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The space is free for others, and the file is sent again when it may fit."""

    def full(descriptor: int, octets: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(tmp_path) as inbox:
        begin(inbox)
        monkeypatch.setattr(unfinished, "write_octets", full)
        [failed] = go_on(inbox)
        assert failed == Failed(2, NAME, "No space left on device", True)
        assert find_unfinished(inbox) is None
        assert own_files(tmp_path) == ["journal"]


def test_file_whose_note_finds_no_room_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(unfinished, "write_note", full)
    with opened(tmp_path) as inbox:
        begin(inbox)
        assert find_unfinished(inbox) is None
        assert go_on(inbox) == [Stored(2, NAME, len(WHOLE), sha1(WHOLE), True)]
        begin(inbox)
    assert own_files(tmp_path) == ["journal"]


@pytest.mark.parametrize("note", [b"", b'"', b'"/d/a fi', b"/d/a file", b"[]", b'"/../x"', b'"/x" "/y"'])
def test_note_that_is_none_keeps_nothing(tmp_path: Path, note: bytes) -> None:
    """A name that was cut off would be another file's."""
    with opened(tmp_path) as inbox:
        begin(inbox)
    (tmp_path / HIDDEN / "unfinished-1.name").write_bytes(note)
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) is None
        assert own_files(tmp_path) == ["journal"]


@pytest.mark.parametrize("lost", ["unfinished-1", "unfinished-1.name"])
def test_file_without_note_and_note_without_file_are_removed(tmp_path: Path, lost: str) -> None:
    with opened(tmp_path) as inbox:
        begin(inbox)
    (tmp_path / HIDDEN / lost).unlink()
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) is None
        assert own_files(tmp_path) == ["journal"]


def test_link_in_the_place_of_a_kept_file_is_not_followed(tmp_path: Path) -> None:
    with opened(tmp_path / "inbox") as inbox:
        begin(inbox)
    (tmp_path / "precious").write_bytes(HALF)
    part = tmp_path / "inbox" / HIDDEN / "unfinished-1"
    part.unlink()
    part.symlink_to(tmp_path / "precious")
    with opened(tmp_path / "inbox") as inbox:
        assert find_unfinished(inbox) is None
    assert (tmp_path / "precious").read_bytes() == HALF


def test_of_several_the_largest_is_kept(tmp_path: Path) -> None:
    """They do not pile up, whatever the kills."""
    with opened(tmp_path) as inbox:
        begin(inbox)
    for number, content in ((7, WHOLE), (12, b"x")):
        (tmp_path / HIDDEN / f"unfinished-{number}").write_bytes(content)
        (tmp_path / HIDDEN / f"unfinished-{number}.name").write_bytes(b'"/number %d"' % number)
    with opened(tmp_path) as inbox:
        assert find_unfinished(inbox) == Unfinished("/number 7", len(WHOLE), sha1(WHOLE))
        assert own_files(tmp_path) == ["journal", "unfinished-7", "unfinished-7.name"]


@settings(max_examples=examples(30), deadline=None)
@given(name=st.text(min_size=1, max_size=300).map(lambda text: f"/{text}"), cut=st.integers(0, 400))
def test_note_is_read_back_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, name: str, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "unfinished-3").write_bytes(HALF)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        unfinished.write_note(descriptor, 3, name)
        note = folder / "unfinished-3.name"
        octets = note.read_bytes()
        note.write_bytes(octets[:cut])
        left = unfinished.find_leftover(descriptor)
    finally:
        os.close(descriptor)
    faultless = fault_in_name(name, LONGEST_NAME_OCTETS) is None
    assert left == (unfinished.Leftover(3, name, len(HALF)) if cut >= len(octets) and faultless else None)
    assert bool(os.listdir(folder)) == (left is not None)
