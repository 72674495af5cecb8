"""`specwire filemq subscribe`: keep a folder equal to what a server publishes, until a signal.

Disk work that has begun is finished first; the rest follows at the next start. A subscriber that
the server refuses ends with status 1. A dry run prints what would be received and deleted, and ends.
"""

from __future__ import annotations

import asyncio
import os

import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.cli.filemq_running import JOB_FAILED, PeerMonitor, open_tap, when_true
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.filemq import FilemqClient, InboxError
from specwire.runtime.filemq.access import ClientSecurity, origin_of, read_client_security
from specwire.runtime.filemq.codec import FILEMQ
from specwire.runtime.filemq.connection import Paths
from specwire.runtime.filemq.disk import marks_above
from specwire.runtime.filemq.names import is_folder
from specwire.runtime.filemq.preview import ListingError, list_files, preview
from specwire.runtime.filemq.settings import SubscribeSettings
from specwire.runtime.kernel.service import raise_descriptor_limit
from specwire.runtime.kernel.settings_sources import ServerConfiguration
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count, show_octets
from specwire.runtime.transport.errors import TransportError

WITHHELD = "; too many at once: they would be withheld until --accept-deletions"


def subscribe(settings: SubscribeSettings, configuration: ServerConfiguration) -> None:
    """Receive files until a signal comes, or the server refuses the subscriber."""
    if settings.dry_run:
        print_preview(settings)
        return
    log = PeerLog(quiet=settings.quiet, role="filemq-subscriber", form=settings.log_format)
    try:
        monitor = PeerMonitor(settings, log)
        security = read_security(settings)
        with open_tap(settings, "client") as tap:
            client = FilemqClient(
                settings.server,
                settings.inbox,
                settings.paths,
                tap=tap,
                protocol=settings.protocol,
                security=security,
                origin=settings.origin,
                preserve=settings.preserve,
                check=settings.check,
                rules=settings.rules,
                on_event=log.tell,
            )
            appliers = {"accept_deletions": when_true(client.accept_deletions), **monitor.appliers}
            reloading = Reloading(configuration, log.line, appliers=appliers)
            reason = asyncio.run(_subscribe(client, reloading, monitor, log))
    except ValueError as error:
        fail(str(error))
    except (InboxError, TransportError) as error:
        fail(str(error), status=JOB_FAILED)
    finally:
        log.close()
    if reason is not None:
        fail(reason, status=JOB_FAILED)


def print_preview(settings: SubscribeSettings) -> None:
    """Print what would be received and deleted."""
    try:
        security = read_security(settings)
        paths = Paths(settings.paths, FILEMQ.habits, folders=settings.preserve)
        listing = list_files(
            settings.server,
            paths,
            security=security,
            folders=settings.preserve,
            marks=marks_above(settings.inbox),
        )
        found = preview(
            asyncio.run(listing),
            settings.inbox,
            paths,
            rules=settings.rules,
            origin=settings.origin or origin_of(settings.server, security),
            folders=settings.preserve,
        )
    except ValueError as error:
        fail(str(error))
    except (InboxError, ListingError, TransportError) as error:
        fail(str(error), status=JOB_FAILED)
    lines = [
        *(f"receive {file.name} ({show_octets(file.size)})" for file in found.missing),
        *(f"replace {file.name} ({show_octets(file.size)})" for file in found.changed),
        *(f"refuse {name}: {reason}" for name, reason in found.refused),
        *(f"delete {name}" for name in found.deleted),
    ]
    for line in lines:
        typer.echo(show(line))
    arriving = [file for file in (*found.missing, *found.changed) if not is_folder(file.name)]
    octets = show_octets(sum(file.size for file in arriving))
    deletions = f"{len(found.deleted):,} to delete{WITHHELD if found.withholds else ''}"
    typer.echo(f"{show_count(len(arriving), 'file')} to receive ({octets}), {deletions}")


def read_security(settings: SubscribeSettings) -> ClientSecurity:
    """Return how the subscriber proves its identity; raises ValueError."""
    return read_client_security(
        curve=settings.curve,
        server_key=settings.server_key,
        user=settings.user,
        password_file=settings.password_file,
        environment=os.environ,
    )


async def _subscribe(
    client: FilemqClient, reloading: Reloading, monitor: PeerMonitor, log: PeerLog
) -> str | None:
    """Run until a signal comes; return the reason if the server ended it for good."""
    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit()
    reloading.listen()
    async with client, monitor.attend(client):
        reloading.begin()
        ready.tell()
        await asyncio.wait((stop, client.finished), return_when=asyncio.FIRST_COMPLETED)
        reason = client.finished.result() if client.finished.done() else None
        log.line("stopping")
    monitor.conclude(client.status())
    return reason
