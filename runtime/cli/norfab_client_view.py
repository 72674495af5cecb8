"""What a person sees of a job: how far it is while it runs, and what came of it.

While a job runs, standard error has a table of its workers on a terminal, and a line for each thing that happens elsewhere. The
result goes to standard output: a table on a terminal, whole values where a program reads it. What comes from the network
is made harmless first.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.cli.console import fail, messages, output
from specwire.runtime.log.text import show
from specwire.runtime.norfab.client.events import (
    Connected,
    ConnectionLost,
    Happening,
    JobAccepted,
    JobChanged,
    JobEnded,
    JobPostedAgain,
    JobPostponed,
    JobWaits,
    Progress,
    StoreFailed,
)
from specwire.runtime.norfab.client.results import JobResult, WorkerResult
from specwire.runtime.norfab.pendingcommits import StoreRecovered

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

ROWS = 15
"""Workers in the table of a job that runs."""
REFRESH_S = 0.25


class JobView:
    """Tells what happens to a job.

    Args:
        title: what is done.
        quiet: only what goes wrong is told.
    """

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self._title, self._quiet = title, quiet
        self._began = time.monotonic()
        self._workers: dict[str, str] = {}
        self._answered: set[str] = set()
        self._failed: set[str] = set()
        self._note = "is on its way to the broker"
        console = messages()
        self._moves = console.is_terminal and not console.is_dumb_terminal and not quiet
        self._live: Live | None = None

    def tell(self, happening: Happening) -> None:
        """Take what happened."""
        match happening:
            case Progress(worker=worker, message=message, severity=severity):
                self._workers[worker] = show(message)
                if not self._moves and not self._quiet:
                    word = "" if severity == "INFO" else f" {show(severity)}"
                    self._line(f"{show(worker)}:{word} {show(message)}")
            case JobAccepted():
                self._note = "the broker has it"
            case JobChanged(workers=workers, answered=answered, failed=failed):
                for worker in workers:
                    self._workers.setdefault(worker, "")
                self._answered, self._failed = set(answered), set(failed)
                self._say(f"{len(answered)} of {len(workers)} workers have answered", trouble=False)
            case JobWaits():
                self._say("no worker has it yet")
            case ConnectionLost(endpoint=endpoint, reason=reason):
                self._say(
                    f"no connection to {endpoint}: {reason}; waiting for a broker (`specwire norfab broker` runs one)"
                )
            case Connected(endpoint=endpoint) if self._note.startswith("no connection"):
                self._say(f"connected to {endpoint}")
            case JobPostponed(reason=reason):
                self._say(f"the broker says: {reason}; it is asked again")
            case JobPostedAgain(reason=reason):
                self._say(f"posted again: {reason}")
            case StoreFailed(reason=reason):
                self._line(show(reason))
            case StoreRecovered():
                self._line("the disk accepts writes again")
            case JobEnded():
                self.close()
                return
        self._draw()

    def close(self) -> None:
        """Leave the terminal as it was."""
        live, self._live = self._live, None
        self._moves = False
        if live is not None:
            live.stop()

    def _say(self, note: str, *, trouble: bool = True) -> None:
        if note != self._note:
            self._note = note
            if not self._moves and (trouble or not self._quiet):
                self._line(show(note))

    def _line(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, soft_wrap=True)
        else:
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def _draw(self) -> None:
        if not self._moves or self._live is not None:
            return
        from rich.live import Live

        self._live = Live(
            get_renderable=self._render,
            console=messages(),
            transient=True,
            refresh_per_second=1 / REFRESH_S,
        )
        self._live.start()

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        seconds = time.monotonic() - self._began
        head = Text(f"{show(self._title)}: {show(self._note)} ({seconds:.0f} s)", style="bold")
        return Group(head, self._table()) if self._workers else head

    def _table(self) -> Table:
        # Those that still work come first: of many, they are what is waited for.
        names = sorted(self._workers, key=lambda name: (name in self._answered, name))
        rows = [(show(name), self._state_of(name), self._workers[name]) for name in names[:ROWS]]
        if len(names) > ROWS:
            rows.append((f"and {len(names) - ROWS} more", "", ""))
        return make_table(("worker", "state", "says"), rows)

    def _state_of(self, name: str) -> str:
        if name in self._failed:
            return "failed"
        return "done" if name in self._answered else "at work"


def make_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Table:
    """Return a table of texts; columns that are empty in every row are left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    used = [n for n in range(len(heads)) if not rows or any(row[n] for row in rows)]
    for n in used:
        table.add_column(heads[n], justify="right" if n in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[n], style=_STYLES.get(row[n], "")) for n in used))
    return table


_STYLES = {
    "COMPLETED": "green",
    "done": "green",
    "FAILED": "red",
    "failed": "red",
    "no answer": "red",
    "STALE": "yellow",
    "at work": "yellow",
}


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Write a table to standard output: as wide as the terminal, or with whole values in columns of tabs."""
    console = output()
    shown = [[show(cell) for cell in row] for row in rows]
    if console.is_terminal:
        console.print(make_table(heads, shown, right))
        return
    for row in [list(heads), *shown]:
        sys.stdout.write("\t".join(row) + "\n")


def print_result(result: JobResult) -> None:
    """Write what came of a job."""
    rows = [(name, _word(part), _value(part)) for name, part in sorted(result.results.items())]
    rows += [(name, "no answer", "") for name in result.missing]
    if rows:
        print_table(("worker", "state", "result"), rows)


def _word(part: WorkerResult) -> str:
    return "failed" if part.failed else "done"


def _value(part: WorkerResult) -> str:
    if part.failed:
        return part.cause
    who = f" (by {part.done_by}, attempt {part.attempt})" if part.attempt > 1 or part.done_by else ""
    return f"{describe(part.result)}{who}"


def describe(value: Any) -> str:
    """Return a value as a person reads it: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "(nested too deep to be shown)"


def as_json(value: Any) -> str:
    """Return a value as JSON for programs, in ASCII: a terminal obeys more than a program would."""
    import json

    try:
        return json.dumps(msgspec.to_builtins(value), indent=2)
    except RecursionError:
        fail("the answer is nested too deep to be printed", status=1)
