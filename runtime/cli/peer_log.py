"""The log of a peer that runs in the foreground: lines on standard error, and bars for long files on a terminal.

A line begins with the time. Where standard error is a terminal (and neither NO_COLOR nor TERM=dumb says that it is to
be left in peace), each file that takes long has a bar below the lines, which goes when the file is through.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from specwire.runtime.cli.console import messages
from specwire.runtime.filemq.events import Event, FileReceived, FileSent, PeerClosed, Progress, Refused
from specwire.runtime.filemq.narration import Narrator
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.serverlog import ServerLog
from specwire.runtime.log.stamp import Level, Stamp
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_duration, show_octets, show_rate, show_share

if TYPE_CHECKING:
    import rich.progress

REST_COLUMNS = 54
"""What a line has besides the name: ten columns of bar, and the words about it."""

SHORTEST_NAME = 12


class PeerLog:
    """Tells of a peer's events.

    Args:
        quiet: tell of no single file.
        role: what kind of peer it is, in a log for programs.
        form: for whom the lines are; there are no bars among those for programs.
    """

    def __init__(self, *, quiet: bool = False, role: str = "filemq", form: LogForm = LogForm.TEXT) -> None:
        self._log = ServerLog(self._write, Stamp(role, form), form)
        self._narrator = Narrator(self._log.narrated, time.monotonic, files=not quiet)
        has_bars = form is LogForm.TEXT and not quiet and _has_bars()
        self._bars = Bars() if has_bars else None

    def line(self, text: str) -> None:
        """Write one line, with the time."""
        self._log.line(text)

    def _write(self, line: str) -> None:
        if self._bars is not None and self._bars.shown:
            messages().print(line, markup=False, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")

    def set_quiet(self, quiet: bool) -> None:
        """Tell of no single file from now on, or of each again; a terminal has bars only where it began with them."""
        self._narrator.files = not quiet

    def tell(self, event: Event) -> None:
        """Write what happened, or move the bar of its file."""
        if self._bars is not None:
            self._bars.follow(event)
        if self._bars is None or not isinstance(event, Progress):
            level: Level = "warning" if isinstance(event, Refused) else "info"
            # Lines of progress tell of several files, whichever moved last.
            self._log.tell(event, self._narrator.tell, level, with_data=not isinstance(event, Progress))

    def close(self) -> None:
        """Leave the terminal as it was, and our loggers too."""
        self._log.close()
        if self._bars is not None:
            self._bars.close()


class Bars:
    """One bar for each file that is long under way."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str], rich.progress.TaskID] = {}
        self._display: rich.progress.Progress | None = None

    @property
    def shown(self) -> bool:
        """Whether there is a bar now."""
        return self._display is not None

    def follow(self, event: Event) -> None:
        """Move, add or take away a bar."""
        match event:
            case Progress():
                self._move(event)
            case FileReceived(path=path) | Refused(name=path, peer=""):
                self._remove("", path)
            case FileSent(path=path, peer=peer):
                self._remove(peer, path)
            case PeerClosed(peer=peer):
                for owner, path in list(self._tasks):
                    if owner in (peer, ""):
                        self._remove(owner, path)

    def close(self) -> None:
        """Take every bar away."""
        display, self._display = self._display, None
        self._tasks.clear()
        if display is not None:
            display.stop()

    def _move(self, file: Progress) -> None:
        if self._display is None:
            self._display = _make_display()
            self._display.start()
        key = (file.peer, file.path)
        told = _describe(file)
        if key in self._tasks:
            self._display.update(self._tasks[key], completed=file.octets, told=told, refresh=True)
            return
        client = f" to {file.peer}" if file.peer else ""
        room = max(SHORTEST_NAME, self._display.console.width - REST_COLUMNS - len(client))
        title = f"{_shorten(show(file.path), room)}{client}"
        self._tasks[key] = self._display.add_task(title, total=file.size, completed=file.octets, told=told)

    def _remove(self, peer: str, path: str) -> None:
        task = self._tasks.pop((peer, path), None)
        if task is not None and self._display is not None:
            self._display.remove_task(task)
        if not self._tasks:
            self.close()


def _has_bars() -> bool:
    console = messages()
    return console.is_terminal and not console.is_dumb_terminal and not console.no_color


def _make_display() -> rich.progress.Progress:
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[told]}", markup=False),
        console=messages(),
        auto_refresh=False,  # moved once a second, when there is news
        transient=True,
    )


def _describe(file: Progress) -> str:
    """Return amount, rate and time left, each in a width of its own, so that bars do not jump."""
    rate = show_rate(file.octets_per_s)
    if file.size is None:
        return f"{show_octets(file.octets):>20} {rate:>10}"
    left = show_duration((file.size - file.octets) / file.octets_per_s)
    return f"{show_share(file.octets, file.size):>5} of {show_octets(file.size):>8} {rate:>10} {left:>7} left"


def _shorten(name: str, room: int) -> str:
    return name if len(name) <= room else f"…{name[1 - room :]}"
