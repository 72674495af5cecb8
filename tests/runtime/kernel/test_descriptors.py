"""The limit of descriptors at the start of a server."""

from __future__ import annotations

import resource

import pytest

from specwire.runtime.kernel.descriptors import ENOUGH, raise_descriptor_limit


@pytest.mark.parametrize(
    ("soft", "hard", "words"),
    [
        (64, 256, "this process may have 256 descriptors, one for each connection: see ulimit -n"),
        (64, ENOUGH, None),
        (1024, 1_048_576, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_soft_limit_becomes_the_hard_one(
    soft: int, hard: int, words: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And few descriptors are told."""
    limits, told = [(soft, hard)], list[str]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    raise_descriptor_limit(told.append)
    assert limits[-1] == (hard, hard)
    assert told == ([] if words is None else [words])


def test_a_limit_that_cannot_be_raised_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server starts all the same."""

    def refuse(kind: int, limit: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    told: list[str] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 256))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_descriptor_limit(told.append)
    assert told[0].startswith("this process may have 64 descriptors (not allowed to raise maximum limit)")
