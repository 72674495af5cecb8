"""Durations that are drawn: constant, between two bounds, or lognormal, as latencies in real networks are."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from random import Random
from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Uniform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="uniform"):
    """Any duration between two, each as likely."""

    low_s: Seconds
    high_s: Seconds

    def __post_init__(self) -> None:
        if self.high_s < self.low_s:
            raise ValueError(f"high_s = {self.high_s:g} is below low_s = {self.low_s:g}")


class Lognormal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="lognormal"):
    """Half of the durations are below the median; `sigma` is the deviation of their logarithm."""

    median_s: Annotated[float, msgspec.Meta(gt=0)]
    sigma: Annotated[float, msgspec.Meta(ge=0, le=5)]


Duration = Seconds | Uniform | Lognormal
"""A number is a constant."""


def drawing(duration: Duration, random: Random) -> Callable[[], float]:
    """Return a function that draws one duration after the other."""
    match duration:
        case Uniform(low_s, high_s):
            return lambda: random.uniform(low_s, high_s)
        case Lognormal(median_s, sigma):
            mean = log(median_s)
            return lambda: random.lognormvariate(mean, sigma)
        case _:
            return lambda: duration
