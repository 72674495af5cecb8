"""Output of commands: results to standard output, everything else to standard error.

A program may read standard output, so progress, warnings and errors do not go there. Rich uses
colour and progress bars only on a terminal, separately for each stream.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from specwire.runtime.log.text import show, show_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

BY_SIGNAL = 128
"""Added by shells to a signal's number for the exit status of a process that it ended."""

PIPE_COLUMNS = 200
"""Width without a terminal; ``COLUMNS`` in the environment may set a larger one."""


class CommandError(Exception):
    """A command cannot do what was asked: one sentence for the user, and the exit status.

    Status 2 is for errors that the user can fix (usage, bad input), 1 for a job that failed.
    """

    def __init__(self, sentence: str, *, status: int = 2) -> None:
        super().__init__(sentence)
        self.status = status


def fail(sentence: str, *, status: int = 2) -> NoReturn:
    """End the command with `sentence` on standard error and exit status `status`."""
    raise CommandError(sentence, status=status)


def meant(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about a name that is not known: the one that was probably meant."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


@cache
def output() -> Console:
    """Return the console of standard output, for results that a person reads."""
    from rich.console import Console

    return Console(highlight=False)


def wide_output() -> Console:
    """Return the console of standard output for tables; for a pipe it is so wide that values stay whole."""
    console = output()
    if not console.is_terminal:
        console.width = max(console.width, PIPE_COLUMNS)
    return console


def new_table(*heads: str, **options: Any) -> Table:
    """Return a table with lines around its cells on a terminal, and without them in a pipe or file."""
    from rich.table import Table

    if not output().is_terminal:
        options |= {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0), "header_style": ""}
    return Table(*heads, **options)


@cache
def messages() -> Console:
    """Return the console of standard error, for progress, notes and warnings."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show `words` as a status on standard error while the block runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with messages().status(words):
        yield


def print_json(value: Any) -> None:
    """Write `value` to standard output as JSON for programs: indented, keys in the order given."""
    sys.stdout.write(show_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def print_error(sentence: str) -> None:
    """Write `sentence` to standard error: no markup, no wrapping, carets stay in their columns.

    It may quote a file or a peer, so unprintable characters are escaped.
    """
    sys.stderr.write(show(sentence.rstrip("\n"), keep="\n\t") + "\n")
