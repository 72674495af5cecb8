"""What a peer claims costs nothing: a decoder takes memory for what was sent, a small multiple of it at most.

Measured with tracemalloc, which sees what Python and NumPy allocate, and with a pool of its own for Arrow. A
page that is allocated counts, whether it is ever touched or not.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from specwire.generated.errors import DecodeError
from tests.fuzz.corpus import inputs
from tests.fuzz.pieces import split
from tests.generated.builds import package
from tests.generated.claims import CLAIMING, GROWING
from tests.generated.vectors import PACKAGES

TIMES = 24
"""Octets of memory for each octet that was sent; a pair of two empty texts takes 80 for its 5."""
EACH_FRAME = 32
"""Octets of memory for a frame, empty or not: a place in a list and in a tuple, and twice that while they grow."""
START_OCTETS = 30_000
"""An error with its sentence, and what is made once."""
KINDS = ("count", "length", "text")


def peak_of(act: Callable[[], object]) -> int:
    """Return the most octets that were allocated while `act` ran, beyond those before."""
    act()  # what is made once is made now
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def allowed(frames: Sequence[bytes]) -> int:
    return START_OCTETS + TIMES * sum(map(len, frames)) + EACH_FRAME * len(frames)


def outcome(decode: Callable[[Sequence[bytes]], object], frames: Sequence[bytes]) -> object:
    try:
        return decode(frames)
    except DecodeError as error:
        return error


@pytest.mark.parametrize("what", CLAIMING)
def test_claims_allocate_nothing(what: str, build: str) -> None:
    name, frames = CLAIMING[what]
    module = package(name, build)
    said = outcome(module.decode, frames)
    assert isinstance(said, DecodeError) and said.kind in KINDS
    assert peak_of(lambda: outcome(module.decode, frames)) < allowed(frames)


@pytest.mark.parametrize("what", GROWING)
def test_what_is_sent_costs_a_small_multiple(what: str, build: str) -> None:
    shape = GROWING[what]
    module, frames = package(shape.package, build), shape.frames(20_000)
    assert isinstance(outcome(module.decode, frames), DecodeError) != shape.good
    assert peak_of(lambda: outcome(module.decode, frames)) < allowed(frames)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_corpus_costs_a_small_multiple(name: str, build: str) -> None:
    """Whatever coverage-guided fuzzing kept."""
    module = package(name, build)
    for path in inputs(f"codec-{name}"):
        frames = split(path.read_bytes())
        assert peak_of(partial(outcome, module.decode, frames)) < allowed(frames), path.name


STREAMS: dict[str, tuple[str, bytes]] = {
    "flux, 4 GiB": ("flux", b"\xff\xee\x00\x12" + b"\xff" * 4),
    "flux, all but 4 GiB of one part": ("flux", b"\xff\xee\x00\x12" + b"\x00\xff\xff\x00" + b"\xff\xff\xff\xff\xff"),
    "zmtp, a command of 2**64 - 1": ("zmtp", b"\x06" + b"\xff" * 8),
    "zmtp, a message of 16 MiB": ("zmtp", b"\x02" + (16 * 2**20 - 9).to_bytes(8, "big")),
}  # fmt: skip


@pytest.mark.parametrize("what", STREAMS)
def test_streams_wait_without_memory(what: str, build: str) -> None:
    """Whether the length is refused, or its octets are waited for."""
    name, octets = STREAMS[what]
    module = package(name, build)

    def feed(_: Sequence[bytes]) -> object:
        return [module.StreamDecoder().feed(octets) for _ in range(3)]

    assert peak_of(lambda: outcome(feed, ())) < START_OCTETS


@pytest.mark.parametrize("name", sorted({name for name, _ in CLAIMING.values()}))
def test_columns_take_no_claims(name: str) -> None:
    rows = [frames for package, frames in CLAIMING.values() if package == name] * 50
    module, array = package(name, "pure"), pa.array(rows, pa.list_(pa.binary()))
    default = pa.default_memory_pool()

    def decode() -> Any:
        pool = pa.proxy_memory_pool(default)
        pa.set_memory_pool(pool)
        try:
            assert module.columns.decode(array)["_error"].null_count == 0
            return pool.max_memory()
        finally:
            pa.set_memory_pool(default)

    octets = sum(len(frame) for frames in rows for frame in frames)
    # Each row has its error in words, twelve columns or more, and buffers that Arrow rounds up.
    bound = 2_000_000 + 4_000 * len(rows) + TIMES * octets
    assert peak_of(decode) < bound
    assert decode() < bound


def test_json_may_be_as_deep_as_it_likes() -> None:
    """Only ``strict`` reads it, and a depth that Python's reader refuses is the text's fault, not a crash."""
    module = package("cmb1_json", "pure")
    text = b"[" * 200_000
    with pytest.raises(RecursionError):
        json.loads(text)
    header = b"\x8e\x01\x01\x07" + bytes(16)
    assert module.decode([b"a.b", text, header]).json == text.decode()
    with pytest.raises(DecodeError) as caught:
        module.decode([b"a.b", text, header], strict=True)
    assert (caught.value.kind, caught.value.expected, caught.value.field) == ("text", "JSON", "json")
