"""Positions: what was given, in as little as says so."""

from __future__ import annotations

import json

import msgspec
import pytest

from specwire.runtime.spark.reading.position import Position


def name(tap: str, number: int) -> str:
    return f"{tap}-{number:06d}.parquet"


def test_a_tap_is_one_stretch() -> None:
    """However many segments it wrote."""
    position = Position().add(name("a-1-0", number) for number in range(5000))
    assert position.taps == {"a-1-0": ((0, 4999),)}
    assert (position.last("a-1-0"), position.last("b-1-0")) == (4999, -1)
    assert position.has(name("a-1-0", 4999)) and not position.has(name("a-1-0", 5000))


def test_holes_stay_until_they_are_filled() -> None:
    """In any order; two stretches that meet become one."""
    position = Position().add([name("a", 5), name("a", 0), name("a", 1), name("a", 3)])
    assert position.taps == {"a": ((0, 1), (3, 3), (5, 5))}
    assert position.add([name("a", 4), name("a", 2)]).taps == {"a": ((0, 5),)}
    assert not position.has(name("a", 4))


def test_what_lies_between_two_positions() -> None:
    """Late ones before later ones, each tap by itself, then files of other names."""
    earlier = Position().add([name("a", 0), name("a", 2), name("a", 3), "merged.parquet"])
    later = earlier.add([name("a", 1), name("a", 4), name("b", 7), "other.parquet"])
    assert later.names_since(earlier) == [name("a", 1), name("a", 4), name("b", 7), "other.parquet"]
    assert later.names_since(later) == []
    assert len(later.names_since(Position())) == 8


def test_files_that_have_gone_are_forgotten() -> None:
    """A tap with its last file; the stretch of one that still has files stays whole."""
    position = Position().add([name("a", 0), name("a", 1), name("b", 0), "x.parquet", "y.parquet"])
    left = position.forget_missing([name("a", 1), "y.parquet"])
    assert left == Position({"a": ((0, 1),)}, ("y.parquet",))


def test_a_file_that_became_whole_is_given_again() -> None:
    """Once for each change; its name in a stretch of its tap stays, and it is forgotten with its file."""
    cut = Position().add([name("a", 0), name("a", 1)], {name("a", 0): 7.5})
    assert cut.names_since(Position()) == [name("a", 0), name("a", 1)]
    assert cut.names_since(cut) == []
    whole = cut.add([name("a", 0), name("a", 2)], {name("a", 0): 9.25})
    assert whole.names_since(cut) == [name("a", 0), name("a", 2)]
    assert whole.taps == {"a": ((0, 2),)}
    stored = json.dumps(whole.to_json())
    assert stored == '{"taps": {"a": [[0, 2]]}, "unwhole": {"a-000000.parquet": 9.25}}'
    assert Position.from_json(json.loads(stored)) == whole
    assert whole.forget_missing([name("a", 2)]).incomplete == {}
    assert whole.forget_missing([name("a", 2)]).names_since(whole) == []


def test_a_position_is_json() -> None:
    """As Spark keeps offsets; other JSON is refused."""
    position = Position().add([name("a-1-0", 7), "x.parquet"])
    stored = json.dumps(position.to_json())
    assert stored == '{"taps": {"a-1-0": [[7, 7]]}, "others": ["x.parquet"]}'
    assert Position.from_json(json.loads(stored)) == position
    with pytest.raises(msgspec.ValidationError):
        Position.from_json({"taps": {"a": 3}})


@pytest.mark.parametrize("other", ["merged.parquet", "a-12.parquet", "-000001.parquet", "a-0000001.parquet"])
def test_names_that_no_tap_gives(other: str) -> None:
    """They are kept as they are."""
    position = Position().add([other])
    assert position.others == (other,) and position.has(other)
    assert position.names_since(Position()) == [other]


COMPACTED = "a-1-0-000002_000005.parquet"


def test_a_compacted_segment_is_its_numbers() -> None:
    """It is read if they were; a later position names it in place of them."""
    before = Position().add([name("a-1-0", number) for number in range(6)])
    assert before.has(COMPACTED)
    fresh = Position().add([COMPACTED])
    assert fresh.names_since(Position()) == [COMPACTED] and fresh.last("a-1-0") == 5
    assert fresh.has(name("a-1-0", 4)) and not fresh.has(name("a-1-0", 1))


def test_the_first_messages_of_a_compacted_segment_may_be_known() -> None:
    """Those of the segments that were read, which must be the first ones."""
    empty = Position()
    assert (empty.seq_before(COMPACTED), empty.seq_before(name("a-1-0", 3))) == (-1, -1)
    begun = empty.add([name("a-1-0", number) for number in range(4)], seqs={"a-1-0": 39})
    assert not begun.has(COMPACTED) and begun.seq_before(COMPACTED) == 39
    assert begun.add([COMPACTED]).names_since(begun) == [COMPACTED]
    holed = empty.add([name("a-1-0", 4)], seqs={"a-1-0": 49})
    assert holed.seq_before(COMPACTED) is None
    assert Position.from_json(begun.to_json()) == begun
