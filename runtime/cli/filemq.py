"""`specwire filemq`: distribute a folder, keep a copy of one, ask how those are that do."""

from __future__ import annotations

import typer

from specwire.runtime.cli.filemq_options import EXIT_STATUSES
from specwire.runtime.cli.filemq_serve import serve
from specwire.runtime.cli.filemq_status import status
from specwire.runtime.cli.filemq_subscribe import subscribe

app = typer.Typer(help="Serve a folder to FILEMQ clients, or fetch one.", no_args_is_help=True)
app.command(epilog=EXIT_STATUSES)(serve)
app.command(epilog=EXIT_STATUSES)(subscribe)
app.command(epilog="Exit status: 0; 1 when TARGET is not running or does not answer; 2 for usage.")(status)


@app.callback()
def filemq() -> None:
    """Serve a folder to FILEMQ clients, or fetch one."""
