"""Amounts in words, at the places where their unit or their form changes."""

from __future__ import annotations

import pytest

from specwire.runtime.quantities import show_count, show_duration, show_octets, show_rate, show_share


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (0, "0 octets"),
        (999, "999 octets"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (5 * 10**9, "5.0 GB"),
        (2**64 - 1, "18447 PB"),
    ],
)
def test_octets(octets: int, text: str) -> None:
    assert show_octets(octets) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0.0 MB/s"), (99.94e6, "99.9 MB/s"), (99.95e6, "100 MB/s"), (2e9, "2,000 MB/s")]
)
def test_rate(rate: float, text: str) -> None:
    assert show_rate(rate) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "100 %"), (999, 1000, "99 %"), (1000, 1000, "100 %"), (7, None, "7 octets")],
)
def test_share(part: int, whole: int | None, text: str) -> None:
    assert show_share(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0:00"),
        (59.6, "1:00"),
        (3599, "59:59"),
        (3600, "1:00:00"),
        (86_399, "23:59:59"),
        (90_061, "1 d 1:01:01"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert show_duration(seconds) == text


def test_count() -> None:
    assert [show_count(n, "file") for n in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]
