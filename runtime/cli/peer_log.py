"""Log of a FILEMQ peer in the foreground: lines on standard error, and bars for long files on a terminal.

A line begins with the time. On a terminal (unless NO_COLOR is set or TERM is dumb), each file that
takes long has a bar below the lines until it is complete.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from specwire.runtime.cli.console import messages
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileEvent,
    FileReceived,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    Progress,
)
from specwire.runtime.kernel.log import EventLog, LogEvent, Refused
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_duration, show_octets, show_rate, show_share

if TYPE_CHECKING:
    import rich.progress

REST_COLUMNS = 54
"""Columns of a bar's line besides the name: ten for the bar, and its text."""

SHORTEST_NAME = 12
PROGRESS_S = 5.0
"""Least time between two lines about progress."""

FILES_SHOWN = 4


class PeerLog:
    """Writes the events of a peer.

    Args:
        quiet: write no events of single files.
        role: kind of peer, in each JSON object.
        form: text for people, or JSON for programs, which has no bars.
    """

    def __init__(self, *, quiet: bool = False, role: str = "filemq", form: LogForm = LogForm.TEXT) -> None:
        self._quiet = quiet
        self._log = EventLog(self._write, role, form, wanted=self._is_wanted)
        self._progress = ProgressLines(self.line, time.monotonic)
        has_bars = form is LogForm.TEXT and not quiet and _has_bars()
        self._bars = Bars() if has_bars else None

    def line(self, text: str) -> None:
        """Write a line that is about no event."""
        self._log.line(text)

    def set_quiet(self, quiet: bool) -> None:
        """Write events of single files, or not. A terminal has bars only if it had them at the start."""
        self._quiet = quiet

    def tell(self, event: LogEvent) -> None:
        """Write an event, or move the bar of its file."""
        if self._bars is not None:
            self._bars.follow(event)
        elif self._is_wanted(event):
            self._progress.follow(event)
        if not isinstance(event, Progress):
            self._log.emit(event)

    def close(self) -> None:
        """Remove the bars, and stop writing what specwire's modules log."""
        self._log.close()
        if self._bars is not None:
            self._bars.close()

    def _is_wanted(self, event: LogEvent) -> bool:
        return not (self._quiet and isinstance(event, FileEvent))

    def _write(self, line: str) -> None:
        if self._bars is not None and self._bars.shown:
            messages().print(line, markup=False, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")


class ProgressLines:
    """Writes a line about the files that are being transferred, at most each `PROGRESS_S`.

    Args:
        write: writes a line.
        clock: monotonic clock, in seconds.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._write, self._clock = write, clock
        self._files: dict[tuple[str, str], Progress] = {}
        self._written_at = clock() - PROGRESS_S

    def follow(self, event: LogEvent) -> None:
        """Note the progress of a file, or that a file needs no further line."""
        match event:
            case Progress(path=path, peer=peer):
                self._files[peer, path] = event
                self._write_lines()
            case FileReceived(path=path) | FileDeleted(path=path):
                self._files.pop(("", path), None)
            case FileSent(path=path, peer=peer):
                self._files.pop((peer, path), None)
            case FileWithdrawn(path=path):
                self._files = {key: file for key, file in self._files.items() if key[1] != path}
            case PeerClosed(peer=peer):
                self._files = {key: file for key, file in self._files.items() if key[0] not in (peer, "")}

    def _write_lines(self) -> None:
        now = self._clock()
        if now - self._written_at < PROGRESS_S:
            return
        files, self._files, self._written_at = self._files.values(), {}, now
        if len(files) > FILES_SHOWN:
            self._write(describe_together(files))
        else:
            for file in files:
                self._write(show(file.describe()))


def describe_together(files: Collection[Progress]) -> str:
    """Return the number of files that are being sent, and their rate together."""
    rate = show_rate(sum(file.octets_per_s for file in files))
    return f"sending {len(files)} files to {len({file.peer for file in files})} clients, {rate} together"


class Bars:
    """One bar for each file that takes long."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str], rich.progress.TaskID] = {}
        self._display: rich.progress.Progress | None = None

    @property
    def shown(self) -> bool:
        """Whether there is a bar now."""
        return self._display is not None

    def follow(self, event: LogEvent) -> None:
        """Move, add or remove a bar."""
        match event:
            case Progress():
                self._move(event)
            case FileReceived(path=path) | FileDeleted(path=path) | Refused(name=path, peer=""):
                self._remove("", path)
            case FileWithdrawn(path=path):
                for peer, _ in [key for key in self._tasks if key[1] == path]:
                    self._remove(peer, path)
            case FileSent(path=path, peer=peer):
                self._remove(peer, path)
            case PeerClosed(peer=peer):
                for owner, path in list(self._tasks):
                    if owner in (peer, ""):
                        self._remove(owner, path)

    def close(self) -> None:
        """Remove every bar."""
        display, self._display = self._display, None
        self._tasks.clear()
        if display is not None:
            display.stop()

    def _move(self, file: Progress) -> None:
        if self._display is None:
            self._display = _make_display()
            self._display.start()
        key = (file.peer, file.path)
        state = _describe(file)
        if key in self._tasks:
            self._display.update(self._tasks[key], completed=file.octets, state=state, refresh=True)
            return
        client = f" to {file.peer}" if file.peer else ""
        room = max(SHORTEST_NAME, self._display.console.width - REST_COLUMNS - len(client))
        title = f"{_shorten(show(file.path), room)}{client}"
        self._tasks[key] = self._display.add_task(title, total=file.size, completed=file.octets, state=state)

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
        TextColumn("{task.fields[state]}", markup=False),
        console=messages(),
        auto_refresh=False,  # moved once a second, when there is news
        transient=True,
    )


def _describe(file: Progress) -> str:
    """Return amount, rate and time left, each with a fixed width, so that bars do not jump."""
    rate = show_rate(file.octets_per_s)
    if file.size is None:
        return f"{show_octets(file.octets):>20} {rate:>10}"
    left = show_duration((file.size - file.octets) / file.octets_per_s)
    return f"{show_share(file.octets, file.size):>5} of {show_octets(file.size):>8} {rate:>10} {left:>7} left"


def _shorten(name: str, room: int) -> str:
    return name if len(name) <= room else f"…{name[1 - room :]}"
