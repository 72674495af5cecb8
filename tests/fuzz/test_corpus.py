"""Every input that is kept, through its target: what fuzzing found once stays found, without fuzzing."""

from __future__ import annotations

import pytest

from tests.fuzz.corpus import FOUND, inputs, name_of
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_corpus(name: str) -> None:
    check = TARGETS[name].prepare()
    kept = inputs(name)
    assert kept, f"no input is kept for {name}"
    for path in [*kept, *inputs(name, FOUND)]:
        octets = path.read_bytes()
        assert path.name == name_of(octets)
        check(octets)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    """What fuzzing begins with, whole; the corpus holds what is left of it."""
    check = TARGETS[name].prepare()
    for octets in dict.fromkeys(TARGETS[name].seeds()):
        check(octets)
