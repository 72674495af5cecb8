"""Messages of any package: fitting ones, as its own strategies draw them, and ones with anything in any field.

Each strategy is made once and kept: hypothesis looks through a new one before it draws from it, which takes longer
than to draw.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specwire.generated.messages import Message

KEPT_MODULES = 64
"""Of more packages than this, as of those that a test writes, the strategies are made anew."""


@lru_cache(KEPT_MODULES)
def messages(module: ModuleType, *, strict: bool = False) -> SearchStrategy[Message]:
    """Return messages that encode by default, or by the letter."""
    drawn: SearchStrategy[Message] = module.strategies.messages(strict=strict)
    return drawn


@lru_cache(KEPT_MODULES)
def frames(module: ModuleType, *, strict: bool = False) -> SearchStrategy[list[bytes]]:
    """Return the frames of such messages."""
    drawn: SearchStrategy[list[bytes]] = module.strategies.frames(strict=strict)
    return drawn


@lru_cache(KEPT_MODULES)
def mutated_frames(module: ModuleType) -> SearchStrategy[list[bytes]]:
    """Return frames in which something went wrong."""
    drawn: SearchStrategy[list[bytes]] = module.strategies.mutated_frames()
    return drawn


@lru_cache(KEPT_MODULES)
def anything(module: ModuleType) -> SearchStrategy[Message]:
    """Return messages whose fields hold what fits and what does not, of any type."""
    return _spoilt(messages(module))


def frame_lists() -> SearchStrategy[list[bytes]]:
    """Return any frames at all."""
    return st.lists(st.binary(max_size=40), max_size=9)


def _wild() -> SearchStrategy[Any]:
    """What callers pass by mistake, and what just does not fit."""
    texts = st.sampled_from(
        ["", "\0", "a\0", "a=b", "=", "\ud800", "x" * 255, "x" * 256, "\u00e9" * 128, "NFPC01", "NFPX01"]
    )
    numbers = st.sampled_from(
        [-1, 0, 1, 2, 3, 0x0B, 0xFF, 0x100, 2**32 - 1, 2**32, 2**64 - 1, 2**64, 10**5000, True, 1.0, 0.5]
    )
    octets = st.sampled_from([b"", b"\0", b"ab", bytearray(b"ab"), memoryview(b"ab"), memoryview(b"")])
    one = st.one_of(st.none(), texts, numbers, octets)
    some = st.lists(one, max_size=3)
    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    pairs = st.lists(st.lists(one | words, min_size=1, max_size=3).map(tuple) | one, max_size=3).map(tuple)
    many = st.sampled_from([(("a", "b"),) * 255, (("a", "b"),) * 256, ("ab",) * 2, {"ab": 1}, {"a": "b"}])
    lists = st.sampled_from([[], ["a"], [("a", "b")], (["a", "b"],), iter(()), object()])
    return st.one_of(one, some.map(tuple), pairs, many, lists)


_AS_DRAWN = object()
_FIELD = st.just(_AS_DRAWN) | _wild()


@st.composite
def _spoilt(draw: st.DrawFn, fitting: SearchStrategy[Message]) -> Message:
    """A message with any of its fields exchanged."""
    message = draw(fitting)
    found = {name: draw(_FIELD) for name in type(message).__match_args__}
    return type(message)(
        **{name: getattr(message, name) if value is _AS_DRAWN else value for name, value in found.items()}
    )
