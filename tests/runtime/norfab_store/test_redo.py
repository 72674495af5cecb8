"""The redo log as a file: what is read again, whatever was left of it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from specwire.runtime.norfab.store import redo
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.redo import OCTETS, RedoLog, read_redo

HEAD_OCTETS = 20
"""Serial number (8), octets (4) and signature (8) of a record."""


def statement(number: int, octets: bytes = b"") -> tuple[str, tuple[object, ...]]:
    """Return a statement as stores have them."""
    return "INSERT INTO thing VALUES (?, ?)", (number, bytearray(octets))


def numbers(file: Path, after: int = 0) -> list[tuple[int, int]]:
    """Return what is read: of each record its serial number, and the first value of its first statement."""
    return [(serial, statements[0][1][0]) for serial, statements in read_redo(file, after)]


def test_values_come_back_as_sqlite_has_them(tmp_path: Path) -> None:
    """Numbers, texts, octets and nothing; octets are octets, whatever they were held in."""
    log = RedoLog(tmp_path / "redo", 7)
    row = (1, -(1 << 63), 2.5, "\N{SNOWMAN}\0", b"\xff", bytearray(b"\0"), None)
    assert log.append([("INSERT …", row), ("DELETE …", [])]) == 7
    log.close()
    [(serial, statements)] = read_redo(tmp_path / "redo", 0)
    assert serial == 7
    assert [(sql, [*values]) for sql, values in statements] == [
        ("INSERT …", [1, -(1 << 63), 2.5, "\N{SNOWMAN}\0", b"\xff", b"\0", None]),
        ("DELETE …", []),
    ]


def test_file_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    assert [*read_redo(tmp_path / "redo", 0)] == []


def test_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """It may have what must not be lost, so it is not taken for empty."""
    (tmp_path / "redo").mkdir()
    with pytest.raises(StoreError, match=r"redo cannot be read: Is a directory"):
        [*read_redo(tmp_path / "redo", 0)]


def test_what_the_database_has_is_left_out(tmp_path: Path) -> None:
    log = RedoLog(tmp_path / "redo", 1)
    for number in (11, 12, 13):
        log.append([statement(number)])
    assert numbers(tmp_path / "redo", after=2) == [(3, 13)]


def test_room_is_bounded_and_begins_anew(tmp_path: Path) -> None:
    """A full log takes nothing, and the same again when it was cleared; the file keeps its size."""
    file = tmp_path / "redo"
    log = RedoLog(file, 1)
    for turn in range(3):
        taken = 0
        while log.append([statement(taken, bytes(1000))]):
            taken += 1
        # A record has its head, and some 40 octets beside those that were given.
        assert OCTETS // 1100 <= taken <= OCTETS // 1000
        assert [number for _, number in numbers(file)] == [*range(taken)]
        assert os.path.getsize(file) == OCTETS
        log.clear()
        assert numbers(file) == [], turn


@pytest.mark.parametrize(
    "value",
    [bytes(redo.RECORD_OCTETS), 1 << 70, "\ud800", object()],
    ids=["large", "huge", "surrogate", "unfit"],
)
def test_what_is_not_taken_leaves_the_log_as_it_was(tmp_path: Path, value: object) -> None:
    file = tmp_path / "redo"
    log = RedoLog(file, 1)
    assert log.append([statement(1)]) == 1
    assert log.append([("INSERT …", (value,))]) == 0
    assert log.append([statement(2)]) == 2
    assert numbers(file) == [(1, 1), (2, 2)]


def test_disk_that_takes_a_part_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a record is none, and the next one is written over it."""
    file = tmp_path / "redo"
    log = RedoLog(file, 1)
    real = os.pwrite

    def half(descriptor: int, octets: bytes, at: int) -> int:
        return real(descriptor, octets[: len(octets) // 2], at)

    def none(descriptor: int, octets: bytes, at: int) -> int:
        raise OSError(28, "No space left on device")

    log.append([statement(1)])
    for fault in (half, none):
        monkeypatch.setattr(os, "pwrite", fault)
        assert log.append([statement(2, b"lost")]) == 0
        monkeypatch.setattr(os, "pwrite", real)
        assert numbers(file) == [(1, 1)]
    assert log.append([statement(3)]) == 2
    assert numbers(file) == [(1, 1), (2, 3)]


def test_no_room_for_the_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is allocated when it is made, so a full disk is found out then."""
    monkeypatch.setattr(os, "pwrite", lambda descriptor, octets, at: 4096)
    with pytest.raises(OSError, match=f"no room for the {OCTETS} octets of .*redo"):
        RedoLog(tmp_path / "redo", 1)


def test_wherever_the_process_is_killed_whole_records_are_read(tmp_path: Path) -> None:
    """Of an append that was cut off after any of its octets, over what an earlier round has left, nothing is read."""
    file = tmp_path / "redo"
    log = RedoLog(file, 1)
    for number in range(20):
        log.append([statement(number, bytes(30))])
    log.clear()
    log.append([statement(100, b"first")])
    before = file.read_bytes()
    log.append([statement(200, b"second")])
    after = file.read_bytes()
    changed = [at for at in range(OCTETS) if before[at] != after[at]]
    begin, end = changed[0], changed[-1] + 1
    assert end - begin > HEAD_OCTETS
    for cut in range(begin, end):
        file.write_bytes(after[:cut] + before[cut:])
        assert numbers(file) == [(21, 100)], cut
    file.write_bytes(after)
    assert numbers(file) == [(21, 100), (22, 200)]


def used(octets: bytes) -> bytes:
    """Return the key and the first record."""
    length = int.from_bytes(octets[redo.KEY_OCTETS + 8 : redo.KEY_OCTETS + 12], "little")
    return octets[: redo.KEY_OCTETS + HEAD_OCTETS + length]


def test_octets_of_a_peer_cannot_pass_for_a_record(tmp_path: Path) -> None:
    """A body that was kept before lies where the next record would begin, and is one, but for the key that signs it."""
    file = tmp_path / "redo"
    peer = RedoLog(tmp_path / "of the peer", 2)
    assert peer.append([("DROP TABLE thing", ())]) == 2
    forged = used((tmp_path / "of the peer").read_bytes())[redo.KEY_OCTETS :]
    log = RedoLog(file, 1)
    assert log.append([statement(1)]) == 1
    file.write_bytes((used(file.read_bytes()) + forged).ljust(OCTETS, b"\0"))
    assert numbers(file) == [(1, 1)]
    # The same under the key of the file is read: it is nothing else that keeps it out.
    file.write_bytes((tmp_path / "of the peer").read_bytes())
    assert [serial for serial, _ in read_redo(file, 0)] == [2]


def test_damage_costs_what_follows_and_raises_nothing(tmp_path: Path) -> None:
    """Any octet may be another, and the file may end anywhere: what is read is the beginning of what was written."""
    file = tmp_path / "redo"
    log = RedoLog(file, 5)
    written = []
    for number in range(30):
        log.append([statement(number, random.Random(number).randbytes(number))])
        written.append((5 + number, number))
    sound = file.read_bytes()
    end = len(sound.rstrip(b"\0")) + 1
    chance = random.Random(7)
    for _ in range(1000):
        octets = bytearray(sound)
        octets[chance.randrange(end)] ^= 1 << chance.randrange(8)
        file.write_bytes(octets[: chance.choice([OCTETS, chance.randrange(end)])])
        found = numbers(file)
        assert found == written[: len(found)]
        assert len(found) < 30
    for size in (0, 1, 15, 16, 17, 100):
        file.write_bytes(chance.randbytes(size))
        assert numbers(file) == []


def test_record_of_another_form_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that is whole and no list of statements costs no other one."""
    file = tmp_path / "redo"
    log = RedoLog(file, 1)
    log.append([statement(1)])
    with monkeypatch.context() as patched:
        patched.setattr(redo, "_encode", lambda statements: b"\x01")
        assert log.append([statement(2)]) == 2
    log.append([statement(3)])
    assert numbers(file) == [(1, 1), (3, 3)]
    assert "record 2 is left out" in caplog.text
