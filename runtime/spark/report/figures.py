"""Numbers as people read them."""

from __future__ import annotations

from specwire.runtime.log.text import show

THIN_SPACE = "\N{THIN SPACE}"


def count_text(number: int) -> str:
    """Return a count with its thousands apart."""
    return f"{number:,}".replace(",", THIN_SPACE)


def size_text(octets: int) -> str:
    """Return a number of octets in the power of 1024 that leaves at most four digits before the point."""
    size, power = float(octets), 0
    while size >= 1024 and power < 4:
        size, power = size / 1024, power + 1
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{size:.1f} {unit}" if power else f"{octets} B"


def span_text(seconds: float) -> str:
    """Return a stretch of time in the units that suit its length."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def micros_text(micros: float) -> str:
    """Return a duration in microseconds in the unit that suits it, to three digits; minutes from 120 s on."""
    if micros < 1000:
        return f"{micros:.3g} µs"
    if micros < 1e6:
        return f"{micros / 1000:.3g} ms"
    return f"{micros / 1e6:.3g} s" if micros < 120e6 else span_text(micros / 1e6)


def short_text(text: str, length: int) -> str:
    """Escape unprintable characters, and omit the middle of a text longer than `length`."""
    text = show(text)
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (length - 1 - head) :]}"
