"""Lines of a broker's log, as `flux dmesg` prints them.

A line comes as RFC 5424 has it, ``<PRI>1 TIME RANK APP PROCESS - - TEXT``, with the severity in PRI from bit 3 up.
It is printed as ``TIME APP.SEVERITY[RANK]: TEXT``; what is no such line is printed as it is.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_LINE = re.compile(r"<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) - - ?(.*)", re.DOTALL)

GREEN, BOLD_GREEN, YELLOW, PLAIN = "\x1b[32m", "\x1b[1m\x1b[32m", "\x1b[33m", "\x1b[0m"
COLOURS = {
    "emerg": "\x1b[7m\x1b[31m",
    "alert": "\x1b[7m\x1b[31m",
    "crit": "\x1b[1m\x1b[31m",
    "err": "\x1b[31m",
    "warning": "\x1b[1m",
    "debug": "\x1b[34m",
}


class LogLine(NamedTuple):
    """One line of the log."""

    time: str
    severity: str
    rank: str
    app: str
    process: str
    text: str


def parse_line(text: str) -> LogLine | None:
    """Return what a line of RFC 5424 says; None where it is none."""
    found = _LINE.fullmatch(text)
    if found is None or int(found[1]) >> 3 >= len(SEVERITIES):
        return None
    pri, time, rank, app, process, said = found.groups()
    return LogLine(time, SEVERITIES[int(pri) >> 3], rank, app, process, said)


class LogWriter:
    """Writes lines, one after the other.

    Args:
        in_colour: colours for a terminal.
        human: instead of the whole time, each new minute and the seconds since the first line of that minute.
        deltas: of those, the seconds since the line before.
    """

    def __init__(self, *, in_colour: bool, human: bool = False, deltas: bool = False) -> None:
        self._in_colour, self._human, self._deltas = in_colour, human, deltas
        self._minute = self._before = datetime.min

    def write(self, text: str) -> str:
        """Return a line for the terminal."""
        from specwire.runtime.log.text import show

        line = parse_line(text)
        if line is None:
            return show(text)
        time, colour = self._tell_time(line)
        time, name, said = show(time), show(f"{line.app}.{line.severity}[{line.rank}]"), show(line.text)
        if not self._in_colour:
            return f"{time} {name}: {said}"
        return f"{colour}{time}{PLAIN} {YELLOW}{name}{PLAIN}: {COLOURS.get(line.severity, '')}{said}{PLAIN}"

    def _tell_time(self, line: LogLine) -> tuple[str, str]:
        """Return the time in this place, as it came where it cannot be read, and its colour."""
        try:
            time = datetime.fromisoformat(line.time).astimezone()
        except ValueError:
            return f"[{line.time}]" if self._human else line.time, GREEN
        if not self._human:
            return time.isoformat(timespec="microseconds") if time.utcoffset() else line.time, GREEN
        minute = time.replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute, self._before = minute, time
            return f"[{time:%b%d %H:%M}]", BOLD_GREEN
        seconds = (time - self._before).total_seconds()
        if self._deltas:
            self._before = time
        return f"[{seconds:+11.6f}]", GREEN
