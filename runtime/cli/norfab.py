"""`specwire norfab`: run a broker and workers, give jobs to them, and look at what they do."""

from __future__ import annotations

import typer

from specwire.runtime.cli.norfab_broker import broker
from specwire.runtime.cli.norfab_client import app as client
from specwire.runtime.cli.norfab_keys import keys
from specwire.runtime.cli.norfab_show import app as show
from specwire.runtime.cli.norfab_store import app as store
from specwire.runtime.cli.norfab_worker import worker

RUNNING = "Exit status: 0 after SIGINT or SIGTERM; 1 when it failed; 2 for usage and bad input."

app = typer.Typer(help="Run a NORFAB broker and workers, and give jobs to them.", no_args_is_help=True)
app.command(epilog=RUNNING)(broker)
app.command(epilog=RUNNING)(worker)
app.command(epilog="Exit status: 0; 2 for usage and bad input.")(keys)
app.add_typer(client, name="client")
app.add_typer(show, name="show")
app.add_typer(store, name="store")


@app.callback()
def norfab() -> None:
    """Run a NORFAB broker and workers, and give jobs to them."""
