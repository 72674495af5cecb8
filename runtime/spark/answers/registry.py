"""Registry of the answers.

The pipeline and the stream iterate over these answers and refer to no answer by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.runtime.spark.answers import (
    durations,
    gaps,
    health,
    jobs,
    requests,
    taps,
    traffic,
    transfers,
)
from specwire.runtime.spark.answers.answer import Continued, RollUp, Sums
from specwire.runtime.spark.answers.dialogs import conversations

CONTINUED: tuple[Continued, ...] = (
    conversations.CONTINUED,
    requests.CONTINUED,
    jobs.CONTINUED,
    transfers.CONTINUED,
    health.CONTINUED,
    gaps.CONTINUED,
)
SUMS: tuple[Sums, ...] = traffic.SUMS
ROLL_UPS: tuple[RollUp, ...] = (taps.ROLL_UP, *durations.ROLL_UPS, *traffic.ROLL_UPS)
"""Each roll-up after those whose tables it reads."""


def continued(protocol: str) -> Iterator[Continued]:
    """Yield the continued answers for a protocol."""
    return (answer for answer in CONTINUED if answer.reads(protocol))


def all_sums(protocol: str) -> Iterator[Sums]:
    """Yield the sums for a protocol."""
    return (answer for answer in SUMS if answer.applies(protocol))


def roll_ups(protocol: str) -> Iterator[RollUp]:
    """Yield the roll-ups for a protocol, each after those whose tables it reads."""
    return (answer for answer in ROLL_UPS if answer.applies(protocol))
