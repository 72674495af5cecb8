"""Durations as tools of Flux read and print them."""

from __future__ import annotations

import pytest

from specwire.runtime.flux.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1.5", 1.5), ("2s", 2), ("500ms", 0.5), ("2m", 120), ("1.5h", 5400), ("7d", 604800)],
)
def test_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "x", "-1", "nan", "1 m", "1mm", "1sm", "1_0", "ms"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.0621, "62.1ms"),
        (12.165979009, "12.166s"),
        (153.2688, "2.55448m"),
        (45914.4, "12.754h"),
        (604800.0, "7d"),
        (parse_duration("infinity"), "infinity"),
    ],
)
def test_six_digits_of_the_largest_unit(seconds: float, text: str) -> None:
    """The third to the fifth are printed in the pages of flux-core."""
    assert format_duration(seconds) == text
