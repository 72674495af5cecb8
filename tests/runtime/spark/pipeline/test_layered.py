"""A mapping in two layers is the same mapping, and does not change those that it was made of."""

from __future__ import annotations

import pytest

from specwire.runtime.spark.pipeline import layered
from specwire.runtime.spark.pipeline.layered import Layered


def test_it_is_the_dict_that_was_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With keys that come again in the same layer, in the other, and beyond the size of one."""
    monkeypatch.setattr(layered, "LAYER", 3)
    plain: dict[int, str] = {}
    found: Layered[int, str] = Layered()
    for number in range(20):
        before, had = found, list(found.values())
        more = {number: str(number), number % 5: f"again {number}"}
        plain |= more
        found = found.add(more)
        assert list(found.values()) == list(plain.values())
        assert [found.get(key) for key in range(21)] == [plain.get(key) for key in range(21)]
        assert list(before.values()) == had
