"""Which messages are written in SQL, and how a peer's numbers are kept from being positions."""

from __future__ import annotations

import random
from typing import Self

import pytest

from specwire.generated.limits import MAX_FRAMES
from specwire.generator.emit import sql, sql_errors
from specwire.generator.emit.sql_numbers import SEED, integer, integers, number
from specwire.generator.emit.sql_text import Lets, Sum, frame_at, quoted
from specwire.generator.pipeline import compile_protocol
from tests.house.repository import ROOT

LEFT = {
    "filemq": ["Icanhaz", "Cheezburger"],  # options, cache and headers are dictionaries
    "libfilemq": ["Icanhaz", "Cheezburger"],
    "zre": ["Hello"],  # groups and headers
}
"""Messages that have a list."""


@pytest.mark.parametrize(
    "name", ["cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zre"]
)
def test_messages_without_lists_are_covered(name: str) -> None:
    protocol = compile_protocol(ROOT / "grammars" / name).protocol
    written = sql.emit(protocol)
    for message in protocol.messages:
        assert (f'"{message.class_name}": """' in written) == (message.class_name not in LEFT.get(name, []))
    said = f"Not covered, because SQL cannot locate all of their fields: {', '.join(LEFT.get(name, []))}."
    assert (said in written) == (name in LEFT)


def test_messages_told_by_patterns_are_left() -> None:
    assert sql.emit(compile_protocol(ROOT / "grammars" / "zmtp").protocol) == ""


@pytest.mark.parametrize(
    "name", ["cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zre"]
)
def test_errors_are_written_where_all_messages_are(name: str) -> None:
    """A message that is left to the package's decoder may be a good one: there SQL cannot say that it is none."""
    written = sql.emit(compile_protocol(ROOT / "grammars" / name).protocol)
    assert ("error=r" in written) == (name not in LEFT)


def test_the_codec_looks_at_as_many_frames() -> None:
    assert sql_errors.MAX_FRAMES == MAX_FRAMES


def test_quotes_and_backslashes_are_part_of_a_text() -> None:
    assert quoted("'a' or \\") == r"'\'a\' or \\'"


def test_what_is_used_stands_on_a_lower_level() -> None:
    lets = Lets()
    frame = lets.let("frame", "get(_frames, 0)")
    size = lets.let("size", f"octet_length({frame})")
    assert lets.let("other", "get(_frames, 0)") == frame, "one expression, one name"
    assert lets.let("size", f"octet_length({frame}) + 1") == "_sql_size_2"
    lets.let("unused", "1")
    assert lets.levels(f"{size} > 3") == [
        [("_sql_frame", "get(_frames, 0)")],
        [("_sql_size", f"octet_length({frame})")],
    ]


def test_names_are_not_taken_for_numbered_ones() -> None:
    """A name that begins as another does, or that ends as if it were numbered, is a name of its own."""
    lets = Lets()
    assert [lets.let(hint, text) for hint, text in (("frame_2", "a"), ("frame", "b"), ("frame", "c"))] == [
        "_sql_frame_2", "_sql_frame", "_sql_frame_3",
    ]  # fmt: skip
    assert lets.let("frame_fits", "d") == "_sql_frame_fits"


def test_frames_are_counted_from_both_ends() -> None:
    assert [frame_at(0), frame_at(3), frame_at(-1), frame_at(Sum(1, ("_sql_end",)))] == [
        "try_element_at(_frames, 1)",
        "try_element_at(_frames, 4)",
        "try_element_at(_frames, -1)",
        "try_element_at(_frames, _sql_end + 2)",
    ]


def murmur3(octets: bytes, seed: int) -> int:
    """MurmurHash3_x86_32 of four octets, written from its published description."""
    full = 0xFFFFFFFF
    k = int.from_bytes(octets, "little") * 0xCC9E2D51 & full
    k = (k << 15 | k >> 17) * 0x1B873593 & full
    h = seed ^ k
    h = ((h << 13 | h >> 19) & full) * 5 + 0xE6546B64 & full
    h ^= len(octets)
    h = (h ^ h >> 16) * 0x85EBCA6B & full
    h = (h ^ h >> 13) * 0xC2B2AE35 & full
    return h ^ h >> 16


def test_the_hash_is_the_one_that_others_publish() -> None:
    """Values that are passed around for it; that Spark's is the same is for the tests with a session."""
    known = (
        (b"test", 0, 0xBA6BD213), (b"test", 0x9747B28C, 0x704B81DC), (b"aaaa", 0x9747B28C, 0x5A97808A),
        (bytes.fromhex("21436587"), 0, 0xF55B516B), (bytes.fromhex("21436587"), 0x5082EDEE, 0x2362F9DE),
    )  # fmt: skip
    assert [murmur3(octets, seed) for octets, seed, _ in known] == [found for _, _, found in known]


class Bigint(int):
    """A BIGINT of Spark's, whose sums and products must be one; shifts lose what is shifted out."""

    def __new__(cls, value: int) -> Self:
        assert -(1 << 63) <= value < 1 << 63, f"{value} is no BIGINT"
        return super().__new__(cls, value)

    def __mul__(self, other: int) -> Bigint:
        return Bigint(int(self) * other)

    def __sub__(self, other: int) -> Bigint:
        return Bigint(int(self) - other)

    def __xor__(self, other: int) -> Bigint:
        return Bigint(int(self) ^ other)

    def __and__(self, other: int) -> Bigint:
        return Bigint(int(self) & other)

    def __or__(self, other: int) -> Bigint:
        return Bigint(int(self) | other)


def shiftright(value: int, bits: int) -> Bigint:
    return Bigint(value >> bits)


def shiftleft(value: int, bits: int) -> Bigint:
    return Bigint(((value << bits) + (1 << 63)) % (1 << 64) - (1 << 63))


def evaluated(lets: Lets, name: str, octets: bytes) -> int:
    """Return what a name stands for: Spark and Python give `*`, `-`, `&`, `^` and `|` the same order."""
    values: dict[str, Bigint] = {}
    for level in lets.levels(name):
        for one, text in level:
            hashed = "hash(" in text
            known = {"shiftright": shiftright, "shiftleft": shiftleft, **values}
            values[one] = Bigint(murmur3(octets, SEED) if hashed else eval(text, known))
    return values[name]


def test_the_hash_of_four_octets_is_undone() -> None:
    """Every bit by itself, both ends, and what is drawn; no step leaves the numbers of 64 bits."""
    lets, chance = Lets(), random.Random(4)
    name = number(lets, "_frame", 4)
    (first, hashed), *_ = (pair for level in lets.levels(name) for pair in level)
    assert (first, hashed) == (
        "_sql_hash_4", "cast(hash(coalesce(substring(_frame, 5, 4), X'')) AS BIGINT) & 4294967295",
    )  # fmt: skip
    some = [0, 0xFFFFFFFF, *(1 << bit for bit in range(32)), *(chance.getrandbits(32) for _ in range(2000))]
    assert [evaluated(lets, name, value.to_bytes(4, "big")) for value in some] == some


def test_small_integers_are_cut_out_of_four_octets() -> None:
    """Out of the four that end where they end; at the very beginning there are no such four."""
    lets = Lets()
    assert integers(lets, "_frame", Sum(3), [1, 2]) == [
        "cast(shiftrightunsigned(_sql_number_2, 16) & 255 AS SMALLINT)",
        "cast(_sql_number_2 & 65535 AS INT)",
    ]
    assert integer(lets, "_frame", Sum(2), 4) == "_sql_number_2"
    assert integer(lets, "_frame", Sum(0), 2) == "cast(conv(hex(substring(_frame, 1, 2)), 16, 10) AS INT)"
    assert integer(lets, "_frame", Sum(0), 8).endswith(" AS DECIMAL(20, 0))")


def test_a_part_that_is_not_there_is_null() -> None:
    """Even where a number would be made of what is there instead: that of no octets is a number too."""
    written = sql.emit(compile_protocol(ROOT / "grammars" / "flux").protocol)
    assert "'topic', if(_sql_with_topic = 1, _sql_topic_text, NULL)," in written
    assert "'payload', if(_sql_with_payload = 1, _sql_payload, NULL)," in written
