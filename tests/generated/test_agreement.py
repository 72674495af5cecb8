"""Construct and the fast path accept the same octets and find the same values in them."""

from __future__ import annotations

from functools import cache

import pytest

from tests.generated.agreement import assert_agreement, check_mutations, truncations
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import PACKAGES, package, recorded

MUTATIONS = 10_000
"""Of all packages together; `tests/fuzz` makes as many as one likes."""


@cache
def corpus(name: str) -> tuple[tuple[bytes, ...], ...]:
    """All recorded and written messages of a package, each once; those it refuses too."""
    vectors = [*recorded(name), *(vector for vector in HAND if vector.package == name)]
    return tuple(dict.fromkeys(vector.frames for vector in vectors))


@pytest.mark.parametrize("name", PACKAGES)
def test_every_message(name: str) -> None:
    """Whole messages, by all declarations: the first that reads one is that of its class."""
    module = package(name)
    accepted = [frames for frames in corpus(name) if assert_agreement(module, frames)]
    assert len(accepted) > len(corpus(name)) / 2
    for frames in accepted:
        assert module.constructs.parse(frames)[0] == type(module.decode(frames)).__name__


@pytest.mark.parametrize("name", PACKAGES)
def test_every_truncation(name: str) -> None:
    """Each frame left out, and each cut at each octet, of every message."""
    cut = {short for frames in corpus(name) for short in truncations(frames)}
    accepted = [assert_agreement(package(name), frames) for frames in cut]
    # Every message of ZMTP says how long it is, so none is another one cut.
    assert True in accepted or name == "zmtp"
    assert False in accepted


@pytest.mark.parametrize("name", PACKAGES)
def test_random_mutations(name: str) -> None:
    count = -(-MUTATIONS // len(PACKAGES))
    accepted = check_mutations(package(name), corpus(name), count=count, seed=20)
    # Neither nearly all nothing but noise, nor nearly all harmless.
    assert count / 50 < accepted < count * 9 / 10
