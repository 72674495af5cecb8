"""`specwire capture`: record what two peers say, and look after what was recorded."""

from __future__ import annotations

import typer

from specwire.runtime.cli.capture_compact import compact
from specwire.runtime.cli.capture_list import list_
from specwire.runtime.cli.capture_proxy import proxy
from specwire.runtime.cli.capture_prune import prune

app = typer.Typer(help="Record what two peers say, and look after captures.", no_args_is_help=True)
app.command(
    epilog="Exit status: 0 after SIGINT or SIGTERM; 1 where it cannot listen; 2 for usage and bad input."
)(proxy)
app.command("list", epilog="Exit status: 0; 2 for usage, and where there is no capture.")(list_)
app.command(epilog="Exit status: 0; 2 for usage, and where the folder cannot be compacted.")(compact)
app.command(epilog="Exit status: 0; 2 for usage, and where there is no such folder.")(prune)


@app.callback()
def capture() -> None:
    """Record what two peers say, and look after captures."""
