"""`specwire filemq serve`: publish folders until SIGINT or SIGTERM, and then stop cleanly.

Clients are notified, and receive the rest when they connect to the next server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import msgspec
import platformdirs
import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.cli.filemq_reloading import ServerFiles
from specwire.runtime.cli.filemq_running import JOB_FAILED, PeerMonitor, is_started, open_tap, when_true
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.filemq import FilemqServer, Publication
from specwire.runtime.filemq.catalogue import Doubt, Put, Unfit
from specwire.runtime.filemq.codec import find_dialect
from specwire.runtime.filemq.names import is_folder
from specwire.runtime.filemq.policy import PublicationRules
from specwire.runtime.filemq.settings import BOUNDS, ServeSettings, read_publication
from specwire.runtime.kernel.service import raise_descriptor_limit
from specwire.runtime.kernel.settings_sources import ServerConfiguration
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count, show_octets
from specwire.runtime.transport.errors import ExposureError, TransportError

if TYPE_CHECKING:
    from specwire.runtime.capture import Tap
    from specwire.runtime.filemq.digeststore import DigestStore


def serve(settings: ServeSettings, configuration: ServerConfiguration) -> None:
    """Publish the folders until a signal comes."""
    if settings.dry_run:
        print_publications(settings)
        return
    log = PeerLog(quiet=settings.quiet, role="filemq-server", form=settings.log_format)
    try:
        monitor = PeerMonitor(settings, log)
        files = ServerFiles(settings, log)
        with open_digests(settings) as store, open_tap(settings, "server") as tap:
            server = make_server(settings, files, log, store=store, tap=tap)
            files.attach(server)
            reloading = Reloading(
                configuration,
                log.line,
                appliers={
                    **monitor.appliers,
                    **files.appliers,
                    "accept_empty": when_true(server.accept_empty),
                    "ignore": server.ignore,
                },
                rereads=[files.reread] if files.any else [],
            )
            asyncio.run(_serve(server, reloading, monitor, log))
    except (ValueError, ExposureError) as error:
        fail(str(error))
    except TransportError as error:
        fail(str(error), status=JOB_FAILED)
    finally:
        log.close()


def print_publications(settings: ServeSettings) -> None:
    """Print the files that would be published and what would be refused."""
    files = octets = 0
    try:
        for publication in make_publications(settings, None):
            publication.open(longest_octets=find_dialect(settings.protocol).habits.longest_name_octets)
            with closing(publication):
                for change in publication.scan():
                    match change:
                        case Put(entry=entry):
                            typer.echo(show(f"publish {entry.name} ({show_octets(entry.size)})"))
                            files, octets = files + (not is_folder(entry.name)), octets + entry.size
                        case Unfit(name=name, reason=reason) | Doubt(name=name, reason=reason):
                            typer.echo(show(f"refuse {name}: {reason}"))
    except (OSError, ValueError) as error:
        fail(str(error))
    typer.echo(f"{show_count(files, 'file')}, {show_octets(octets)}")


def make_publications(settings: ServeSettings, store: DigestStore | None) -> list[Publication]:
    """Return the publications that the settings describe; raises ValueError."""
    rules = PublicationRules(
        accept_empty=settings.accept_empty,
        settle_s=settings.settle,
        ignore=settings.ignore,
        empty_folders=settings.empty_folders,
    )
    alone = len(settings.folders) == 1
    return [read_publication(text, alone=alone, digests=store, rules=rules) for text in settings.folders]


def make_server(
    settings: ServeSettings, files: ServerFiles, log: PeerLog, *, store: DigestStore | None, tap: Tap | None
) -> FilemqServer:
    """Return the server that the settings describe; raises ValueError or ExposureError."""
    bounds = msgspec.structs.replace(
        BOUNDS, message_octets=settings.message_octets, undelivered_octets=settings.undelivered_octets
    )
    return FilemqServer(
        make_publications(settings, store),
        settings.endpoint,
        tap=tap,
        protocol=settings.protocol,
        security=files.security,
        clients=files.clients,
        insecure=settings.insecure,
        bounds=bounds,
        on_event=log.tell,
    )


@contextmanager
def open_digests(settings: ServeSettings) -> Iterator[DigestStore | None]:
    """Open the store of digests, None if none are kept."""
    if settings.no_digests:
        yield None
        return
    from specwire.runtime.filemq.digeststore import DigestStore

    folder = settings.digests or platformdirs.user_cache_path("specwire", appauthor=False)
    with closing(DigestStore(folder)) as store:
        yield store


async def _serve(server: FilemqServer, reloading: Reloading, monitor: PeerMonitor, log: PeerLog) -> None:
    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit(log.line)
    reloading.listen()
    if not await is_started(server.start(), stop):
        log.line("stopped before the folders were read")
        return
    try:
        reloading.begin()
        async with monitor.attend(server):
            log.line(f"serving {show_count(len(server.digests()), 'file')} on {server.endpoint}")
            ready.tell()
            await stop
            log.line("stopping")
    finally:
        await server.stop()
    monitor.conclude(server.status())
