"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specwire.runtime.packages import REGISTRY


@pytest.fixture(autouse=True)
def only_our_packages() -> Iterator[None]:
    """Forget the packages that a test added."""
    yield
    REGISTRY.clear()
