"""The Java decoders against the row codec: the same rows for every vector, cut or spoilt, errors included."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from specwire.generated import filemq, flux, zre
from specwire.generated.messages import Message
from specwire.runtime.spark.session.target import java_sources
from tests.examples import examples
from tests.generated.agreement import mutated, truncations
from tests.generated.java_rows import Frames, Job, compile_decoders, decoded, wanted_rows
from tests.generated.vectors import PACKAGES, package, recorded

SPOILT = examples(20_000)
"""Spoilt messages, of all packages together."""

ODD: tuple[Frames, ...] = (None, [], [b""], [None], [b"", None], [b"\0"] * 70_000)


TEXTS = tuple("\u00e9" * size + "x" * (size % 9) for size in range(100))
"""More than there are bits in a word, and longer than is guessed for a row."""

LARGE: dict[str, list[Message]] = {
    "filemq": [
        filemq.Cheezburger(
            sequence, 1, "f" * 200, 2**64 - 1, tuple((text[:9] or "n", text) for text in TEXTS), b"x" * 5000
        )
        for sequence in (0, 127, 128, 2**31, 2**63 - 1, 2**63, 2**64 - 1)
    ],
    "zre": [
        zre.Hello(
            version=2,
            sequence=1,
            endpoint="tcp://x:1",
            groups=groups,
            status=1,
            name="n",
            headers=tuple((f"h{at}", text) for at, text in enumerate(groups)),
        )
        for groups in (TEXTS, ())
    ],
    "flux": [
        flux.Request(tuple(f"r{number}" for number in range(count)), "t" * count, b"p" * (count * 9))
        for count in (63, 64, 65, 128, 2000)
    ],
}
"""Messages with many values and large ones."""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The decoders of all packages, compiled."""
    own = [path for path in java_sources() if path.name == "Decode.java"]
    return compile_decoders(own, tmp_path_factory.mktemp("classes"))


def messages(name: str) -> list[Frames]:
    """The vectors of a package, each cut at every octet, and spoilt ones; frames that are none."""
    chance = random.Random(name)
    vectors = [vector.frames for vector in recorded(name)]
    cut = [list(frames) for vector in vectors for frames in truncations(vector)]
    spoilt = [
        mutated(mutated(chance.choice(vectors), chance), chance) for _ in range(SPOILT // len(PACKAGES) + 1)
    ]
    large = [list(message.encode()) for message in LARGE.get(name, ())]
    return [*ODD, *large, *map(list, vectors), *chance.sample(cut, min(len(cut), 2000)), *spoilt]


def counted_type(name: str) -> str:
    """What Spark is given: the columns of `schema.DECODED`, then the number of octets."""
    return StructType([*package(name).schema.DECODED, StructField("_octets", LongType())]).simpleString()


@pytest.mark.slow
def test_every_row_is_that_of_the_codec(classes: Path) -> None:
    """One run over all packages: a Java process takes longer to start than to decode."""
    jobs: list[Job] = []
    wanted = []
    for name in PACKAGES:
        # No published protocol needs the sender: a row with one is the same.
        rows, known = messages(name), list(recorded(name)[0].frames)
        jobs += [*((name, None, frames) for frames in rows), (name, "S", known)]
        wanted += wanted_rows(package(name), [*rows, known])
    types, found = decoded(classes, jobs)
    for (name, _, frames), own, other in zip(jobs, found, wanted, strict=True):
        assert own == other, (name, frames)
    assert types == [counted_type(name) for name in PACKAGES]
