"""Every reader of a protocol makes the same of the same frames: both builds, the columns, the declarations.

The frames are recorded messages, these cut at every octet and short of every frame, short messages with every octet
changed to every value, longer ones with an octet changed here and there, and what the packages' own strategies draw.
All but the codecs see fewer cuts: those of the shortest messages. Construct, which is slow, sees fewer values for an octet.
`SPECWIRE_FUZZ_COUNT` asks for more of what is drawn (`tests.examples`); from 1000 on all readers see all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from random import Random
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated import zre
from specwire.generated.errors import DecodeError
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import (
    ODD,
    TAKEN_BY_CONSTRUCT,
    Frames,
    Reading,
    assert_construct_agrees,
    assert_explained,
    construct_takes,
    corpus,
    mutated,
    read,
    truncations,
)
from tests.generated.builds import package
from tests.generated.column_agreement import column_build
from tests.generated.differential import (
    assert_codec_agrees,
    assert_columns_agree,
    octets_of,
    shortest,
    some_with_other_octets,
    with_other_octets,
)
from tests.generated.vectors import PACKAGES, all_recorded

COUNT = examples(100)
DEEP = COUNT >= 1000
FULLY = 16
"""So many octets of a package's shortest messages are changed to every value."""

Check = Callable[[str, Sequence[Reading]], None]


def against_native(name: str, readings: Sequence[Reading]) -> None:
    assert_codec_agrees(package(name, "native"), readings)


def against_columns(name: str, readings: Sequence[Reading]) -> None:
    with column_build("numpy"):
        assert_columns_agree(import_module(f"specwire.generated.{name}"), readings)


def against_compiled_columns(name: str, readings: Sequence[Reading]) -> None:
    with column_build("compiled"):
        assert_columns_agree(import_module(f"specwire.generated.{name}"), readings)


def against_construct(name: str, readings: Sequence[Reading]) -> None:
    assert_construct_agrees(package(name, "pure"), readings)


READERS = [against_native, against_columns, against_compiled_columns, against_construct]
every_reader = pytest.mark.parametrize("against", READERS, ids=[reader.__name__ for reader in READERS])
# The readings of a package are made once for all its readers, so one worker runs them.
every_package = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(f"readings of {name}")) for name in PACKAGES]
)


def readings_of(name: str, frames: Sequence[Frames]) -> list[Reading]:
    """What the codec in Python makes of them; its refusals say all they must."""
    module = package(name, "pure")
    readings = read(module, frames)
    for reading in readings:
        if reading.error is not None:
            assert_explained(module, reading.frames, reading.error)
    return readings


@cache
def whole(name: str) -> list[Reading]:
    return readings_of(name, corpus(name))


@cache
def foreign(name: str) -> list[Reading]:
    """Return the recorded messages of all other protocols."""
    own = set(corpus(name))
    return readings_of(name, [frames for frames in all_recorded() if frames not in own])


@cache
def cut(name: str, *, every: bool) -> list[Reading]:
    """Each frame left out, each cut at each octet, and messages short of frames at their end and at their start.

    Of every recorded message, or of the shortest of each class; `test_columns_decode` has columns read more of them.
    """
    whole = corpus(name) if every else shortest(package(name, "pure"), corpus(name))
    found: set[tuple[bytes, ...]] = {short for frames in whole for short in truncations(frames)}
    found |= {part for frames in whole for n in range(len(frames)) for part in (frames[:n], frames[n:])}
    return readings_of(name, sorted(found))


@cache
def changed(name: str) -> list[Reading]:
    """The shortest message of each class with each octet changed: in the shortest of them to every value."""
    found: list[Frames] = []
    octets = 0
    for frames in shortest(package(name, "pure"), corpus(name)):
        octets += octets_of(frames)
        found += with_other_octets(frames, range(256) if octets <= FULLY or DEEP else ODD)
    return readings_of(name, found)


@cache
def telling(name: str) -> list[Reading]:
    """The same with fewer values: those at which something changes, in long messages only some of them."""
    found: list[Frames] = []
    for frames in shortest(package(name, "pure"), corpus(name)):
        found += with_other_octets(frames, ODD if octets_of(frames) <= FULLY else ODD[::3])
    return readings_of(name, found)


@cache
def sampled(name: str) -> list[Reading]:
    """Any message with any octet changed, by chance; and with changes of any kind."""
    chance = Random(20)
    found = some_with_other_octets(corpus(name), COUNT * 5, seed=4)
    found += [tuple(mutated(chance.choice(corpus(name)), chance)) for _ in range(COUNT * 10)]
    return readings_of(name, found)


@every_reader
@every_package
def test_every_message(name: str, against: Check) -> None:
    taken = [reading for reading in whole(name) if reading.error is None]
    assert len(taken) > len(whole(name)) / 2
    against(name, whole(name))


@every_package
def test_the_first_declaration_that_reads_a_message_is_that_of_its_class(name: str) -> None:
    for reading in whole(name):
        if reading.error is None:
            assert package(name, "pure").constructs.parse(reading.frames)[0] == reading.class_name


@every_reader
@every_package
def test_messages_of_other_protocols(name: str, against: Check) -> None:
    against(name, foreign(name))


@every_reader
@every_package
def test_every_truncation(name: str, against: Check) -> None:
    rows = cut(name, every=against is against_native or DEEP)
    taken = [reading.error is None for reading in rows]
    # Every message of ZMTP says how long it is, so none is another one cut.
    assert (True in taken or name == "zmtp") and False in taken
    against(name, rows)


@every_reader
@every_package
def test_every_octet(name: str, against: Check) -> None:
    rows = telling(name) if against is against_construct and not DEEP else changed(name)
    taken = sum(reading.error is None for reading in rows)
    assert 0 < taken < len(rows)
    against(name, rows)


@every_reader
@every_package
def test_random_changes(name: str, against: Check) -> None:
    taken = sum(reading.error is None for reading in sampled(name))
    # Neither nearly all nothing but noise, nor nearly all harmless.
    assert len(sampled(name)) / 50 < taken < len(sampled(name)) * 9 / 10
    against(name, sampled(name))


@every_reader
@every_package
@settings(
    max_examples=max(10, COUNT // 5), deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_what_the_strategies_draw(name: str, against: Check, data: st.DataObject) -> None:
    """Messages, and messages with something wrong; several at once, as columns have it."""
    frames = data.draw(drawn_frames(name))
    against(name, readings_of(name, [tuple(one) for one in frames]))


@cache
def drawn_frames(name: str) -> st.SearchStrategy[list[list[bytes]]]:
    module = package(name, "pure")
    return st.lists(strategies.frames(module) | strategies.mutated_frames(module), min_size=1, max_size=6)


def test_what_only_construct_takes() -> None:
    """Each of the stated exceptions is one."""
    assert TAKEN_BY_CONSTRUCT.keys() == {"limit"}
    module: ModuleType = zre
    frames = (*module.Whisper(sequence=1, content=()).encode(), *[b""] * 70_000)
    with pytest.raises(DecodeError) as caught:
        module.decode(frames)
    assert caught.value.kind == "limit"
    assert construct_takes(module, frames)
