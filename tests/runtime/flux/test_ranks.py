"""Sets of ranks as Flux writes them."""

from __future__ import annotations

import pytest

from specwire.runtime.flux.ranks import format_ranks, parse_ranks


@pytest.mark.parametrize(
    ("text", "ranks", "written"),
    [
        ("0", [0], "0"),
        ("0-14", [*range(15)], "0-14"),
        ("3,1,1-2,7", [1, 2, 3, 7], "1-3,7"),
        ("4,6", [4, 6], "4,6"),
    ],
)
def test_ranks_are_read_and_written(text: str, ranks: list[int], written: str) -> None:
    assert parse_ranks(text, 15) == ranks
    assert format_ranks(reversed(ranks)) == written


def test_no_rank_is_nothing() -> None:
    assert format_ranks([]) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no set of ranks"),
        ("-1", "is no set of ranks"),
        ("1-", "is no set of ranks"),
        ("3-1", "3-1 goes backwards"),
        ("15", "15 is no rank of an instance of 15"),
        ("0-9999999999", "9999999999 is no rank of an instance of 15"),
    ],
)
def test_what_is_no_set(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_ranks(text, 15)
