"""`specwire filemq`: publish folders, subscribe to them, and print the status of running peers."""

from __future__ import annotations

import typer

from specwire.runtime.cli.config_sections import load_section
from specwire.runtime.cli.filemq_running import EXIT_STATUSES
from specwire.runtime.cli.filemq_serve import serve
from specwire.runtime.cli.filemq_status import status
from specwire.runtime.cli.filemq_subscribe import subscribe
from specwire.runtime.cli.settings_command import settings_command

app = typer.Typer(help="Publish folders over FILEMQ, or subscribe to them.", no_args_is_help=True)
app.command("serve", epilog=EXIT_STATUSES)(settings_command(load_section("filemq.serve"), serve))
app.command("subscribe", epilog=EXIT_STATUSES)(settings_command(load_section("filemq.subscribe"), subscribe))
app.command(epilog="Exit status: 0; 1 when TARGET is not running or does not answer; 2 for usage.")(status)


@app.callback()
def filemq() -> None:
    """Publish folders over FILEMQ, or subscribe to them."""
