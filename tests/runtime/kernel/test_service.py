"""Limit of descriptors at the start of a server."""

from __future__ import annotations

import resource

import pytest

from specwire.runtime.kernel.service import LOW_DESCRIPTOR_LIMIT, raise_descriptor_limit

LOW_LIMIT = (
    "this process may use 256 descriptors, and each connection takes one: "
    "raise the limit of open files (ulimit -n)"
)


@pytest.mark.parametrize(
    ("soft", "hard", "warning"),
    [
        (64, 256, LOW_LIMIT),
        (64, LOW_DESCRIPTOR_LIMIT, None),
        (1024, 1_048_576, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_soft_limit_becomes_the_hard_one(
    soft: int, hard: int, warning: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A low limit is logged."""
    limits, warnings = [(soft, hard)], list[str]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    raise_descriptor_limit(warnings.append)
    assert limits[-1] == (hard, hard)
    assert warnings == ([] if warning is None else [warning])


def test_a_limit_that_cannot_be_raised_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server starts anyway."""

    def refuse(kind: int, limit: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    warnings: list[str] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 256))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_descriptor_limit(warnings.append)
    assert warnings[0].startswith("this process may use 64 descriptors (not allowed to raise maximum limit)")
