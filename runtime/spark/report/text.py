"""Formats for numbers, durations and times, and escapes for text from peers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from specwire.runtime.log.text import show

THIN_SPACE = "\N{THIN SPACE}"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MINUTE, HOUR, DAY = 60, 3600, 86_400
TICK_STEPS_S = (
    30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
    12 * HOUR, *(DAY * days for days in (1, 2, 7, 14, 30, 90, 180, 365, 3650)),
)  # fmt: skip
"""Distances between two labels of a time axis."""

UNITS_S = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second"))


def count_text(number: int) -> str:
    """Return a count with its thousands separated."""
    return f"{number:,}".replace(",", THIN_SPACE)


def size_text(octets: float) -> str:
    """Return a number of octets with the largest binary unit that leaves at least 1."""
    size, power = float(octets), 0
    while size >= 1024 and power < 4:
        size, power = size / 1024, power + 1
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{size:.1f} {unit}" if power else f"{round(octets)} B"


def span_text(seconds: float) -> str:
    """Return a duration in the units that suit its length."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def micros_text(micros: float) -> str:
    """Return a duration in microseconds with three digits in the unit that suits it.

    Minutes from 120 s on.
    """
    if micros < 1000:
        return f"{micros:.3g} µs"
    if micros < 1e6:
        return f"{micros / 1000:.3g} ms"
    return f"{micros / 1e6:.3g} s" if micros < 120e6 else span_text(micros / 1e6)


def rate_text(width_s: float) -> str:
    """Return the label of an axis of message counts per bin, such as ``messages a minute``."""
    for unit_s, name in UNITS_S:
        if width_s >= unit_s and width_s % unit_s == 0:
            number = round(width_s / unit_s)
            if number == 1:
                return f"messages {'an' if name == 'hour' else 'a'} {name}"
            return f"messages in {number} {name}s"
    return f"messages in {width_s * 1000:g} ms"


def moment_text(moment: datetime, *, dated: bool, precise: bool = False) -> str:
    """Return the time of day in UTC, after the date if `dated`; `precise` adds milliseconds."""
    clock = moment.isoformat(sep=" ", timespec="milliseconds" if precise else "seconds")[:23].split("+")[0]
    return clock if dated else clock[11:]


def clock_text(text: str | None, *, dated: bool) -> str:
    """Return the time of day from an ISO 8601 text, after the date if `dated`; empty for None."""
    return "" if not text else text[:19].replace("T", " ") if dated else text[11:23]


def short_text(text: str, length: int) -> str:
    """Escape unprintable characters, and cut the end of a text longer than `length`."""
    text = show(text[: 4 * length])
    return text if len(text) <= length else f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"


def distinct_texts(texts: list[str], length: int) -> list[str]:
    """Return texts of at most `length` characters that differ where the given ones do.

    Texts that look the same once cut get the number of their place.
    """
    cut = [short_text(text, length) for text in texts]
    alike = {
        short
        for short in set(cut)
        if len({text for text, one in zip(texts, cut, strict=True) if one == short}) > 1
    }
    return [
        f"{short_text(text, length - 5)} #{place}" if short in alike else short
        for place, (text, short) in enumerate(zip(texts, cut, strict=True), 1)
    ]


def find_ticks(begin: datetime, span_s: float, most: int) -> Iterator[tuple[float, str]]:
    """Yield the round moments of a time range, about `most` of them.

    Seconds from `begin`, and a label.
    """
    step = next((step for step in TICK_STEPS_S if span_s / step <= most), TICK_STEPS_S[-1])
    since = (begin - EPOCH).total_seconds()
    at = -(-since // step) * step
    while at <= since + span_s:
        yield at - since, _tick_text(EPOCH + timedelta(seconds=at), step)
        at += step


def _tick_text(moment: datetime, step: int) -> str:
    """The date where a day begins, else the time of day."""
    if step >= 30 * DAY:
        return f"{moment:%Y-%m-%d}"
    if moment.timestamp() % DAY == 0:
        return f"{moment:%m-%d}"
    return f"{moment:%H:%M}" if step >= MINUTE else f"{moment:%H:%M:%S}"
