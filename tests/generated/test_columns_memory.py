"""What columns cost in memory: a small multiple of input and output, whatever numbers the octets claim.

Arrow's memory is measured by a pool of the test's own, Python's and numpy's by tracemalloc. Octets are counted,
not time, so nothing here depends on the machine.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pytest

from specwire.generated.columns.reader import Reader
from specwire.generated.plan import TakeText
from tests.generated.column_agreement import FRAMES, column_build, counted_rows
from tests.generated.vectors import package

AT_WORK = 1 << 24
"""Octets that the rows which are decoded together may take, however many there are in all."""


POOLS: list[pa.MemoryPool] = []
"""Pools go after all that was allocated in them has gone."""


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both builds of the column decoder."""
    with column_build(request.param):
        yield


@dataclass
class Peak:
    """The most octets that were taken at one time."""

    octets: int = 0


@contextmanager
def measured() -> Iterator[Peak]:
    """Measure what is allocated meanwhile, by Arrow and by Python and numpy."""
    peak, pool, before = Peak(), pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield peak
        peak.octets = tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def test_many_messages() -> None:
    """100 000 messages with names and headers: within three times of input and output together."""
    module = package("filemq")
    some = [
        module.Cheezburger(
            i, 1, f"/photos/{i}.jpg", i, (("size", f"{i}"), ("mode", "rw")), b"x" * 40
        ).encode()
        for i in range(1000)
    ]
    array = pa.concat_arrays([pa.array(some, FRAMES)] * 100)
    module.columns.decode(array.slice(0, 10))
    with measured() as peak:
        batch = module.columns.decode(array)
    occupied = array.nbytes + batch.select(["_message", "Cheezburger"]).nbytes
    assert batch.column("_error").null_count == len(array)
    assert peak.octets < 3 * occupied


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff", b"\x00\x01\x00\x00"])
def test_claimed_numbers_allocate_nothing(count: bytes) -> None:
    """Rows that claim 65 536 or 4 294 967 295 entries, lengths of 4 GiB, and hold none of it."""
    module = package("libfilemq")
    path = b"\xaa\xa3\x05\x00\x00\x00\x01/"
    rows = [
        [path + count],
        [path + b"\x00\x00\x00\x00" + count + b"\x01a" + count],
        [b"\xaa\xa3\x05" + count],
        [path + b"\x00\x00\x00\x01\x01a" + count],
    ] * 500
    array = pa.array(rows, FRAMES)
    with measured() as peak:
        batch = module.columns.decode(array)
    assert batch.column("_error").null_count == 0
    assert peak.octets < AT_WORK


def test_a_claim_that_octets_could_bear_out() -> None:
    """A row claims as many entries as it has octets, and holds one: positions are noted for what is found."""
    module = package("libfilemq")
    size = 1 << 20
    head = b"\xaa\xa3\x05\x00\x00\x00\x01/\x00\x00\x00\x00"
    body = size.to_bytes(4, "big") + b"\x01a" + (size - 6).to_bytes(4, "big") + bytes(size - 6)
    array = pa.array([[head + body]] * 8, FRAMES)
    with measured() as peak:
        batch = module.columns.decode(array)
    assert batch.column("_error").null_count == 0
    assert peak.octets < 3 * (array.nbytes + batch.column("_frames").nbytes) + AT_WORK


def test_a_million_entries_in_one_row_are_not_a_million_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of very many entries goes by itself after some steps."""
    module = package("libfilemq")
    steps = 0
    text = Reader.text

    def counted(self: Reader, op: TakeText) -> None:
        nonlocal steps
        steps += 1
        text(self, op)

    monkeypatch.setattr(Reader, "text", counted)
    many = tuple((f"{i}", "") for i in range(20_000))
    rows = [module.Icanhaz("/", cache=many).encode(), *([module.Icanhaz("/").encode()] * 10)]
    with counted_rows() as seen:
        batch = module.columns.decode(pa.array(rows, FRAMES))
    assert batch.column("_error").null_count == 11
    assert len(batch.column("Icanhaz")[0].as_py()["cache"]) == len(many)
    assert len(seen) <= 1
    assert steps < 500


def test_columns_of_other_messages_take_nothing() -> None:
    """Null columns of ten messages share octets that nobody has written."""
    module = package("filemq")
    array = pa.array([module.Hugz().encode()] * 50_000, FRAMES)
    module.columns.decode(array.slice(0, 10))
    with measured() as peak:
        batch = module.columns.decode(array)
    assert batch.column("Cheezburger").null_count == len(array)
    assert peak.octets < 3 * (array.nbytes + batch.select(["_message", "Hugz"]).nbytes)
