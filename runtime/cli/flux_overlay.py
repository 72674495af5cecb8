"""`specwire flux overlay status` and `errors`: the tree of brokers, how each is, and why some are lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from specwire.runtime.cli.console import fail, print_json
from specwire.runtime.cli.flux_client import (
    EXIT_STATUSES,
    ColorOption,
    JsonOption,
    TimeoutOption,
    UriOption,
    connected,
    give_up,
    is_printable,
    patience,
    print_line,
    run,
    wants_colour,
)

if TYPE_CHECKING:
    from specwire.runtime.flux.survey import Branch

ANSWER_S = 0.5
"""As in flux-core: one broker that does not answer is not to hold up the rest for long."""


class Joints(NamedTuple):
    """What a tree is drawn with."""

    pipe: str
    tee: str
    elbow: str
    blank: str = "   "


LINES, ASCII = Joints("│  ", "├─ ", "└─ "), Joints("|  ", "|- ", "`- ")
GREY, PLAIN = "\x1b[90m", "\x1b[39m"
COLOURS = {"lost": "\x1b[31m", "offline": "\x1b[33m"}

app = typer.Typer(help="Look at the tree of brokers.", no_args_is_help=True)


@app.callback()
def overlay() -> None:
    """Look at the tree of brokers."""


@app.command(epilog=EXIT_STATUSES)
def status(
    rank: Annotated[int, typer.Option("--rank", "-r", min=0, help="Where to begin.")] = 0,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, help="Since when it is so; -vv: how long each answer took."
        ),
    ] = 0,
    summary: Annotated[bool, typer.Option("--summary", help="One word for the whole subtree.")] = False,
    down: Annotated[bool, typer.Option("--down", help="Leave out what is full.")] = False,
    pretty: Annotated[bool, typer.Option("--pretty/--no-pretty", help="Draw the tree.")] = True,
    ghosts: Annotated[
        bool, typer.Option("--ghost/--no-ghost", help="Fill in what is below brokers that are gone.")
    ] = True,
    wait: Annotated[
        str | None,
        typer.Option("--wait", "-w", metavar="STATUS", help="Wait until it is so.", show_default=False),
    ] = None,
    color: ColorOption = "auto",
    uri: UriOption = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the tree: full, partial (some never came, or left), degraded (some were lost), lost, offline."""
    drawing = Drawing(verbose, pretty, in_colour=wants_colour(color))

    async def story() -> None:
        import msgspec

        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.inquiry import get_health
        from specwire.runtime.flux.survey import STATUSES, Branch, Survey, await_status

        if wait is not None and wait not in STATUSES:
            fail(f"--wait {wait}: one of {', '.join(STATUSES)} is wanted")
        wait_s = patience(timeout, ANSWER_S)
        async with connected(uri) as handle:
            try:
                if wait is not None:
                    await await_status(handle, rank, wait, patience(timeout, None))
                if summary:
                    top = await get_health(handle, rank, wait_s)
                    branch = Branch(top.rank, "", top.status, top.duration)
                else:
                    survey = Survey(handle, wait_s, leaves=verbose > 1, ghosts=ghosts, down=down)
                    branch = await survey.look(rank)
            except FluxError as error:
                give_up(error, f"rank {rank}")
        if as_json:
            print_json(msgspec.to_builtins(branch))
        elif summary:
            print_line(drawing.describe(branch))
        elif not (down and branch.status == "full"):
            for line in drawing.lines(branch):
                print_line(line)

    run(story())


@app.command(epilog=EXIT_STATUSES)
def errors(uri: UriOption = None, timeout: TimeoutOption = None, as_json: JsonOption = False) -> None:
    """Print why brokers are lost or do not answer: a line for each reason, with those that have it."""

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.survey import Survey, each

        async with connected(uri) as handle:
            try:
                top = await Survey(handle, patience(timeout, ANSWER_S), ghosts=False).look(0)
            except FluxError as error:
                give_up(error, "rank 0")
        found: dict[str, list[Branch]] = {}
        for branch in each(top):
            if reason := branch.error or ("torpid" if branch.torpid else ""):
                found.setdefault(reason, []).append(branch)
        if as_json:
            print_json({reason: [branch.rank for branch in several] for reason, several in found.items()})
            return
        for reason, several in found.items():
            print_line(summarise(reason, several))

    run(story())


def summarise(reason: str, branches: Sequence[Branch]) -> str:
    """Return the line of a reason."""
    from specwire.runtime.flux.hostlist import compress
    from specwire.runtime.flux.ranks import format_ranks
    from specwire.runtime.log.text import show

    hosts = compress(branch.host for branch in branches)
    return f"{show(hosts)} (rank {format_ranks(branch.rank for branch in branches)}): {show(reason)}"


class Drawing:
    """A tree as `flux overlay status` prints it."""

    def __init__(self, verbose: int, pretty: bool, *, in_colour: bool) -> None:
        self._verbose, self._pretty, self._in_colour = verbose, pretty, in_colour
        self._joints = LINES if is_printable("".join(LINES)) else ASCII

    def lines(self, branch: Branch, before: str = "", joint: str = "") -> Iterator[str]:
        """Yield the lines of a branch; its first one stands behind `before` and `joint`."""
        from specwire.runtime.log.text import show

        took = f" ({branch.asked_ms:.3f} ms)" if self._verbose > 1 and branch.asked_ms is not None else ""
        edge = f"{before}{joint}" if self._pretty else ""
        yield f"{edge}{branch.rank} {show(branch.host)}: {self.describe(branch)}{took}"
        pipe, tee, elbow, blank = self._joints
        if joint:
            before += blank if joint == elbow else pipe
        for child in branch.children:
            yield from self.lines(child, before, elbow if child is branch.children[-1] else tee)

    def describe(self, branch: Branch) -> str:
        """Return the status, since when and why; of a broker that did not answer, only why."""
        from specwire.runtime.flux.durations import format_duration
        from specwire.runtime.log.text import show

        status, error = show(branch.status), show(branch.error)
        if error and branch.duration is None:
            return error
        if self._in_colour and (colour := GREY if branch.ghost else COLOURS.get(status)):
            status = f"{colour}{status}{PLAIN}"
        if branch.torpid:
            status = f"{status}, torpid"
        if self._verbose and branch.duration is not None:
            status = f"{status} for {format_duration(branch.duration)}"
        return f"{status} {error}" if error else status
