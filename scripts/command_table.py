"""The table of all commands in docs/reference/command-line.md, written from the commands themselves.

``python scripts/command_table.py docs/reference/command-line.md`` writes what stands between the two markers; with ``--check``
it compares, prints the difference and ends with status 1 where there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from marked import write_or_check
from specwire.runtime.cli.main import COMMANDS, load_command

SERVER = "a server, whose log goes to standard error"
PAYLOAD = "prints the service's payload, which is JSON"
SILENT = "prints nothing"
LINES = "prints lines of JSON"
TEXT = "writes the text of a file"

WITHOUT_JSON = {
    "flux start": SERVER,
    "flux broker": SERVER,
    "norfab broker": SERVER,
    "norfab worker": SERVER,
    "flux rpc": PAYLOAD,
    "flux stats": PAYLOAD,
    "flux setattr": SILENT,
    "flux overlay disconnect": SILENT,
    "norfab client delete": SILENT,
    "norfab store export": LINES,
    "config example": TEXT,
    "config systemd": TEXT,
}
"""Commands that have no --json, and why they need none."""


@cache
def leaf_commands() -> dict[str, Any]:
    """Return every command that does something, by its words: ``filemq serve``."""
    return dict(pair for name in COMMANDS for pair in _leaves(load_command(name), name))


def options_of(command: Any) -> dict[str, Any]:
    """Return the parameters of a command that are options, by each spelling."""
    return {
        spelling: parameter
        for parameter in command.params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
        if spelling.startswith("-")
    }


def write_table() -> str:
    """Return the table: a row for each command, in the order of ``specwire --help``."""
    rows = [_row(words, command) for words, command in leaf_commands().items()]
    return "".join(f"{row}\n" for row in ["| command | what it does | exit status |", "|---|---|---|", *rows])


def _leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from _leaves(below, f"{words} {name}")
    else:
        yield words, command


def _row(words: str, command: Any) -> str:
    does = " ".join((command.help or "").partition("\n\n")[0].split())
    without = f" (no `--json`: {WITHOUT_JSON[words]})" if words in WITHOUT_JSON else ""
    status = " ".join((command.epilog or "").split()).removeprefix("Exit status: ")
    cells = (f"`specwire {words}`", f"{does}{without}", status)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main(arguments: list[str]) -> int:
    """Write or compare the page that is named; return the exit status."""
    return write_or_check(arguments, "commands", write_table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
