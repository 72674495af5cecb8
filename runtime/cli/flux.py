"""`specwire flux`: run the brokers of an instance, and talk to them."""

from __future__ import annotations

import typer

from specwire.runtime.cli import flux_attr, flux_event, flux_overlay, flux_overlay_ranks
from specwire.runtime.cli.flux_broker import broker
from specwire.runtime.cli.flux_client import EXIT_STATUSES
from specwire.runtime.cli.flux_dmesg import dmesg
from specwire.runtime.cli.flux_ping import ping
from specwire.runtime.cli.flux_rpc import rpc, stats
from specwire.runtime.cli.flux_simulate import simulate
from specwire.runtime.cli.flux_start import start
from specwire.runtime.cli.flux_status import status

app = typer.Typer(help="Run an instance of Flux brokers, and talk to it.", no_args_is_help=True)
app.command(epilog="Exit status: that of COMMAND; else 0, 1 when the instance failed, 2 for usage.")(start)
app.command(epilog="Exit status: 0 after SIGINT or SIGTERM; 1 when it failed; 2 for usage.")(broker)
app.command(epilog=EXIT_STATUSES)(ping)
app.command(epilog=EXIT_STATUSES)(rpc)
app.add_typer(flux_event.app, name="event")
app.command("getattr", epilog=EXIT_STATUSES)(flux_attr.get)
app.command("setattr", epilog=EXIT_STATUSES)(flux_attr.set_)
app.command("lsattr", epilog=EXIT_STATUSES)(flux_attr.list_)
for command in (flux_overlay_ranks.lookup, flux_overlay_ranks.parentof, flux_overlay_ranks.disconnect):
    flux_overlay.app.command(epilog=EXIT_STATUSES)(command)
app.add_typer(flux_overlay.app, name="overlay")
app.command(epilog=EXIT_STATUSES)(dmesg)
app.command(epilog=EXIT_STATUSES)(stats)
app.command(epilog="Exit status: 0; 1 when a broker does not answer; 2 for usage.")(status)
app.command(epilog="Exit status: 0; 2 for usage and for a scenario that cannot be used.")(simulate)


@app.callback()
def flux() -> None:
    """Run an instance of Flux brokers, and talk to it."""
