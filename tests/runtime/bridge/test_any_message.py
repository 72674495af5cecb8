"""Whatever a peer sends, a bridge says it in the other dialect, or that it cannot; nothing else comes of it."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.bridge.pairs import FAMILIES, find_bridge
from specwire.runtime.bridge.translation import Hold, Send, Unsaid, UnsayableError
from tests.examples import examples

PAIRS = [(a, b) for names, _ in FAMILIES for a in names for b in names if a != b]


@pytest.mark.parametrize(("clients", "server"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@settings(max_examples=examples(15))
@given(data=st.data())
def test_any_messages_of_either_side(clients: str, server: str, data: st.DataObject) -> None:
    """Several in a row, some of them broken, on one connection; all that goes out is a message there."""
    packages = {True: import_module(f"specwire.generated.{clients}")}
    packages[False] = import_module(f"specwire.generated.{server}")
    translation = find_bridge(clients, server)()
    for _ in range(data.draw(st.integers(1, 6))):
        from_opener = data.draw(st.booleans())
        strategies = packages[from_opener].strategies
        frames = data.draw(st.one_of(strategies.frames(), strategies.mutated_frames()))
        try:
            steps = translation.translate(frames, from_opener=from_opener)
        except UnsayableError as error:
            steps = [error.answer] if error.answer else []
        for step in steps:
            assert isinstance(step, Send | Hold | Unsaid)
            if isinstance(step, Send):
                packages[step.to_opener].decode(step.frames)
