"""Time along a figure: the clock in UTC for what took minutes and more, seconds for what was over sooner."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS_UP_TO = 120.0
"""Shorter stretches of time count seconds from the first message."""
MINUTE, HOUR, DAY = 60, 3600, 86_400
STEPS = (
    30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
    12 * HOUR, *(DAY * days for days in (1, 2, 7, 14, 30, 90, 180, 365, 3650)),
)  # fmt: skip
"""Seconds between two ticks."""
TICKS_WIDE, TICKS_NARROW = 9, 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tell_time(axes: Axes, begin: datetime, span_s: float, *, wide: bool) -> None:
    """Label an axis that counts seconds from `begin`, the first `span_s` of them shown."""
    if span_s <= SECONDS_UP_TO:
        axes.set_xlabel(f"seconds from {begin:%H:%M:%S} UTC")
        return
    ticks = list(find_ticks(begin, span_s, TICKS_WIDE if wide else TICKS_NARROW))
    axes.set_xticks([seconds for seconds, _ in ticks], [text for _, text in ticks])
    axes.set_xlabel("UTC")


def find_ticks(begin: datetime, span_s: float, most: int) -> Iterator[tuple[float, str]]:
    """Yield the round moments of a stretch of time, about `most` of them: seconds from `begin`, and a label."""
    step = next((step for step in STEPS if span_s / step <= most), STEPS[-1])
    since = (begin - EPOCH).total_seconds()
    at = -(-since // step) * step
    while at <= since + span_s:
        yield at - since, _label(EPOCH + timedelta(seconds=at), step)
        at += step


def _label(moment: datetime, step: int) -> str:
    """The date where a day begins, else the time of day."""
    if step >= 30 * DAY:
        return f"{moment:%Y-%m-%d}"
    if moment.timestamp() % DAY == 0:
        return f"{moment:%m-%d}"
    return f"{moment:%H:%M}" if step >= MINUTE else f"{moment:%H:%M:%S}"
