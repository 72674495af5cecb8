"""What other implementations send decodes to what they meant and encodes back; what is faulty is refused."""

from __future__ import annotations

import pytest

from specwire.generated.errors import DecodeError
from tests.cases import each_case
from tests.generated.builds import package
from tests.generated.hand_vectors import HAND
from tests.generated.refused import CUT, NEITHER, REFUSED, REWRITTEN, Fault
from tests.generated.vectors import PACKAGES, Vector, entries, recorded

GOOD = [
    vector
    for name in PACKAGES
    for vector in recorded(name)
    if vector.name not in REFUSED[name] and vector.name not in NEITHER[name]
]
FAULTY = [
    (vector, REFUSED[name][vector.name])
    for name in PACKAGES
    for vector in recorded(name)
    if vector.name in REFUSED[name]
]


def good_of(name: str) -> list[Vector]:
    return [vector for vector in [*GOOD, *HAND] if vector.package == name]


def faulty_of(name: str) -> list[tuple[Vector, Fault]]:
    return [(vector, fault) for vector, fault in FAULTY if vector.package == name]


def test_every_vector_is_of_a_package() -> None:
    assert sum(len(good_of(name)) for name in PACKAGES) == len(GOOD) + len(HAND)
    assert sum(len(faulty_of(name)) for name in PACKAGES) == len(FAULTY)


@pytest.mark.parametrize("name", PACKAGES)
@each_case("vector", good_of)
def test_decodes_to_the_stated_fields(name: str, vector: Vector, build: str) -> None:
    message = package(name, build).decode(vector.frames)
    assert type(message).__name__ == vector.class_name
    values = message.to_dict()
    if "flags" in values:
        values["flags"] = message.wire_flags
    stated = vector.fields
    # A header that the grammar fixes is a class variable.
    values |= {name: getattr(message, name) for name in stated if name not in values}
    assert {name: values[name] for name in stated} == stated
    # What nobody stated is what is not there.
    assert {values[name] for name in values.keys() - stated.keys()} <= {None, (), "", b""}


@pytest.mark.parametrize("name", PACKAGES)
def test_encodes_back_to_the_same_octets(name: str, build: str) -> None:
    module = package(name, build)
    kept = [vector for vector in good_of(name) if str(vector) not in REWRITTEN]
    frames = [list(vector.frames) for vector in kept]
    assert [module.decode(item).encode() for item in frames] == frames


@pytest.mark.parametrize("name", dict.fromkeys(vector.package for vector, _ in FAULTY))
@each_case("vector, fault", faulty_of, named=lambda case: str(case[0]))
def test_faulty_message_is_refused_at_its_place(name: str, vector: Vector, fault: Fault, build: str) -> None:
    module = package(name, build)
    with pytest.raises(DecodeError) as caught:
        module.decode(vector.frames)
    error = caught.value
    assert (error.message_name, error.field, error.frame, error.offset, error.kind) == (
        fault.message, fault.field, fault.frame, fault.offset, fault.kind,
    )  # fmt: skip
    assert error.protocol == vector.package
    assert error.rule.startswith(module.EDITION)


@pytest.mark.parametrize("name", PACKAGES)
def test_tables_name_recorded_messages_only(name: str) -> None:
    names = [vector.name for vector in recorded(name)]
    assert len(set(names)) == len(names) > 0
    assert (REFUSED[name].keys() | NEITHER[name].keys()) <= set(names)
    assert not REFUSED[name].keys() & NEITHER[name].keys()


@pytest.mark.parametrize("name", PACKAGES)
def test_every_message_class_has_a_vector(name: str, build: str) -> None:
    """By capture or by hand, no class is tested by its own encoder alone."""
    shown = {vector.class_name for vector in good_of(name)}
    assert shown == set(package(name, build).MESSAGES)


def test_no_frames_are_no_message(build: str) -> None:
    """The octet before the first message of a Flux connection has no frames."""
    for name in PACKAGES:
        with pytest.raises(DecodeError) as caught:
            package(name, build).decode([])
        assert (caught.value.kind, caught.value.frame, caught.value.offset) == ("frames", None, None)
        assert "found 0 frames" in str(caught.value)


def test_one_octet_command_is_the_specified_post(build: str) -> None:
    """The recorder sent the specification's POST to a peer that does not know it."""
    (name,) = NEITHER["norfab"]
    vector = next(vector for vector in recorded("norfab") if vector.name == name)
    message = package("norfab", build).decode(vector.frames)
    assert type(message).__name__ == "PostClient"
    assert (message.service, message.target) == ("echosvc", "w1")
    assert message.encode() == list(vector.frames)


def test_cut_bodies_are_what_the_recorder_says() -> None:
    """Two bodies are shorter than they were; all other messages are whole."""
    cut = [e["name"] for e in entries("norfab-0.25-0.6.json") if "truncated_last_frame_bytes" in e["fields"]]
    assert tuple(cut) == CUT
