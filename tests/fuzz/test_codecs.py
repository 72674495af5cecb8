"""As many random messages and frames as one likes: ``SPECWIRE_FUZZ_COUNT=100000 pytest tests/fuzz``.

It is a percentage (`tests.examples`) of a hundred examples for each package and test.
`tests/generated/test_differential.py`, which changes messages at random, uses it too. ``SPECWIRE_FUZZ_SEED`` chooses another run; the same seed repeats one.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import assert_agreement
from tests.generated.test_encoding import assert_encodes_or_says_why, assert_letter
from tests.generated.vectors import PACKAGES, package

COUNT = examples(100)
SEED = int(os.environ.get("SPECWIRE_FUZZ_SEED", "1"))
FULL = settings(
    max_examples=COUNT, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)


@pytest.mark.parametrize("name", PACKAGES)
@seed(SEED)
@FULL
@given(data=st.data())
def test_fitting_messages(name: str, data: st.DataObject) -> None:
    module = package(name)
    message = data.draw(strategies.messages(module))
    frames = message.encode()
    assert module.decode(frames) == message
    assert assert_agreement(module, frames)


@pytest.mark.parametrize("name", PACKAGES)
@seed(SEED)
@FULL
@given(data=st.data())
def test_messages_of_anything(name: str, data: st.DataObject) -> None:
    module = package(name)
    message = data.draw(strategies.anything(module))
    assert_encodes_or_says_why(module, message)
    assert_letter(module, message)


@pytest.mark.parametrize("name", PACKAGES)
@seed(SEED)
@FULL
@given(frames=strategies.frame_lists())
def test_any_frames(name: str, frames: list[bytes]) -> None:
    assert_agreement(package(name), frames)
