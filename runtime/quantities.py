"""Amounts as a person reads them: how many, octets, octets a second, and how long something takes."""

from __future__ import annotations

UNITS = ("octets", "kB", "MB", "GB", "TB", "PB")


def show_count(number: int, noun: str) -> str:
    """Return ``1 file``, ``2,000 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_octets(octets: float) -> str:
    """Return about how much it is, in units of 1000: ``512 octets``, ``1.5 kB``, ``20 GB``."""
    unit = 0
    while octets >= 999.5 and unit < len(UNITS) - 1:
        octets /= 1000
        unit += 1
    digits = 1 if unit and octets < 99.95 else 0
    return f"{octets:.{digits}f} {UNITS[unit]}"


def show_rate(octets_per_s: float) -> str:
    """Return a rate in megaoctets a second, which is what networks and disks are compared by."""
    return f"{octets_per_s / 1e6:,.{1 if octets_per_s < 99.95e6 else 0}f} MB/s"


def show_share(part: int, whole: int | None) -> str:
    """Return how much of it is there: ``45 %``, and an amount where the whole is not known."""
    if whole is None:
        return show_octets(part)
    return f"{100 * part // whole if whole else 100} %"


def show_duration(seconds: float) -> str:
    """Return a time as ``m:ss`` or ``h:mm:ss``, and whole days in front."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if not hours:
        return f"{minute}:{second:02}"
    days, hour = divmod(hours, 24)
    clock = f"{hour}:{minute:02}:{second:02}"
    return clock if not days else f"{days} d {clock}"
