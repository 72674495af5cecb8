"""What a person sees while a job runs: a table on a terminal, lines elsewhere, nothing that a worker could forge."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from specwire.runtime.cli import norfab_client_view as view_module
from specwire.runtime.cli.norfab_client_view import ROWS, JobView, describe
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
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.client.states import State

END = JobEnded(JobResult("u", "svc", "add", "all", State.COMPLETED))


def shown(view: JobView) -> str:
    """Return what is on the terminal now."""
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as capture:
        console.print(view._render())
    return capture.get()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal in place of standard error."""
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(view_module, "messages", lambda: console)
    return screen


def test_a_table_on_a_terminal(terminal: io.StringIO) -> None:
    """Those that still work come first, with what they say; a loss stands at the top."""
    view = JobView("add of svc")
    view.tell(JobAccepted("u"))
    assert "add of svc: the broker has it (0 s)" in shown(view)
    view.tell(JobChanged("u", State.STARTED, ("w1", "w2", "w3"), ("w1", "w2"), ("w2",)))
    view.tell(Progress("u", "w3", "half \x1b[31mdone"))
    lines = [line.split() for line in shown(view).splitlines()]
    assert lines[0][:6] == ["add", "of", "svc:", "2", "of", "3"]
    assert lines[2] == ["w3", "at", "work", "half", "\\x1b[31mdone"]
    assert lines[3] == ["w1", "done"] and lines[4] == ["w2", "failed"]
    view.tell(ConnectionLost("tcp://b", "the connection was lost"))
    assert "no connection to tcp://b: the connection was lost" in shown(view)
    view.tell(Connected("tcp://b"))
    assert "connected to tcp://b" in shown(view)
    view.tell(END)
    assert "\x1b[?25h" in terminal.getvalue()


def test_very_many_workers(terminal: io.StringIO) -> None:
    """The table does not outgrow a terminal."""
    view = JobView("add of svc")
    names = tuple(f"w{number:03}" for number in range(200))
    view.tell(JobChanged("u", State.STARTED, names, names[:150]))
    rows = shown(view).splitlines()
    assert len(rows) == ROWS + 3 and rows[2].startswith("w150") and "and 185 more" in rows[-1]
    view.close()


def test_lines_elsewhere(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each thing that happens; quiet ones for trouble alone."""
    monkeypatch.setattr(view_module, "messages", lambda: Console(file=io.StringIO()))
    story: list[Happening] = [
        JobAccepted("u"),
        JobWaits("u"),
        JobWaits("u"),
        JobChanged("u", State.DISPATCHED, ("w1",)),
        Progress("u", "w1", "step\n1", severity="WARNING"),
        JobPostponed("u", "the disk is behind"),
        JobPostedAgain("u", "w1", "the uuid is unknown"),
        ConnectionLost("tcp://b", "gone"),
        StoreFailed("disk full"),
        END,
    ]

    def lines(*, quiet: bool) -> list[str]:
        view = JobView("add of svc", quiet=quiet)
        for happening in story:
            view.tell(happening)
        return [line[9:] for line in capsys.readouterr().err.splitlines()]

    trouble = [
        "the broker says: the disk is behind; it is asked again",
        "posted again: the uuid is unknown",
        "no connection to tcp://b: gone; waiting for a broker (`specwire norfab broker` runs one)",
        "disk full",
    ]
    told = ["no worker has it yet", "0 of 1 workers have answered", "w1: WARNING step\\n1"]
    assert lines(quiet=False) == [*told, *trouble]
    assert lines(quiet=True) == ["no worker has it yet", *trouble]


def test_values() -> None:
    """Text as it is, the rest as JSON; nothing is too deep for a command to end well."""
    assert describe("15.2(4)M") == "15.2(4)M"
    assert describe({"a": [1, None]}) == '{"a":[1,null]}'
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert describe(deep) == "(nested too deep to be shown)"
